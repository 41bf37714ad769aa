"""Rules for probabilities of yes: many seats' become one, and the record says how.

Probabilities of 0 and 1 stay as given; a rule that must clip records what moved, from where to where.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from consilience.aggregation.location import trim_count
from consilience.aggregation.odds import (
    BOUNDS,
    LOGIT_CLIP,
    effective_number,
    expit,
    extremity,
    logit,
    mean_logit,
    projective_factor,
    sqrt_neff,
)
from consilience.aggregation.pooling import (
    SENSITIVITY,
    PooledProbability,
    ProbabilityRule,
    clip_all,
    inside,
    measured_rho,
    moved,
    pooled,
)
from consilience.aggregation.resolved import MIN_RESOLVED, FittedProbabilities
from consilience.errors import DataError
from consilience.registry import Registry

MANY_SEATS: Final = 8
"""From this many declared seats the median is the primary rule, the geometric mean of odds below."""


@dataclass(frozen=True)
class MeanProbability(ProbabilityRule):
    """The mean probability: the linear pool. Of calibrated members it is underconfident.

    Reference: Stone 1961; Ranjan & Gneiting 2010.

    Example:
        >>> MeanProbability()(probabilities=np.array([0.25, 0.75]), seats=("a", "b")).value
        0.5
    """

    name: ClassVar[str] = "mean"

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        del fitted
        return pooled(inside(math.fsum(p) / len(p), p), seats)


@dataclass(frozen=True)
class TrimmedMeanProbability(ProbabilityRule):
    """The mean of what is left after cutting ``int(proportion * n)`` probabilities at each end.

    Degenerate: with nothing to cut it is the mean, flagged ``trim_inactive``.

    Attributes:
        proportion: Share of the members that is cut at each end.

    Example:
        >>> TrimmedMeanProbability()(probabilities=np.array([0.0, 0.5, 0.5, 0.5, 0.9]), seats=tuple("abcde")).value
        0.5
    """

    name: ClassVar[str] = "trimmed_mean"
    proportion: float = 0.2

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        del fitted
        cut = trim_count(n=len(p), proportion=self.proportion)
        kept = sorted(range(len(p)), key=p.__getitem__)[cut : len(p) - cut]
        value = inside(math.fsum(p[i] for i in kept) / len(kept), p)
        made = pooled(value, seats, tuple(float(i in kept) for i in range(len(p))))
        return made if cut else replace(made, flags=("trim_inactive",))


@dataclass(frozen=True)
class MedianProbability(ProbabilityRule):
    """The middle probability; of two middle ones their mean.

    Example:
        >>> rule = MedianProbability()
        >>> rule(probabilities=np.array([0.1, 0.2, 0.9]), seats=("a", "b", "c")).value
        0.2
    """

    name: ClassVar[str] = "median"

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        del fitted
        middle = sorted(range(len(p)), key=p.__getitem__)[(len(p) - 1) // 2 : len(p) // 2 + 1]
        value = math.fsum(p[i] for i in middle) / len(middle)
        return pooled(value, seats, tuple(float(i in middle) for i in range(len(p))))


@dataclass(frozen=True)
class GeometricOdds(ProbabilityRule):
    """The geometric mean of odds: the probability of the mean log-odds, clipped first.

    Where clipping would carry the pool outside what the seats said (all are nearly certain), it is held at the nearest
    of theirs, recorded as a clip of the ``pool``.

    Reference: Genest & Zidek 1986; Satopää et al. 2014.

    Attributes:
        eps: Probabilities are held inside [eps, 1 - eps] before their log-odds are taken; clips are counted.

    Example:
        >>> made = GeometricOdds()(probabilities=np.array([0.0, 0.995]), seats=("a", "b"))
        >>> round(made.value, 9), made.clips
        (0.5, (Clip(what='a', before=0.0, after=0.005),))
    """

    name: ClassVar[str] = "geometric_odds"
    eps: float = LOGIT_CLIP

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        del fitted
        held, clips = clip_all(p, seats, self.eps)
        free = expit(mean_logit(held))
        value = inside(free, p)
        return replace(pooled(value, seats), clips=(*clips, *moved(free, value)))


@dataclass(frozen=True)
class SqrtNeffProbability(ProbabilityRule):
    """The mean moved away from one half by the root of the effective number, inside [.01, .99].

    See `odds.sqrt_neff`. The correlation of errors comes from at least 30 resolved questions. Without one the value is
    that of correlation 1, which moves nothing, flagged ``rho_unmeasured``, with the band over correlations beside it.

    Attributes:
        base: The probability that the mean is moved away from.

    Example:
        >>> made = SqrtNeffProbability()(probabilities=np.array([0.65, 0.65, 0.65]), seats=("a", "b", "c"))
        >>> made.value, made.flags, round(made.band["0.3"], 4)
        (0.65, ('rho_unmeasured',), 0.7054)
    """

    name: ClassVar[str] = "sqrt_neff"
    unanimity: ClassVar[bool] = False
    within_range: ClassVar[bool] = False
    base: float = 0.5

    def _weights(self, p: tuple[float, ...]) -> tuple[tuple[float, ...] | None, tuple[str, ...]]:
        """Return what weighs the members, None for all alike, and flags."""
        del p
        return None, ()

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        weights, said = self._weights(p)
        rho, flags = measured_rho(fitted)
        used = 1.0 if rho is None else rho
        made = sqrt_neff(p, rho=used, weights=weights, base=self.base, bounds=BOUNDS)
        tried = () if rho is not None else SENSITIVITY
        return replace(
            pooled(made.value, seats, weights),
            flags=(*said, *flags),
            clips=moved(made.unclamped, made.value),
            factor=made.factor,
            n_eff=made.n_eff,
            rho=used,
            base=self.base,
            band={f"{r:g}": sqrt_neff(p, rho=r, weights=weights, base=self.base).value for r in tried},
        )


@dataclass(frozen=True)
class SqrtNeffWeighted(SqrtNeffProbability):
    """As `SqrtNeffProbability`, each member weighing ``2 |p - 1/2|``: who says nothing weighs nothing.

    Degenerate: all at one half weigh alike, flagged ``equal_weights``.

    Example:
        >>> SqrtNeffWeighted()(probabilities=np.array([0.5, 0.8]), seats=("a", "b")).value
        0.8
    """

    name: ClassVar[str] = "sqrt_neff_weighted"

    def _weights(self, p: tuple[float, ...]) -> tuple[tuple[float, ...] | None, tuple[str, ...]]:
        weights = tuple(extremity(x) for x in p)
        return (weights, ()) if any(weights) else (None, ("equal_weights",))


@dataclass(frozen=True)
class Neyman(ProbabilityRule):
    """Mean log-odds moved away from those of the base rate by ``d(n)``: see `odds.projective_factor`.

    With a measured correlation of errors ``d`` is that of the effective number. Without one it is that of independent
    members, flagged ``rho_unmeasured``, with the band beside it. An unknown base rate is one half.

    Reference: Neyman & Roughgarden 2021; on log-odds, Sevilla 2021.

    Attributes:
        eps: Probabilities are held inside [eps, 1 - eps] before their log-odds are taken; clips are counted.

    Example:
        >>> made = Neyman()(probabilities=np.array([0.1, 0.2, 0.4, 0.5]), seats=tuple("abcd"))
        >>> round(made.value, 6), round(made.factor, 6)
        (0.185344, 1.484641)
    """

    name: ClassVar[str] = "neyman"
    unanimity: ClassVar[bool] = False
    within_range: ClassVar[bool] = False
    eps: float = LOGIT_CLIP

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        held, clips = clip_all(p, seats, self.eps)
        rho, flags = measured_rho(fitted)
        known = fitted is not None and fitted.n_items >= MIN_RESOLVED
        base = fitted.base_rate if fitted is not None and known and fitted.base_rate is not None else 0.5
        start, centre = logit(base), mean_logit(held)

        def at(correlation: float) -> tuple[float, float, float]:
            n_eff = effective_number(len(p), rho=correlation)
            factor = projective_factor(n_eff)
            return expit(start + factor * (centre - start)), factor, n_eff

        used = 0.0 if rho is None else rho
        value, factor, n_eff = at(used)
        return replace(
            pooled(value, seats),
            flags=flags,
            clips=clips,
            factor=factor,
            n_eff=n_eff,
            rho=used,
            base=base,
            band={f"{r:g}": at(r)[0] for r in (() if rho is not None else SENSITIVITY)},
        )


@dataclass(frozen=True)
class ExtremizedOdds(ProbabilityRule):
    """Mean log-odds times a fixed factor ``a``, by default the limit of `Neyman` for many independent members.

    Attributes:
        a: The factor; 1 is the geometric mean of odds.
        eps: Probabilities are held inside [eps, 1 - eps] before their log-odds are taken; clips are counted.

    Example:
        >>> round(ExtremizedOdds(a=2)(probabilities=np.array([0.7, 0.7]), seats=("a", "b")).value, 6)
        0.844828
    """

    name: ClassVar[str] = "extremized_odds"
    unanimity: ClassVar[bool] = False
    within_range: ClassVar[bool] = False
    a: float = math.sqrt(3)
    eps: float = LOGIT_CLIP

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        del fitted
        held, clips = clip_all(p, seats, self.eps)
        return replace(pooled(expit(self.a * mean_logit(held)), seats), clips=clips, factor=self.a)


@dataclass(frozen=True)
class StackedOdds(ProbabilityRule):
    """Log-odds weighed by non-negative weights from validation, whose sum is free: see `resolved.stack_logits`.

    The sum of the fitted weights is kept when a fitted seat is absent (``renormalised``). Without fitted weights, or
    when those present are all zero, members weigh alike with sum 1, flagged.

    Attributes:
        eps: Probabilities are held inside [eps, 1 - eps] before their log-odds are taken; clips are counted.

    Example:
        >>> StackedOdds()(probabilities=np.array([0.2, 0.8]), seats=("a", "b")).flags
        ('equal_weights',)
    """

    name: ClassVar[str] = "stacking"
    unanimity: ClassVar[bool] = False
    within_range: ClassVar[bool] = False
    eps: float = LOGIT_CLIP

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        held, clips = clip_all(p, seats, self.eps)
        learnt = None if fitted is None else fitted.stacking
        if learnt is None:
            return replace(pooled(expit(mean_logit(held)), seats), flags=("equal_weights",), clips=clips)
        if missing := sorted(set(seats) - set(learnt)):
            raise DataError(
                f"{', '.join(missing)} was not fitted", hint="Fit the weights on a run of the same panel's seats."
            )
        weights = tuple(learnt[seat] for seat in seats)
        absent = ("renormalised",) if len(seats) < len(learnt) else ()
        if not any(weights):
            flags = (*absent, "zero_weights", "equal_weights")
            return replace(pooled(expit(mean_logit(held)), seats), flags=flags, clips=clips)
        total = math.fsum(learnt.values())
        value = expit(total * mean_logit(held, weights))
        return replace(pooled(value, seats, weights), flags=absent, clips=clips, factor=total)


@dataclass(frozen=True)
class Recalibrated(ProbabilityRule):
    """The pool that the artefact was fitted on, passed through its map; without an artefact the rule gives no row.

    Example:
        >>> Recalibrated().ready(None)
        False
    """

    name: ClassVar[str] = "recalibrated"
    unanimity: ClassVar[bool] = False
    within_range: ClassVar[bool] = False
    complementary: ClassVar[bool] = False
    passes_single: ClassVar[bool] = False

    def ready(self, fitted: FittedProbabilities | None) -> bool:
        """Whether there is an artefact."""
        return fitted is not None and fitted.recalibration is not None

    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        if fitted is None or fitted.recalibration is None:
            raise DataError("recalibrated without an artefact", hint="Fit one on resolved questions, time-forward.")
        if fitted.recalibration.pool == self.name:
            raise DataError("a recalibration of recalibrated values", hint="Fit it on the values of another rule.")
        rule = PROBABILITY_RULES[fitted.recalibration.pool]
        made = rule(probabilities=np.array(p), seats=seats, fitted=fitted)
        return replace(made, value=fitted.recalibration(made.value), artefact=fitted.recalibration.version)


PROBABILITY_RULES: Final[Registry[ProbabilityRule]] = Registry(
    "probability rule",
    (
        MeanProbability(),
        MedianProbability(),
        TrimmedMeanProbability(),
        GeometricOdds(),
        SqrtNeffProbability(),
        SqrtNeffWeighted(),
        Neyman(),
        ExtremizedOdds(),
        StackedOdds(),
        Recalibrated(),
    ),
    group="consilience.probability_rules",
)


def ready_rules(fitted: FittedProbabilities | None = None) -> list[ProbabilityRule]:
    """Return the rules that have what they need, in their declared order.

    Example:
        >>> "recalibrated" in [rule.name for rule in ready_rules()]
        False
    """
    return [rule for rule in PROBABILITY_RULES if rule.ready(fitted)]


def default_probability_rule(n_seats: int) -> str:
    """Return the primary comparison of a panel, fixed by its declared seats and not by how many of them answered.

    Example:
        >>> default_probability_rule(7), default_probability_rule(8)
        ('geometric_odds', 'median')
    """
    return "median" if n_seats >= MANY_SEATS else "geometric_odds"
