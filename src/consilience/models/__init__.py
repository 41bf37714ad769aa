"""Who answers: vendors, servers, an embedded model, simulated analysts, a record; and the pool all calls leave by."""
