"""Decisions: votes that escalate, dissent that is kept, and what became of them."""
