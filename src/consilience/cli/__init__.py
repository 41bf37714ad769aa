"""The command line: every verb is a thin layer over a function that can be called without it."""

from consilience.cli.app import main

__all__ = ["main"]
