"""What a judgement is: answers, contracts, questions, packets, roles, panels. Values and pure functions; no I/O."""
