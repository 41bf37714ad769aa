"""What arms were worth that answered with a probability of yes, or over options."""

from __future__ import annotations

from dataclasses import dataclass

from consilience.core.undefined import Undefined
from consilience.experiments.evaluation import Resampling
from consilience.experiments.gaps import Gap
from consilience.experiments.measures import Measure, Recorded
from consilience.inference.intervals import DifferenceInterval
from consilience.scoring.calibration import Calibration, Reliability
from consilience.scoring.probability import Corp, Murphy
from consilience.scoring.summaries import ClusteredShare


@dataclass(frozen=True)
class ProbabilityResult(Recorded):
    """One arm under one rule, over questions of yes or no.

    Attributes:
        arm: The arm.
        aggregation: The rule.
        committee: Names of its committees, joined by ``, ``.
        simulated: Every row comes from a simulated or synthetic run.
        primary: It is the arm's row under its primary rule.
        n_items: Questions put to it.
        outcomes: Count of questions by status.
        n: Answered questions; the figures below are of these and None without any.
        brier: Mean Brier score; 0 is best.
        corp: Its parts: miscalibration, discrimination, uncertainty.
        murphy: Its parts over the distinct stated values.
        log_score: Mean log score; 0 is best.
        n_clipped: Probabilities that were moved for it.
        calibration: Calibration errors, each beside what a perfect forecaster gets.
        reliability: The diagram with its consistency band.
        sharpness: Mean distance from one half.
        skill: Against always saying the base rate of these questions, which nobody knew before.
        cost_usd: Cost over all questions; None when unknown.
        tokens: Tokens over all; None when unknown.
        difference: Mean Brier score less that of the baseline arm on the common questions; None for it.
        calibrated: Mean Brier score after the frozen recalibration; None without one.
        p: Of the difference; None for the baseline arm.
        holm: The same adjusted over all comparisons of primary rules here.
        matched: The same difference from the single agent of the same money; None where there is none.
    """

    arm: str
    aggregation: str
    committee: str
    simulated: bool
    primary: bool
    n_items: int
    outcomes: dict[str, int]
    n: int
    brier: Measure | None
    corp: Corp | None
    murphy: Murphy | None
    log_score: Measure | None
    n_clipped: int
    calibration: Calibration | None
    reliability: Reliability | None
    sharpness: float | None
    skill: float | Undefined | None
    cost_usd: float | None
    tokens: int | None
    difference: DifferenceInterval | None
    calibrated: Measure | None = None
    p: float | Undefined | None = None
    holm: float | Undefined | None = None
    matched: Gap | None = None


@dataclass(frozen=True)
class ChoiceResult(Recorded):
    """One arm under one rule, over questions with options: choices, or distributions over them.

    Attributes:
        arm: The arm.
        aggregation: The rule.
        committee: Names of its committees, joined by ``, ``.
        simulated: Every row comes from a simulated or synthetic run.
        primary: It is the arm's row under its primary rule.
        n_items: Questions put to it.
        outcomes: Count of questions by status.
        n: Answered questions whose truth is known.
        n_tied: Of these, questions whose leading options were tied; they count as not right.
        accuracy: Share whose leading option is the true one, with the interval of clustered questions.
        agreement: Mean share of the leading option.
        given_to_truth: Mean share that the true option had.
        cost_usd: Cost over all questions; None when unknown.
        tokens: Tokens over all; None when unknown.
        difference: Accuracy less that of the baseline arm on the common questions (positive: better); None for it.
        p: Of the difference; None for the baseline arm.
        holm: The same adjusted over all comparisons of primary rules here.
        matched: The same difference from the single agent of the same money; None where there is none.
    """

    arm: str
    aggregation: str
    committee: str
    simulated: bool
    primary: bool
    n_items: int
    outcomes: dict[str, int]
    n: int
    n_tied: int
    accuracy: ClusteredShare | None
    agreement: float | None
    given_to_truth: float | None
    cost_usd: float | None
    tokens: int | None
    difference: DifferenceInterval | None
    p: float | Undefined | None = None
    holm: float | Undefined | None = None
    matched: Gap | None = None


@dataclass(frozen=True)
class ProbabilityComparison(Recorded):
    """Arms over the questions of yes or no.

    Attributes:
        results: By arm and rule, sorted.
        resampling: None when there are no common questions.
    """

    results: tuple[ProbabilityResult, ...]
    resampling: Resampling | None


@dataclass(frozen=True)
class ChoiceComparison(Recorded):
    """Arms over the questions with options.

    Attributes:
        results: By arm and rule, sorted.
        resampling: None when there are no common questions.
    """

    results: tuple[ChoiceResult, ...]
    resampling: Resampling | None
