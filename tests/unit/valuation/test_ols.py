from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.valuation.baselines.ols import least_squares


def design(seed: int, n: int, k: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(cells), rng.integers(0, cells, n - cells))
    x = rng.normal(size=(n, k)) + codes[:, None] / 3
    return rng.normal(size=n) + x.sum(axis=1) + codes, x, codes, codes // 2


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 4), cells=st.integers(1, 6))
def test_absorbed_effects_equal_the_regression_on_dense_dummies(seed: int, k: int, cells: int) -> None:
    y, x, codes, clusters = design(seed, 60, k, cells)
    fit = least_squares(y, x, tuple("abcd"[:k]), clusters=clusters, cells=codes)
    dense = np.column_stack([x, codes[:, None] == np.arange(cells)])
    expected = np.linalg.lstsq(dense, y, rcond=None)[0]
    assert np.allclose(fit.coefficients, expected[:k], atol=1e-9)
    assert np.allclose(fit.effects, expected[k:], atol=1e-9)
    assert np.allclose(fit.residuals, y - dense @ expected, atol=1e-9)


def test_the_clustered_covariance_is_cr1_of_the_dense_regression() -> None:
    y, x, codes, clusters = design(5, 80, 2, 6)
    fit = least_squares(y, x, ("a", "b"), clusters=clusters, cells=codes)
    dense = np.column_stack([x, codes[:, None] == np.arange(6)]).astype(float)
    bread = np.linalg.inv(dense.T @ dense)
    error = y - dense @ np.linalg.lstsq(dense, y, rcond=None)[0]
    scores = [dense[clusters == g].T @ error[clusters == g] for g in range(3)]
    meat = sum(np.outer(score, score) for score in scores)
    expected = 3 / 2 * 79 / (80 - 8) * bread @ meat @ bread
    assert fit.covariance is not None
    assert np.allclose(fit.covariance, expected[:2, :2], rtol=1e-8)


def test_columns_that_depend_on_others_are_dropped_and_said_so() -> None:
    y, x, codes, clusters = design(1, 60, 2, 3)
    columns = np.column_stack([x, x[:, 0] - 2 * x[:, 1], codes * 4.0, np.zeros(60)])
    fit = least_squares(y, columns, ("a", "b", "both", "place", "nothing"), clusters=clusters, cells=codes)
    alone = least_squares(y, x, ("a", "b"), clusters=clusters, cells=codes)
    assert fit.names == ("a", "b")
    assert fit.coefficients.tolist() == alone.coefficients.tolist()
    assert "depends on columns before it" in fit.dropped["both"]
    assert set(fit.dropped) == {"both", "place", "nothing"}
    assert "does not vary" in fit.dropped["place"]
    assert fit.of("both", "a").tolist() == [0.0, fit.coefficients[0]]


def test_one_cluster_has_no_standard_errors() -> None:
    y, x, codes, _ = design(1, 60, 2, 3)
    fit = least_squares(y, x, ("a", "b"), clusters=np.zeros(60, dtype=np.int64), cells=codes)
    assert fit.covariance is None
    assert fit.record()["coefficients"]["a"]["standard_error"] is None
    with pytest.raises(DataError, match="1 clusters"):
        fit.wald({"a": 1.0})


def test_more_parameters_than_rows_and_unknown_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="3 sales cannot fit 3 parameters"):
        least_squares(np.arange(3.0), np.eye(3)[:, :1], ("a",), clusters=np.arange(3), cells=np.arange(3))
    with pytest.raises(DataError, match="not finite"):
        least_squares(np.array([1.0, np.nan]), np.ones((2, 1)), ("a",), clusters=np.arange(2))


def test_the_wald_test_holds_its_level_with_few_clusters() -> None:
    rng = np.random.default_rng(8)
    rejected = 0
    for _ in range(150):
        clusters = np.repeat(np.arange(12), 10)
        x = rng.normal(size=(120, 2)) + rng.normal(size=(12, 2))[clusters]
        y = x @ [1.0, 2.0] + rng.normal(size=12)[clusters] * 0.5 + rng.normal(size=120)
        fit = least_squares(y, x, ("a", "b"), clusters=clusters, cells=np.zeros(120, dtype=np.int64))
        rejected += fit.wald({"a": 1.0, "b": 2.0}) < 0.05
    assert 1 <= rejected <= 20
