"""Where forecast questions come from: files, question sets, markets. A feed that fails is an error, never a different question."""
