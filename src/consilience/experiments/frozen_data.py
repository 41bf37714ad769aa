"""Hashes of a study's data by what they hold, however they are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field

from consilience.core.canonical import tagged_hash
from consilience.errors import DataError, reason
from consilience.experiments.artefact import CALIBRATION_FILE
from consilience.experiments.weights import FILE

if TYPE_CHECKING:
    import polars as pl

ANALYTIC: Final = "data/processed/analytic.parquet"
"""The sales, whose prices are the truths."""
MANIFEST: Final = "data/processed/analytic.manifest.json"
"""What the columns of the sales mean, which packets say."""
SPLITS: Final = "data/processed/splits.parquet"
SUBSAMPLES: Final = "data/processed/llm_subsamples.parquet"
WEIGHTS: Final = f"results/{FILE}"
CALIBRATION: Final = f"results/{CALIBRATION_FILE}"


class Hashed(BaseModel):
    """Data of a study.

    Attributes:
        sha256: Of its content; how it is stored does not matter.
        rows: Rows by part (of splits: by split, of subsamples: by split and tier); empty for what has none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    rows: dict[str, int] = Field(default_factory=dict)


def data_hashes(root: Path, results: Path) -> dict[str, Hashed | None]:
    """Return the hash of everything that decides which items there are and what is true of them; None for what is not.

    Args:
        root: The project folder.
        results: Its results folder.

    Raises:
        DataError: Something cannot be read.
    """
    return {
        ANALYTIC: hash_table(root / ANALYTIC),
        MANIFEST: _hash_json(root / MANIFEST, "manifest", hint="Make it again with consilience data build."),
        SPLITS: hash_table(root / SPLITS, "split"),
        SUBSAMPLES: hash_table(root / SUBSAMPLES, "split", "tier"),
        WEIGHTS: _hash_json(results / FILE, "weights", hint="Fit the weights again."),
        CALIBRATION: _hash_json(
            results / CALIBRATION_FILE, "calibration", hint="Make it again: consilience calibrate."
        ),
    }


def hash_table(path: Path, *groups: str) -> Hashed | None:
    """Return a table's hash, whatever the order of its rows, and its rows by group; None where there is none.

    Raises:
        DataError: It cannot be read, lacks a column of the groups, or holds what has no hash, such as NaN.
    """
    if not path.exists():
        return None
    import polars as pl  # noqa: PLC0415 - heavy, only where there are sales

    from consilience.experiments.parquet import read_parquet  # noqa: PLC0415 - the same

    frame = read_parquet(path)
    for column in groups:
        if column not in frame.columns:
            raise DataError(f'{path} lacks the column "{column}"', hint="Make it again with consilience data.")
    part = pl.concat_str(groups, separator="/") if groups else pl.lit("all")
    rows = frame.group_by(part=part).len().sort("part").rows()
    try:
        return Hashed(sha256=table_digest(frame), rows=dict(rows))
    except (TypeError, ValueError) as error:
        raise DataError(f"{path} cannot be hashed: {reason(error)}", hint="Make it again: no NaN.") from error


def table_digest(frame: pl.DataFrame) -> str:
    """Return a hash of what a table holds, whatever the order of its rows.

    Raises:
        ValueError: It holds NaN or an infinity.
        TypeError: It holds what is neither text, number, day, truth value nor a list of them.

    Example:
        >>> import polars as pl
        >>> one, other = pl.DataFrame({"a": ["x", "y"]}), pl.DataFrame({"a": ["y", "x"]})
        >>> table_digest(one) == table_digest(other)
        True
    """
    import polars as pl  # noqa: PLC0415 - heavy

    types = {name: str(dtype) for name, dtype in frame.schema.items()}
    told = frame.select(pl.col(name) for name in sorted(frame.columns)).sort(sorted(frame.columns))
    return tagged_hash("table", [types, told.with_columns(pl.col(pl.Date).cast(pl.String)).to_dict(as_series=False)])


def _hash_json(path: Path, tag: str, *, hint: str) -> Hashed | None:
    """Return the hash of what a JSON file says beside its own hash, so that weights have the hash they call theirs."""
    if not path.exists():
        return None
    try:
        said = json.loads(path.read_bytes())
        told = {name: value for name, value in said.items() if name != "sha256"} if isinstance(said, dict) else said
        return Hashed(sha256=tagged_hash(tag, told))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {reason(error)}", hint=hint) from error
