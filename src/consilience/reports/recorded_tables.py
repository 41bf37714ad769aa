"""The tables of how runs came about: what they cost by kind of token, and in which surroundings they were made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consilience.errors import IntegrityError, reason
from consilience.reports.tables import Column, Record, Table, Value, count, dollars, percent

_TOKENS = ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output_visible", "output_reasoning")


@dataclass(frozen=True)
class Made:
    """What the manifest of a run says of its cost and surroundings.

    Attributes:
        run_id: The run.
        arm: Its arm.
        simulated: Its models or data are simulated.
        items: Items asked.
        turns: Turns taken.
        tokens: By kind.
        cached_share: Share of input tokens read from a cache; None when unknown.
        spent_usd: Paid, at list price; None when unknown.
        models: Model ids.
        package_version: Of this package.
        git_commit: Of the code; None when unknown.
        environment_sha256: Of all installed distributions.
        journal_head: Head hash of the journal.
        third_party: Entries that other distributions brought.
    """

    run_id: str
    arm: str
    simulated: bool
    items: int
    turns: int
    tokens: dict[str, int]
    cached_share: float | None
    spent_usd: float | None
    models: tuple[str, ...]
    package_version: str
    git_commit: str | None
    environment_sha256: str
    journal_head: str
    third_party: dict[str, Any]


def read_made(folder: Path) -> Made:
    """Return what a run's manifest says of its cost and surroundings.

    Raises:
        IntegrityError: It is missing or not what a run writes.
    """
    path = folder / "manifest.json"
    try:
        told = json.loads(path.read_bytes())
        items = told["items"]
        return Made(
            run_id=told["run_id"],
            arm=told["arm"],
            simulated=bool(told["simulated"]),
            items=sum(number for kind, number in items.items() if kind != "not_run"),
            turns=sum(told["turns"].values()),
            tokens={name: int(number) for name, number in told["tokens"].items()},
            cached_share=told["cached_share"],
            spent_usd=told["spent_usd"],
            models=tuple(told["models"]),
            package_version=told["package_version"],
            git_commit=told["git_commit"],
            environment_sha256=told["environment_sha256"],
            journal_head=told["journal_head"],
            third_party=told["third_party"],
        )
    except OSError as error:
        raise IntegrityError(
            f"{path} cannot be read: {error.strerror}", hint="Restore it from a copy of the run."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IntegrityError(f"{path}: {reason(error)}", hint="It is not what a run writes; restore it.") from error


def token_table(runs: Sequence[Made], *, simulated: bool) -> Table:
    """Return one row per run: turns, tokens by kind, dollars, share read from a cache."""
    kinds = [name for name in _TOKENS if any(name in run.tokens for run in runs)]
    kinds += sorted({name for run in runs for name in run.tokens} - set(kinds))
    records = tuple(
        {
            "arm": run.arm,
            "run_id": run.run_id,
            "items": run.items,
            "turns": run.turns,
            **{f"tokens_{kind}": run.tokens.get(kind, 0) for kind in kinds},
            "cached_share": run.cached_share,
            "spent_usd": run.spent_usd,
            "per_item_usd": None if run.spent_usd is None or not run.items else run.spent_usd / run.items,
        }
        for run in runs
    )
    columns = (
        Column("Arm", lambda r: str(r["arm"]), numeric=False),
        Column("Items", lambda r: str(r["items"])),
        Column("Turns", lambda r: _counted(r["turns"])),
        *(_tokens(kind) for kind in kinds),
        Column("Cached", lambda r: percent(_real(r["cached_share"]), 0)),
        Column("Cost", lambda r: dollars(_real(r["spent_usd"]))),
        Column("Per item", lambda r: dollars(_real(r["per_item_usd"]))),
    )
    word = "Simulated: no real model spoke; dollars are what the same tokens cost at list price. " if simulated else ""
    return Table(f"{word}Tokens and dollars of each run, also of turns that came to nothing.", columns, records)


def _tokens(kind: str) -> Column:
    words = kind.replace("_", " ").capitalize()
    return Column(f"{words} tokens", lambda record: _counted(record[f"tokens_{kind}"]))


def environment_table(runs: Sequence[Made], *, simulated: bool) -> Table:
    """Return one row per run: code, installed packages, models and the head of its journal."""
    records: tuple[Record, ...] = tuple(
        {
            "run_id": run.run_id,
            "package_version": run.package_version,
            "git_commit": run.git_commit,
            "environment_sha256": run.environment_sha256,
            "models": ", ".join(run.models),
            "third_party": json.dumps(run.third_party, sort_keys=True) if run.third_party else None,
            "journal_head": run.journal_head,
        }
        for run in runs
    )
    columns = (
        Column("Run", lambda r: str(r["run_id"]), numeric=False),
        Column("Version", lambda r: str(r["package_version"]), numeric=False),
        Column("Commit", lambda r: _short(r["git_commit"]), numeric=False),
        Column("Installed packages", lambda r: _short(r["environment_sha256"]), numeric=False),
        Column("Models", lambda r: str(r["models"]), numeric=False),
        Column("From others", lambda r: str(r["third_party"] or "nothing"), numeric=False),
    )
    word = "Simulated. " if simulated else ""
    said = "Where each run was made, by hashes; a commit with “+changes” had uncommitted ones."
    return Table(f"{word}{said}", columns, records)


def _short(value: Value) -> str:
    if value is None:
        return "unknown"
    head, plus, tail = str(value).partition("+")
    return f"{head[:12]}{plus}{tail}"


def _counted(value: Value) -> str:
    return count(value if isinstance(value, int) else None)


def _real(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None
