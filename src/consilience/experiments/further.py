"""Further measures of the arms on their common items, from the draws that the median error is resampled with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from consilience.core.undefined import Undefined
from consilience.experiments.predictions import QUANTILES
from consilience.inference.bootstrap import Counts, Labels, bootstrap_means
from consilience.inference.intervals import DifferenceInterval, difference_interval
from consilience.scoring.point import FloatArray, absolute_percentage_error, within
from consilience.scoring.quantile import wis5

WIS: Final = "wis"
PPE10: Final = "ppe10"
_NEAR: Final = 0.10


@dataclass(frozen=True, eq=False)
class Resampled:
    """The mean of one measure of one arm.

    Attributes:
        value: Over the common items.
        draws: In each of the resamples that all arms and measures share, shape (B,).
    """

    value: float
    draws: FloatArray


Further = Mapping[str, Mapping[str, Resampled]]
"""By measure, then by arm; an arm without what a measure needs is left out of it."""


def further_measures(frames: Mapping[str, pl.DataFrame], *, clusters: Labels, weights: Counts) -> Further:
    """Return WIS5 of the logarithms and the share of estimates within 10 %, by arm, from given draws.

    Args:
        frames: By arm its rows on the common items, in one order: ``point``, ``truth`` and quantiles.
        clusters: Of the common items, in the same order.
        weights: Draws of these clusters.

    Example:
        >>> rows = pl.DataFrame({"point": [105.0, 150.0], "truth": [100.0, 100.0]}
        ...     | {name: [None, None] for name in QUANTILES}, strict=False)
        >>> drawn = np.array([[1, 1], [2, 0]], dtype=np.uint8)
        >>> made = further_measures({"E": rows}, clusters=np.array(["a", "b"]), weights=drawn)
        >>> made["ppe10"]["E"].value, made["ppe10"]["E"].draws.tolist(), made["wis"]
        (0.5, [0.5, 1.0], {})
    """
    near = {arm: _near(rows) for arm, rows in frames.items()}
    scores = {arm: _wis(rows) for arm, rows in frames.items() if not sum(rows.select(QUANTILES).null_count().row(0))}
    return {name: _means(values, clusters, weights) for name, values in ((WIS, scores), (PPE10, near))}


def _near(rows: pl.DataFrame) -> FloatArray:
    ape = absolute_percentage_error(estimate=rows["point"].to_numpy(), truth=rows["truth"].to_numpy())
    return within(ape=ape, limit=_NEAR).astype(np.float64)


def _wis(rows: pl.DataFrame) -> FloatArray:
    return wis5(quantiles=np.log(rows.select(QUANTILES).to_numpy()), outcome=np.log(rows["truth"].to_numpy())).score


def _means(values: Mapping[str, FloatArray], clusters: Labels, weights: Counts) -> dict[str, Resampled]:
    if not values:
        return {}
    columns = np.column_stack([*values.values()])
    draws = bootstrap_means(values=columns, clusters=clusters, weights=weights)
    return {arm: Resampled(float(columns[:, at].mean()), draws[:, at]) for at, arm in enumerate(values)}


def gap(found: Further, measure: str, *, arm: str, against: str, n_clusters: int) -> DifferenceInterval | Undefined:
    """Return the difference of two arms in one measure, with the interval of the shared draws.

    Args:
        found: From `further_measures`.
        measure: `WIS` or `PPE10`.
        arm: The first.
        against: What is taken from it.
        n_clusters: Clusters G that were drawn.
    """
    told = found.get(measure, {})
    lacking = [name for name in (arm, against) if name not in told]
    if lacking:
        return Undefined(f"not known of {' and '.join(lacking)} on all common items")
    one, other = told[arm], told[against]
    return difference_interval(point=one.value - other.value, draws=one.draws - other.draws, n_clusters=n_clusters)
