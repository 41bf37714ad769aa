"""The comparables of every sale at once, and what they say as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.valuation.comparables import MOST, ComparableIndex, Floats, Ints

Positions: TypeAlias = npt.NDArray[np.int32]

BLOCK = 65_536
QUARTILES = (0.25, 0.5, 0.75)
COMPARABLE_FEATURES = (
    "comp_count",
    "comp_candidates",
    "comp_radius_km",
    "comp_nearest_km",
    "comp_score",
    "comp_days",
    "comp_area_gap",
    "comp_ln_price_q25",
    "comp_ln_price",
    "comp_ln_price_q75",
    "comp_ln_per_m2_q25",
    "comp_ln_per_m2",
    "comp_ln_per_m2_q75",
    "comp_ln_by_area",
    "comp_ln_weighted",
    "comp_ln_weighted_by_area",
)
"""Number of comparables and of candidates, the search radius, the nearest one's distance, mean score, mean days before
the cutoff, ln own area minus their mean ln area; quartiles of ln price and of ln price per m²; and three estimates of
ln price: median price per m² times own area, and exp(-score)-weighted means of ln price and of ln price per m² times
own area."""


@dataclass(frozen=True)
class ComparableTable:
    """The comparables of many subjects, best first.

    Attributes:
        rows: Positions in the sales they were taken from, -1 past the last one; shape (subjects, 12).
        scores: Score of each, NaN past the last one.
        distances_km: Distance of each, NaN past the last one.
        candidates: Sales that qualified, per subject.
        radius_km: Radius at which the search stopped, NaN where none qualified.
    """

    rows: Positions
    scores: Floats
    distances_km: Floats
    candidates: Positions
    radius_km: Floats

    def take(self, subjects: Ints) -> ComparableTable:
        """Return the same for some subjects, by position."""
        return ComparableTable(
            rows=self.rows[subjects],
            scores=self.scores[subjects],
            distances_km=self.distances_km[subjects],
            candidates=self.candidates[subjects],
            radius_km=self.radius_km[subjects],
        )


def find_comparables(index: ComparableIndex, subjects: pl.DataFrame) -> ComparableTable:
    """Return the comparables of many subjects, each as of its own ``cutoff``: those `ComparableIndex.query` gives.

    Args:
        index: All sales.
        subjects: ``lat, lng, floor_area_m2, year_built, parcel_id, property_class, cutoff``.

    Example:
        >>> from datetime import date
        >>> index = ComparableIndex(dates=[date(2015, 1, 1)], lat=[47.0], lng=[-122.0], area=[90], year_built=[1950],
        ...                         parcel=["a"], klass=["house"])
        >>> subject = pl.DataFrame({"lat": 47.0, "lng": -122.0, "floor_area_m2": 90.0, "year_built": 1950,
        ...                         "parcel_id": "b", "property_class": "house", "cutoff": date(2015, 2, 1)})
        >>> find_comparables(index, subject).rows[0, :2].tolist()
        [0, -1]
    """
    n = subjects.height
    rows = np.full((n, MOST), -1, dtype=np.int32)
    scores, distances = np.full((n, MOST), np.nan), np.full((n, MOST), np.nan)
    candidates, radius = np.zeros(n, dtype=np.int32), np.full(n, np.nan)
    columns = ("lat", "lng", "floor_area_m2", "year_built", "parcel_id", "property_class", "cutoff")
    # Neighbours in turn: what the index gathers for a place is used while it is at hand.
    near = subjects.select("property_class", pl.col("lat").round(2), pl.col("lng").round(2), *columns[-1:])
    order = near.with_row_index("row").sort("property_class", "lat", "lng", "cutoff", "row")["row"]
    for start in range(0, n, BLOCK):
        block = order[start : start + BLOCK]
        asked = subjects.select(columns)[block].iter_rows()
        for row, (lat, lng, area, built, parcel, klass, cutoff) in zip(block, asked, strict=True):
            found = index.query(
                lat=lat, lng=lng, area=area, year_built=built, parcel=parcel, klass=klass, cutoff=cutoff
            )
            k = found.rows.size
            rows[row, :k] = found.rows
            scores[row, :k] = found.scores
            distances[row, :k] = found.distances_km
            candidates[row] = found.n_candidates
            if found.radius_km is not None:
                radius[row] = found.radius_km
    return ComparableTable(rows, scores, distances, candidates, radius)


def comparable_features(table: ComparableTable, sales: pl.DataFrame, subjects: pl.DataFrame) -> dict[str, Floats]:
    """Return `COMPARABLE_FEATURES` as columns, NaN where unknown.

    Args:
        table: The comparables of the subjects.
        sales: The sales they are positions of: ``price, floor_area_m2, available_date``.
        subjects: ``floor_area_m2, cutoff``, in the table's order.
    """
    log_price = np.log(sales["price"].to_numpy())
    log_area = np.log(sales["floor_area_m2"].to_numpy())
    sold = sales["available_date"].to_physical().to_numpy()
    own = np.log(subjects["floor_area_m2"].to_numpy())
    cutoff = subjects["cutoff"].to_physical().to_numpy()
    out = {name: np.full(len(own), np.nan) for name in COMPARABLE_FEATURES}
    for start in range(0, len(own), BLOCK):
        part = slice(start, start + BLOCK)
        rows, scores = table.rows[part], table.scores[part]
        there = rows >= 0
        price, area = (np.where(there, column[rows], np.nan) for column in (log_price, log_area))
        per_m2, mine = price - area, own[part]
        weight = np.exp(-scores)
        days = np.where(there, cutoff[part, None] - sold[rows], np.nan)
        block = {
            "comp_count": there.sum(axis=1).astype(np.float64),
            "comp_candidates": table.candidates[part].astype(np.float64),
            "comp_radius_km": table.radius_km[part],
            "comp_nearest_km": _quantile(np.sort(table.distances_km[part], axis=1), 0.0),
            "comp_score": _mean(scores),
            "comp_days": _mean(days),
            "comp_area_gap": mine - _mean(area),
            "comp_ln_weighted": _mean(price, weight),
            "comp_ln_weighted_by_area": mine + _mean(per_m2, weight),
        }
        for name, values in (("comp_ln_price", price), ("comp_ln_per_m2", per_m2)):
            ranked = np.sort(values, axis=1)
            for share, ending in zip(QUARTILES, ("_q25", "", "_q75"), strict=True):
                block[name + ending] = _quantile(ranked, share)
        block["comp_ln_by_area"] = mine + block["comp_ln_per_m2"]
        for name, values in block.items():
            out[name][part] = values
    return out


def _mean(values: Floats, weight: Floats | None = None) -> Floats:
    """Return the mean of the known values in each row, NaN where there are none."""
    known = np.isfinite(values)
    share = known.astype(np.float64) if weight is None else np.where(known, weight, 0.0)
    total = share.sum(axis=1)
    summed = (np.where(known, values, 0.0) * share).sum(axis=1)
    mean: Floats = np.divide(summed, total, out=np.full(len(total), np.nan), where=total > 0)
    return mean


def _quantile(ranked: Floats, share: float) -> Floats:
    """Return a quantile of each row by linear interpolation; rows are ascending with the unknown (NaN) last."""
    known = np.isfinite(ranked).sum(axis=1)
    place = np.maximum(known - 1, 0) * share
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(known - 1, 0))
    each = np.arange(len(ranked))
    lower, upper = ranked[each, low], ranked[each, high]
    between: Floats = lower + (upper - lower) * (place - low)
    return between
