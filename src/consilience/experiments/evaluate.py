"""What the arms were worth: scores and cost of each, their contrasts, and what lies beside the predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from consilience.aggregation.answers import rule_names
from consilience.errors import ConfigError, PlanError
from consilience.experiments.answers_judged import ChoiceComparison, ProbabilityComparison
from consilience.experiments.arm_scores import Draws
from consilience.experiments.arm_strata import Strata, StratumResult, strata_results
from consilience.experiments.calibrations import Calibration
from consilience.experiments.comparing import WITHOUT_MODEL, Compare, Compared, answered, simulated
from consilience.experiments.contrasts import contrasts
from consilience.experiments.evaluable import (
    ESTIMATE,
    OPTIONS,
    PROBABILITY,
    kinds_of,
    refuse_mixtures,
    with_option,
    with_truth,
)
from consilience.experiments.evaluation import Comparison, Evaluation
from consilience.experiments.item_days import Times
from consilience.experiments.judging import Judge
from consilience.experiments.panel_scores import Levels, PanelScores, RoundPoint, convergence
from consilience.experiments.predictions import EXPOSURES, validate_predictions
from consilience.experiments.repetitions import RunToRun, run_to_run
from consilience.registry import nearest

NOTHING = Comparison(arms=(), rules=(), resampling=None)
"""The comparison of arms that were asked for no number."""


@dataclass(frozen=True)
class Beside:
    """What is known of runs beside their predictions.

    Attributes:
        strata: Groups of the items.
        panels: What the runs say of their panels.
        levels: Of runs of nested rounds, the rounds of their arms.
        repetitions: Predictions of runs that asked some items again; None for none.
        calibration: A frozen calibration; None leaves answers as they are.
        times: When items were asked and their truths known.
    """

    strata: Strata = field(default_factory=dict)
    panels: tuple[PanelScores, ...] = ()
    levels: Levels = field(default_factory=dict)
    repetitions: pl.DataFrame | None = None
    calibration: Calibration | None = None
    times: Times = field(default_factory=dict)


def evaluate(
    predictions: pl.DataFrame,
    truth: pl.DataFrame,
    *,
    primary: str = "median",
    baseline_arm: str = "E_single",
    n_resamples: int = 10_000,
    seed: int = 0,
    beside: Beside | None = None,
) -> Evaluation:
    """Return scores and cost of every arm, its difference from the single agent, and the contrasts of all arms.

    An arm is read under the primary rule; one with a single rule under that (a baseline's ``model``), and one of single
    seats, where all rules agree, under its first. Differences are of the median absolute percentage error over the
    items that every arm with any answer has answered; whole clusters are drawn, the same draws for all arms and rules.
    Questions of yes or no and questions with options are compared apart, each under the declared rule of its kind.

    Args:
        predictions: As `validate_predictions`.
        truth: ``item_id, truth`` and optionally ``option`` (the true one's id), ``cluster`` (null: the item is its
            own); may hold more items. Numbers are > 0, questions of yes or no have 0 or 1.
        primary: Aggregation rule of numbers, fixed beforehand.
        baseline_arm: Arm that every other is compared with.
        n_resamples: Resamples B, >= 2.
        seed: Seed of the draws.
        beside: What is known of the runs beside their predictions.

    Raises:
        ConfigError: No rule has the name of the primary one.
        DataError: There are no predictions, an item has no truth or two, an item stands twice for one arm and rule,
            splits are mixed, or an answer is no positive number.
        PlanError: The baseline arm is absent, an arm has several rules and not the primary one, or the calibration was
            fitted on these items or later ones.

    Example:
        >>> from consilience.experiments.predictions import predictions_frame
        >>> told = {"committee": "c", "aggregation": "median", "run_id": "_r", "status": "answered", "n_answered": 1,
        ...         "n_seats": 1, "exposure": "unknown"}
        >>> frame = predictions_frame([
        ...     told | {"item_id": item, "arm": arm, "point": point}
        ...     for item in "ab" for arm, point in (("E_single", 110.0), ("F_independent", 105.0))])
        >>> truth = pl.DataFrame({"item_id": ["a", "b"], "truth": [100.0, 100.0]})
        >>> result = evaluate(frame, truth, n_resamples=10)
        >>> round(result.overall.arms[1].difference.point, 9), result.simulated
        (-0.05, True)
    """
    beside = beside or Beside()
    predictions = validate_predictions(predictions)
    refuse_mixtures(predictions)
    known = {*predictions["aggregation"], *rule_names("estimate")}
    if primary not in known:
        raise ConfigError(f'unknown aggregation rule "{primary}"', hint=nearest(primary, known))
    arms = sorted(predictions["arm"].unique())
    if baseline_arm not in arms:
        raise PlanError(
            f'no run has the arm "{baseline_arm}", so no arm could be shown beside the single agent',
            hint=f"Run it on the same items first. Arms here: {', '.join(arms)}.",
        )
    kinds = kinds_of(predictions, truth)
    parts = {kind: _of_kind(predictions, kinds, kind) for kind in (ESTIMATE, PROBABILITY, OPTIONS)}
    numbers = None
    if parts[ESTIMATE].height:
        frame = with_truth(parts[ESTIMATE], truth)
        rule_of = {str(arm): _rule(arm, rows, primary) for (arm,), rows in frame.group_by("arm", maintain_order=True)}
        numbers = _Numbers(frame, rule_of, baseline_arm, n_resamples, seed, beside)
    judge = Judge(
        baseline_arm=baseline_arm,
        n_resamples=n_resamples,
        seed=seed,
        recalibrated={} if beside.calibration is None else beside.calibration.maps(parts[PROBABILITY], beside.times),
    )
    run_ids = tuple(sorted(predictions["run_id"].unique()))
    levels = [level for level in EXPOSURES if (predictions["exposure"] == level).any()]
    whole = None if numbers is None else numbers.compared("all")
    overall = NOTHING if whole is None else whole.comparison
    yes_no = judge.probabilities(with_truth(parts[PROBABILITY], truth)) if parts[PROBABILITY].height else None
    choices = judge.choices(with_option(parts[OPTIONS], truth)) if parts[OPTIONS].height else None
    compared = [*([] if whole is None else [overall]), *(one for one in (yes_no, choices) if one is not None)]
    return Evaluation(
        split=predictions["split"][0],
        primary=primary,
        baseline_arm=baseline_arm,
        overall=overall,
        by_exposure={} if numbers is None else numbers.by_exposure(),
        run_ids=run_ids,
        simulated=simulated(run_ids),
        warnings=tuple(
            dict.fromkeys(
                [*_about_rows(run_ids, levels), *(line for told in compared for line in _about(told, baseline_arm))]
            )
        ),
        contrasts=None
        if whole is None or whole.common is None
        else contrasts(
            whole.common, models=[arm.arm for arm in overall.arms if arm.aggregation == WITHOUT_MODEL], seed=seed
        ),
        strata=() if numbers is None else numbers.strata(),
        panels=beside.panels,
        convergence=_convergence(overall, beside),
        run_to_run=() if numbers is None else numbers.run_to_run(truth),
        probabilities=yes_no,
        choices=choices,
        calibration_sha256=None if beside.calibration is None else beside.calibration.sha256,
        n_resamples=n_resamples,
        seed=seed,
        changes=() if beside.calibration is None else beside.calibration.changes(_simulated_by_arm(predictions)),
    )


def _simulated_by_arm(predictions: pl.DataFrame) -> dict[str, bool]:
    return {str(arm): simulated(rows["run_id"].unique()) for (arm,), rows in predictions.group_by("arm")}


def _of_kind(predictions: pl.DataFrame, kinds: Mapping[str, str], kind: str) -> pl.DataFrame:
    return predictions.filter(pl.col("item_id").is_in([item for item, asked in kinds.items() if asked == kind]))


@dataclass(frozen=True)
class _Numbers:
    """The rows that ask for numbers, with what is made from them."""

    frame: pl.DataFrame
    rule_of: Mapping[str, str]
    baseline_arm: str
    n_resamples: int
    seed: int
    beside: Beside

    def primary(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of each arm under its primary rule."""
        rules = pl.DataFrame({"arm": list(self.rule_of), "aggregation": list(self.rule_of.values())})
        return frame.join(rules, on=["arm", "aggregation"], how="semi")

    def compared(self, part: str, rows: pl.DataFrame | None = None) -> Compared:
        """Return the arms on all rows, or some."""
        calibration = self.beside.calibration
        calibrated: dict[str, pl.DataFrame] = {}
        if calibration is not None:
            calibrated = calibration.intervals_of(
                answered(self.primary(self.frame)), self.beside.strata, self.beside.times
            )
        baseline = self.baseline_arm
        compare = Compare(
            rule_of=self.rule_of,
            baseline_arm=baseline,
            n_resamples=self.n_resamples,
            seed=self.seed,
            calibrated=calibrated,
        )
        return compare(self.frame if rows is None else rows, part=part)

    def by_exposure(self) -> dict[str, Comparison]:
        """Return the arms by exposure where it varies."""
        levels = [level for level in EXPOSURES if (self.frame["exposure"] == level).any()]
        parts = {level: self.frame.filter(pl.col("exposure") == level) for level in levels if len(levels) > 1}
        return {level: self.compared(level, rows).comparison for level, rows in parts.items()}

    def strata(self) -> tuple[StratumResult, ...]:
        """Return the primary measure by stratum."""
        draws = Draws("evaluate/strata", n_resamples=self.n_resamples, seed=self.seed)
        return strata_results(self.primary(self.frame), self.beside.strata, draws)

    def run_to_run(self, truth: pl.DataFrame) -> tuple[RunToRun, ...]:
        """Return how much arms differ from themselves."""
        again = self.beside.repetitions
        if again is None:
            return ()
        rows = pl.concat([self.frame, with_truth(again, truth)], how="diagonal")
        return run_to_run(answered(self.primary(rows)).drop_nulls("point"))


def _convergence(overall: Comparison, beside: Beside) -> tuple[RoundPoint, ...]:
    results = {
        one.arm: (one.mdape, None if one.intervals is None else one.intervals.coverage90.value)
        for one in overall.arms
        if one.mdape is not None
    }
    return convergence(beside.levels, results, beside.panels)


def _rule(arm: object, rows: pl.DataFrame, primary: str) -> str:
    rules: list[str] = sorted(rows["aggregation"].unique())
    if primary in rules:
        return primary
    if len(rules) == 1 or (rows["n_seats"] == 1).all():
        return rules[0]
    raise PlanError(f'arm "{arm}" has no rows under the rule "{primary}"', hint=nearest(primary, rules))


def _about_rows(run_ids: Sequence[str], exposures: Sequence[str]) -> list[str]:
    made_up = [run for run in run_ids if simulated([run])]
    found = []
    if 0 < len(made_up) < len(run_ids):
        found.append(f"Some runs are simulated or synthetic, others not: {', '.join(made_up)}.")
    exposures = [] if len(made_up) == len(run_ids) else exposures  # simulated analysts were trained on nothing
    if list(exposures) == ["before"]:
        found.append("All items lie before the models' training cutoff: a model may have seen every answer.")
    if list(exposures) == ["unknown"]:
        found.append("It is unknown for every item whether it lies before the models' training cutoff.")
    return found


def _about(comparison: Comparison | ProbabilityComparison | ChoiceComparison, baseline_arm: str) -> list[str]:
    found = []
    resampling = comparison.resampling
    arms = comparison.arms if isinstance(comparison, Comparison) else comparison.results
    if len({arm.n_items for arm in arms}) > 1:
        found.append("The arms were not put to the same number of items; only the differences are on common items.")
    if resampling is None:
        return [*found, f"No item was answered by every arm and by {baseline_arm}: there are no differences to show."]
    groups = resampling.clusters.n_clusters
    if groups < 2:
        found.append("All common items are one cluster: no interval can be given.")
    elif groups < 10:
        found.append(f"Only {groups} clusters: the intervals describe these items and support no conclusion.")
    elif groups < 20:
        found.append(f"Only {groups} clusters: intervals are standard error × t({groups - 1}) and may be too narrow.")
    return found
