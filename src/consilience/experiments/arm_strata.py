"""The primary measure of every arm by stratum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from consilience.experiments.arm_scores import Draws
from consilience.experiments.measures import Measure, Recorded
from consilience.scoring.point import absolute_percentage_error

STRATA_RESAMPLES: Final = 2_000
"""Resamples within a stratum; as many as are asked for where fewer."""

Strata = Mapping[str, Mapping[str, str]]
"""Groups of each item: name of the stratum and which group."""


@dataclass(frozen=True)
class StratumResult(Recorded):
    """One arm under the primary rule on the items of one stratum.

    Attributes:
        stratum: What the items were grouped by, such as ``price_tercile``.
        level: Which group.
        arm: The arm.
        n_items: Items of the group that were put to it.
        n_answered: Items of them that it answered.
        mdape: Median absolute percentage error of the answered ones; None when none was answered.
    """

    stratum: str
    level: str
    arm: str
    n_items: int
    n_answered: int
    mdape: Measure | None


def strata_results(rows: pl.DataFrame, strata: Strata, draws: Draws) -> tuple[StratumResult, ...]:
    """Return the median error of every arm in every group, sorted by stratum, group and arm.

    Args:
        rows: All arms, each under its primary rule, with ``truth`` and ``cluster``.
        strata: Groups of the items; an item without any enters no group.
        draws: Draws of clusters; of them the first `STRATA_RESAMPLES` are used.
    """
    fewer = draws.fewer(STRATA_RESAMPLES)
    long = pl.DataFrame(
        [(item, name, level) for item, groups in sorted(strata.items()) for name, level in sorted(groups.items())],
        schema={"item_id": pl.String, "stratum": pl.String, "level": pl.String},
        orient="row",
    )
    grouped = rows.join(long, on="item_id").sort("item_id").group_by("stratum", "level", "arm")
    found = [_result(str(key[0]), str(key[1]), str(key[2]), group, fewer) for key, group in grouped]
    return tuple(sorted(found, key=lambda one: (one.stratum, _order(one.level), one.arm)))


def _order(level: str) -> tuple[float, str]:
    """Return numbers in order of size, before words."""
    try:
        return float(level), ""
    except ValueError:
        return float("inf"), level


def _result(stratum: str, level: str, arm: str, group: pl.DataFrame, draws: Draws) -> StratumResult:
    told = group.filter(pl.col("status") == "answered")
    mdape = None
    if told.height:
        ape = absolute_percentage_error(estimate=told["point"].to_numpy(), truth=told["truth"].to_numpy())
        mdape = draws.median(np.asarray(ape), told["cluster"].to_numpy())
    return StratumResult(stratum, level, arm, group.height, told.height, mdape)
