"""Parquet files in and out: written whole or not at all, read within limits, with errors that say what to do."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from consilience.errors import DataError


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame as Parquet: the old file stays until the new one is whole and on disk.

    Raises:
        DataError: The folder cannot be written or the disk is full.
    """
    write_whole(path, lambda target: frame.write_parquet(target, compression="zstd", statistics=True))


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


def read_parquet(path: Path, *, row_limit: int | None = None) -> pl.DataFrame:
    """Read a Parquet file whose row count, known before anything is decoded, is within the limit.

    Files whose metadata polars refuses (some written by R) are tried once more with pyarrow, with a warning.

    Args:
        path: The file.
        row_limit: Most rows admitted; None for files this package wrote.

    Raises:
        DataError: The file is missing, holds too many rows, or no reader can read it.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}", hint="Check the path, or build the file first.")
    try:
        if row_limit is not None:
            refuse_rows(path, pl.scan_parquet(path).select(pl.len()).collect().item(), row_limit)
        return pl.read_parquet(path)
    except (PolarsError, OSError) as error:
        return _read_with_arrow(path, row_limit, error)


def refuse_rows(path: Path, rows: int, row_limit: int) -> None:
    """Raise `DataError` where a file holds more rows than admitted."""
    if rows > row_limit:
        raise DataError(
            f"{path} holds more than {row_limit:,} rows", hint="Raise the row limit if the machine has the memory."
        )


def _read_with_arrow(path: Path, row_limit: int | None, cause: Exception) -> pl.DataFrame:
    reason = str(cause).splitlines()[0]
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415  (an optional second reader, only for odd files)
    except ImportError:
        raise DataError(
            f"{path} is no readable Parquet: {reason}", hint="Export it again; a file written by R may need pyarrow."
        ) from cause
    try:
        file = parquet.ParquetFile(path)
        if row_limit is not None:
            refuse_rows(path, file.metadata.num_rows, row_limit)
        frame = pl.DataFrame(file.read())
    except (ArrowException, PolarsError, OSError) as error:
        raise DataError(
            f"{path} is no readable Parquet: {reason}", hint="The file is damaged or no Parquet; export it again."
        ) from error
    warnings.warn(f"{path}: polars cannot read its metadata ({reason}); read with pyarrow instead", stacklevel=3)
    return frame
