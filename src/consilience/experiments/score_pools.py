"""Pools of a table's forecasters, and maps of a pool fitted on earlier forecasts and judged on later ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from consilience.aggregation.odds import clipped, expit, logit
from consilience.aggregation.probabilities import PROBABILITY_RULES
from consilience.aggregation.recalibration import fit_platt
from consilience.core.undefined import Undefined
from consilience.errors import ConfigError, DataError
from consilience.experiments.arm_scores import BELOW
from consilience.experiments.forecast_table import ForecastTable, moment
from consilience.inference.bootstrap import Counts, Labels, analysis_rng, bootstrap_means, cluster_weights
from consilience.inference.intervals import DifferenceInterval, difference_interval
from consilience.registry import nearest
from consilience.scoring.point import BoolArray, FloatArray
from consilience.scoring.probability import brier

EXTREMIZED: Final = "extremized_in_sample"
"""Not a rule to use: it shows how much a pool could gain from an exponent that knew the outcomes."""
FITTED_POOL: Final = "geometric_odds"
N_RESAMPLES: Final = 10_000
_SEED: Final = 0
_EXPONENTS: Final = (0.05, 20.0)
_NEAR: Final = 1e-4
AT_BOUND: Final = "at_bound"


def rule_names(asked: Sequence[str]) -> tuple[str, ...]:
    """Return names of pools, checked: rules that need nothing fitted, and `EXTREMIZED`.

    Raises:
        ConfigError: A name is unknown, or its rule needs an artefact.
    """
    known = [rule.name for rule in PROBABILITY_RULES if rule.ready(None)]
    for name in asked:
        if name not in {*known, EXTREMIZED}:
            raise ConfigError(f'--aggregate: no rule "{name}"', hint=nearest(name, [*known, EXTREMIZED]))
    return tuple(dict.fromkeys(asked))


def pool_items(table: ForecastTable, items: BoolArray, name: str) -> FloatArray:
    """Return one pool's probability of each chosen item, which all forecasters answered, shape (items,)."""
    chosen = table.probability[items]
    rule = PROBABILITY_RULES[FITTED_POOL if name == EXTREMIZED else name]
    values = np.array([rule(probabilities=row, seats=table.names).value for row in chosen])
    if name != EXTREMIZED:
        return values
    logits = _logits(values)
    return _shares(fit_exponent(logits=logits, outcomes=table.outcome[items]) * logits)


