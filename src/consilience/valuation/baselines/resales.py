"""What a parcel itself last fetched, brought to the day of sale and weighed against the hedonic value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.errors import DataError
from consilience.valuation.baselines.base import Floats
from consilience.valuation.baselines.hedonic import days
from consilience.valuation.baselines.mixed import Ints
from consilience.valuation.baselines.ols import within
from consilience.valuation.baselines.places import Homes, PooledHedonic
from consilience.valuation.baselines.repeat_sales import SHORT_DAYS, RepeatIndex, fit_repeat_index, month_number

if TYPE_CHECKING:
    from consilience.valuation.features import FeatureMatrix

LEAST_RESALES: Final = 30
"""Resales from which the weight of a prior sale is learnt; with fewer it is not used."""

OUTLYING: Final = 3.0
"""A resale that either estimate misses by more robust standard deviations teaches no weight: the home was rebuilt."""

Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PriorWeight:
    """How far a prior sale moves the hedonic value, learnt from resales in train.

    With variances v of the errors of both estimates and their covariance c, the most precise mixture gives the prior
    sale the weight (v_hedonic − c) / (v_hedonic + v_prior − 2c), held within 0 and 1.

    Attributes:
        resales: Resales it was learnt from.
        outlying: Resales left out, as an estimate missed them by more than `OUTLYING` robust standard deviations.
        hedonic: v_hedonic.
        prior: v_prior at ``years`` of holding.
        drift: What every year of holding adds to v_prior.
        years: Mean years held.
        shared: c: both estimates miss what the later sale has of its own.
        offset: Mean of ln price − prior estimate, such as the gain by rebuilding between two quick sales.
    """

    resales: int
    outlying: int
    hedonic: float
    prior: float
    drift: float
    years: float
    shared: float
    offset: float

    def of(self, years: Floats) -> Floats:
        """Return the weight of prior sales held for some years.

        Example:
            >>> PriorWeight(99, 1, 0.04, 0.04, 0.0, 2.0, 0.01, 0.0).of(np.array([2.0])).tolist()
            [0.5]
        """
        gain = self.hedonic - self.shared
        other = self.prior + self.drift * (years - self.years) - self.shared
        if gain <= 0:
            return np.zeros(len(years))
        return np.where(other <= 0, 1.0, gain / np.maximum(gain + other, gain))


@dataclass(frozen=True)
class Resales:
    """The second estimate: the prior price brought to the day of sale.

    Attributes:
        index: The repeat-sales index; None where train holds no repeat sale held for a year.
        weights: Weight of prior sales ``held`` for a year or longer and ``short`` ones; None for too few resales.
    """

    index: RepeatIndex | None
    weights: dict[str, PriorWeight | None]


@dataclass(frozen=True)
class Estimates:
    """Both estimates of ln price per subject; ``prior`` is NaN without a prior sale."""

    hedonic: Floats
    prior: Floats


def estimates(subjects: FeatureMatrix, hedonic: PooledHedonic, index: RepeatIndex | None) -> Estimates:
    """Return both estimates, each with the price level as of the subject's cutoff.

    A prior sale of a year ago or longer moves with the repeat-sales index, and after the index's last day with the
    as-of level; any other one with the hedonic value of the home.
    """
    frame, path = subjects.frame, hedonic.path(subjects.sales)
    cutoff = days(frame["cutoff"])
    structure = hedonic.structure(Homes.at_sale(frame))
    value = structure + path.at_cutoff(cutoff)
    known = np.flatnonzero(frame["prior_sale_date"].is_not_null().to_numpy())
    some, as_of = frame[known], cutoff[known]
    sold, now = days(some["prior_sale_date"]), path.at_cutoff(as_of)
    change = structure[known] - hedonic.structure(Homes.at_prior_sale(some)) + now - path.at(sold, as_of)
    if index is not None:
        since = np.where(as_of > hedonic.last, now - path.at(np.maximum(sold, hedonic.last), as_of), 0.0)
        moved = since + index.change(_months(some["prior_sale_date"]), _months(some["sale_date"]))
        change = np.where(kinds(some)["held"] & np.isfinite(moved), moved, change)
    prior = np.full(frame.height, np.nan)
    prior[known] = some["ln_prior_price"].to_numpy() + change
    return Estimates(value, prior)


def combine(frame: pl.DataFrame, both: Estimates, weights: Mapping[str, PriorWeight | None]) -> tuple[Floats, Bools]:
    """Return ln price from both estimates, and where the prior sale counted."""
    mixed, counted = both.hedonic.copy(), np.zeros(frame.height, dtype=bool)
    years = frame["prior_years"].to_numpy()
    for kind, of_kind in kinds(frame).items():
        weight, rows = weights[kind], of_kind & np.isfinite(both.prior)
        if weight is not None:
            share = weight.of(years[rows])
            mixed[rows] += share * (both.prior[rows] + weight.offset - both.hedonic[rows])
            counted |= rows
    return mixed, counted


def fit_resales(train: FeatureMatrix, log_price: Floats, hedonic: PooledHedonic, least_pairs: int) -> Resales:
    """Return index and weights from the resales of train."""
    frame = train.frame
    held = (pl.col("sale_date") - pl.col("prior_sale_date")).dt.total_days()
    pairs = (
        frame.with_columns(log_price=pl.Series(log_price))
        .filter(pl.col("prior_sale_date").is_not_null())
        .select(
            first_month=month_number(pl.col("prior_sale_date")),
            second_month=month_number(pl.col("sale_date")),
            days=held,
            log_ratio=pl.col("log_price") - pl.col("ln_prior_price"),
            short=held < SHORT_DAYS,
        )
    )
    try:
        index = fit_repeat_index(pairs, least_pairs=least_pairs)
    except DataError:
        index = None  # nothing was held for a year: notes and record say so
    both = estimates(train, hedonic, index)
    weights = {
        kind: _fit_weight(
            rows & np.isfinite(both.prior),
            miss=log_price - both.hedonic,
            prior_miss=log_price - both.prior,
            years=frame["prior_years"].to_numpy(),
            drift=index.drift if kind == "held" and index is not None else 0.0,
        )
        for kind, rows in kinds(frame).items()
    }
    return Resales(index, weights)


def _fit_weight(rows: Bools, *, miss: Floats, prior_miss: Floats, years: Floats, drift: float) -> PriorWeight | None:
    found = np.flatnonzero(rows)
    if found.size < LEAST_RESALES:
        return None
    usual = found[within(miss[found], OUTLYING) & within(prior_miss[found], OUTLYING)]
    n = usual.size
    if n < LEAST_RESALES:
        return None
    offset = float(prior_miss[usual].mean())
    first, second = miss[usual] - miss[usual].mean(), prior_miss[usual] - offset
    return PriorWeight(
        resales=n,
        outlying=found.size - n,
        hedonic=float(first @ first / n),
        prior=float(second @ second / n),
        drift=drift,
        years=float(years[usual].mean()),
        shared=float(first @ second / n),
        offset=offset,
    )


def kinds(frame: pl.DataFrame) -> Mapping[str, Bools]:
    """Return which sales follow a prior sale of a year ago or longer, and which a shorter one."""
    days = (frame["sale_date"] - frame["prior_sale_date"]).dt.total_days()
    return {
        "held": (days >= SHORT_DAYS).fill_null(value=False).to_numpy(),
        "short": (days < SHORT_DAYS).fill_null(value=False).to_numpy(),
    }


def _months(day: pl.Series) -> Ints:
    return day.to_frame("day").select(month_number(pl.col("day"))).to_series().to_numpy()
