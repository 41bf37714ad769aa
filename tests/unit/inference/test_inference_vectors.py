"""Every reference vector of tests, families, components and power, by method; a method nobody knows fails."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consilience.inference.bootstrap import analysis_rng, bootstrap_means, bootstrap_medians, cluster_weights
from consilience.inference.confidence_set import ConfidenceSet, model_confidence_set
from consilience.inference.effective import Undefined
from consilience.inference.multiplicity import Method, adjust
from consilience.inference.power import pairs_needed, power_of
from consilience.inference.tests import DieboldMariano, _long_run, cluster_t, diebold_mariano, sign_flip
from consilience.inference.variance import Components, components

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "inference_vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["vectors"]

Check = Callable[[dict[str, Any], Any, float], None]


def array(values: Any) -> Any:
    return np.array(values, dtype=np.float64)


def losses(given: dict[str, Any], power: int) -> Any:
    return np.abs(array(given["e1"])) ** power - np.abs(array(given["e2"])) ** power


def dm(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    made = diebold_mariano(differences=losses(given, given["power"]), horizon=given["h"])
    assert isinstance(made, DieboldMariano)
    assert made.statistic == pytest.approx(expected["stat"], rel=tolerance)
    assert made.p == pytest.approx(expected["p"], rel=tolerance)


def dm_grid(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    for case in expected:
        h, d = case["h"], losses(given, case["power"])
        made = diebold_mariano(differences=d, horizon=h, kernel=case["kernel"])
        if h == 1 or case["kernel"] == "bartlett":
            assert isinstance(made, DieboldMariano)
            assert (made.statistic, made.p) == pytest.approx((case["stat"], case["p"]), rel=tolerance)
        else:  # the reference's figure is right by its formula, and refused
            assert isinstance(made, Undefined)
            n = d.size
            variance = _long_run(d - d.mean(), h, "acf")
            plain = d.mean() / (variance / n) ** 0.5 * ((n + 1 - 2 * h + h * (h - 1) / n) / n) ** 0.5
            assert plain == pytest.approx(case["stat"], rel=tolerance)


def dm_still(given: dict[str, Any], expected: Any, _: float) -> None:
    made = diebold_mariano(differences=losses(given, 2), horizon=given["h"])
    assert isinstance(made, DieboldMariano)
    assert made.statistic == made.p == Undefined("zero variance of the loss differences")
    assert expected["stat"] is None


def dm_t(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    d = array(given["d"])
    made = diebold_mariano(differences=d)
    by_case = cluster_t(differences=d, clusters=np.arange(d.size))
    assert isinstance(made, DieboldMariano)
    for one in (made, by_case):
        assert (one.statistic, one.p) == pytest.approx((expected["stat"], expected["p"]), rel=tolerance)


def family(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    methods: tuple[Method, ...] = ("bh", "holm", "bonferroni")
    for method in methods:
        made = adjust(p=given["p"], method=method)
        assert made.p == pytest.approx(tuple(expected[method]), rel=tolerance)
        rejected = sum(value <= given["alpha"] for value in made.p if isinstance(value, float))
        assert rejected == expected[f"{method}_rejects"]


def plus_one(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    d = np.linspace(1, 2, 60)[:, None]  # no pattern of 60 signs drawn by chance leaves all of one sign
    (made,) = sign_flip(differences=d, clusters=np.arange(60), rng=analysis_rng(seed=1, analysis="p"))
    assert made.n_patterns == given["B"]
    assert made.p == pytest.approx(expected["p"], rel=tolerance)


def enumerated(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    a, b = given["a"], given["b"]
    values = np.column_stack([array([*itertools.chain(*a)]), array([*itertools.chain(*b)])])
    clusters = np.repeat(np.arange(len(a)), [len(group) for group in a])
    drawn = itertools.product(range(len(a)), repeat=len(a))
    weights = np.array([np.bincount(draw, minlength=len(a)) for draw in drawn], dtype=np.uint8)
    medians = bootstrap_medians(values=values, clusters=clusters, weights=weights)
    apart = np.sort(medians[:, 0] - medians[:, 1])
    assert len(apart) == expected["n_resamples"]
    assert apart == pytest.approx(array(expected["distribution"]), rel=tolerance, abs=1e-12)
    assert (apart.mean(), apart.std()) == pytest.approx((expected["mean"], expected["sd_pop"]), rel=tolerance)
    assert np.quantile(apart, (0.025, 0.975)) == pytest.approx(array(expected["ci95_linear"]), rel=tolerance)


def robust(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    made = cluster_t(differences=array(given["d"]), clusters=np.array(given["cluster"]))
    assert made.df == expected["df"]
    assert (made.mean, made.se, made.statistic, made.p, made.naive_se) == pytest.approx(
        tuple(expected[name] for name in ("mean", "se_cr1", "t", "p", "naive_se")), rel=tolerance
    )


def balanced(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    groups = given["groups"]
    made = components(values=array([*itertools.chain(*groups.values())]), groups=np.repeat([*groups], 5))
    assert isinstance(made, Components)
    assert (made.between, made.within, made.icc) == pytest.approx(
        (expected["between"], expected["within"], expected["icc"]), rel=tolerance
    )


def power(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    known, wanted = given["two_sample"]
    n, sd = known["n"], known["sd"]
    seen = power_of(delta=known["delta"], se=sd * (2 / n) ** 0.5, df=2 * n - 2)
    assert seen == pytest.approx(expected["power"], rel=tolerance)
    needed = pairs_needed(delta=wanted["delta"], sd=wanted["sd"], power=wanted["power"], two_sample=True)
    assert needed == pytest.approx(expected["n"], rel=tolerance)
    paired = pairs_needed(delta=given["paired"]["dz"], sd=1.0, power=given["paired"]["power"])
    assert paired == pytest.approx(expected["n_paired"], rel=tolerance)


def confidence_set(given: dict[str, Any], expected: Any, _: float) -> None:
    rng = np.random.default_rng(7)
    base = rng.gamma(2, 0.05, (300, 1))
    values = base + rng.normal(0, 0.03, (300, 5)) + np.array([0, 0.001, 0.004, 0.012, 0.03])
    cases = np.arange(300)
    weights = cluster_weights(
        clusters=cases, n_resamples=given["reps"], rng=analysis_rng(seed=1, analysis="confidence set")
    )
    draws = bootstrap_means(values=values, clusters=cases, weights=weights)
    made = model_confidence_set(losses=values.mean(axis=0), draws=draws, n_clusters=300, size=given["size"])
    assert isinstance(made, ConfidenceSet)
    assert list(made.included) == expected["included"]
    assert list(map(str, made.path)) == [*expected["pvalues"]]
    assert made.p == pytest.approx(tuple(expected["pvalues"][str(arm)] for arm in range(5)), abs=0.02)


CHECKS: dict[str, Check] = {
    "dm_hln": dm,
    "dm_hln_grid": dm_grid,
    "dm_zero_variance": dm_still,
    "dm_equals_t": dm_t,
    "multiplicity": family,
    "paired_permutation_mc": plus_one,
    "cluster_bootstrap_exact": enumerated,
    "cluster_robust_mean": robust,
    "variance_components_balanced": balanced,
    "power_t": power,
    "model_confidence_set": confidence_set,
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_inference_vector_holds(vector: dict[str, Any]) -> None:
    assert vector["method"] in CHECKS, f"nobody checks the method {vector['method']}"
    CHECKS[vector["method"]](vector["input"], vector["expected"], vector["rel_tol"])


def test_every_check_of_inference_has_a_vector() -> None:
    assert {vector["method"] for vector in VECTORS} == set(CHECKS)


@pytest.mark.shared_data
def test_inference_golden_equals_the_reference(shared: Path) -> None:
    reference = json.loads((shared / "vectors" / "statistics.json").read_text())["vectors"]
    mine = [vector for vector in reference if vector["method"] in CHECKS]
    assert [{key: value for key, value in vector.items() if key != "note"} for vector in mine] == VECTORS
