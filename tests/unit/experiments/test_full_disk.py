"""A disk that is full while a table is written: a typed error, and the old file as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from consilience.errors import DataError
from consilience.experiments.storage import write_frame
from consilience.valuation.synthetic import generate, write_town

resource = pytest.importorskip("resource")


@contextmanager
def no_room() -> Iterator[None]:
    """Let the system refuse files of more than a hundred bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_table_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    write_frame(pl.DataFrame({"a": [1]}), path, statistics=True)
    before = path.read_bytes()
    with no_room(), pytest.raises(DataError, match=r"table\.parquet cannot be written: File too large"):
        write_frame(pl.DataFrame({"a": range(1_000)}), path, statistics=True)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["table.parquet"]


def test_a_town_that_does_not_fit_is_told_as_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    town = generate(sales=20, seed=1)
    with no_room(), pytest.raises(DataError, match=r"town\.truth\.parquet cannot be written: File too large"):
        write_town(town, tmp_path / "town.parquet")
    assert list(tmp_path.iterdir()) == []
