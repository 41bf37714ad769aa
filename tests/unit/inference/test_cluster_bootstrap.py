from __future__ import annotations

import itertools
import time
import tracemalloc

import numpy as np
import pytest

from consilience.errors import DataError
from consilience.inference.bootstrap import (
    analysis_rng,
    bootstrap_means,
    bootstrap_medians,
    cluster_weights,
    draws_digest,
    summarise_clusters,
)

# Two arms over clusters of 2, 1 and 3 rows; every one of the 27 equally likely resamples is known.
A = [[0.1, 0.3], [0.05], [0.2, 0.4, 0.6]]
B = [[0.15, 0.25], [0.1], [0.1, 0.35, 0.8]]
DISTRIBUTION = [-0.05] * 7 + [0.0] + [0.05] * 16 + [0.1] * 3


def enumerated() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = np.array(
        [[a, b] for group_a, group_b in zip(A, B, strict=True) for a, b in zip(group_a, group_b, strict=True)]
    )
    clusters = np.array(["x", "x", "y", "z", "z", "z"])
    draws = [np.bincount(pick, minlength=3) for pick in itertools.product(range(3), repeat=3)]
    return values, clusters, np.array(draws, dtype=np.uint8)


def test_enumerated_vector() -> None:
    values, clusters, weights = enumerated()
    medians = bootstrap_medians(values=values, clusters=clusters, weights=weights)
    differences = medians[:, 0] - medians[:, 1]
    assert np.sort(differences) == pytest.approx(np.array(DISTRIBUTION), abs=1e-9)
    assert np.median(values[:, 0]) - np.median(values[:, 1]) == pytest.approx(0.05, abs=1e-9)
    assert differences.mean() == pytest.approx(0.027777777777777787, rel=1e-9)
    assert differences.std() == pytest.approx(0.049690399499995326, rel=1e-9)
    assert np.quantile(differences, (0.025, 0.975)) == pytest.approx([-0.05, 0.1], abs=1e-9)


def test_draws_are_reproducible_shared_and_independent_of_row_order() -> None:
    labels = np.array(["b", "a", "c", "a", "b", "d"])
    weights = cluster_weights(clusters=labels, n_resamples=600, rng=analysis_rng(seed=7, analysis="x"))
    again = cluster_weights(clusters=labels[::-1], n_resamples=600, rng=analysis_rng(seed=7, analysis="x"))
    other = cluster_weights(clusters=labels, n_resamples=600, rng=analysis_rng(seed=7, analysis="y"))
    assert draws_digest(weights=weights) == draws_digest(weights=again) != draws_digest(weights=other)
    assert (weights.sum(axis=1) == 4).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(4), abs=0.15)
    assert weights.dtype == np.uint8
    wide = cluster_weights(clusters=np.arange(300), n_resamples=2, rng=analysis_rng(seed=7, analysis="x"))
    assert wide.dtype == np.uint16
    values = np.random.default_rng(1).standard_normal((6, 2))
    first = bootstrap_medians(values=values, clusters=labels, weights=weights)
    assert (first == bootstrap_medians(values=values[::-1], clusters=labels[::-1], weights=weights)).all()
    assert (first[:, ::-1] == bootstrap_medians(values=values[:, ::-1], clusters=labels, weights=weights)).all()


def test_the_stream_is_pinned() -> None:
    weights = cluster_weights(clusters=np.arange(5), n_resamples=3, rng=analysis_rng(seed=1, analysis="pin"))
    assert weights.tolist() == [[0, 0, 2, 0, 3], [0, 1, 1, 1, 2], [1, 0, 0, 1, 3]]


def test_one_cluster_gives_the_sample_itself() -> None:
    values = np.array([[1.0], [2.0], [4.0], [9.0]])
    labels = np.zeros(4)
    weights = cluster_weights(clusters=labels, n_resamples=4, rng=analysis_rng(seed=1, analysis="x"))
    assert (bootstrap_medians(values=values, clusters=labels, weights=weights) == 3.0).all()
    assert (bootstrap_means(values=values, clusters=labels, weights=weights) == 4.0).all()


def test_cluster_summary_shows_dominance() -> None:
    summary = summarise_clusters(clusters=np.array([1, 1, 1, 2, 3, 4]))
    assert (summary.n_clusters, summary.largest_share) == (4, 0.5)
    assert summary.effective == pytest.approx(3.0)


def test_bad_input_is_refused() -> None:
    values, clusters, weights = enumerated()
    for statistic in (bootstrap_means, bootstrap_medians):
        with pytest.raises(DataError, match="do not fit"):
            statistic(values=values[:5], clusters=clusters, weights=weights)
        with pytest.raises(DataError, match="do not fit"):
            statistic(values=values, clusters=clusters, weights=weights[:, :2])
        with pytest.raises(DataError, match="not finite"):
            statistic(values=values * np.nan, clusters=clusters, weights=weights)
    with pytest.raises(DataError, match="labels"):
        summarise_clusters(clusters=np.array([]))
    with pytest.raises(DataError, match="0 resamples"):
        cluster_weights(clusters=clusters, n_resamples=0, rng=analysis_rng(seed=1, analysis="x"))


def test_full_size_is_exact_small_and_quick() -> None:
    rng = np.random.default_rng(3)
    clusters = np.concatenate([np.arange(1000), rng.integers(0, 1000, 140)])
    values = np.abs(rng.standard_normal((1140, 12))) * 0.15
    tracemalloc.start()
    started = time.process_time()
    weights = cluster_weights(clusters=clusters, n_resamples=10_000, rng=analysis_rng(seed=1, analysis="speed"))
    medians = bootstrap_medians(values=values, clusters=clusters, weights=weights)
    spent = time.process_time() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    some = rng.integers(0, 10_000, 40)
    plain = [[np.median(np.repeat(column, weights[b][clusters])) for column in values.T] for b in some]
    assert (medians[some] == np.array(plain)).all()
    assert peak < 60e6
    assert spent < 3.0  # the benchmark measures; this only catches a lost algorithm
