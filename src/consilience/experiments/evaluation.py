"""What an evaluation says: the results of arms and rules, how their differences were resampled, what to beware of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilience.experiments.arm_strata import StratumResult
from consilience.experiments.contrasts import Contrasts
from consilience.experiments.held_out import Change
from consilience.experiments.measures import IntervalScores, Measure, RatioScores, Recorded
from consilience.experiments.panel_scores import PanelScores, RoundPoint
from consilience.experiments.repetitions import RunToRun
from consilience.inference.bootstrap import ClusterSummary
from consilience.inference.intervals import DifferenceInterval
from consilience.scoring.summaries import PointSummary, Share

if TYPE_CHECKING:
    from consilience.experiments.answers_judged import ChoiceComparison, ProbabilityComparison


@dataclass(frozen=True)
class ArmResult(Recorded):
    """One arm under one aggregation rule. All its items stay in the counts; errors are of the answered ones.

    Attributes:
        arm: Name of the arm.
        aggregation: Rule whose rows these are.
        committee: Names of its committees, joined by ``, ``.
        simulated: Every row comes from a simulated or synthetic run.
        n_items: Items put to the arm.
        outcomes: Count of items by status, every status named.
        points: Errors of the answered items; None when none was answered.
        coverage50: Share of truths in [q25, q75] with its Wilson interval; None without quantiles.
        coverage90: Share of truths in [q05, q95] with its Wilson interval; None without quantiles.
        width90: Median of ``(q95 - q05) / point``; None without quantiles.
        cost_usd: Cost over all items, answered or not; None as soon as one item's cost is unknown.
        tokens: Tokens over all items; None as soon as one item's are unknown.
        difference: MdAPE minus that of the baseline arm on the common items (negative: this arm is better), as a
            share, with its cluster-bootstrap interval; None for the baseline itself and where there is none to give.
        mdape: The median error with its interval; None when none was answered. As the four below, of arms under their
            primary rule only.
        log_error: Mean absolute log error with its interval.
        intervals: What the stated intervals were worth; None without quantiles.
        calibrated: The same after the frozen calibration; None without one for this arm.
        ratios: How even the estimates were; None when none was answered.
    """

    arm: str
    aggregation: str
    committee: str
    simulated: bool
    n_items: int
    outcomes: dict[str, int]
    points: PointSummary | None
    coverage50: Share | None
    coverage90: Share | None
    width90: float | None
    cost_usd: float | None
    tokens: int | None
    difference: DifferenceInterval | None
    mdape: Measure | None = None
    log_error: Measure | None = None
    intervals: IntervalScores | None = None
    calibrated: IntervalScores | None = None
    ratios: RatioScores | None = None

    @property
    def cost_per_item_usd(self) -> float | None:
        """Mean cost of an item; None when the cost is unknown."""
        return None if self.cost_usd is None else self.cost_usd / self.n_items


@dataclass(frozen=True)
class Resampling(Recorded):
    """How the differences were resampled.

    Attributes:
        n_items: Common items, which every arm with any answer has answered.
        clusters: Number, dominance and effective number of their clusters.
        n_resamples: Resamples B.
        seed: Seed of the draws.
        digest: SHA-256 of the draws.
    """

    n_items: int
    clusters: ClusterSummary
    n_resamples: int
    seed: int
    digest: str


@dataclass(frozen=True)
class Comparison(Recorded):
    """Arms on one set of items.

    Attributes:
        arms: One result per arm under the primary rule, sorted by arm.
        rules: One result per arm and rule, sorted; a rule that answered fewer than the common items has no difference.
        resampling: None when there are no common items.
    """

    arms: tuple[ArmResult, ...]
    rules: tuple[ArmResult, ...]
    resampling: Resampling | None


@dataclass(frozen=True)
class Evaluation(Recorded):
    """The tables of an evaluation.

    Attributes:
        split: Split of all items; None when they have none.
        primary: The primary aggregation rule.
        baseline_arm: Arm that the differences are taken from.
        overall: All items.
        by_exposure: The same by ``before | after | unknown`` where exposure varies; else empty.
        run_ids: Runs the predictions come from, sorted.
        simulated: Every run is simulated or synthetic.
        warnings: Sentences that must stand beside the tables.
        contrasts: Of all arms under their primary rule; None without common items.
        strata: The primary measure by stratum, arm and group, sorted; empty where strata are unknown.
        panels: Flips, spread, independence and faithfulness of the panels, by arm and run.
        convergence: Error by round of runs of nested rounds.
        run_to_run: How much arms differ from themselves; empty without repetitions.
        probabilities: Arms over questions of yes or no; None without any.
        choices: Arms over questions with options; None without any.
        calibration_sha256: Of the frozen calibration that was applied; None for none.
        n_resamples: Resamples B of every interval, but where a table says that it takes fewer; None where unknown.
        seed: Seed of the draws; None where unknown.
        changes: What it did on validation to items it was not learnt on, for the arms here.
    """

    split: str | None
    primary: str
    baseline_arm: str
    overall: Comparison
    by_exposure: dict[str, Comparison]
    run_ids: tuple[str, ...]
    simulated: bool
    warnings: tuple[str, ...]
    contrasts: Contrasts | None = None
    strata: tuple[StratumResult, ...] = ()
    panels: tuple[PanelScores, ...] = ()
    convergence: tuple[RoundPoint, ...] = ()
    run_to_run: tuple[RunToRun, ...] = ()
    probabilities: ProbabilityComparison | None = None
    choices: ChoiceComparison | None = None
    calibration_sha256: str | None = None
    n_resamples: int | None = None
    seed: int | None = None
    changes: tuple[Change, ...] = ()
