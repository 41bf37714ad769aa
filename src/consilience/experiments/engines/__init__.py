"""Where the turns of a run's items are taken: in this process, or by workers on a cluster."""
