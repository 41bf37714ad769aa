"""What the forecasters of a table are worth, alone and pooled, and what of it should not be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

import numpy as np

from consilience.aggregation.resolved import error_correlation
from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.experiments.forecast_table import ForecastTable
from consilience.experiments.score_flags import LEAST, flags_of
from consilience.experiments.score_pools import (
    AT_BOUND,
    EXTREMIZED,
    TimeFit,
    at_bound,
    clustered_mean,
    in_sample_exponent,
    pool_items,
    rule_names,
    time_fits,
)
from consilience.inference.bootstrap import analysis_rng
from consilience.inference.intervals import DifferenceInterval
from consilience.scoring.calibration import Calibration, Reliability, calibration, reliability
from consilience.scoring.point import BoolArray, FloatArray
from consilience.scoring.probability import (
    Corp,
    LogScores,
    Murphy,
    baseline_score,
    brier,
    brier_index,
    corp,
    log_score,
    murphy,
    peer_score,
    sharpness,
    skill,
)

Sort = Literal["forecaster", "pool", "market"]
MARKET: Final = "market price"
BINS: Final = 10
NULL_SAMPLES: Final = 100
_SEED: Final = 0


@dataclass(frozen=True)
class Entrant:
    """A forecaster, a pool or the market price, scored on the items it answered.

    Attributes:
        name: Of the forecaster, or the rule of the pool, with its sort where a forecaster has the same name.
        sort: What it is.
        n: Items it answered.
        missing: Resolved items it did not.
        brier: Mean Brier score with its interval, clustered by question.
        by_date: The same clustered by date of forecast; None where there is one date only.
        brier_index: ``100 (1 - sqrt(Brier))``.
        corp: Parts of the Brier score: miscalibration, discrimination, uncertainty.
        murphy: Its five parts over ten bins of equal width.
        calibration: Calibration errors beside their nulls.
        log_score: Mean log score.
        n_clipped: Probabilities clipped for it.
        baseline_score: Mean tournament baseline score.
        peer_score: Mean tournament peer score among the forecasters, on items that another one answered.
        sharpness: Mean distance from one half.
        skill_market: Brier skill against the market price, on the items that have one.
        n_market: How many those are.
        skill_base_rate: Brier skill against always saying the share of yes of the same items, known only afterwards.
        flags: What should not be believed, each with the number behind it: see `flags_of`; of a pool ``at_bound``, its
            exponent.
    """

    name: str
    sort: Sort
    n: int
    missing: int
    brier: DifferenceInterval
    by_date: DifferenceInterval | None
    brier_index: float
    corp: Corp
    murphy: Murphy
    calibration: Calibration
    log_score: float
    n_clipped: int
    baseline_score: float
    peer_score: float | Undefined
    sharpness: float
    skill_market: float | Undefined
    n_market: int
    skill_base_rate: float | Undefined
    flags: Mapping[str, float]


@dataclass(frozen=True)
class Compared:
    """A forecaster or pool on the items that every forecaster answered.

    Attributes:
        name: As in `Entrant`.
        sort: As in `Entrant`.
        brier: Mean Brier score.
        change: Its Brier score less the forecasters' mean one, by question; below 0 is better than a forecaster drawn
            by lot.
    """

    name: str
    sort: Sort
    brier: float
    change: DifferenceInterval


@dataclass(frozen=True)
class Common:
    """The comparison on the items that every forecaster answered.

    Attributes:
        n: Those items.
        n_questions: Their questions.
        mean_of_individuals: Mean of the forecasters' Brier scores.
        error_correlation: Mean correlation of two forecasters' errors; None where it cannot be measured.
        rows: Forecasters and pools, best first.
    """

    n: int
    n_questions: int
    mean_of_individuals: float
    error_correlation: float | None
    rows: tuple[Compared, ...]


@dataclass(frozen=True)
class ScoreTable:
    """Everything that was scored.

    Attributes:
        n_items: Items that resolved to yes or no.
        n_questions: Their questions, which the intervals are clustered by.
        n_dates: Their dates of forecast.
        n_priced: Items with a market price.
        base_rate: Share of yes.
        n_unresolved: Targets left out, as their outcome is neither yes nor no.
        n_unknown: Forecasts left out, as the outcomes do not name their target.
        entrants: Forecasters, pools and the market price, each kind best first.
        common: The comparison on common items; None where there is no common item, or one forecaster only.
        fits: Time-forward fits and their reversal; empty where none was asked for.
        warnings: What to know before reading.
    """

    n_items: int
    n_questions: int
    n_dates: int
    n_priced: int
    base_rate: float
    n_unresolved: int
    n_unknown: int
    entrants: tuple[Entrant, ...]
    common: Common | None
    fits: tuple[TimeFit, ...]
    warnings: tuple[str, ...]


def score_table(table: ForecastTable, *, rules: Sequence[str] = (), fit_before: date | None = None) -> ScoreTable:
    """Score every forecaster of a table, pools of them all, and the market price.

    Scores of single forecasters are over the items each answered; pools, comparisons and fits over those that all
    answered.

    Args:
        table: Forecasts and outcomes.
        rules: Pools, by name.
        fit_before: Fit maps of the pooled forecasters on forecasts before this date, and judge them from it on.

    Raises:
        ConfigError: A rule is unknown.
        DataError: Pools or fits were asked for and no item was answered by all, or the date parts nothing.
    """
    names = rule_names(rules)
    shared: BoolArray = np.asarray(table.present.all(axis=1))
    if (names or fit_before is not None) and not shared.any():
        raise DataError("no target was answered by every forecaster", hint=_fewest(table))
    pools = {apart(name, "pool", table.names): pool_items(table, shared, name) for name in names}
    bound = _bound(table, shared) if EXTREMIZED in names else {}
    flags = flags_of(table)
    logs = _logs(table)
    found: list[Entrant] = []
    for at, name in enumerate(table.names):
        there = table.present[:, at]
        if there.any():
            peer = _peer(logs, table.present, at)
            p = table.probability[there, at]
            found.append(_entrant(table, name, "forecaster", there, p, flags=flags[name], peer=peer))
    alone = Undefined("pools are no peers")
    found += [
        _entrant(table, name, "pool", shared, p, flags=bound if name.startswith(EXTREMIZED) else {}, peer=alone)
        for name, p in pools.items()
    ]
    if table.priced.any():
        price = table.price[table.priced]
        market = Undefined("the market is no peer")
        found.append(
            _entrant(table, apart(MARKET, "market", table.names), "market", table.priced, price, flags={}, peer=market)
        )
    order = {"forecaster": 0, "pool": 1, "market": 2}
    return ScoreTable(
        n_items=table.outcome.size,
        n_questions=np.unique(table.question).size,
        n_dates=np.unique(table.as_of[table.as_of != ""]).size,
        n_priced=int(table.priced.sum()),
        base_rate=float(table.outcome.mean()),
        n_unresolved=table.n_unresolved,
        n_unknown=table.n_unknown,
        entrants=tuple(sorted(found, key=lambda one: (order[one.sort], one.brier.point, one.name))),
        common=_common(table, shared, pools) if shared.any() and len(table.names) > 1 else None,
        fits=() if fit_before is None else time_fits(table, shared, fit_before),
        warnings=tuple(_warnings(table, shared)),
    )


def reliabilities(table: ForecastTable, *, rules: Sequence[str] = ()) -> dict[str, Reliability]:
    """Return the reliability diagram of every forecaster, and of pools of them all, by name.

    Raises:
        ConfigError: A rule is unknown.
        DataError: Pools were asked for and no item was answered by all.
    """
    shared: BoolArray = np.asarray(table.present.all(axis=1))
    if rules and not shared.any():
        raise DataError("no target was answered by every forecaster", hint=_fewest(table))
    every = {name: (table.present[:, at], table.probability[:, at]) for at, name in enumerate(table.names)}
    said = {name: (there, p[there]) for name, (there, p) in every.items() if there.any()}
    said |= {apart(name, "pool", table.names): (shared, pool_items(table, shared, name)) for name in rule_names(rules)}
    return {
        name: reliability(p=p, y=table.outcome[there], rng=analysis_rng(seed=_SEED, analysis="reliability"))
        for name, (there, p) in said.items()
    }


def apart(name: str, sort: Sort, names: Sequence[str]) -> str:
    """Return the name of a pool or of the market, which says what it is where a forecaster has the same name.

    Example:
        >>> apart("mean", "pool", ("x", "mean")), apart("mean", "pool", ("x",))
        ('mean (pool)', 'mean')
    """
    while name in names:
        name = f"{name} ({sort})"
    return name


def _bound(table: ForecastTable, shared: BoolArray) -> dict[str, float]:
    exponent = in_sample_exponent(table, shared)
    return {AT_BOUND: exponent} if at_bound(exponent) else {}


def _entrant(
    table: ForecastTable,
    name: str,
    sort: Sort,
    there: BoolArray,
    p: FloatArray,
    *,
    flags: Mapping[str, float],
    peer: float | Undefined,
) -> Entrant:
    y = table.outcome[there]
    each, logs = brier(p=p, y=y), log_score(p=p, y=y)
    parts = corp(p=p, y=y)
    dates = table.as_of[there]
    priced = table.priced[there]
    own = sort == "market"
    versus: float | Undefined = Undefined("it is the price" if own else "no item it answered has a price")
    if priced.any() and not own:
        market = brier(p=table.price[there][priced], y=y[priced])
        versus = skill(score=float(each[priced].mean()), reference=float(market.mean()))
    return Entrant(
        name=name,
        sort=sort,
        n=p.size,
        missing=table.outcome.size - p.size,
        brier=clustered_mean(each, table.question[there], loss=True),
        by_date=clustered_mean(each, dates, loss=True) if np.unique(dates).size > 1 else None,
        brier_index=brier_index(parts.score),
        corp=parts,
        murphy=murphy(p=p, y=y, bins=BINS),
        calibration=calibration(
            p=p, y=y, rng=analysis_rng(seed=_SEED, analysis="calibration"), bins=BINS, n_resamples=NULL_SAMPLES
        ),
        log_score=float(logs.each.mean()),
        n_clipped=logs.n_clipped,
        baseline_score=float(baseline_score(log_scores=logs).mean()),
        peer_score=peer,
        sharpness=float(sharpness(p=p).mean()),
        skill_market=versus,
        n_market=int(priced.sum()),
        skill_base_rate=skill(score=parts.score, reference=parts.unc),
        flags=flags,
    )


def _logs(table: ForecastTable) -> FloatArray:
    """Return log scores, 0 where a forecaster gave no probability."""
    outcomes = np.repeat(table.outcome[:, None], len(table.names), axis=1)
    made: LogScores = log_score(p=table.probability[table.present], y=outcomes[table.present])
    logs = np.zeros(table.present.shape)
    logs[table.present] = made.each
    return logs


def _peer(logs: FloatArray, present: BoolArray, at: int) -> float | Undefined:
    others = present.sum(axis=1) - present[:, at]
    shared = present[:, at] & (others > 0)
    if not shared.any():
        return Undefined("nobody else answered the same items")
    own = logs[shared, at]
    rest = (logs[shared].sum(axis=1) - own) / others[shared]
    return float(peer_score(own=own, others=rest).mean())


def _common(table: ForecastTable, shared: BoolArray, pools: Mapping[str, FloatArray]) -> Common:
    y, questions = table.outcome[shared], table.question[shared]
    said = table.probability[shared]
    losses = {name: brier(p=said[:, at], y=y) for at, name in enumerate(table.names)}
    typical = np.mean(list(losses.values()), axis=0)
    errors = said - y[:, None]
    every: list[tuple[str, Sort, FloatArray]] = [(name, "forecaster", loss) for name, loss in losses.items()]
    every += [(name, "pool", brier(p=p, y=y)) for name, p in pools.items()]
    rows = [
        Compared(name, sort, float(loss.mean()), clustered_mean(loss - typical, questions))
        for name, sort, loss in every
    ]
    return Common(
        n=y.size,
        n_questions=np.unique(questions).size,
        mean_of_individuals=float(typical.mean()),
        error_correlation=error_correlation(errors=errors, present=np.ones_like(errors, dtype=bool)),
        rows=tuple(sorted(rows, key=lambda row: (row.brier, row.name))),
    )


def _warnings(table: ForecastTable, shared: BoolArray) -> list[str]:
    n = table.outcome.size
    found = []
    if table.n_unresolved:
        found.append(f"left out as they resolved to neither yes nor no: {table.n_unresolved}")
    if table.n_unknown:
        found.append(f"forecasts left out as the outcomes do not name their target: {table.n_unknown}")
    silent = [name for at, name in enumerate(table.names) if not table.present[:, at].any()]
    if silent:
        found.append(f"no probability of a resolved target from {', '.join(silent)}")
    if len(table.names) > 1 and not shared.all():
        common = int(shared.sum())
        found.append(f"all forecasters answered {common} of {n} targets: scores on unlike targets do not compare")
    if n < LEAST:
        found.append(f"leaks and copies are not looked for on {n} targets; at least {LEAST} are needed")
    return found


def _fewest(table: ForecastTable) -> str:
    at = int(np.argmin(table.present.sum(axis=0)))
    answered = int(table.present[:, at].sum())
    return f"Choose forecasters with --forecasters; {table.names[at]} answered the fewest targets ({answered})."
