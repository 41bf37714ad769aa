"""What a list of runs says of each: from the manifest where it is up to date, else from the journal itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from consilience.errors import IntegrityError, reason
from consilience.journal.events import AttemptLost
from consilience.journal.files import segment_path, segments
from consilience.journal.lock import is_held
from consilience.journal.reader import HEAD, fold
from consilience.models.prices import NANO

TAIL_BYTES = 1_000_000
FINISHED = b'"type":"run.finished"'

State = Literal["running", "stopped", "finished", "not recorded", "damaged"]
M = TypeVar("M", bound=BaseModel)


class _Planned(BaseModel):
    """What a list takes from the plan in ``protocol.json``."""

    model_config = ConfigDict(strict=True)

    arm: str | None = None
    committee: str | None = None
    split: str | None = None
    seed: int | None = None
    tier: str | None = None
    models: list[str] = Field(default_factory=list)
    items: dict[str, str] | None = None


class _Protocol(BaseModel):
    plan: _Planned = Field(default_factory=_Planned)


class _Noted(BaseModel):
    """What a list takes from ``manifest.json``."""

    model_config = ConfigDict(strict=True)

    journal_head: str | None = None
    items: dict[str, int] = Field(default_factory=dict)
    turns: dict[str, int] = Field(default_factory=dict)
    lost_attempts: int = 0
    spent_usd: float | None = None
    max_spend_usd: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a run is, as its journal tells; unknown is None.

    Attributes:
        state: As `Listed.state`, whether or not a process works on it.
        done: Items that have a result.
        spent_usd: Spent so far, calls in flight at their reservation.
        failures: Turns without an answer and lost attempts, by name; none at 0.
    """

    state: State
    done: int | None = None
    spent_usd: float | None = None
    failures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Listed:
    """What a list says of a run; unknown is None.

    Attributes:
        state: ``running`` while a process works on it, ``stopped`` where its own command would go on, ``not recorded``
            before its first record, ``damaged`` where its journal, protocol or manifest is not what was written.
        arm: Name of the arm.
        committee: Name of the committee.
        split: Of its items.
        seed: Its seed.
        tier: Price tier of its models.
        models: The models asked.
        items: Items it was made for.
        items_done: Items that have a result.
        spent_usd: Spent so far, calls in flight at their reservation.
        max_spend_usd: The cap of its last process that came to an end.
        failures: Turns without an answer and lost attempts, by name; none at 0.
        noted: Its manifest notes the head of its last record.
        problem: What is wrong with its files; None where nothing is seen. Bytes are checked by ``verify`` alone.
    """

    state: State
    arm: str | None
    committee: str | None
    split: str | None
    seed: int | None
    tier: str | None
    models: tuple[str, ...]
    items: int | None
    items_done: int | None
    spent_usd: float | None
    max_spend_usd: float | None
    failures: dict[str, int]
    noted: bool
    problem: str | None


def listed(folder: Path, progress: Callable[[Path], Progress] | None = None) -> Listed:
    """Return what a list says of a run folder; whatever its files hold, no error ends a list.

    Args:
        folder: The run folder.
        progress: Tells how far a run is whose manifest is not up to date; None folds its journal.

    Example:
        >>> listed(Path("no-such-run")).state
        'not recorded'
    """
    problems: list[str] = []
    plan = _read(folder / "protocol.json", _Protocol, problems).plan
    manifest = _read(folder / "manifest.json", _Noted, problems)
    try:
        last = _last_line(folder)
        noted = bool(last) and manifest.journal_head == last[len(HEAD) :][:64].decode("latin-1")
        found = _as_noted(manifest, last) if noted else (progress or _folded)(folder)
    except (IntegrityError, OSError) as error:
        problems.append(error.message if isinstance(error, IntegrityError) else f"the journal: {reason(error)}")
        noted, found = False, Progress("damaged")
    state: State = "running" if is_held(folder) else "damaged" if problems else found.state
    return Listed(
        state=state,
        **{name: getattr(plan, name) for name in ("arm", "committee", "split", "seed", "tier")},
        models=tuple(plan.models),
        items=None if plan.items is None else len(plan.items),
        items_done=found.done,
        spent_usd=found.spent_usd,
        max_spend_usd=manifest.max_spend_usd,
        failures=dict(found.failures),
        noted=noted,
        problem="; ".join(problems) or None,
    )


def _as_noted(manifest: _Noted, last: bytes) -> Progress:
    return Progress(
        "finished" if FINISHED in last else "stopped",
        sum(manifest.items.values()) - manifest.items.get("not_run", 0),
        manifest.spent_usd,
        failures_of(manifest.turns, lost=manifest.lost_attempts),
    )


def failures_of(turns: Mapping[str, int], **others: int) -> dict[str, int]:
    """Return what failed, by name; what did not is left out.

    Example:
        >>> failures_of({"answered": 9, "failed": 0, "unreadable": 2}, lost=1)
        {'unreadable': 2, 'lost': 1}
    """
    return {name: count for name, count in {**turns, **others}.items() if count and name != "answered"}


def is_simulated(folder: Path) -> bool:
    """Return whether no real model spoke in a run: its id says so, or its protocol, should the folder be renamed."""
    if folder.name.startswith("_"):
        return True
    try:
        models = json.loads((folder / "protocol.json").read_bytes())["plan"]["models"]
        return all(model.startswith("simulated:") for model in models)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
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


def _folded(folder: Path) -> Progress:
    if not segments(folder):
        return Progress("not recorded")
    found = fold(folder)
    if found.started is None:
        return Progress("not recorded")
    ended = Counter(str(turn.outcome["status"]) for turn in found.turns.values())
    outcomes = [attempt.outcome for attempt in found.attempts.values()]
    return Progress(
        "finished" if found.finished else "stopped",
        len(found.items_finished),
        found.spent_nano / NANO,
        failures_of(ended, lost=sum(isinstance(outcome, AttemptLost) for outcome in outcomes)),
    )


def _last_line(folder: Path) -> bytes:
    """Return the end of the last record, whole unless it is longer than a million bytes; empty without any."""
    numbers = segments(folder)
    if not numbers:
        return b""
    with segment_path(folder, numbers[-1]).open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - TAIL_BYTES))
        tail = file.read()
    return tail[:-1].rpartition(b"\n")[2] if tail.endswith(b"\n") else b""


def _read(path: Path, model: type[M], problems: list[str]) -> M:
    """Return what a file says; one that is not there says nothing, and one of another shape is a problem, too."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return model()
    except OSError as error:
        problems.append(f"{path.name} cannot be read: {reason(error)}")
        return model()
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        problems.append(f"{path.name} is not what was written: {reason(error)}")
        return model()
