"""Fit calibrations on validation: learnt on earlier items, judged on later ones, kept only where they gain surely."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from consilience.aggregation.odds import clipped, expit, logit
from consilience.aggregation.recalibration import Recalibration, fit_recalibration
from consilience.core.undefined import Undefined
from consilience.errors import DataError, PlanError
from consilience.experiments.calibrations import (
    ENDS,
    LEAST_QUESTIONS,
    STRATUM,
    Calibration,
    Gain,
    IntervalEntry,
    ProbabilityEntry,
    Refused,
    Strata,
    Subject,
    interval_name,
    moved,
)
from consilience.experiments.comparing import answered, simulated
from consilience.experiments.evaluable import ESTIMATE, PROBABILITY, kinds_of, refuse_mixtures, with_truth
from consilience.experiments.held_out import Frequencies, Inside, frequencies, inside
from consilience.experiments.item_days import Days, Times, asked_on
from consilience.experiments.judging import primary_rules
from consilience.experiments.predictions import QUANTILES
from consilience.experiments.weights import FITTED_SPLIT
from consilience.inference.bootstrap import analysis_rng, bootstrap_means, cluster_weights
from consilience.inference.conformal import Cqr, fit_cqr, least_rows
from consilience.inference.intervals import LEAST, difference_interval
from consilience.scoring.interval import interval_score
from consilience.scoring.point import FloatArray
from consilience.scoring.probability import brier

EXPONENTS: Final = (0.7, 1.5)
"""Bounds of the exponent of odds: validation sets are small, and an extreme one costs most where it is wrong."""
_SHOWN: Final = 4


@dataclass(frozen=True)
class Judged:
    """How a gain is resampled."""

    n_resamples: int
    seed: int

    def __call__(self, before: FloatArray, after: FloatArray, rows: pl.DataFrame, *, name: str) -> Gain | Undefined:
        """Return what was gained per item, with its interval; ``name`` names the draws."""
        clusters = rows["cluster"].to_numpy()
        groups = int(np.unique(clusters).size)
        if groups < LEAST:
            return Undefined("its later items are one cluster")
        rng = analysis_rng(seed=self.seed, analysis=f"calibrate/{name}")
        weights = cluster_weights(clusters=clusters, n_resamples=self.n_resamples, rng=rng)
        gained = (before - after)[:, None]
        draws = bootstrap_means(values=gained, clusters=clusters, weights=weights)[:, 0]
        gap = difference_interval(point=float(gained.mean()), draws=draws, n_clusters=groups)
        if gap.low is None or gap.high is None:
            return Undefined("its later items are one cluster")
        return Gain(measure=name, n_fitted=0, n_judged=rows.height, gain=gap.point, low=gap.low, high=gap.high)


def calibrate(  # noqa: PLR0913 - all that a fit depends on
    predictions: pl.DataFrame,
    truth: pl.DataFrame,
    *,
    runs: Mapping[str, str],
    package_version: str,
    strata: Strata,
    times: Times | None = None,
    primary: str = "median",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Calibration:
    """Return the calibrations of every arm under its primary rule that surely gain, and why others were refused.

    Items are ordered by their information cutoff. A calibration is learnt on the earlier half, without the items whose
    truth was not known when the first of the later ones was asked (they are counted), and judged on the later half:
    intervals by conformal margins (CQR) and the interval score of their logarithms, probabilities by Platt's map with
    its exponent held in `EXPONENTS` and the Brier score. One whose gain's 95 % interval reaches 0 is refused; the
    others are learnt again on all items.

    Args:
        predictions: Of validation runs, as `validate_predictions`.
        truth: ``item_id, truth`` and optionally ``cluster``.
        runs: Head of each run's journal.
        package_version: Of this package.
        strata: Groups of the items.
        times: When items were asked and their truths known; where nobody says, a truth is taken to be known right after
            the cutoff, and such items are counted.
        primary: Rule of arms over estimates.
        n_resamples: Resamples B of a gain, >= 2.
        seed: Seed of the draws.

    Raises:
        PlanError: Items are not of validation, have no dates, or no calibration is kept.
        DataError: As `evaluate`.
    """
    refuse_mixtures(predictions)
    split = predictions["split"][0]
    if split != FITTED_SPLIT:
        raise PlanError(
            f"calibrations are fitted on {FITTED_SPLIT} and these are items of {split}",
            hint="Run the arms on validation first.",
        )
    if predictions["cutoff"].null_count():
        raise PlanError("an item has no information cutoff, so there is no earlier and later", hint="Date the items.")
    times = _days(predictions, times or {})
    kinds = kinds_of(predictions, truth)
    judged = Judged(n_resamples, seed)
    intervals: list[IntervalEntry] = []
    maps: list[ProbabilityEntry] = []
    refused: list[Refused] = []
    for kind in (ESTIMATE, PROBABILITY):
        frame = predictions.filter(pl.col("item_id").is_in([item for item, asked in kinds.items() if asked == kind]))
        if frame.is_empty():
            continue
        frame = with_truth(frame, truth)
        for subject, rows in _subjects(frame, kind, primary):
            made: Sequence[IntervalEntry | ProbabilityEntry | Refused]
            made = (
                _intervals(subject, rows, strata, times, judged)
                if kind == ESTIMATE
                else [_map(subject, rows, times, judged)]
            )
            intervals += [one for one in made if isinstance(one, IntervalEntry)]
            maps += [one for one in made if isinstance(one, ProbabilityEntry)]
            refused += [one for one in made if isinstance(one, Refused)]
    if not intervals and not maps:
        told = "; ".join(f"{one.subject.arm}, {one.what}: {one.reason}" for one in refused[:_SHOWN])
        more = f"; and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        raise PlanError(
            f"no calibration is kept ({told or 'nothing was answered'}{more})", hint="The answers are used as they are."
        )
    return Calibration(
        package_version=package_version,
        runs=dict(sorted(runs.items())),
        items=tuple(sorted(set(predictions["item_id"]))),
        until=max(days.learnt for days in times.values()),
        n_assumed=sum(1 for days in times.values() if days.known is None),
        intervals=tuple(intervals),
        probabilities=tuple(maps),
        refused=tuple(refused),
    ).sealed()


def _subjects(frame: pl.DataFrame, kind: str, primary: str) -> list[tuple[Subject, pl.DataFrame]]:
    rules = primary_rules(frame, kind, primary)
    found: list[tuple[Subject, pl.DataFrame]] = []
    for (arm, rule, committee), rows in frame.sort("item_id").group_by(["arm", "aggregation", "committee"]):
        if rules[str(arm)] == rule:
            subject = Subject(
                arm=str(arm),
                aggregation=str(rule),
                committee=str(committee),
                simulated=simulated(rows["run_id"].unique()),
            )
            found.append((subject, answered(rows)))
    return sorted(found, key=lambda pair: (pair[0].arm, pair[0].committee))


def _days(predictions: pl.DataFrame, times: Times) -> dict[str, Days]:
    """Return the days of every item."""
    asked = predictions.select("item_id", "cutoff").unique().sort("item_id", "cutoff").iter_rows()
    return {str(item): asked_on(times, str(item), cutoff) for item, cutoff in asked}


@dataclass(frozen=True)
class _Halves:
    """Items to learn from, items to judge on, and how many earlier ones were not known yet."""

    earlier: pl.DataFrame
    later: pl.DataFrame
    unresolved: int = 0

    def few(self, noun: str, least: int) -> str | None:
        """Return why nothing can be learnt; None where something can."""
        if self.earlier.height >= least and not self.later.is_empty():
            return None
        said = f"{self.earlier.height} earlier {noun}; at least {least} are needed"
        return f"{said} ({self.unresolved} more were not known yet)" if self.unresolved else said


def _halves(rows: pl.DataFrame, times: Times) -> _Halves:
    """Return the earlier and the later half; items of one day stay together, in the later one.

    Earlier items whose truth was not known when the first of the later ones was asked teach nothing.
    """
    if rows.is_empty():
        return _Halves(rows, rows)
    middle = rows["cutoff"].sort()[rows.height // 2]
    earlier, later = rows.filter(pl.col("cutoff") < middle), rows.filter(pl.col("cutoff") >= middle)
    fitted_at = min(times[item].admitted for item in later["item_id"])
    known = earlier.filter(
        pl.Series([times[item].learnt <= fitted_at for item in earlier["item_id"]], dtype=pl.Boolean)
    )
    return _Halves(known, later, earlier.height - known.height)


def _intervals(
    subject: Subject, rows: pl.DataFrame, strata: Strata, times: Times, judged: Judged
) -> list[IntervalEntry | Refused]:
    told = rows.drop_nulls(list(QUANTILES))
    found: list[IntervalEntry | Refused] = []
    for alpha in ENDS:
        what = interval_name(alpha)
        halves = _halves(told, times)
        earlier, later = halves.earlier, halves.later
        reason = halves.few("items", least_rows(alpha))
        if reason is not None:
            found.append(Refused(subject=subject, what=what, reason=reason, gain=None))
            continue
        after = moved(later, _fit(earlier, alpha, strata), strata)
        gain = judged(_loss(later, alpha), _loss(after, alpha), later, name=f"interval score/{alpha:g}/{subject.arm}")
        low, high = ENDS[alpha]
        seen = [inside(rows, low=low, high=high) for rows in (later, after)]
        kept = _kept(subject, what, _showing(gain, *seen), "interval score", halves)
        found.append(
            kept
            if isinstance(kept, Refused)
            else IntervalEntry(subject=subject, cqr=_fit(told, alpha, strata), gain=kept)
        )
    return found


def _kept(subject: Subject, what: str, gain: Gain | Undefined, measure: str, halves: _Halves) -> Gain | Refused:
    if isinstance(gain, Undefined):
        return Refused(subject=subject, what=what, reason=gain.reason, gain=None)
    whole = gain.model_copy(
        update={"measure": measure, "n_fitted": halves.earlier.height, "n_unresolved": halves.unresolved}
    )
    if gain.low > 0:
        return whole
    worse = "it loses" if gain.high < 0 else "the interval of its gain covers 0"
    return Refused(subject=subject, what=what, reason=worse, gain=whole)


def _showing(gain: Gain | Undefined, before: Inside | Frequencies, after: Inside | Frequencies) -> Gain | Undefined:
    return gain if isinstance(gain, Undefined) else gain.model_copy(update={"before": before, "after": after})


def _fit(rows: pl.DataFrame, alpha: float, strata: Strata) -> Cqr:
    low, high = (np.log(rows[name].to_numpy()) for name in ENDS[alpha])
    groups = [strata.get(item, {}).get(STRATUM, "") for item in rows["item_id"]]
    outcome = np.log(rows["truth"].to_numpy())
    return fit_cqr(lower=low, upper=high, outcome=outcome, alpha=alpha, asymmetric=False, strata=groups)


def _loss(rows: pl.DataFrame, alpha: float) -> FloatArray:
    low, high, outcome = (np.log(rows[name].to_numpy()) for name in (*ENDS[alpha], "truth"))
    return interval_score(lower=low, upper=high, outcome=outcome, alpha=alpha)


def _map(subject: Subject, rows: pl.DataFrame, times: Times, judged: Judged) -> ProbabilityEntry | Refused:
    what = PROBABILITY
    halves = _halves(rows, times)
    earlier, later = halves.earlier, halves.later
    reason = halves.few("questions", LEAST_QUESTIONS)
    if reason is not None:
        return Refused(subject=subject, what=what, reason=reason, gain=None)
    try:
        first, whole = _platt(earlier, subject), _platt(rows, subject)
    except DataError as error:
        return Refused(subject=subject, what=what, reason=error.message, gain=None)
    p, y, clusters = (later[name].to_numpy() for name in ("p", "truth", "cluster"))
    mapped = np.array([first(value) for value in p.tolist()])
    gain = judged(brier(p=p, y=y), brier(p=mapped, y=y), later, name=f"Brier score/{subject.arm}")
    seen = [frequencies(p=stated, y=y, clusters=clusters) for stated in (p, mapped)]
    kept = _kept(subject, what, _showing(gain, *seen), "Brier score", halves)
    if isinstance(kept, Refused):
        return kept
    return ProbabilityEntry(subject=subject, recalibration=whole, gain=kept)


def _platt(rows: pl.DataFrame, subject: Subject) -> Recalibration:
    p, y = rows["p"].to_numpy(), rows["truth"].to_numpy()
    made = fit_recalibration(
        method="platt", probabilities=p, outcomes=y, pool=subject.aggregation, version=f"{subject.arm}/{rows.height}"
    )
    return replace(made, parameters=held(made.parameters, p=p, y=y))


def held(parameters: tuple[float, ...], *, p: FloatArray, y: FloatArray) -> tuple[float, float]:
    r"""Return intercept and exponent of Platt's map with the exponent inside `EXPONENTS`.

    Where it was outside, the intercept is fitted again beside the bound: the b at which stated and smoothed shares
    agree, ``sum expit(b + k logit p) = sum t``.

    Args:
        parameters: Intercept and exponent as fitted.
        p: Stated probabilities.
        y: Outcomes.

    Example:
        >>> held((0.1, 1.2), p=np.array([0.5]), y=np.array([1.0]))
        (0.1, 1.2)
        >>> held((0.0, 3.0), p=np.array([0.2, 0.8]), y=np.array([0.0, 1.0]))[1]
        1.5
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy is loaded where it is used

    intercept, exponent = parameters
    bound = min(max(exponent, EXPONENTS[0]), EXPONENTS[1])
    if bound == exponent:
        return intercept, exponent
    yes = float(y.sum())
    no = y.size - yes
    target = yes * (yes + 1) / (yes + 2) + no / (no + 2)
    odds = [bound * logit(clipped(value)) for value in p.tolist()]
    root = brentq(lambda b: math.fsum(expit(b + one) for one in odds) - target, -30.0, 30.0)
    return float(root), bound
