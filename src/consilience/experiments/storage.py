"""Files put in place whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.core.canonical import canonical_json, sha256_hex
from consilience.errors import DataError

if TYPE_CHECKING:
    import polars as pl


def write_frame(frame: pl.DataFrame, path: Path, *, statistics: bool) -> None:
    """Write a frame as Parquet, whole or not at all.

    Raises:
        DataError: The folder cannot be written or the disk is full; the old file is as it was.
    """
    from polars.exceptions import PolarsError  # noqa: PLC0415 - heavy, and whoever has a frame has it already

    def write(target: Path) -> None:
        with target.open("wb") as file:  # polars itself opens no path that is not UTF-8
            try:
                frame.write_parquet(file, compression="zstd", statistics=statistics)
            except PolarsError as error:  # what polars makes of an error of the system
                raise OSError(str(error).rpartition("IO error: ")[2]) from error

    write_whole(path, write)


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


def json_line(value: Any) -> bytes:
    r"""Return a value as one line of canonical JSON.

    Example:
        >>> json_line({"b": 1, "a": None})
        b'{"a":null,"b":1}\n'
    """
    return canonical_json(value) + b"\n"


def write_json(path: Path, value: Any) -> str:
    """Write a value as one line of canonical JSON and return the SHA-256 of the file.

    Raises:
        DataError: The folder cannot be written or the disk is full; the old file is as it was.
    """
    line = json_line(value)
    write_whole(path, lambda target: target.write_bytes(line))
    return sha256_hex(line)
