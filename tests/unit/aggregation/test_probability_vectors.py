"""Every reference vector of pooling and recalibrating probabilities; a method nobody knows fails."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consilience.aggregation.odds import (
    effective_number,
    expit,
    extremity,
    halved_farthest,
    log_odds_gap,
    mean_logit,
    projective_factor,
    scale_odds,
    sqrt_neff,
)
from consilience.aggregation.pooling import PooledProbability
from consilience.aggregation.probabilities import PROBABILITY_RULES, ExtremizedOdds, GeometricOdds
from consilience.aggregation.recalibration import fit_isotonic, fit_platt, pool_violators
from consilience.aggregation.resolved import FittedProbabilities
from consilience.aggregation.stages import StagedProbability, Supervisor, blend, strict

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "probability_vectors.json"
READ: dict[str, Any] = json.loads(GOLDEN.read_text())
VECTORS: list[dict[str, Any]] = READ["vectors"]
SECTIONS: dict[str, Any] = READ["sections"]

Check = Callable[[dict[str, Any], Any, float], None]


def array(values: Any) -> Any:
    return np.array(values, dtype=np.float64)


def near(actual: Any, expected: Any, tolerance: float) -> None:
    assert np.asarray(actual, dtype=np.float64) == pytest.approx(array(expected), rel=tolerance, abs=tolerance)


def seats(n: int) -> tuple[str, ...]:
    return tuple(f"s{i:02d}" for i in range(n))


def apply(rule: str, p: list[float], fitted: FittedProbabilities | None = None) -> PooledProbability:
    return PROBABILITY_RULES[rule](probabilities=array(p), seats=seats(len(p)), fitted=fitted)


def known(*, rho: float | None = None, base_rate: float | None = None) -> FittedProbabilities:
    return FittedProbabilities(stacking=None, rho=rho, base_rate=base_rate, n_items=30, complete_rows=0)


def pools(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    p = given["p"]
    near(apply("mean", p).value, expected["mean"], tolerance)
    near(apply("median", p).value, expected["median"], tolerance)
    near(apply("trimmed_mean", p).value, expected["trim20"], tolerance)
    near(apply("geometric_odds", p).value, expected["geo_mean_odds"], tolerance)
    made = apply("neyman", p)
    near(made.factor, expected["neyman_d"], tolerance)
    near(made.value, expected["neyman"], tolerance)


def factors(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    near([projective_factor(n) for n in given["n"]], expected, tolerance)


def geometric(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    p = given["p"]
    made = GeometricOdds(eps=given["eps"])(probabilities=array(p), seats=seats(len(p)))
    near(made.value, expected, tolerance)
    assert len(made.clips) == sum(x in {0, 1} for x in p)


def away_from_base(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    # The vector has no correlation: rho 0 is measured here, so d is that of n members.
    near(apply("neyman", given["p"], known(rho=0.0, base_rate=given["base"])).value, expected, tolerance)
    assert apply("neyman", given["p"]).value < min(given["p"])  # without it, the wrong way


def platt(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    scores, outcomes = array(given["score"]), array(given["y"])
    near(fit_platt(scores=scores, outcomes=outcomes), (expected["intercept"], expected["slope"]), tolerance)
    bare = expected["unsmoothed"]
    found = fit_platt(scores=scores, outcomes=outcomes, smoothed=False)
    near(found, (bare["intercept"], bare["slope"]), tolerance)


def isotonic(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    at, value = pool_violators(x=array(given["x"]), y=array(given["y"]))
    near([value[at.tolist().index(x)] for x in given["x"]], expected, tolerance)


def isotonic_ties(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    isotonic(given, expected, tolerance)
    assert len(fit_isotonic(probabilities=array(given["x"]), outcomes=array(given["y"]))) == 1


CHECKS: dict[str, Check] = {
    "prob_pool": pools,
    "neyman_d": factors,
    "geo_mean_odds": geometric,
    "neyman_base": away_from_base,
    "platt": platt,
    "isotonic": isotonic,
    "isotonic_ties": isotonic_ties,
}


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_probability_vector_holds(vector: dict[str, Any]) -> None:
    assert vector["method"] in CHECKS, f"nobody checks the method {vector['method']}"
    CHECKS[vector["method"]](vector["input"], vector["expected"], vector["rel_tol"])


def test_every_probability_check_has_a_vector() -> None:
    assert {vector["method"] for vector in VECTORS} == set(CHECKS)


@pytest.mark.parametrize("case", SECTIONS["neyman"], ids=lambda case: json.dumps(case["inp"])[:60])
def test_the_founding_root_of_the_effective_number(case: dict[str, Any]) -> None:
    inp = case["inp"]
    rho = inp.get("rho", 0.5)
    made = sqrt_neff(inp["p"], rho=rho, base=inp.get("base", 0.5), factor=inp.get("d"))
    assert len(inp["p"]) == case["n"]
    assert round(made.mean, 4) == case["mean"]
    assert round(made.n_eff, 4) == case["n_eff_unclamped"]
    assert round(made.factor, 4) == case["d"]
    assert round(made.unclamped, 4) == case["unclamped"]
    assert round(made.value, 4) == case["out"]
    assert round(made.factor**2, 2) == case["reported_n_eff"]
    if len(inp["p"]) > 1 and not {"base", "d"} & set(inp):
        row = apply("sqrt_neff", inp["p"], known(rho=rho))
        assert (row.value, row.n_eff, row.rho, row.flags) == (made.value, made.n_eff, rho, ())


@pytest.mark.parametrize("case", SECTIONS["neyman_weighted"], ids=lambda case: json.dumps(case["inp"])[:60])
def test_the_founding_root_with_weights(case: dict[str, Any]) -> None:
    p, w = case["inp"]["p"], case["inp"]["w"]
    made = sqrt_neff(p, rho=0.3, weights=w)
    assert round(made.mean, 4) == case["mean"]
    assert 1 / made.n_weighted == pytest.approx(case["herf"], abs=6e-7)  # one is half a unit
    assert round(made.n_weighted, 4) == case["n_w"]
    assert round(made.n_eff, 4) == case["n_adj"]
    assert round(made.factor, 4) == case["d"]
    assert round(made.value, 4) == case["out"]
    if w == [round(extremity(x), 9) for x in p]:
        assert round(apply("sqrt_neff_weighted", p, known(rho=0.3)).value, 4) == case["out"]


def test_platts_map_and_extremising() -> None:
    for case in SECTIONS["platt"]:
        assert round(scale_odds(case["p"], exponent=case["a"], factor=case["d"]), 6) == case["out"]
    for case in SECTIONS["log_odds_extremization"]:
        assert round(scale_odds(case["p"], exponent=case["a"]), 6) == case["out"]


def test_geometric_means_of_odds() -> None:
    for case in SECTIONS["geometric_mean_of_odds"]:
        assert round(expit(mean_logit(case["p"], case["w"])), 6) == case["out"]
        if case["w"] is None:
            assert round(apply("geometric_odds", case["p"]).value, 6) == case["out"]


def test_extremity_and_gaps_of_log_odds() -> None:
    for p, expected in SECTIONS["extremity"]["conf_rule"]:
        assert extremity(p) == pytest.approx(expected, abs=1e-12)
    for name, expected in SECTIONS["log_odds_gap"].items():
        p, q = (float(f"0.{part[1:]}") for part in name.split("_"))
        assert round(log_odds_gap(p, q), 4) == expected


def blended(name: str, **changed: Any) -> StagedProbability:
    given = {**SECTIONS["pipeline_inputs"][name], **changed}
    supervisor = Supervisor(given["supervisor"], given["label"]) if "supervisor" in given else None
    return blend(panel=given["aggregate"], advocates=(given["bull"], given["bear"]), supervisor=supervisor)


def test_the_founding_blend() -> None:
    made = {
        "recession": blended("blend.recession"),
        "hike": blended("blend.hike"),
        "hike_if_high": blended("blend.hike", label="high"),
        "hike_if_low": blended("blend.hike", label="low"),
    }
    for name, stages in made.items():
        expected = SECTIONS["pipeline_blend"][name]
        assert stages.midpoint == pytest.approx(expected["mid"], abs=1e-12)
        assert stages.after_debate == pytest.approx(expected["post_debate"], abs=1e-9)
        assert round(stages.value, 4) == expected["final"]
        assert stages.confidence == expected["conf"]
    assert round(blended("debate_only").value, 5) == SECTIONS["pipeline_blend"]["debate_only_07"]
    assert blended("debate_only").confidence is None


def test_the_founding_strict_rule() -> None:
    given, expected = SECTIONS["pipeline_inputs"]["strict.verified"], SECTIONS["pipeline_strict"]
    mean = apply("mean", given["agents"]).value
    advocates = (given["bull"], given["bear"])
    verified = strict(panel=mean, advocates=advocates, consensus=given["consensus"], supervisor=None)
    assert round(verified.value, 4) == expected["verified"]
    silent = strict(panel=mean, advocates=None, consensus=False, supervisor=None)
    assert round(silent.value, 4) == expected["no_debate"]
    high = strict(panel=mean, advocates=advocates, consensus=True, supervisor=Supervisor(0.15, "high"))
    assert round(high.value, 4) == expected["high_override_015"]


@pytest.mark.shared_data
def test_golden_equals_the_references(shared: Path) -> None:
    reference = json.loads((shared / "vectors" / "statistics.json").read_text())["vectors"]
    mine = [vector for vector in reference if vector["id"].startswith(("prob.", "cal."))]
    assert [{key: value for key, value in vector.items() if key != "note"} for vector in mine] == VECTORS
    sections = json.loads((shared / "vectors" / "probability.json").read_text())
    assert {name: sections[name] for name in SECTIONS} == SECTIONS
    assert set(sections) - set(SECTIONS) == {"note", "scores", "question_ids"}  # of scoring and of forecasting


@pytest.mark.shared_data
def test_real_forecasts_are_pooled_to_ten_digits(shared: Path) -> None:
    told = json.loads((shared / "data" / "forecast" / "golden_mini.json").read_text())
    expected = dict(told["expected"])
    rows = [[p for p in row if p is not None] for row in told["P"]]
    neffs = [effective_number(len(row), rho=0.3) for row in rows]
    made = {
        "mean": [apply("mean", row).value for row in rows],
        "median": [apply("median", row).value for row in rows],
        "geo_mean_odds": [apply("geometric_odds", row).value for row in rows],
        "trimmed_mean_20pct": [apply("trimmed_mean", row).value for row in rows],
        "halawi_trimmed": [halved_farthest(row) for row in rows],
        "extremized_a1.5": [extremized(row, 1.5) for row in rows],
        "neyman_d(n)": [apply("neyman", row).value for row in rows],
        "neyman_d(neff),rho0.3": [apply("neyman", row, known(rho=0.3)).value for row in rows],
        "corr_a,rho0.3": [extremized(row, n_eff) for row, n_eff in zip(rows, neffs, strict=True)],
    }
    assert set(made) == set(expected)
    for name, values in made.items():
        assert values == pytest.approx(expected[name], rel=0, abs=1e-10), name
    error = array(made["mean"]) - array(told["y"])
    assert float((error**2).mean()) == pytest.approx(told["expected_brier_of_mean"], abs=1e-12)
    for n, factor in told["nr_factor"].items():
        assert projective_factor(float(n)) == pytest.approx(factor, rel=1e-10)  # theirs is 0/0 at the golden ratio
    assert math.isclose(told["eps"], GeometricOdds().eps)


def extremized(row: list[float], a: float) -> float:
    return ExtremizedOdds(a=a)(probabilities=array(row), seats=seats(len(row))).value