def fit_exponent(*, logits: FloatArray, outcomes: FloatArray) -> float:
    """Return the exponent of odds, in [0.05, 20], with the lowest mean Brier score; above 1 it extremises."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - scipy is loaded where it is used

    def loss(exponent: float) -> float:
        return float(((_shares(exponent * logits) - outcomes) ** 2).mean())

    options = {"xatol": 1e-9}
    return float(minimize_scalar(loss, bounds=_EXPONENTS, method="bounded", options=options).x)


def at_bound(exponent: float) -> bool:
    """Return whether an exponent is as small or large as it may be: the best one may lie beyond.

    Example:
        >>> at_bound(19.999999), at_bound(1.2)
        (True, False)
    """
    low, high = _EXPONENTS
    return not low * (1 + _NEAR) < exponent < high * (1 - _NEAR)


def in_sample_exponent(table: ForecastTable, items: BoolArray) -> float:
    """Return the exponent that `EXTREMIZED` uses."""
    chosen, rule = table.probability[items], PROBABILITY_RULES[FITTED_POOL]
    values = np.array([rule(probabilities=row, seats=table.names).value for row in chosen])
    return fit_exponent(logits=_logits(values), outcomes=table.outcome[items])


@dataclass(frozen=True)
class FittedMap:
    """A map of a pool, fitted on one part of the items and judged on the other.

    Attributes:
        name: ``extremized``: odds to a power, by Brier score; ``platt``: intercept and slope of log-odds, by maximum
            likelihood, and where that has no optimum (a threshold tells outcomes apart) by Platt's smoothed targets.
        parameters: ``(exponent,)`` or ``(intercept, slope)``.
        brier: On the items it was not fitted on.
        change: Its Brier score less that of the pool as it was, by question; below 0 it helped.
        helps: Whether the interval of the change lies below 0; otherwise the map is not to be used.
        flags: ``at_bound``: the exponent is as small or large as it may be, so that the best one is unknown;
            ``smoothed_targets``.
    """

    name: str
    parameters: tuple[float, ...]
    brier: float
    change: DifferenceInterval
    helps: bool
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class TimeFit:
    """Maps fitted on one side of a date and judged on the other.

    Attributes:
        direction: ``forward``; ``reversed`` is fitted on the later part and only shows whether the maps are stable.
        before: The date.
        pool: Whose values are mapped.
        n_fitted: Items fitted on.
        n_scored: Items judged on.
        unresolved_then: Items fitted on whose target is dated at or after the date: their outcome was not known then.
        brier: Of the pool as it is, on the items judged on.
        maps: The maps, or why there is none.
    """

    direction: Literal["forward", "reversed"]
    before: date
    pool: str
    n_fitted: int
    n_scored: int
    unresolved_then: int
    brier: float
    maps: dict[str, FittedMap | Undefined]


def time_fits(table: ForecastTable, items: BoolArray, before: date) -> tuple[TimeFit, TimeFit]:
    """Return the maps fitted on forecasts before a date (0:00 UTC) and judged from it on, and the reverse.

    Raises:
        DataError: An item has no date of forecast, or one side of the date is empty.
    """
    start = datetime(before.year, before.month, before.day, tzinfo=UTC)
    early = np.array([_moment(text) < start for text in table.as_of[items]], dtype=bool)
    if early.all() or not early.any():
        raise DataError(
            f"all forecasts that count lie {'before' if early.all() else 'at or after'} {before}",
            hint=f"Take a date between {min(table.as_of[items])} and {max(table.as_of[items])}.",
        )
    pool = pool_items(table, items, FITTED_POOL)
    forward = _fit(table, items, pool, early, before)
    return forward, replace(_fit(table, items, pool, ~early, before), direction="reversed", unresolved_then=0)


def _fit(table: ForecastTable, items: BoolArray, pool: FloatArray, fitted: BoolArray, before: date) -> TimeFit:
    logits, y, questions = _logits(pool), table.outcome[items], table.question[items]
    plain = brier(p=pool[~fitted], y=y[~fitted])

    def extremized() -> tuple[tuple[float, ...], tuple[str, ...]]:
        exponent = fit_exponent(logits=logits[fitted], outcomes=y[fitted])
        return (exponent,), (AT_BOUND,) if at_bound(exponent) else ()

    def platt() -> tuple[tuple[float, ...], tuple[str, ...]]:
        scores, outcomes = logits[fitted], y[fitted]
        try:
            return fit_platt(scores=scores, outcomes=outcomes, smoothed=False), ()
        except DataError:
            return fit_platt(scores=scores, outcomes=outcomes), ("smoothed_targets",)

    def judged(name: str, fit: Callable[[], tuple[tuple[float, ...], tuple[str, ...]]]) -> FittedMap | Undefined:
        try:
            parameters, flags = fit()
        except DataError as error:
            return Undefined(error.message)
        intercept, slope = (0.0, *parameters)[-2:]
        made = brier(p=_shares(intercept + slope * logits[~fitted]), y=y[~fitted])
        change = clustered_mean(made - plain, questions[~fitted])
        helps = change.high is not None and change.high < 0
        return FittedMap(name, parameters, float(made.mean()), change, helps, flags)

    start = datetime(before.year, before.month, before.day, tzinfo=UTC)
    late = [text for text in table.target[items][fitted] if (at := moment(text)) is not None and at >= start]
    return TimeFit(
        direction="forward",
        before=before,
        pool=FITTED_POOL,
        n_fitted=int(fitted.sum()),
        n_scored=int((~fitted).sum()),
        unresolved_then=len(late),
        brier=float(plain.mean()),
        maps={name: judged(name, fit) for name, fit in (("extremized", extremized), ("platt", platt))},
    )


def clustered_mean(values: FloatArray, clusters: Labels, *, loss: bool = False) -> DifferenceInterval:
    """Return a mean over items with its interval from whole clusters; equal clusters get equal draws.

    Of losses, which cannot be negative, an interval that reaches below 0 all the same is flagged ``below_possible``.
    """
    n_clusters = np.unique(clusters).size
    draws = bootstrap_means(values=values[:, None], clusters=clusters, weights=_draws(n_clusters))[:, 0]
    made = difference_interval(point=float(values.mean()), draws=draws, n_clusters=n_clusters)
    below = loss and made.low is not None and made.low < 0
    return replace(made, flags=(*made.flags, BELOW)) if below else made


@lru_cache(maxsize=4)
def _draws(n_clusters: int) -> Counts:
    """Return draws of clusters, which depend on their number only."""
    rng = analysis_rng(seed=_SEED, analysis="score")
    return cluster_weights(clusters=np.arange(n_clusters), n_resamples=N_RESAMPLES, rng=rng)


def _logits(p: FloatArray) -> FloatArray:
    return np.array([logit(clipped(x)) for x in p.tolist()])


def _shares(x: FloatArray) -> FloatArray:
    return np.array([expit(one) for one in x.tolist()])


def _moment(text: str) -> datetime:
    found = moment(text)
    if found is None:
        raise DataError(
            f'"{text}" is no date of a forecast', hint="A time-forward fit needs as_of, written YYYY-MM-DD."
        )
    return found
