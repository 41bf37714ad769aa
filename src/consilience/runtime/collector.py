"""The garbage collector during a run: it looks seldom, and never at what was there before."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 50_000
"""New objects between two looks. A turn makes thousands that die by themselves; with Python's 700 a quarter of a run's
processor time goes into looking for cycles among them and in all imported code."""


@contextmanager
def seldom() -> Iterator[None]:
    """Let the collector look seldom for as long as a run lasts, then as before.

    Example:
        >>> before = gc.get_threshold()
        >>> with seldom():
        ...     gc.get_threshold()[0]
        50000
        >>> gc.get_threshold() == before
        True
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
