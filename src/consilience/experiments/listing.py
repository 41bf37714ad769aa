"""What a list of runs says of each: from the manifest where it is up to date, else from the journal itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from consilience.errors import IntegrityError
from consilience.journal.files import segment_path, segments
from consilience.journal.lock import is_held
from consilience.journal.reader import HEAD, fold
from consilience.models.prices import NANO

TAIL_BYTES = 1_000_000
FINISHED = b'"type":"run.finished"'

State = Literal["running", "stopped", "finished", "not recorded", "damaged"]


@dataclass(frozen=True)
class Listed:
    """How far a run is; unknown is None.

    Attributes:
        state: ``running`` while a process works on it, ``stopped`` where its own command would go on, ``not recorded``
            before its first record, ``damaged`` where its journal is not what was written.
        arm: Name of the arm.
        committee: Name of the committee.
        split: Of its items.
        seed: Its seed.
        items: Items it was made for.
        items_done: Items that have a result.
        spent_usd: Spent so far, calls in flight at their reservation.
        max_spend_usd: The cap of its last process that came to an end.
    """

    state: State
    arm: str | None
    committee: str | None
    split: str | None
    seed: int | None
    items: int | None
    items_done: int | None
    spent_usd: float | None
    max_spend_usd: float | None


def listed(folder: Path) -> Listed:
    """Return what a list says of a run folder.

    Example:
        >>> listed(Path("no-such-run")).state
        'not recorded'
    """
    plan = _object(_object(_read(folder / "protocol.json")).get("plan"))
    manifest = _object(_read(folder / "manifest.json"))
    last = last_line(folder)
    done: int | None
    spent: float | None
    state: State
    if last and manifest.get("journal_head") == last[len(HEAD) :][:64].decode("latin-1"):
        counts = _object(manifest.get("items"))
        done = sum(counts.values()) - counts.get("not_run", 0)
        spent = manifest.get("spent_usd")
        state = "finished" if FINISHED in last else "stopped"
    else:
        state, done, spent = _from_journal(folder)
    items = plan.get("items")
    return Listed(
        state="running" if is_held(folder) else state,
        **{name: plan.get(name) for name in ("arm", "committee", "split", "seed")},
        items=None if items is None else len(items),
        items_done=done,
        spent_usd=spent,
        max_spend_usd=manifest.get("max_spend_usd"),
    )


def is_simulated(folder: Path) -> bool:
    """Return whether no real model spoke in a run: its id says so, or its protocol, should the folder be renamed."""
    if folder.name.startswith("_"):
        return True
    try:
        models = json.loads((folder / "protocol.json").read_bytes())["plan"]["models"]
        return all(model.startswith("simulated:") for model in models)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def listed_runs(folder: Path) -> list[dict[str, Any]]:
    """Return what a list says of every run in a folder of runs, in order of their ids; empty where there is none.

    Example:
        >>> listed_runs(Path("no-such-folder"))
        []
    """
    present = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [listed_run(path) for path in present]


def listed_run(folder: Path) -> dict[str, Any]:
    """Return what a list says of one run, with its id and whether it is simulated.

    Example:
        >>> listed_run(Path("no-such-folder/_E_single"))["simulated"]
        True
    """
    return {"run_id": folder.name, "simulated": is_simulated(folder), **vars(listed(folder))}


def _from_journal(folder: Path) -> tuple[State, int | None, float | None]:
    if not segments(folder):
        return "not recorded", None, None
    try:
        found = fold(folder)
    except IntegrityError:
        return "damaged", None, None
    if found.started is None:
        return "not recorded", None, None
    return "finished" if found.finished else "stopped", len(found.items_finished), found.spent_nano / NANO


def last_line(folder: Path) -> bytes:
    """Return the end of the last record, whole unless it is longer than a million bytes; empty without any."""
    numbers = segments(folder)
    if not numbers:
        return b""
    with segment_path(folder, numbers[-1]).open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - TAIL_BYTES))
        tail = file.read()
    return tail[:-1].rpartition(b"\n")[2] if tail.endswith(b"\n") else b""


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
