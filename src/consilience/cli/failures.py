"""Errors become a message on stderr and an exit code, here and nowhere else."""

from __future__ import annotations

import os
import sys
import traceback

from consilience.cli.console import note
from consilience.cli.watch import INTERRUPTED
from consilience.errors import explained

ERROR = 1
USAGE = 2


def report(error: BaseException, *, debug: bool) -> int:
    """Say what happened, where, and what to do; return the exit code.

    Args:
        error: What ended the command.
        debug: Print the traceback too.
    """
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has seen enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    if debug:
        note("".join(traceback.format_exception(error)).rstrip())
    code, message, hint = _told(error)
    if message:  # help that was printed instead needs no more words
        note(f"error: {message}" if code != INTERRUPTED else message)
    if message and hint:
        note(f"  {hint}")
    return code


def _told(error: BaseException) -> tuple[int, str, str]:
    """Return exit code, message and hint."""
    if hasattr(error, "format_message"):  # a usage error of the command-line parser
        context = getattr(error, "ctx", None)
        verb = context.command_path if context is not None else "consilience"
        return USAGE, error.format_message(), f"See {verb} --help."
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return INTERRUPTED, "stopped at once", "Run the same command again; what was recorded is kept."
    told = explained(error)
    return told.exit_code, told.message, told.hint
