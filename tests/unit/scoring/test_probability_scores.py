"""Scores of probabilities and choices: reference vectors by method, identities, and what has no value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consilience.aggregation.recalibration import pool_violators
from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.scoring.agreement import agreement_share, flips, krippendorff_alpha
from consilience.scoring.calibration import binned_error, calibration, null_mean, reliability, smooth_error
from consilience.scoring.probability import (
    baseline_score,
    brier,
    corp,
    log_score,
    murphy,
    pav,
    peer_score,
    sharpness,
    skill,
)

GOLDEN = json.loads((Path(__file__).resolve().parents[2] / "golden" / "probability_scores.json").read_text())
VECTORS: list[dict[str, Any]] = GOLDEN["vectors"]


def array(values: Any) -> Any:
    return np.array(values, dtype=np.float64)


def made_brier(p: Any, y: Any, given: dict[str, Any]) -> Any:
    del given
    each = brier(p=p, y=y)
    return {"each": each, "mean": each.mean()}


def made_murphy(p: Any, y: Any, given: dict[str, Any]) -> Any:
    made = murphy(p=p, y=y, bins=given["bins"])
    parts = {name: getattr(made, name) for name in ("rel", "res", "unc", "wbv", "wbc")}
    return {**parts, "brier": made.score, "sum": made.rel - made.res + made.unc + made.wbv - made.wbc}


def made_log(p: Any, y: Any, given: dict[str, Any]) -> Any:
    made = log_score(p=p, y=y, eps=given["eps"])
    return {"each": made.each, "mean": made.each.mean(), "n_clipped": made.n_clipped}


def made_ece(p: Any, y: Any, given: dict[str, Any]) -> Any:
    made = binned_error(p=p, y=y, bins=given["bins"])
    return {name: getattr(made, name) for name in ("ece", "mce", "rmsce")}


def made_smooth(p: Any, y: Any, given: dict[str, Any]) -> Any:
    del given
    return {"value": smooth_error(p=p, y=y)}


MADE: dict[str, Callable[[Any, Any, dict[str, Any]], Any]] = {
    "brier": made_brier,
    "murphy_decomposition_binned": made_murphy,
    "log_score": made_log,
    "ece": made_ece,
    "smECE": made_smooth,
}


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["method"] != "krippendorff_alpha"], ids=lambda v: v["id"])
def test_reference_vectors_of_probabilities(vector: dict[str, Any]) -> None:
    given = vector["input"]
    made = MADE[vector["method"]](array(given["p"]), array(given["y"]), given)
    wanted = vector["expected"] if isinstance(vector["expected"], dict) else {"value": vector["expected"]}
    assert set(made) == set(wanted)
    for name, value in wanted.items():
        # The reference of the smooth error searches in steps of 2^-10: its note asks for an absolute comparison.
        absolute = 5e-3 if vector["method"] == "smECE" else 1e-12
        assert made[name] == pytest.approx(value, rel=vector["rel_tol"], abs=absolute), name


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
def test_krippendorff_alpha_of_the_published_data(level: Any) -> None:
    (vector,) = (v for v in VECTORS if v["method"] == "krippendorff_alpha")
    values = array([[float(x) for x in row] for row in vector["input"]["data"]]).T
    made = krippendorff_alpha(values=values, present=~np.isnan(values), level=level)
    assert made == pytest.approx(vector["expected"][level], rel=vector["rel_tol"])


def test_the_scores_of_the_founding_notebooks() -> None:
    given = GOLDEN["scores"]
    p, y = array(given["p"]), array(given["o"])
    assert brier(p=p, y=y).mean() == pytest.approx(given["brier"])
    assert log_score(p=p, y=y).each.mean() == pytest.approx(given["log"], abs=5e-5)
    assert binned_error(p=p, y=y).ece == pytest.approx(given["ece10"])
    assert sharpness(p=p).mean() == pytest.approx(given["sharp"])
    three = murphy(p=p, y=y)
    wanted = given["murphy"]
    assert (three.rel, three.res, three.unc) == pytest.approx((wanted["rel"], wanted["res"], wanted["unc"]))
    assert (three.wbv, three.wbc) == (0.0, 0.0)
    assert three.rel - three.res + three.unc == pytest.approx(wanted["rel_minus_res_plus_unc"])


def forecasts(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 21, n) / 20
    return p, (rng.random(n) < p**2).astype(float)


@pytest.mark.parametrize("seed", range(20))
def test_parts_add_up_to_the_score(seed: int) -> None:
    p, y = forecasts(60, seed)
    made = corp(p=p, y=y)
    assert made.mcb - made.dsc + made.unc == pytest.approx(made.score)
    assert min(made.mcb, made.dsc) >= -1e-12
    three, five = murphy(p=p, y=y), murphy(p=p, y=y, bins=7)
    assert three.rel - three.res + three.unc == pytest.approx(three.score)
    assert five.rel - five.res + five.unc + five.wbv - five.wbc == pytest.approx(five.score)


def test_pooling_is_that_of_the_recalibration() -> None:
    p, y = forecasts(300, 5)
    at, value = pool_violators(x=p, y=y)
    stated, codes, counts = np.unique(p, return_inverse=True, return_counts=True)
    assert stated.tolist() == at.tolist()
    assert pav(y=y, codes=codes, counts=counts) == pytest.approx(value)


def test_degenerate_forecasters_have_a_decomposition() -> None:
    single = corp(p=array([0.3]), y=array([1]))
    assert (single.score, single.mcb, single.dsc, single.unc) == pytest.approx((0.49, 0.49, 0.0, 0.0))
    always = corp(p=array([0.5, 0.5]), y=array([0, 1]))
    assert (always.mcb, always.dsc) == (0.0, 0.0)


def test_tournament_scores() -> None:
    p = array([0.5, 0.25, 1.0])
    scores = log_score(p=p, y=np.ones(3))
    assert baseline_score(log_scores=scores)[:2] == pytest.approx([0.0, -100.0])
    assert scores.n_clipped == 1
    own, other = scores.each, log_score(p=p[::-1], y=np.ones(3)).each
    first, second = peer_score(own=own, others=other), peer_score(own=other, others=own)
    assert first + second == pytest.approx(np.zeros(3))
    assert first[0] < 0
    with pytest.raises(DataError, match="peers"):
        peer_score(own=own, others=array([np.nan, 0, 0]))


def test_bins_of_equally_many_cases_never_part_equal_values() -> None:
    p = array([0.1] * 6 + [0.2, 0.3, 0.4, 0.9])
    y = array([0, 0, 0, 1, 0, 0, 0, 0, 1, 1])
    made = binned_error(p=p, y=y, bins=2, scheme="mass")
    assert made.n_bins == 2
    assert made.ece == pytest.approx(0.6 * abs(0.1 - 1 / 6) + 0.4 * abs(0.45 - 0.5))
    assert not isinstance(made.debiased, Undefined)
    single = binned_error(p=p, y=y, bins=10).debiased
    assert single == Undefined("a bin holds a single case")


def test_debiased_error_takes_the_noise_of_a_perfect_forecaster_away() -> None:
    rng = np.random.default_rng(3)
    p = np.repeat(np.arange(1, 10) / 10, 100)
    found = [binned_error(p=p, y=(rng.random(p.size) < p).astype(float), scheme="mass") for _ in range(40)]
    squares = [one.debiased**2 for one in found if not isinstance(one.debiased, Undefined)]
    assert len(squares) == 40
    assert np.mean(squares) < 0.5 * np.mean([one.rmsce**2 for one in found])


@pytest.mark.parametrize(("n", "ece", "mcb"), [(50, 0.143, 0.036), (200, 0.074, 0.016)])
def test_nulls_are_the_known_ones(n: int, ece: float, mcb: float) -> None:
    rng = np.random.default_rng(11)
    found = np.array(
        [
            [
                null_mean(p=p, statistic=lambda y, p=p: binned_error(p=p, y=y).ece, rng=rng, n_resamples=20),  # type: ignore[misc]
                null_mean(p=p, statistic=lambda y, p=p: corp(p=p, y=y).mcb, rng=rng, n_resamples=20),  # type: ignore[misc]
            ]
            for p in rng.random((30, n))
        ]
    )
    assert found.mean(axis=0) == pytest.approx([ece, mcb], rel=0.12)


def test_calibration_stands_beside_its_null() -> None:
    rng = np.random.default_rng(2)
    p = rng.random(400)
    perfect = calibration(p=p, y=(rng.random(400) < p).astype(float), rng=rng, n_resamples=60)
    off = calibration(p=p, y=(rng.random(400) < p**3).astype(float), rng=rng, n_resamples=60)
    for name in ("ece", "ece_mass", "mce", "smooth", "mcb"):
        good, bad = getattr(perfect, name), getattr(off, name)
        assert 0 < good.value < 2 * good.null, name
        assert bad.value > 1.5 * bad.null, name


def test_a_perfect_forecaster_is_inside_the_consistency_band() -> None:
    rng = np.random.default_rng(4)
    p = np.repeat(np.arange(1, 10) / 10, 60)
    made = reliability(p=p, y=(rng.random(p.size) < p).astype(float), rng=rng, n_resamples=200)
    inside = (made.low <= made.seen) & (made.seen <= made.high)
    assert inside.mean() >= 0.7
    assert (made.low <= made.stated).all()
    assert (made.stated <= made.high).all()
    assert made.count.tolist() == [60] * 9
    off = reliability(p=p, y=(rng.random(p.size) < p**3).astype(float), rng=rng, n_resamples=200)
    assert (off.seen < off.low).mean() > 0.5


def test_smooth_error_solves_its_equation() -> None:
    (vector,) = (v for v in VECTORS if v["method"] == "smECE")
    given = vector["input"]
    by_fine_integration = 0.106538803
    assert smooth_error(p=array(given["p"]), y=array(given["y"])) == pytest.approx(by_fine_integration, abs=5e-6)


def test_smooth_error_is_that_of_a_constant_bias() -> None:
    """All mass at one value: the smoothed residual integrates to the bias whatever the width."""
    y = array([1] * 70 + [0] * 30)
    assert smooth_error(p=np.full(100, 0.4), y=y) == pytest.approx(0.3, abs=1e-3)
    assert smooth_error(p=np.full(100, 0.7), y=y) == pytest.approx(0.0, abs=1e-3)


def test_what_has_no_value_says_why() -> None:
    assert skill(score=0.1, reference=0.0) == Undefined("the reference makes no error")
    alike = np.ones((3, 2))
    assert krippendorff_alpha(values=alike, present=alike > 0) == Undefined("all answers are equal")
    lone = np.eye(2, dtype=bool)
    assert krippendorff_alpha(values=np.eye(2), present=lone) == Undefined("no item was answered by two members")


def test_agreement_and_flips_of_choices() -> None:
    votes = np.array([["a", "b", "b"], ["a", "", "a"]])
    assert agreement_share(choices=votes, present=votes != "") == pytest.approx([2 / 3, 1])
    made = flips(before=np.array(["a", "b", "c"]), after=np.array(["b", "c", "c"]), truth=np.array(["a", "a", "c"]))
    assert (made.n, made.changed, made.right_to_wrong, made.wrong_to_right, made.wrong_to_wrong) == (3, 2, 1, 0, 1)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: brier(p=array([1.2]), y=array([1])), "no probability"),
        (lambda: brier(p=array([np.nan]), y=array([1])), "no probability"),
        (lambda: brier(p=array([0.2]), y=array([0.49])), "neither 0 nor 1"),
        (lambda: brier(p=array([0.2]), y=array([0, 1])), "one outcome per probability"),
        (lambda: corp(p=array([]), y=array([])), "no cases"),
        (lambda: murphy(p=array([0.1]), y=array([0]), bins=0), "0 bins"),
        (lambda: log_score(p=array([0.1]), y=array([0]), eps=0.0), "clipped at 0"),
        (lambda: binned_error(p=array([]), y=array([])), "no cases"),
        (lambda: binned_error(p=array([0.1]), y=array([0]), bins=0, scheme="mass"), "0 bins"),
        (lambda: skill(score=-1.0, reference=1.0), "skill"),
        (lambda: krippendorff_alpha(values=-np.eye(2), present=np.ones((2, 2), dtype=bool), level="ratio"), "ratio"),
        (lambda: krippendorff_alpha(values=np.eye(2), present=np.eye(2, dtype=bool), level="cardinal"), "cardinal"),  # type: ignore[arg-type]
        (lambda: agreement_share(choices=np.array([["a"]]), present=np.array([[False]])), "item 0"),
        (lambda: flips(before=np.array(["a"]), after=np.array([]), truth=np.array(["a"])), "choices"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], named: str) -> None:
    with pytest.raises(DataError, match=named):
        call()
