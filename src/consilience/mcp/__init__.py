"""A server of the Model Context Protocol: assistants ask panels, under a cap, and read what is on record."""
