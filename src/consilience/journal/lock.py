"""One process per run: an exclusive lock that names its holder and dies with it."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from pathlib import Path
from types import TracebackType
from typing import Self

from consilience.errors import JournalError, reason


class RunLock:
    """The exclusive lock on a run folder, as a context manager.

    The file ``lock`` stays behind when released; what counts is the system's lock on it, which ends with the process.

    Args:
        folder: The run folder; it exists.

    Raises:
        JournalError: Another process holds the lock (its pid and host are named), or the folder cannot be written.

    Example:
        >>> import tempfile
        >>> with RunLock(Path(tempfile.mkdtemp())) as lock:
        ...     lock.path.name
        'lock'
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        self._handle: int | None = None

    def __enter__(self) -> Self:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                self._take(handle)
            except BaseException:
                os.close(handle)
                raise
        except OSError as error:
            raise JournalError(
                f"the run folder {self.path.parent} cannot be locked: {reason(error)}",
                hint="Choose a results folder that exists and can be written.",
            ) from error
        self._handle = handle
        return self

    def _take(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalError(
                f"another process works on the run {self.path.parent}: {_holder(os.pread(handle, 4096, 0))}",
                hint="Wait until it ends, or stop it, then run the command again.",
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "host": platform.node()}).encode(), 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def is_held(folder: Path) -> bool:
    """Return whether a process works on a run now.

    The lock is only tried where its noted holder may be alive, so that looking never gets in the way of a start.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with RunLock(folder):
        ...     held = is_held(folder)
        >>> held, is_held(folder)
        (True, False)
    """
    try:
        handle = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        if _is_gone(os.pread(handle, 4096, 0)):
            return False
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def _is_gone(content: bytes) -> bool:
    """Return whether the noted holder is a process of this machine that has ended."""
    try:
        found = json.loads(content)
        if found["host"] == platform.node():
            os.kill(int(found["pid"]), 0)
    except ProcessLookupError:
        return True
    except (ValueError, KeyError, TypeError, OSError):  # not noted yet, or another user's process
        return False
    return False


def _holder(content: bytes) -> str:
    try:
        found = json.loads(content)
        return f"pid {found['pid']} on host {found['host']}"
    except (ValueError, KeyError, TypeError):  # read between the holder's lock and its note
        return "pid not noted yet"
