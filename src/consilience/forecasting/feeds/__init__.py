"""Where forecast questions come from; a feed that fails is an error, never a different question."""
