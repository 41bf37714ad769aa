"""What an agent can search, and what of it may be shown."""
