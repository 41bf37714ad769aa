"""Parquet files in and out: written whole or not at all, read within limits, with errors that say what to do."""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from consilience.errors import DataError
from consilience.experiments.storage import write_frame


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame as Parquet: the old file stays until the new one is whole and on disk.

    Raises:
        DataError: The folder cannot be written or the disk is full.
    """
    write_frame(frame, path, statistics=True)


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
        with path.open("rb") as file:
            if row_limit is not None:
                refuse_rows(path, pl.scan_parquet(file).select(pl.len()).collect().item(), row_limit)
                file.seek(0)
            return pl.read_parquet(file)
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
        from pyarrow import ArrowException, Table, parquet  # noqa: PLC0415  (an optional second reader, only for odd files)
    except ImportError:
        raise DataError(
            f"{path} is no readable Parquet: {reason}", hint="Export it again; a file written by R may need pyarrow."
        ) from cause
    try:
        file = parquet.ParquetFile(path)
        if row_limit is not None:
            refuse_rows(path, file.metadata.num_rows, row_limit)
        read = file.read()
        # The metadata are what is broken, and polars would stumble over them again.
        frame = pl.DataFrame(Table.from_arrays(read.columns, names=read.column_names))
    except (ArrowException, PolarsError, OSError) as error:
        raise DataError(
            f"{path} is no readable Parquet: {reason}", hint="The file is damaged or no Parquet; export it again."
        ) from error
    warnings.warn(f"{path}: polars cannot read its metadata ({reason}); read with pyarrow instead", stacklevel=3)
    return frame
