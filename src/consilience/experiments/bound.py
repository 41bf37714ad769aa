"""What a run was first judged by: a digest of its truths, so that truths changed afterwards are told."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from consilience.core.canonical import tagged_hash
from consilience.errors import DataError, IntegrityError, reason
from consilience.experiments.questions import read_questions
from consilience.experiments.storage import write_json

TRUTHS: Final = "truths.json"


class Bound(BaseModel):
    """The truths that one run was first judged by.

    Attributes:
        at: When.
        items: Items of the run with a known truth.
        sha256: Digest of these, with their clusters.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    items: int = Field(ge=0)
    sha256: str


def bound_now(
    predictions: pl.DataFrame, truth: pl.DataFrame, runs: Collection[str], *, at: datetime
) -> dict[str, Bound]:
    """Return the digest of the truths of every run's items, as they are now.

    Args:
        predictions: Columns ``item_id`` and ``run_id``.
        truth: ``item_id, truth, option, cluster``.
        runs: Runs to tell of.
        at: Now, with time zone.
    """
    known = truth.filter(pl.col("truth").is_not_null() | pl.col("option").is_not_null())
    told = {item: [number, option, cluster] for item, number, option, cluster in known.select(*_COLUMNS).iter_rows()}
    found: dict[str, Bound] = {}
    for run in sorted(runs):
        items = sorted(set(predictions.filter(pl.col("run_id") == run)["item_id"]) & told.keys())
        digest = tagged_hash("truths", {item: told[item] for item in items})
        found[run] = Bound(at=at, items=len(items), sha256=digest)
    return found


_COLUMNS: Final = ("item_id", "truth", "option", "cluster")


def read_bound(path: Path) -> dict[str, Bound]:
    """Return what runs were first judged by; nothing where there is no file.

    Raises:
        IntegrityError: The file is not what was written.
    """
    try:
        content = json.loads(path.read_bytes())
        return {run: Bound.model_validate(one) for run, one in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, ValidationError, RecursionError) as error:
        raise IntegrityError(
            f"{path} does not tell the truths of runs: {reason(error)}", hint="Restore it from a copy."
        ) from error


def differing(first: Mapping[str, Bound], now: Mapping[str, Bound]) -> list[str]:
    """Return one sentence per run whose truths are not those it was first judged by.

    Example:
        >>> from datetime import timezone
        >>> noon = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)
        >>> differing({"r": Bound(at=noon, items=3, sha256="a")}, {"r": Bound(at=noon, items=3, sha256="b")})
        ['The truths of run r are not those it was first judged by on 2026-01-02 12:00 UTC.']
    """
    found = []
    for run, one in now.items():
        before = first.get(run)
        if before is None or before.sha256 == one.sha256:
            continue
        count = "" if before.items == one.items else f" ({before.items:,} were known then, {one.items:,} are now)"
        found.append(
            f"The truths of run {run} are not those it was first judged by on {before.at:%Y-%m-%d %H:%M} UTC{count}."
        )
    return found


def keep_first(path: Path, now: Mapping[str, Bound]) -> None:
    """Write down the truths of runs that are judged for the first time.

    Raises:
        IntegrityError: The file is not what was written.
        DataError: It cannot be written.
    """
    first = read_bound(path)
    if now.keys() - first.keys():
        write_json(path, {run: one.model_dump(mode="json") for run, one in sorted({**now, **first}.items())})


def refuse_other_questions(questions: Path, packets: Iterator[tuple[str, str, Mapping[str, object]]]) -> None:
    """Raise where a file of questions asks otherwise than the runs did: its truths would answer another question.

    Evidence may differ: a treatment changes it on purpose.

    Args:
        questions: The file.
        packets: Run, item and question of every packet that runs were asked about.

    Raises:
        DataError: A question differs; run, item and field are named.
    """
    told = {item.question.id: item.question.model_dump(mode="json") for item in read_questions(questions)}
    for run, item, asked in packets:
        given = told.get(item)
        odd = [] if given is None else [name for name in given if given[name] != asked.get(name, given[name])]
        if odd:
            raise DataError(
                f"{questions} asks item {item} otherwise than run {run} did; not the same: {', '.join(odd)}",
                hint="Give the file that the run was asked from; its packets hold the questions.",
            )
