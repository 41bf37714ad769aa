"""One run: what it is, what it cost, how it erred, where it failed, and its items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from consilience.aggregation.answers import default_rule
from consilience.errors import ConsilienceError, IntegrityError
from consilience.experiments.looks import COUNTED
from consilience.experiments.verification import RunVerification, verify_run
from consilience.reports.drawings.errors import Scored, draw_calibration, draw_errors
from consilience.reports.drawings.sheet import Theme
from consilience.viewer.pages.runs import Row, row_of
from consilience.viewer.shown import page, paged
from consilience.viewer.study import Study, read_json

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
WORST = 10
_BINS = 5


@dataclass(frozen=True)
class Answered:
    """An item of the run, as its predictions tell.

    Attributes:
        item_id: The item.
        status: ``answered``, or why it is not.
        said: The answer in words; None without one.
        cost_usd: Of the answers used; None where unknown.
        truth: What turned out; None where unknown or sealed.
        error: Relative error of a number, or absolute error of a probability; None without a truth.
        width: Width of the 90 % interval relative to the point; None without one.
    """

    item_id: str
    status: str
    said: str | float | None
    cost_usd: float | None
    truth: float | str | None
    error: float | None
    width: float | None


@dataclass(frozen=True)
class Outcome:
    """What a run answered.

    Attributes:
        items: Its items, in the order of their ids; empty before its predictions are written.
        scored: Of those with a known truth.
        kind: ``estimate``, ``probability`` or ``options``.
        sealed: The truths are not shown here.
    """

    items: tuple[Answered, ...]
    scored: tuple[Scored, ...]
    kind: str
    sealed: bool


def run_page(study: Study, folder: Path, number: int) -> str:
    """Return the page of a run."""
    row = row_of(study, folder)
    manifest = read_json(folder / "manifest.json") if (folder / "manifest.json").is_file() else {}
    told, problem = outcome_of(study, folder, row)
    sums = None
    if row.told.state != "damaged":
        sums = study.index(folder).sums
    items: Sequence[str | Answered] = told.items or (study.index(folder).item_ids if sums is not None else ())
    ranked = [one for one in told.items if one.error is not None] or [
        one for one in told.items if one.width is not None
    ]
    worst = sorted(ranked, key=lambda one: -(one.error if one.error is not None else one.width or 0))[:WORST]
    return page(
        "run.html.jinja",
        title=f"Run {row.run_id}",
        here="runs",
        run=row,
        manifest=manifest,
        sums=sums,
        told=told,
        problem=problem,
        worst=worst,
        by_error=bool(worst) and worst[0].error is not None,
        some=paged(items, number),
        panel=manifest.get("panel"),
    )


def outcome_of(study: Study, folder: Path, row: Row) -> tuple[Outcome, str | None]:
    """Return what a run answered, and why that cannot be read where it cannot."""
    nothing = Outcome((), (), "estimate", row.told.split in COUNTED)
    path = folder / "predictions.parquet"
    if not path.is_file():
        return nothing, None
    try:
        rows = _primary(path)
    except ConsilienceError as error:
        return nothing, error.message
    sealed = row.told.split in COUNTED
    truths: Mapping[str, float | str] = {} if sealed else study.truths({one["item_id"] for one in rows})
    return _outcome(rows, truths, sealed=sealed), None


def _primary(path: Path) -> list[dict[str, Any]]:
    """Return the rows of the longest course of a run under the rule that was fixed for their kind."""
    import polars as pl  # noqa: PLC0415 - heavy

    from consilience.experiments.predictions import read_predictions  # noqa: PLC0415 - the same

    frame = read_predictions(path)
    last = frame["arm"].unique().sort().to_list()[-1:]
    mine = frame.filter(pl.col("arm").is_in(last))
    rule = default_rule(_kind(mine.columns, mine), max(mine["n_seats"].to_list(), default=1))
    if not (mine["aggregation"] == rule).any():
        rule = mine["aggregation"][0]
    return mine.filter(pl.col("aggregation") == rule).sort("item_id").to_dicts()


def _kind(columns: Sequence[str], frame: Any) -> Any:
    if "p" in columns and frame["p"].null_count() < frame.height:
        return "probability"
    options = [name for name in columns if name.startswith("option:")]
    return "choice" if options and frame["point"].null_count() == frame.height else "estimate"


def _outcome(rows: Sequence[dict[str, Any]], truths: Mapping[str, float | str], *, sealed: bool) -> Outcome:
    items, scored, kind = [], [], "estimate"
    for row in rows:
        truth = truths.get(row["item_id"])
        options = {name[7:]: value for name, value in row.items() if name.startswith("option:") and value is not None}
        said, error, width = row["point"], None, None
        if said is None and row.get("p") is not None:
            said, kind = row["p"], "probability"
            error = abs(said - truth) if isinstance(truth, float | int) else None
        elif said is None and options:
            said, kind = max(options, key=lambda name: options[name]), "options"
        elif said is not None:
            error = abs(said / truth - 1) if isinstance(truth, float | int) and truth else None
            width = None if row["q05"] is None or not said else (row["q95"] - row["q05"]) / abs(said)
        if error is not None and isinstance(said, float | int) and isinstance(truth, float | int):
            quantiles = None if row["q05"] is None else tuple(row[name] for name in ("q05", "q25", "q50", "q75", "q95"))
            scored.append(Scored(row["item_id"], said, truth, quantiles))
        items.append(Answered(row["item_id"], row["status"], said, row["cost_usd"], truth, error, width))
    return Outcome(tuple(items), tuple(scored), kind, sealed)


def errors_picture(study: Study, folder: Path, theme: Theme) -> bytes | None:
    """Return answers against truths; None without a known truth."""
    told, _ = outcome_of(study, folder, row_of(study, folder))
    if not told.scored:
        return None
    return draw_errors(told.scored, theme, log=told.kind == "estimate")


def calibration_picture(study: Study, folder: Path, theme: Theme) -> bytes | None:
    """Return how often truths lay below the stated quantiles, or how often yes came where a probability was said."""
    told, _ = outcome_of(study, folder, row_of(study, folder))
    if told.kind == "probability" and told.scored:
        return draw_calibration(_reliability(told.scored), theme, across="said probability", up="share that came")
    with_quantiles = [one for one in told.scored if one.quantiles is not None]
    if not with_quantiles:
        return None
    below = [
        (level, sum(one.truth <= (one.quantiles or ())[at] for one in with_quantiles) / len(with_quantiles))
        for at, level in enumerate(LEVELS)
    ]
    return draw_calibration(below, theme, across="stated level", up="share of truths below")


def _reliability(scored: Sequence[Scored]) -> list[tuple[float, float]]:
    """Return mean said and share that came in bins of equally many cases."""
    rising = sorted(scored, key=lambda one: (one.said, one.item_id))
    bins = min(_BINS, len(rising))
    cuts = [len(rising) * number // bins for number in range(bins + 1)]
    parts = [rising[low:high] for low, high in pairwise(cuts)]
    return [(sum(one.said for one in part) / len(part), sum(one.truth for one in part) / len(part)) for part in parts]


def verify_page(folder: Path) -> str:
    """Return what a check of every byte of a run finds."""
    found: RunVerification | None = None
    problem: str | None = None
    try:
        found = verify_run(folder)
        error = found.error()
        problem = None if error is None else error.message
    except IntegrityError as error:
        problem = error.message
    return page(
        "verify.html.jinja",
        title=f"Integrity of {folder.name}",
        here="runs",
        run_id=folder.name,
        found=found,
        problem=problem,
    )
