"""Research agents, panels of them, and honest back-tests: what was knowable at the cutoff, and what it was worth."""
