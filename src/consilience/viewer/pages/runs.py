"""The list of runs, and the row of one that changes while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from consilience.experiments.listing import Listed, Progress, failures_of, is_simulated, listed
from consilience.models.prices import NANO
from consilience.viewer.shown import page, paged
from consilience.viewer.study import Study


@dataclass(frozen=True)
class Row:
    """What the list says of a run.

    Attributes:
        run_id: Its id.
        simulated: No real model spoke, or the data are made up.
        told: How far it is, and what it is.
    """

    run_id: str
    simulated: bool
    told: Listed

    @property
    def is_live(self) -> bool:
        """Whether it may change by itself."""
        return self.told.state == "running"

    @property
    def integrity(self) -> str:
        """What is known of its files without reading every byte."""
        told = self.told
        if told.problem is not None:
            return told.problem
        if told.noted:
            return "head as noted"
        if told.state == "not recorded":
            return "nothing to check"
        return "in progress" if self.is_live else "no manifest of this head"


def runs_page(study: Study, number: int) -> str:
    """Return the list of runs."""
    some = paged(study.run_ids(), number)
    rows = [row_of(study, folder) for run_id in some.rows if (folder := study.run(run_id)) is not None]
    return page("runs.html.jinja", title="Runs", here="runs", some=some, rows=rows, root=study.root.resolve())


def row_fragment(study: Study, folder: Path) -> str:
    """Return one row of the list anew."""
    return page("row.html.jinja", run=row_of(study, folder))


def row_of(study: Study, folder: Path) -> Row:
    """Return what the list says of a run: from its manifest where that is up to date, else from the journal's index."""

    def indexed(folder: Path) -> Progress:
        sums = study.index(folder).sums
        if not sums.records:
            return Progress("not recorded")
        spent = sums.all
        return Progress(
            "finished" if sums.ended else "stopped",
            sums.finished,
            spent.cost_nano / NANO,
            failures_of(sums.turns, lost=spent.lost),
        )

    return Row(folder.name, is_simulated(folder), listed(folder, indexed))
