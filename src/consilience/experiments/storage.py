"""Files put in place whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from consilience.core.canonical import canonical_json
from consilience.errors import DataError


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then put it in the place of ``path`` in one step.

    Raises:
        DataError: The folder cannot be written or the disk is full; the old file is as it was.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        os.close(handle)
        temporary.chmod(0o644)
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise DataError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="Check the folder's permissions and the free space; nothing was changed.",
        ) from error


def write_json(path: Path, value: Any) -> None:
    """Write a value as one line of canonical JSON.

    Raises:
        DataError: The folder cannot be written or the disk is full; the old file is as it was.
    """
    line = canonical_json(value) + b"\n"
    write_whole(path, lambda target: target.write_bytes(line))
