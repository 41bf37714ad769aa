"""The garbage collector during a run: it looks seldom, and never at what was there before."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 50_000
"""New objects between two looks. A turn makes thousands that die by themselves; with Python's 700 a quarter of a run's
processor time goes into looking for cycles among them and in all imported code."""


_LOCK = threading.Lock()
_under_way = 0
_before = gc.get_threshold()


@contextmanager
def seldom() -> Iterator[None]:
    """Let the collector look seldom for as long as a run lasts, then as before; of several at once, the last to end.

    Example:
        >>> before = gc.get_threshold()
        >>> with seldom():
        ...     gc.get_threshold()[0]
        50000
        >>> gc.get_threshold() == before
        True
    """
    global _before, _under_way  # noqa: PLW0603 - the collector is the process's own
    with _LOCK:
        _under_way += 1
        if _under_way == 1:
            _before = gc.get_threshold()
            gc.freeze()
            gc.set_threshold(OBJECTS, *_before[1:])
    try:
        yield
    finally:
        with _LOCK:
            _under_way -= 1
            if not _under_way:
                gc.set_threshold(*_before)
                gc.unfreeze()
