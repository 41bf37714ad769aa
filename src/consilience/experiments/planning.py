"""What a study to come can see, from a pilot: two arms on the same validation items, and repetitions of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from consilience.errors import DataError, PlanError
from consilience.experiments.looks import COUNTED
from consilience.inference.bootstrap import Labels, analysis_rng
from consilience.inference.effective import FloatArray, Undefined
from consilience.inference.power import least_detectable, pilot_se, power_of
from consilience.inference.variance import components
from consilience.registry import nearest
from consilience.scoring.point import absolute_percentage_error, log_error

MEAN = "mean |log error|"
MEDIAN = "MdAPE"


@dataclass(frozen=True)
class Pilot:
    """Losses of two arms on common items.

    Attributes:
        arms: Their labels.
        log_losses: Size of the log error, shape (n, 2).
        percentage_losses: Absolute percentage error, shape (n, 2).
        clusters: One label per item.
        run_variance: Of the log loss of one item from run to run, per arm; undefined without repetitions.
    """

    arms: tuple[str, str]
    log_losses: FloatArray
    percentage_losses: FloatArray
    clusters: Labels
    run_variance: tuple[float | Undefined, float | Undefined]

    @property
    def n_clusters(self) -> int:
        """Clusters of the pilot."""
        return int(np.unique(self.clusters).size)


@dataclass(frozen=True)
class Sight:
    """What a study sees of one measure.

    Attributes:
        measure: What differs between the arms.
        se: Standard error the difference will have.
        df: Degrees of freedom, clusters less 1.
        least: Least difference seen with the power asked for.
        power: Probability of seeing the effect that was named; None without one.
    """

    measure: str
    se: float
    df: int
    least: float
    power: float | None


def sight(
    *, measure: str, se: float, n_clusters: int, alpha: float, power: float, effect: float | None = None
) -> Sight:
    """Return what a standard error and a number of clusters let a study see.

    Raises:
        PlanError: There are fewer than two clusters, or no error.
        DataError: alpha, power or the effect is out of range.

    Example:
        >>> round(sight(measure="MdAPE", se=0.01, n_clusters=52, alpha=0.05, power=0.8).least, 4)
        0.0286
    """
    if n_clusters < 2:
        raise PlanError("one cluster has no standard error", hint="Plan for at least two; 20 are enough for intervals.")
    if se == 0:
        raise PlanError(f"the two arms never differ in {measure}", hint="Plan from arms that can differ.")
    least = least_detectable(se=se, df=n_clusters - 1, alpha=alpha, power=power)
    seen = None if effect is None else power_of(delta=effect, se=se, df=n_clusters - 1, alpha=alpha)
    return Sight(measure, se, n_clusters - 1, least, seen)


def pilot(predictions: pl.DataFrame, *, primary: str = "median") -> Pilot:
    """Return the losses of the two arms of a pilot.

    An arm with several runs on the same items is read from the one with most items; all of them together tell its
    variance from run to run.

    Args:
        predictions: Of validation runs of two arms, with the columns ``truth`` and ``cluster`` (`with_truth`).
        primary: Aggregation rule; an arm with one rule is read under it.

    Raises:
        PlanError: Items are of test or holdout, there are not two arms, an arm lacks the rule, or nothing is common.
        DataError: An answer or a truth is no positive number.
    """
    sealed = sorted(set(predictions["split"].drop_nulls()) & set(COUNTED))
    if sealed:
        raise PlanError(
            f"a study is planned before it is looked at, and these are items of {' and '.join(sealed)}",
            hint="Give runs on validation.",
        )
    answered = predictions.filter(pl.col("status") == "answered").drop_nulls("point")
    arms = sorted(answered["arm"].unique())
    if len(arms) != 2:
        raise PlanError(f"a pilot compares two arms, and these are {len(arms)}: {', '.join(arms)}", hint="Name two.")
    rows = pl.concat([_of_arm(answered.filter(pl.col("arm") == arm), arm, primary) for arm in arms])
    first = [_largest(rows.filter(pl.col("arm") == arm)) for arm in arms]
    common = first[0].join(first[1], on="item_id", suffix="_b").sort("item_id")
    if common.is_empty():
        raise PlanError(f"{arms[0]} and {arms[1]} answered no common item", hint="Run both on the same items.")
    return Pilot(
        arms=(arms[0], arms[1]),
        log_losses=common.select("log", "log_b").to_numpy(),
        percentage_losses=common.select("ape", "ape_b").to_numpy(),
        clusters=common["cluster"].to_numpy(),
        run_variance=(_run_variance(rows, arms[0]), _run_variance(rows, arms[1])),
    )


def foreseen(
    pilot: Pilot,
    *,
    n_clusters: int,
    runs: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    effect: float | None = None,
    seed: int = 0,
) -> tuple[Sight, ...]:
    """Return what a study of that many clusters like those of the pilot sees, per measure.

    With several runs of each arm averaged, only the mean is foreseen: of its variance the part from run to run lessens.

    Args:
        pilot: Of two arms.
        n_clusters: Clusters of the study.
        runs: Runs of each arm that are averaged.
        alpha: Level of the test.
        power: Probability of seeing a difference.
        effect: A difference of which the power is wanted, too.
        seed: Of the simulated studies.

    Raises:
        PlanError: The pilot or the study has fewer than two clusters, the arms never differ, or several runs are
            planned and the pilot has no repetitions.
        DataError: An argument is out of range.
    """
    said = {"n_clusters": n_clusters, "alpha": alpha, "power": power, "effect": effect}
    measures = [(MEAN, pilot.log_losses, False), (MEDIAN, pilot.percentage_losses, True)]
    found: list[Sight] = []
    for measure, losses, median in measures[: 1 if runs > 1 else 2]:
        rng = analysis_rng(seed=seed, analysis=f"power/{measure}")
        se = pilot_se(losses=losses, clusters=pilot.clusters, n_clusters=n_clusters, rng=rng, median=median)
        if isinstance(se, Undefined):
            raise PlanError(f"the pilot tells no standard error: {se.reason}", hint="Run it on more clusters.")
        if runs > 1:
            se = _averaged(se, pilot, n_clusters, runs)
        found.append(sight(measure=measure, se=se, **said))  # type: ignore[arg-type]
    return tuple(found)


def _averaged(se: float, pilot: Pilot, n_clusters: int, runs: int) -> float:
    known = [value for value in pilot.run_variance if not isinstance(value, Undefined)]
    if len(known) < 2:
        raise PlanError(
            "the pilot has no repetitions of both arms to tell what several runs gain",
            hint="Repeat both on validation with run-arm --replicate 1 and name those runs, too.",
        )
    n = n_clusters * len(pilot.clusters) / pilot.n_clusters
    left = se**2 - sum(known) * (1 - 1 / runs) / n
    if left <= 0:
        raise PlanError(
            "the pilot's arms vary more from run to run than they differ between items",
            hint="Repeat more items: so few do not tell the two apart.",
        )
    return math.sqrt(left)


def _of_arm(rows: pl.DataFrame, arm: str, primary: str) -> pl.DataFrame:
    rules: Sequence[str] = sorted(rows["aggregation"].unique())
    alike = len(rules) == 1 or bool((rows["n_seats"] == 1).all())
    if primary not in rules and not alike:
        raise PlanError(f'arm "{arm}" has no rows under the rule "{primary}"', hint=nearest(primary, rules))
    kept = rows.filter(pl.col("aggregation") == (primary if primary in rules else rules[0]))
    point, truth = kept["point"].to_numpy(), kept["truth"].to_numpy()
    return kept.select("item_id", "arm", "run_id", "cluster").with_columns(
        log=pl.Series(np.abs(log_error(estimate=point, truth=truth))),
        ape=pl.Series(absolute_percentage_error(estimate=point, truth=truth)),
    )


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    run = rows.group_by("run_id").len().sort("len", "run_id", descending=[True, False])["run_id"][0]
    found = rows.filter(pl.col("run_id") == run)
    if found["item_id"].is_duplicated().any():
        raise DataError(f"run {run} answers an item twice", hint="Name a run of one committee.")
    return found


def _run_variance(rows: pl.DataFrame, arm: str) -> float | Undefined:
    mine = rows.filter(pl.col("arm") == arm)
    if mine["run_id"].n_unique() < 2:
        return Undefined("there are no repetitions")
    repeated = mine.filter(pl.len().over("item_id") > 1)
    if repeated["item_id"].n_unique() < 2:
        return Undefined("fewer than two items were repeated")
    made = components(values=repeated["log"].to_numpy(), groups=repeated["item_id"].to_numpy())
    return made if isinstance(made, Undefined) else made.within
