"""Coverage of nominal 95 % intervals for a difference of MdAPE between two arms, by cluster and by row.

1,140 items in 60 uneven clusters. Two exchangeable arms: their log errors share what belongs to the cluster, and each
has a part of its own per cluster and per item, so the true difference is 0.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from consilience.inference.bootstrap import bootstrap_medians, cluster_weights
from consilience.inference.intervals import difference_interval
from consilience.scoring.point import absolute_percentage_error

Integers = npt.NDArray[np.int64]

SIMULATIONS: Final = 1_000
RESAMPLES: Final = 1_000
ITEMS: Final = 1_140
GOAL: Final = 0.92


def sizes_of(groups: int, *, uneven: bool) -> Integers:
    """Return how many items each cluster has: equally many, or in proportion to 1/rank."""
    share = 1 / np.arange(1, groups + 1) if uneven else np.ones(groups)
    ends = np.round(ITEMS * np.cumsum(share) / share.sum()).astype(np.int64)
    sizes: Integers = np.diff(ends, prepend=0)
    assert sizes.min() >= 1
    return sizes


def coverage(*, groups: int, uneven: bool, simulations: int, by_row: bool = False, first_seed: int = 0) -> float:
    """Return the share of simulations whose interval holds 0, the true difference."""
    clusters = np.repeat(np.arange(groups), sizes_of(groups, uneven=uneven))
    drawn = np.arange(ITEMS) if by_row else clusters
    held = 0
    for seed in range(first_seed, first_seed + simulations):
        rng = np.random.default_rng([seed, groups, uneven])
        common = 0.08 * rng.standard_normal((groups, 1))
        own = 0.08 * rng.standard_normal((groups, 2))
        errors = (common + own)[clusters] + 0.15 * rng.standard_normal((ITEMS, 2))
        losses = np.column_stack(
            [absolute_percentage_error(estimate=np.exp(column), truth=np.ones(ITEMS)) for column in errors.T]
        )
        weights = cluster_weights(clusters=drawn, n_resamples=RESAMPLES, rng=rng)
        draws = bootstrap_medians(values=losses, clusters=drawn, weights=weights)
        medians = np.median(losses, axis=0)
        made = difference_interval(
            point=float(medians[0] - medians[1]),
            draws=draws[:, 0] - draws[:, 1],
            n_clusters=ITEMS if by_row else groups,
        )
        assert made.low is not None
        assert made.high is not None
        held += made.low <= 0 <= made.high
    return held / simulations


def run() -> list[dict[str, object]]:
    """Return rows of coverage."""
    rows: list[dict[str, object]] = []
    cases = [(60, True, GOAL), (60, False, None), (10, True, None), (200, False, None)]
    for groups, uneven, goal in cases:
        simulations = SIMULATIONS if goal else SIMULATIONS // 4
        share = coverage(groups=groups, uneven=uneven, simulations=simulations)
        assert goal is None or share >= goal
        error = math.sqrt(share * (1 - share) / simulations)
        by_row = coverage(groups=groups, uneven=uneven, simulations=SIMULATIONS // 10, by_row=True)
        kind = "uneven" if uneven else "even"
        rows.append(
            {
                "name": f"95 % intervals that hold the true difference, {groups} {kind} clusters",
                "value": share,
                "unit": "of the intervals",
                "goal": goal,
                "peer": f"rows resampled: {by_row:.3f} (100 simulations)",
                "note": f"{simulations} simulations (± {error:.3f}), {RESAMPLES:,} resamples, largest cluster "
                f"{sizes_of(groups, uneven=uneven).max()} of {ITEMS:,} items",
            }
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
