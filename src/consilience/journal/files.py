"""Every change the journal makes on disk, behind one seam, so that faults can be injected and the order be proved."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Protocol

_SEGMENT = re.compile(r"^events-(\d{5,})\.jsonl$")


class FileLayer(Protocol):
    """The operations that change a run folder. All raise `OSError`; ``handle`` is what `open_append` returned."""

    def open_append(self, path: Path) -> int:
        """Open a file for appending, made when absent."""
        ...

    def write(self, handle: int, data: bytes) -> None:
        """Append all of ``data``."""
        ...

    def fsync(self, handle: int) -> None:
        """Return when everything written is on disk."""
        ...

    def close(self, handle: int) -> None:
        """Give the handle back."""
        ...

    def replace(self, source: Path, target: Path) -> None:
        """Rename atomically."""
        ...

    def fsync_dir(self, folder: Path) -> None:
        """Return when the folder's entries are on disk."""
        ...

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file to ``size`` bytes."""
        ...


class RealFiles:
    """The disk.

    Example:
        >>> import tempfile
        >>> files, path = RealFiles(), Path(tempfile.mkdtemp()) / "a"
        >>> handle = files.open_append(path)
        >>> files.write(handle, b"x"); files.fsync(handle); files.close(handle)
        >>> path.read_bytes()
        b'x'
    """

    def open_append(self, path: Path) -> int:
        """Open a file for appending, made when absent."""
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, handle: int, data: bytes) -> None:
        """Append all of ``data``; the system may take it in parts."""
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]

    def fsync(self, handle: int) -> None:
        """Return when everything written is on disk."""
        os.fsync(handle)

    def close(self, handle: int) -> None:
        """Give the handle back."""
        os.close(handle)

    def replace(self, source: Path, target: Path) -> None:
        """Rename atomically."""
        source.replace(target)

    def fsync_dir(self, folder: Path) -> None:
        """Return when the folder's entries are on disk."""
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file to ``size`` bytes."""
        os.truncate(path, size)


def segment_path(folder: Path, number: int) -> Path:
    """Return the path of the journal's ``number``-th file, counted from 1."""
    return folder / f"events-{number:05d}.jsonl"


def segments(folder: Path) -> list[int]:
    """Return the numbers of the journal files in a run folder, ascending; empty when there is none."""
    found = (_SEGMENT.match(path.name) for path in folder.glob("events-*.jsonl"))
    return sorted(int(match[1]) for match in found if match)
