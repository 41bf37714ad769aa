"""The research loop of one agent: actions, evidence, gates, and what is derived from them in code."""
