"""Cluster bootstrap of MdAPE: 10,000 resamples x 1,140 items x 12 arms, against a loop over `numpy.median`.

The loop runs over every resample, so that all medians are compared bit for bit; memory is the peak above the inputs.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import numpy.typing as npt

from consilience.inference.bootstrap import Counts, analysis_rng, bootstrap_medians, cluster_weights

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

RESAMPLES, ITEMS, ARMS = 10_000, 1_140, 12
GOAL_S = 0.5
REPEATS = 5
GOAL_MB = 60


def _peak_mb(values: Floats, clusters: Integers) -> float:
    """Return the largest memory that draws and medians hold at once, in a run of its own, as tracing costs time."""
    tracemalloc.start()
    _once(values, clusters)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def _once(values: Floats, clusters: Integers) -> tuple[float, Counts, Floats]:
    started = time.perf_counter()
    stream = analysis_rng(seed=1, analysis="bench")
    weights = cluster_weights(clusters=clusters, n_resamples=RESAMPLES, rng=stream)
    medians = bootstrap_medians(values=values, clusters=clusters, weights=weights)
    return time.perf_counter() - started, weights, medians


def run() -> list[dict[str, object]]:
    """Return rows of name, value, unit, goal and the ratio to the peer measured in the same run."""
    rows: list[dict[str, object]] = []
    for groups in (1_000, 52):
        rng = np.random.default_rng(groups)
        clusters = np.concatenate([np.arange(groups), rng.integers(0, groups, ITEMS - groups)])
        values = np.abs(rng.standard_normal((ITEMS, ARMS))) * 0.15
        runs = sorted((_once(values, clusters) for _ in range(REPEATS)), key=lambda made: made[0])
        median, weights, medians = runs[REPEATS // 2]
        started = time.perf_counter()
        plain = np.array(
            [[np.median(np.repeat(column, weights[b][clusters])) for column in values.T] for b in range(RESAMPLES)]
        )
        peer = time.perf_counter() - started
        assert medians.tobytes() == plain.tobytes()
        rows.append(
            {
                "name": f"cluster bootstrap of MdAPE, {RESAMPLES:,} x {ITEMS:,} x {ARMS}, G = {groups:,} (median of 5)",
                "value": median,
                "unit": "s",
                "goal": GOAL_S,
                "ratio": median / peer,
                "peer": f"loop over numpy.median, {peer:.1f} s; all {RESAMPLES:,} x {ARMS} medians equal bit for bit",
            }
        )
        rows.append(
            {
                "name": f"the same, G = {groups:,}: peak memory of draws and medians",
                "value": _peak_mb(values, clusters),
                "unit": "MB",
                "goal": GOAL_MB,
            }
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
