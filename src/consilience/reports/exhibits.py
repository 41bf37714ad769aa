"""All that a report shows beside its main table: which tables and pictures an evaluation and its runs have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from consilience.experiments.evaluation import Evaluation
from consilience.reports.answers import choices_table, probabilities_table
from consilience.reports.deviations import Label, deviations_table
from consilience.reports.evaluation import outcomes_table
from consilience.reports.gallery import Answers, Details, focus, pictures_of
from consilience.reports.judged import contrasts_table, overview_table
from consilience.reports.members import read_members
from consilience.reports.panel_tables import flips_table, independence_table
from consilience.reports.pulls import read_pulls
from consilience.reports.recorded_tables import environment_table, read_made, token_table
from consilience.reports.scope import Scope
from consilience.reports.scored import calibration_table, coverage_table, ratios_table, strata_table
from consilience.reports.stated import stated
from consilience.reports.tables import Table

if TYPE_CHECKING:
    from consilience.reports.pictures.canvas import Picture


@dataclass(frozen=True)
class Exhibit:
    """One table of a report.

    Attributes:
        name: Stem of its files, such as ``contrasts``.
        title: Its heading.
        table: The table; one without rows is left out everywhere.
    """

    name: str
    title: str
    table: Table


@dataclass(frozen=True)
class Exhibits:
    """What a report shows.

    Attributes:
        tables: In order; none without rows.
        pictures: In order; what is not known has none.
    """

    tables: tuple[Exhibit, ...] = ()
    pictures: tuple[Picture, ...] = ()


async def exhibits(
    evaluation: Evaluation,
    *,
    folder_of: Callable[[str], Path],
    predictions: pl.DataFrame,
    truth: pl.DataFrame,
    scope: Scope,
    labels: Sequence[Label],
) -> Exhibits:
    """Return the tables and pictures of an evaluation.

    Args:
        evaluation: From `evaluate`.
        folder_of: Where a run lies.
        predictions: What was evaluated.
        truth: Columns ``item_id`` and ``truth``.
        scope: What was asked.
        labels: How runs stand to the freeze.

    Raises:
        IntegrityError: The record of a run is not what was written.
    """
    known = dict(truth.select("item_id", "truth").drop_nulls().iter_rows())
    looked_at = focus(evaluation)
    members = None if looked_at is None else await read_members(folder_of(looked_at), truths=known)
    units = sorted({unit for run in scope.runs for unit in run.units})
    judged = () if evaluation.probabilities is None else evaluation.probabilities.results
    details = Details(
        answers=_answers(evaluation, predictions, known),
        members=members,
        points=stated(
            predictions,
            truth,
            rules={one.arm: one.aggregation for one in evaluation.overall.arms},
            column="point",
        ),
        probabilities=stated(
            predictions, truth, rules={one.arm: one.aggregation for one in judged if one.primary}, column="p"
        ),
        pulls=read_pulls(folder_of(run.run_id) for run in scope.runs),
        unit=" or ".join(units),
    )
    made = [read_made(folder_of(run.run_id)) for run in scope.runs]
    simulated = evaluation.simulated
    tables = (
        Exhibit("main", "Each arm at a glance", overview_table(evaluation)),
        Exhibit("yes_no", "Yes-no questions", probabilities_table(evaluation)),
        Exhibit("choices", "Questions with options", choices_table(evaluation)),
        Exhibit("contrasts", "The declared contrasts", contrasts_table(evaluation)),
        Exhibit("exploration", "Exploration: all other pairs of arms", contrasts_table(evaluation, explored=True)),
        Exhibit("coverage", "Quality of the intervals", coverage_table(evaluation)),
        Exhibit("calibration", "Calibration", calibration_table(evaluation)),
        Exhibit("iaao", "Evenness over cheap and dear homes (IAAO)", ratios_table(evaluation)),
        Exhibit("rounds", "Flips, spread and error by round", flips_table(evaluation)),
        Exhibit("members", "Independence and faithfulness", independence_table(evaluation)),
        Exhibit("strata", "Error by stratum", strata_table(evaluation)),
        Exhibit("missingness", "What came of every item", outcomes_table(evaluation, scope)),
        Exhibit("cost", "Cost by kind of token", token_table(made, simulated=simulated)),
        Exhibit("deviations", "Frozen protocol", deviations_table(labels, simulated=simulated)),
        Exhibit("environment", "Where the runs were made", environment_table(made, simulated=simulated)),
    )
    return Exhibits(tuple(one for one in tables if one.table.records), pictures_of(evaluation, details))


def _answers(evaluation: Evaluation, predictions: pl.DataFrame, truths: Mapping[str, float]) -> dict[str, Answers]:
    """Return what every arm answered under its primary rule, sorted by item."""
    found: dict[str, Answers] = {}
    for one in evaluation.overall.arms:
        rows = predictions.filter(
            (pl.col("arm") == one.arm) & (pl.col("aggregation") == one.aggregation) & (pl.col("status") == "answered")
        )
        said = sorted((item, point) for item, point in rows.select("item_id", "point").iter_rows() if point is not None)
        pairs = [(point, truths[item]) for item, point in said if item in truths]
        if pairs:
            estimate, truth = (pl.Series(values, dtype=pl.Float64).to_numpy() for values in zip(*pairs, strict=True))
            found[one.arm] = Answers(estimate, truth)
    return found
