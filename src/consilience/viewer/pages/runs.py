"""The list of runs, and the row of one that changes while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from consilience.errors import IntegrityError
from consilience.experiments.listing import FINISHED, last_line
from consilience.experiments.predictions import SIMULATED_PREFIX
from consilience.journal.lock import is_held
from consilience.journal.reader import HEAD
from consilience.models.prices import NANO
from consilience.viewer.shown import page, paged
from consilience.viewer.study import MALFORMED, Study, malformed, read_json


class Row(BaseModel):
    """What the list says of a run; unknown is None.

    Attributes:
        run_id: Its id.
        simulated: No real model spoke, or the data are made up.
        state: ``running``, ``stopped``, ``finished``, ``not recorded`` or ``damaged``.
        arm: Its arm.
        committee: Its committee.
        split: Of its items.
        items: Items it was made for.
        done: Items that have a result.
        spent_usd: Spent so far, calls in flight at their reservation.
        cap_usd: The cap of its last process that came to an end.
        failures: Turns without an answer, and lost attempts, by name; empty without any.
        integrity: What is known without reading every byte: whether the last record is the one the manifest notes.
        seed: Its seed.
        tier: Its tier of models.
        models: The models asked.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    run_id: str
    simulated: bool
    state: str
    arm: str | None
    committee: str | None
    split: str | None
    items: int | None
    done: int | None
    spent_usd: float | None
    cap_usd: float | None
    failures: dict[str, int]
    integrity: str
    seed: int | None
    tier: str | None
    models: tuple[str, ...]

    @property
    def is_live(self) -> bool:
        """Whether it may change by itself."""
        return self.state == "running"


def runs_page(study: Study, number: int) -> str:
    """Return the list of runs."""
    some = paged(study.run_ids(), number)
    rows = [row_of(study, folder) for run_id in some.rows if (folder := study.run(run_id)) is not None]
    return page("runs.html.jinja", title="Runs", here="runs", some=some, rows=rows, root=study.root)


def row_fragment(study: Study, folder: Path) -> str:
    """Return one row of the list anew."""
    return page("row.html.jinja", run=row_of(study, folder))


def row_of(study: Study, folder: Path) -> Row:
    """Return what the list says of a run; of one whose files are not of the shape that was written, that."""
    try:
        return _row_of(study, folder)
    except MALFORMED as error:
        told = malformed("A file of this run", error)
        unknown = dict.fromkeys(("arm", "committee", "split", "items", "done", "spent_usd", "cap_usd", "seed", "tier"))
        simulated = folder.name.startswith(SIMULATED_PREFIX)
        found: dict[str, Any] = {**unknown, "run_id": folder.name, "simulated": simulated, "failures": {}, "models": ()}
        return Row(**found, state="damaged", integrity=told.message)


def _row_of(study: Study, folder: Path) -> Row:
    """Return the row of a run: from its manifest where that is up to date, else from the journal."""
    manifest, plan = _told(folder, "manifest.json"), _told(folder, "protocol.json").get("plan") or {}
    last = last_line(folder)
    head = last[len(HEAD) :][:64].decode("latin-1") if last else None
    items = plan.get("items")
    common: dict[str, Any] = {
        "run_id": folder.name,
        "simulated": folder.name.startswith(SIMULATED_PREFIX) or bool(manifest.get("simulated")),
        **{name: plan.get(name) for name in ("arm", "committee", "split", "seed", "tier")},
        "models": tuple(plan.get("models") or ()),
        "items": None if items is None else len(items),
        "cap_usd": manifest.get("max_spend_usd"),
    }
    if head is not None and manifest.get("journal_head") == head and not is_held(folder):
        counts = manifest.get("items") or {}
        turns = dict(manifest.get("turns") or {})
        turns.pop("answered", None)
        return Row(
            **common,
            state="finished" if FINISHED in last else "stopped",
            done=sum(counts.values()) - counts.get("not_run", 0),
            spent_usd=manifest.get("spent_usd"),
            failures={name: count for name, count in {**turns, "lost": manifest.get("lost_attempts")}.items() if count},
            integrity="head as noted",
        )
    return _live(study, folder, common)


def _live(study: Study, folder: Path, common: dict[str, Any]) -> Row:
    """Return the row of a run whose manifest is not there or older than its journal."""
    running = is_held(folder)
    try:
        sums = study.index(folder).sums
    except IntegrityError as error:
        nothing: dict[str, Any] = {"done": None, "spent_usd": None, "failures": {}}
        return Row(**common, **nothing, state="damaged", integrity=error.message)
    if not sums.records:
        empty: dict[str, Any] = {"done": None, "spent_usd": None, "failures": {}}
        return Row(**common, **empty, state="running" if running else "not recorded", integrity="nothing to check")
    turns = {name: count for name, count in sums.turns.items() if name != "answered"}
    spent = sums.all
    state = "running" if running else "finished" if sums.ended else "stopped"
    return Row(
        **common,
        state=state,
        done=sums.finished,
        spent_usd=spent.cost_nano / NANO,
        failures={
            name: count for name, count in {**turns, "errors": spent.errors, "lost": spent.lost}.items() if count
        },
        integrity="in progress" if running else "no manifest of this head",
    )


def _told(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = read_json(folder / name)
    except IntegrityError:
        return {}  # a run that was just begun has none; the row says what is unknown
    return found if isinstance(found, dict) else {}
