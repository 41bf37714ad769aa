"""Every reference vector of numeric aggregation, by method; a method nobody knows fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consilience.aggregation.fitted import FittedRole, nnls, stack_nnls, stack_simplex
from consilience.aggregation.intervals import (
    INTERVAL_RULES,
    fix_crossing,
    mixture_quantiles,
    quantile_average_log,
)
from consilience.aggregation.location import inverse_variance_pool, student_t_location, trimmed_mean
from consilience.aggregation.numbers import POINT_RULES, InverseVariance

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "statistics_vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["vectors"]

Check = Callable[[dict[str, Any], Any, float], None]


def array(values: Any) -> Any:
    return np.array(values, dtype=np.float64)


def near(actual: Any, expected: Any, tolerance: float) -> None:
    assert np.asarray(actual, dtype=np.float64) == pytest.approx(array(expected), rel=tolerance, abs=tolerance)


def seats(n: int) -> tuple[str, ...]:
    return tuple(f"s{i:02d}" for i in range(n))


def by_rule(name: str) -> Check:
    def check(given: dict[str, Any], expected: Any, tolerance: float) -> None:
        points = array(given["points"])
        made = POINT_RULES[name](points=points, scale="log", seats=seats(len(points)))
        near(made.value, expected, tolerance)

    return check


def trim_raw(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    near(trimmed_mean(x=array(given["x"]), proportion=given["p"]), expected, tolerance)


def inverse_variance(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    x, variance = array(given["x"]), array(given["var"])
    pool = inverse_variance_pool(x=x, variance=variance, floor=given.get("floor", 1e-6))
    near(pool.value, expected["value"], tolerance)
    fitted = {
        seat: FittedRole(rows=50, variance=v, scale=None, stacking=0.0, stacking_nnls=0.0)
        for seat, v in zip(seats(len(x)), variance.tolist(), strict=True)
    }
    made = InverseVariance()(points=x, scale="linear", seats=seats(len(x)), weights=fitted)
    near(made.value, expected["value"], tolerance)
    if "weights" in expected:
        near(pool.weights, expected["weights"], tolerance)
        near(pool.pooled_variance, expected["pooled_var"], tolerance)
    if "se" in expected:
        near(pool.pooled_variance**0.5, expected["se"], tolerance)
        assert round(pool.value, 4) == expected["published_value"]
        assert round(pool.pooled_variance**0.5, 4) == expected["published_se"]
    assert pool.floored == ("policy" in expected)
    assert ("variance_floored" in made.flags) == ("policy" in expected)


def solve_nnls(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    matrix, target = array(given["A"]), array(given["b"])
    x, rnorm = nnls(matrix=matrix, target=target)
    near(x, expected["x"], tolerance)
    near(rnorm, expected["rnorm"], tolerance)
    if "stack_policy" in expected:
        stack = stack_nnls(log_points=matrix, log_truth=target)
        assert stack.weights == (0.5, 0.5)
        assert stack.flags == ("zero_solution",)


def simplex(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    points = array(given["log_points"])
    found = stack_simplex(log_points=points, log_truth=array(given["log_truth"]))
    w = found.weights
    near(w[0] + w[1], expected["w1_plus_w2"], tolerance)
    near(w[2], expected["w3"], tolerance)
    near(points @ array(w), expected["fitted"], tolerance)
    near(w[0], w[1], 1e-6)  # duplicates split equally


def both_stacks(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    points, truth = array(given["log_points"]), array(given["log_truth"])
    near(stack_simplex(log_points=points, log_truth=truth).weights, expected["simplex"], tolerance)
    compat = stack_nnls(log_points=points, log_truth=truth)
    near(compat.weights, expected["nnls_then_normalise"], tolerance)
    near(compat.raw_sum, expected["nnls_sum"], tolerance)


def student_t(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    x = array(given["x"])
    found = student_t_location(x=x, scale=given["scale"], df=given["df"])
    if isinstance(expected, float):
        near(found.value, expected, tolerance)
        return
    near(found.value, expected.get("global_mode", expected.get("value")), tolerance)
    if "other_local_mode" in expected:
        near(found.modes[1], expected["other_local_mode"], tolerance)
    if "modes" in expected:
        near(found.modes, expected["modes"], tolerance)
        assert expected["midpoint_is_minimum"]
        assert found.second_mode is not None
        assert all(abs(mode - expected["stationary_midpoint"]) > 0.4 for mode in found.modes)
    assert found.floored == ("policy" in expected)


def median_of_quantiles(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    made = INTERVAL_RULES["median_of_quantiles"](quantiles=array(given["q"]), scale="log")
    near(made.quantiles, expected, tolerance)


def vincent(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    near(quantile_average_log(quantiles=array(given["q"])), expected, tolerance)


def mixture(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    q = array(given["q"])
    near(INTERVAL_RULES["mixture"](quantiles=q, scale="log").quantiles, expected["z_log"], tolerance)
    if "p_log" in expected:
        naive = np.exp(mixture_quantiles(quantiles=np.log(q), interpolation="probability"))
        near(naive, expected["p_log"], tolerance)


def crossing(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    fixed, flag = fix_crossing(quantiles=array(given["q"]))
    near(fixed, expected["fixed"], tolerance)
    assert flag is expected["flag"]


CHECKS: dict[str, Check] = {
    "mean_log": by_rule("mean"),
    "median_log": by_rule("median"),
    "trim_mean_raw": trim_raw,
    "trim_mean_log": by_rule("trimmed_mean_20"),
    "inverse_variance": inverse_variance,
    "nnls": solve_nnls,
    "stack_simplex": simplex,
    "stack": both_stacks,
    "student_t_location": student_t,
    "median_of_quantiles": median_of_quantiles,
    "quantile_average_log": vincent,
    "mixture_quantiles": mixture,
    "fix_crossing": crossing,
}


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_vector_holds(vector: dict[str, Any]) -> None:
    assert vector["method"] in CHECKS, f"nobody checks the method {vector['method']}"
    CHECKS[vector["method"]](vector["input"], vector["expected"], vector["rel_tol"])


def test_every_check_has_a_vector() -> None:
    assert {vector["method"] for vector in VECTORS} == set(CHECKS)


@pytest.mark.shared_data
def test_golden_equals_the_reference(shared: Path) -> None:
    reference = json.loads((shared / "vectors" / "statistics.json").read_text())["vectors"]
    mine = [vector for vector in reference if vector["id"].startswith(("num.", "int."))]
    assert [{key: value for key, value in vector.items() if key != "note"} for vector in mine] == VECTORS
