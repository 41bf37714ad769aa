"""The work of ``grid``: run after run under one cap, then one table of what each arm cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from consilience.cli.console import counted, note, show
from consilience.cli.evaluating import shown
from consilience.cli.one_run import executed, residual
from consilience.cli.place import Place
from consilience.cli.planning import Asked, planned
from consilience.cli.running import Wanted, check_keys, items_of, items_unwritten, run_name
from consilience.core.packet import Item
from consilience.errors import BudgetError, ConfigError, StoppedError
from consilience.experiments.costs import ArmCost, actual_cost, foreseen_cost
from consilience.experiments.foresight import Foresight, foresee
from consilience.experiments.grid import Cell, GridSpec, cells
from consilience.experiments.orders import RunReport
from consilience.experiments.plan import Plan
from consilience.experiments.settings import Flags, Settings, settle
from consilience.experiments.spending import amount_nano
from consilience.experiments.storage import write_json, write_whole
from consilience.journal.budget import usd
from consilience.models.prices import NANO
from consilience.reports.costs import cost_table
from consilience.reports.tables import dollars

SPLIT = "validation"


@dataclass(frozen=True)
class Overrides:
    """What was typed beside the file; None where nothing was."""

    live: bool = False
    max_spend_usd: str | None = None
    concurrency: int | None = None


@dataclass(frozen=True)
class Done:
    """One run of the grid: its cell and plan, what was foreseen of it, and what it left."""

    cell: Cell
    plan: Plan
    ahead: Foresight
    report: RunReport


class GridRun:
    """One grid.

    Args:
        place: The project.
        file: The grid file.
        spec: What it says.
        overrides: What was typed beside it.

    Raises:
        ConfigError: The grid contradicts itself, or names what there is not.
        PlanError: An arm cannot have the rounds it is given.
    """

    def __init__(self, place: Place, file: Path, spec: GridSpec, overrides: Overrides) -> None:
        if spec.questions is not None and (spec.split is not None or spec.synthetic):
            raise ConfigError(f"{file}: questions bring their own items", hint="Leave split and synthetic out.")
        self.place = place
        self.file = file
        self.spec = spec
        self.live = overrides.live
        own = None if spec.max_spend_usd is None else str(spec.max_spend_usd)
        if own is not None:
            amount_nano(own, where=f"{file}: max_spend_usd")  # else a message would name the flag
        typed = overrides.max_spend_usd
        self.flags = Flags(max_spend_usd=own if typed is None else typed, concurrency=overrides.concurrency)
        self.cells = cells(spec, where=str(file))
        self.wanted = Wanted(
            split=None if spec.questions is not None else spec.split or SPLIT,
            n=spec.n,
            questions=None if spec.questions is None else file.parent / spec.questions,
            synthetic=spec.synthetic,
        )
        self.cap = self._settings(self.cells[0]).max_spend_nano
        self.spent = 0
        self.done: list[Done] = []

    def _settings(self, cell: Cell) -> Settings:
        flags = replace(self.flags, tier=cell.tier, committee=cell.committee, seed=cell.seed)
        return settle(self.place.root, flags, os.environ)

    def _asked(self, cell: Cell, *, match: str | None, replicate: int = 0) -> Asked:
        settings = self._settings(cell)
        left = None if self.cap is None else max(0, self.cap - self.spent)
        return Asked(
            arm=cell.arm,
            rounds=cell.rounds,
            panel=cell.panel,
            labels=cell.labels,
            replicate=replicate,
            match=match,
            weights=None,
            model=None,
            run_id=None,
            drop_empty_seats=False,
            live=self.live,
            caches=self.spec.simulate_caching,
            oracle=False,
            batch=False,
            wanted=self.wanted,
            settings=replace(settings, max_spend_nano=left),
        )

    def preview(self, *, as_json: bool) -> None:
        """Print the bounds of every arm; nothing is written into the project.

        An arm matched to another one of the grid may take what that one takes, which nobody knows before.
        """
        items = {
            wanted: items_unwritten(wanted, project=self.place.project, town=self.place.town)
            for wanted in self._all_wanted()
        }
        costs: list[ArmCost] = []
        later: list[str] = []
        simulated = True
        for cell in self.cells:
            if cell.match is not None and self._of_grid(cell.match):
                later.append(f"{cell.arm} matched to {cell.match}: up to what that arm will have taken")
                continue
            plan, chosen = planned(self.place, self._asked(cell, match=cell.match), items[self.wanted.by(cell.arm)])
            simulated = simulated and plan.simulated
            costs.append(foreseen_cost(plan.arm, foresee(plan, chosen, catalogue=self._settings(cell).catalogue)))
        table = cost_table(costs, simulated=simulated)
        document = {"dry_run": True, "simulated": simulated, "arms": table.to_json(), "not_foreseen": later}
        show(document, *shown(table), *later, *self._about_cap(), as_json=as_json)

    def _all_wanted(self) -> list[Wanted]:
        """Return the items of the grid, once in every form of packets that its arms declare."""
        return list(dict.fromkeys(self.wanted.by(cell.arm) for cell in self.cells))

    def _of_grid(self, match: str) -> bool:
        """Return whether a match names an arm of this grid."""
        return any(cell.is_called(match) for cell in self.cells)

    def _about_cap(self) -> list[str]:
        return ["no spend cap" if self.cap is None else f"cap over all runs: {usd(self.cap)}"]

    def carry_out(self, *, as_json: bool) -> None:
        """Run every arm and its repetitions, write the cost table and print it.

        Raises:
            BudgetError: The cap ended the grid; what was answered is kept and was printed.
            StoppedError: The user ended it; likewise.
        """
        if self.live:
            for cell in self.cells:
                check_keys(self._settings(cell), root=self.place.root)
        items = {
            wanted: items_of(wanted, project=self.place.project, town=self.place.town) for wanted in self._all_wanted()
        }
        stopped: BudgetError | StoppedError | None = None
        for replicate in range(self.spec.repeats + 1):
            for cell in self.cells:
                if stopped is None:
                    stopped = self._run(cell, items[self.wanted.by(cell.arm)], replicate=replicate).stopped_by
        if isinstance(stopped, StoppedError):
            stopped = StoppedError(stopped.message, hint=f"To resume: {self.place.command}")
        elif stopped is not None:
            stopped = self._cap_reached(stopped.needed_nano or 0)
        self._tell(stopped_by=stopped, as_json=as_json)
        if stopped is not None:
            raise stopped

    def _cap_reached(self, needed: int) -> BudgetError:
        """Return what the end of the money is to the whole grid: a run knows only what its predecessors left it."""
        spent = dollars(self.spent / NANO) if self.spent else usd(0)
        return BudgetError(
            f"spend cap reached: {spent} of {usd(self.cap or 0)} spent over all runs, the next item needs about "
            f"{_at_least(needed)}",
            hint="Raise the cap and run the same command again; what was answered is kept. "
            f"Leave room above {_at_least(self.spent + needed)}, for this item alone.",
            needed_nano=needed,
        )

    def _run(self, cell: Cell, items: Sequence[Item], *, replicate: int) -> RunReport:
        asked = self._asked(cell, match=self._matched_run(cell.match), replicate=replicate)
        plan, chosen = planned(self.place, asked, items)
        note(run_name(plan, None, synthetic=self.wanted.synthetic))
        ahead = foresee(plan, chosen, catalogue=asked.settings.catalogue)
        report, _ = executed(self.place, asked, items)
        self.spent += round(report.manifest["spent_usd"] * NANO)
        self.done.append(Done(cell, plan, ahead, report))
        return report

    def _matched_run(self, match: str | None) -> str | None:
        """Return what a match names: the run of an arm of this grid, which stands before it, or what is written."""
        if match is None:
            return None
        for done in self.done:
            if done.cell.is_called(match) and not done.plan.replicate:
                return done.report.run_id
        return match

    def _tell(self, *, stopped_by: Exception | None, as_json: bool) -> None:
        costs = [self._cost(done) for done in self.done]
        simulated = all(done.plan.simulated for done in self.done)
        table = cost_table(costs, simulated=simulated)
        folder = self.place.root / "results" / "grids" / self.file.stem
        document: dict[str, Any] = {
            "simulated": simulated,
            "grid": self.spec.model_dump(mode="json"),
            "runs": [_told(done) for done in self.done],
            "arms": table.to_json(),
            "spent_usd": self.spent / NANO,
            "stopped_by": None if stopped_by is None else str(stopped_by),
        }
        write_json(folder / "grid.json", document)
        write_whole(folder / "costs.csv", lambda path: path.write_text(table.to_csv(), encoding="utf-8"))
        write_whole(folder / "costs.md", lambda path: path.write_text(table.to_markdown(), encoding="utf-8"))
        matches = [(done.plan.arm, done.report.manifest["match"]) for done in self.done]
        lines = [residual(arm, told) for arm, told in matches if told is not None]
        word = " (simulated)" if simulated else ""
        lost = sum(cost.unanswered_nano for cost in costs)
        of_it = f", of it up to {usd(lost)} for calls without an answer" if lost else ""
        lines += [f"{counted(len(self.done), 'run')}{word}, {usd(self.spent)} at list price{of_it}", *self._about_cap()]
        show(document, *shown(table), *lines, f"cost table in {folder}", as_json=as_json)

    def _cost(self, done: Done) -> ArmCost:
        manifest = done.report.manifest
        catalogue = self._settings(self.cells[0]).catalogue
        arm = done.plan.arm if not done.plan.replicate else f"{done.plan.arm} (repeat {done.plan.replicate})"
        return actual_cost(
            done.report.folder,
            arm=arm,
            turns=sum(manifest["turns"].values()),
            prices={name: catalogue.spec(name).price for name in done.plan.models},
            before=done.ahead,
        )


def _at_least(nano: int) -> str:
    """Return an amount rounded up: below a dollar to four decimals, above to cents."""
    step = NANO // (10_000 if nano < NANO else 100)
    return usd(-(-nano // step) * step)


def _told(done: Done) -> dict[str, Any]:
    names = ("run_id", "arm", "replicate", "items", "turns", "spent_usd", "match", "journal_head")
    return {name: done.report.manifest[name] for name in names}
