"""The repeat-sales index: what the sales of one and the same parcel say about the path of prices.

Bailey, Muth and Nourse (1963): ln(p₂/p₁) = b(m₂) − b(m₁) + e over the pairs of a parcel's consecutive sales, with one
level b per month. Case and Shiller (1989) weigh a pair by 1/(noise + drift · years held), as values drift apart.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.errors import DataError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SHORT_DAYS: Final = 365
"""A parcel held shorter was often rebuilt or sold under odd terms: its pairs teach the index nothing."""

LEAST_PAIRS: Final = 5
"""A month that fewer pairs touch shares its level with the months that follow."""

DAYS_PER_YEAR: Final = 365.25


class IndexNote(StrEnum):
    """What a reader of an index has to know."""

    WEIGHTS_REFUSED = "weights_refused"
    SHORT_PAIRS_EXCLUDED = "short_pairs_excluded"
    MONTHS_POOLED = "months_pooled"
    INSIDE_ONE_PERIOD = "inside_one_period"
    MONTHS_UNLINKED = "months_unlinked"


@dataclass(frozen=True)
class RepeatIndex:
    """Log price levels by month.

    Attributes:
        first_month: Month of the first level, counted from January 1970.
        levels: ln level per month, 0 in the first linked one; pooled months share theirs; None where no chain of pairs
            links a month to the others.
        noise: Variance of ln(p₂/p₁) that a pair has however short it was held.
        drift: Variance that every year of holding adds; 0 where the weights were refused.
        pairs: Pairs used.
        notes: Each note that applies, with its count (of pairs or months).

    Example:
        >>> index = RepeatIndex(first_month=480, levels=(0.0, 0.25), noise=0.02, drift=0.0, pairs=9, notes={})
        >>> index.change(np.array([480, 480, 470]), np.array([481, 999, 481])).tolist()
        [0.25, 0.25, nan]
    """

    first_month: int
    levels: tuple[float | None, ...]
    noise: float
    drift: float
    pairs: int
    notes: dict[IndexNote, int]

    @property
    def last_month(self) -> int:
        """The last month with a level, counted from January 1970."""
        return self.first_month + len(self.levels) - 1

    def change(self, first: Ints, second: Ints) -> Floats:
        """Return ln(level of the second month / level of the first), NaN where one of them is unknown.

        Months after the last carry its level on; months before the first have none.
        """
        levels = np.array([np.nan if level is None else level for level in self.levels])

        def at(months: Ints) -> Floats:
            place = np.minimum(months - self.first_month, len(levels) - 1)
            return np.where(place < 0, np.nan, levels[np.maximum(place, 0)])

        return at(second) - at(first)

    def variance(self, days: npt.ArrayLike) -> Floats:
        """Return the variance of ln(p₂/p₁) around the index for a holding time in days."""
        return self.noise + self.drift * np.asarray(days, dtype=np.float64) / DAYS_PER_YEAR

    def record(self) -> dict[str, Any]:
        """Return the index as JSON."""
        return asdict(self) | {"levels": list(self.levels), "notes": {k.value: n for k, n in self.notes.items()}}


def month_number(day: pl.Expr) -> pl.Expr:
    """Return the month of a date, counted from January 1970.

    Example:
        >>> from datetime import date
        >>> pl.DataFrame({"day": [date(1971, 2, 28)]}).select(month_number(pl.col("day"))).item()
        13
    """
    return (day.dt.year().cast(pl.Int64) - 1970) * 12 + day.dt.month().cast(pl.Int64) - 1


def repeat_pairs(sales: pl.DataFrame, *, every: bool = False) -> pl.DataFrame:
    """Return the pairs of sales of one parcel in different months, in order of (parcel, first month, second month).

    Of several sales of a parcel in one month the dearest counts.

    Args:
        sales: ``parcel_id, sale_date, price`` and any more columns.
        every: Pair every sale with every later one of its parcel, instead of with the next alone.

    Returns:
        ``parcel_id, first_date, second_date, first_month, second_month`` (counted from January 1970), ``days`` held,
        ``log_ratio`` = ln(p₂/p₁), and ``short``: held less than a year.

    Example:
        >>> from datetime import date
        >>> sales = pl.DataFrame({"parcel_id": ["a", "a", "b"], "price": [100.0, 100.0, 7.0],
        ...     "sale_date": [date(2010, 1, 5), date(2011, 3, 5), date(2011, 3, 5)]})
        >>> repeat_pairs(sales).select("days", "log_ratio", "short").row(0)
        (424, 0.0, False)
    """
    dearest = (
        sales.select("parcel_id", "sale_date", "price", month=month_number(pl.col("sale_date")))
        .sort("parcel_id", "month", "price", "sale_date")
        .group_by("parcel_id", "month", maintain_order=True)
        .last()
        .with_columns(rank=pl.int_range(pl.len()).over("parcel_id"))
    )
    later = dearest.select(
        "parcel_id", second_date="sale_date", second_month="month", second_price="price", second_rank="rank"
    )
    wanted = pl.col("second_rank") > pl.col("rank") if every else pl.col("second_rank") == pl.col("rank") + 1
    days = (pl.col("second_date") - pl.col("sale_date")).dt.total_days()
    return (
        dearest.join(later, on="parcel_id")
        .filter(wanted)
        .sort("parcel_id", "rank", "second_rank")
        .select(
            "parcel_id",
            "second_date",
            "second_month",
            first_date="sale_date",
            first_month="month",
            days=days,
            log_ratio=(pl.col("second_price") / pl.col("price")).log(),
            short=days < SHORT_DAYS,
        )
    )


def fit_repeat_index(pairs: pl.DataFrame, *, weighted: bool = True, least_pairs: int = LEAST_PAIRS) -> RepeatIndex:
    """Return the repeat-sales index of the pairs that were held for a year or longer.

    Three stages: ordinary least squares; squared residuals on years held, e² = noise + drift · years; least squares
    with weights 1/(noise + drift · years). A negative drift, or a variance that is not above 0 for some pair, is no
    variance of prices: the weights are refused (`IndexNote.WEIGHTS_REFUSED`) and the first stage stands.

    Args:
        pairs: As `repeat_pairs` gives them.
        weighted: Try the second and third stage.
        least_pairs: A month touched by fewer pairs is pooled with those that follow, until the period has as many; at
            the end, with the period before.

    Raises:
        DataError: No pair was held for a year or longer and spans two periods.

    Example:
        >>> pairs = pl.DataFrame({"first_month": [0, 0, 12], "second_month": [12, 24, 24], "days": [365, 730, 365],
        ...     "log_ratio": [0.10, 0.30, 0.14], "short": [False] * 3})
        >>> index = fit_repeat_index(pairs, weighted=False, least_pairs=1)
        >>> [round(index.levels[month], 9) for month in (0, 12, 24)]
        [0.0, 0.12, 0.28]
    """
    kept = pairs.filter(~pl.col("short"))
    notes = {IndexNote.SHORT_PAIRS_EXCLUDED: pairs.height - kept.height}
    first_month, period = _periods(kept, least_pairs)
    first, second = (period[kept[name].to_numpy() - first_month] for name in ("first_month", "second_month"))
    inside = first == second
    notes[IndexNote.INSIDE_ONE_PERIOD] = int(inside.sum())
    first, second = first[~inside], second[~inside]
    ratio, years = kept["log_ratio"].to_numpy()[~inside], kept["days"].to_numpy()[~inside] / DAYS_PER_YEAR
    if not first.size:
        raise DataError(
            f"none of {pairs.height} repeat sales was held for a year and spans two periods",
            hint="A repeat-sales index needs parcels that were sold twice, a year or more apart.",
        )
    linked = _linked(first, second, int(period.max()) + 1)
    used = linked[first]
    first, second, ratio, years = first[used], second[used], ratio[used], years[used]
    level, spread = _least_squares(first, second, ratio, np.ones(first.size), linked)
    noise, drift = spread, 0.0
    if weighted:
        fitted = _variance_line((ratio - level[second] + level[first]) ** 2, years)
        if fitted is None:
            notes[IndexNote.WEIGHTS_REFUSED] = first.size
        else:
            noise, drift = fitted
            level, _ = _least_squares(first, second, ratio, 1 / (noise + drift * years), linked)
    shared = np.bincount(period)[period] > 1
    notes[IndexNote.MONTHS_POOLED] = int(shared.sum())
    notes[IndexNote.MONTHS_UNLINKED] = int((~linked[period]).sum())
    return RepeatIndex(
        first_month=first_month,
        levels=tuple(float(level[p]) if linked[p] else None for p in period.tolist()),
        noise=noise,
        drift=drift,
        pairs=int(first.size),
        notes={note: count for note, count in notes.items() if count},
    )


def _periods(pairs: pl.DataFrame, least_pairs: int) -> tuple[int, Ints]:
    """Return the first month, and for it and each month that follows the number of its period."""
    ends = np.concatenate([pairs["first_month"].to_numpy(), pairs["second_month"].to_numpy()]).astype(np.int64)
    if not ends.size:
        return 0, np.zeros(1, dtype=np.int64)
    first_month = int(ends.min())
    period, current, touched = [], 0, 0
    for count in np.bincount(ends - first_month).tolist():
        period.append(current)
        touched += count
        if touched >= least_pairs:
            current, touched = current + 1, 0
    last = max(period[-1] - 1, 0) if touched else period[-1]
    return first_month, np.minimum(np.array(period, dtype=np.int64), last)


def _linked(first: Ints, second: Ints, periods: int) -> npt.NDArray[np.bool_]:
    """Return which periods belong to the set, linked by chains of pairs, that holds the most pairs."""
    label = np.arange(periods)
    while True:
        low = label.copy()
        np.minimum.at(low, first, label[second])
        np.minimum.at(low, second, label[first])
        low = np.minimum(low, low[low])
        if np.array_equal(low, label):
            break
        label = low
    return np.asarray(label == np.bincount(label[first]).argmax())


def _least_squares(
    first: Ints, second: Ints, ratio: Floats, weight: Floats, linked: npt.NDArray[np.bool_]
) -> tuple[Floats, float]:
    """Return the levels that solve the weighted normal equations, 0 at the base, and the residual variance."""
    size = linked.size
    normal, right = np.zeros((size, size)), np.zeros(size)
    for row, column, sign in ((first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)):
        np.add.at(normal, (row, column), sign * weight)
    np.add.at(right, second, weight * ratio)
    np.add.at(right, first, -weight * ratio)
    free = np.flatnonzero(linked)[1:]
    level = np.zeros(size)
    level[free] = np.linalg.solve(normal[np.ix_(free, free)], right[free])
    residual = ratio - level[second] + level[first]
    return level, float(residual @ residual / max(first.size - free.size, 1))


def _variance_line(squared: Floats, years: Floats) -> tuple[float, float] | None:
    """Return noise and drift of e² = noise + drift · years, None where they are no variances."""
    centred = years - years.mean()
    spread = float(centred @ centred)
    drift = float(centred @ squared) / spread if spread else 0.0
    noise = float(squared.mean()) - drift * float(years.mean())
    if drift < 0 or noise + drift * float(years.min()) <= 0:
        return None
    return noise, drift
