"""The web viewer: pages over recorded runs. It reads, and can start nothing."""
