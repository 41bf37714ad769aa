"""Every reference vector of the scores of numbers and ratios, by method; a method nobody knows fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from consilience.core.undefined import Undefined
from consilience.scoring.crps import crps_ensemble, crps_lognormal, crps_normal, crps_reconstructed
from consilience.scoring.equity import VerticalEquity, vertical_equity
from consilience.scoring.interval import covered, interval_score
from consilience.scoring.pit import pit_bins
from consilience.scoring.quantile import pinball, wis5
from consilience.scoring.ratio import PriceRelatedBias, cod, prb, prd, ratio
from consilience.scoring.summaries import clopper_pearson, summarise_points, wilson

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "number_score_vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["vectors"]
ON_REAL_SALES = "cod_prd_prb_ref"

Check = Callable[[dict[str, Any], Any, float], None]


def array(values: Any) -> Any:
    return np.array(values, dtype=np.float64)


def near(actual: Any, expected: Any, tolerance: float) -> None:
    assert np.asarray(actual, dtype=np.float64) == pytest.approx(array(expected), rel=tolerance, abs=1e-12)


def weighted_interval(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    q, y = array(given["q"]), array(given["y"])
    made = wis5(quantiles=q, outcome=y, levels=tuple(given["levels"]))
    near(made.score, expected["wis"], tolerance)
    near(made.dispersion + made.overprediction + made.underprediction, expected["wis"], tolerance)
    # The other normalisation in use gives the median a whole share: 1/(K + 1) in place of 1/(K + 1/2).
    near((2.5 * made.score + 0.5 * np.abs(y - q[:, 2])) / 3, expected["wis_count_median_twice"], tolerance)


def central_interval(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    lower, upper = array(given["lower"]), array(given["upper"])
    near(interval_score(lower=lower, upper=upper, outcome=array(given["y"]), alpha=given["alpha"]), expected, tolerance)


def normal(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    mean, sd = array([given["mu"]]), array([given["sigma"]])
    near(crps_normal(mean=mean, sd=sd, outcome=array([given["y"]])), [expected], tolerance)


def lognormal(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    mean, sd = array([given["mulog"]]), array([given["sigmalog"]])
    near(crps_lognormal(mean_log=mean, sd_log=sd, outcome=array([given["y"]])), [expected], tolerance)


def ensemble(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    assert given["estimators"] == ["nrg", "fair"]
    members, y = array([given["members"]]), array([given["y"]])
    near(crps_ensemble(members=members, outcome=y), [expected[0]], tolerance)
    near(crps_ensemble(members=members, outcome=y, estimator="fair"), [expected[1]], tolerance)


def exact_for_a_normal_law(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    from scipy.special import ndtri  # noqa: PLC0415 - scipy is loaded where it is used

    q = given["mu"] + given["sigma"] * ndtri(array([[0.05, 0.25, 0.5, 0.75, 0.95]]))
    made = crps_reconstructed(quantiles=q, outcome=array([given["y"]]))
    near(made.score, [expected["value"]], tolerance)
    assert made.point_mass.tolist() == [False]


def quantile_loss(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    near(pinball(quantile=array(given["q"]), outcome=array(given["y"]), level=given["tau"]), expected, tolerance)


def points(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    made = summarise_points(estimate=array(given["estimate"]), truth=array(given["truth"]))
    for name in ("mdape", "ppe10", "ppe20", "rmse_log"):
        near(getattr(made, name), expected[name], tolerance)
    near(made.bias, expected["mean_log_error"], tolerance)


def share_intervals(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    for k, n, ends in zip(given["k"], given["n"], expected, strict=True):
        near(wilson(k=k, n=n, level=given["level"]), ends["wilson"], tolerance)
        near(clopper_pearson(k=k, n=n, level=given["level"]), ends["clopper_pearson"], tolerance)


def bins(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    y = array(given["y"])
    q = np.tile(array(given["q"]), (y.size, 1))
    assert tolerance > 0
    assert pit_bins(quantiles=q, outcome=y).tolist() == expected["bin"]
    for key, low, high in (("coverage90", 0, 4), ("coverage50", 1, 3)):
        assert covered(lower=q[:, low], upper=q[:, high], outcome=y).astype(int).tolist() == expected[key]


def dispersion_and_bias(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    estimate, price = array(given["estimate"]), array(given["sale_price"])
    bias = prb(estimate=estimate, price=price)
    assert isinstance(bias, PriceRelatedBias)
    made = {
        "cod": cod(ratio=ratio(estimate=estimate, price=price)),
        "prd": prd(estimate=estimate, price=price),
        "prb": bias.value,
    }
    for name, value in made.items():
        near(value, expected[name], tolerance)
        if "published" in expected:
            assert value == pytest.approx(expected["published"][name], rel=0.005)


def constant_regressor(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    estimate, price = array(given["estimate"]), array(given["sale_price"])
    near(cod(ratio=ratio(estimate=estimate, price=price)), expected["cod"], tolerance)
    near(prd(estimate=estimate, price=price), expected["prd"], tolerance)
    assert expected["prb"] is None
    assert prb(estimate=estimate, price=price) == Undefined(expected["reason"])


def equity(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    made = vertical_equity(estimate=array(given["estimate"]), price=array(given["sale_price"]))
    assert isinstance(made, VerticalEquity)
    near(made.value, expected["vei"], tolerance)
    near(made.significance, expected["significance"], tolerance)
    near(made.group_medians, expected["group_medians"], tolerance)
    assert list(made.group_sizes) == expected["group_sizes"]
    assert made.separate
    published = expected["published"]
    assert made.value == pytest.approx(published["vei"], abs=0.25)
    assert made.significance == pytest.approx(published["significance"], abs=0.25)
    assert made.group_medians == pytest.approx(tuple(published["group_medians"]), abs=6e-4)
    by_percentile = vertical_equity(
        estimate=array(given["estimate"]), price=array(given["sale_price"]), grouping="percentile"
    )
    assert isinstance(by_percentile, VerticalEquity)
    assert by_percentile.group_sizes == (14, 13, 13, 14)
    assert by_percentile.value == pytest.approx(48.5, abs=0.05)


CHECKS: dict[str, Check] = {
    "wis": weighted_interval,
    "interval_score": central_interval,
    "crps_normal": normal,
    "crps_lognormal": lognormal,
    "crps_ensemble": ensemble,
    "crps_five_quantiles_exact": exact_for_a_normal_law,
    "pinball": quantile_loss,
    "point_metrics": points,
    "binomial_ci": share_intervals,
    "pit_quantile_bins": bins,
    "cod_prd_prb": dispersion_and_bias,
    "prb_degenerate": constant_regressor,
    "vertical_equity_indicator": equity,
}
WITHOUT_DATA = [vector for vector in VECTORS if vector["method"] != ON_REAL_SALES]


@pytest.mark.parametrize("vector", WITHOUT_DATA, ids=[vector["id"] for vector in WITHOUT_DATA])
def test_vector_holds(vector: dict[str, Any]) -> None:
    assert vector["method"] in CHECKS, f"nobody checks the method {vector['method']}"
    CHECKS[vector["method"]](vector["input"], vector["expected"], vector["rel_tol"])


def test_every_check_has_a_vector() -> None:
    assert {vector["method"] for vector in VECTORS} == {*CHECKS, ON_REAL_SALES}


@pytest.mark.shared_data
def test_vector_on_real_sales_holds(shared: Path) -> None:
    sales = pl.read_parquet(shared / "data" / "avm" / "golden" / "ccao_ratios_sample.parquet")
    (vector,) = (vector for vector in VECTORS if vector["method"] == ON_REAL_SALES)
    assert sales.height == vector["input"]["n"]
    columns = {name: sales[name].to_numpy() for name in ("estimate", "sale_price")}
    dispersion_and_bias(columns, vector["expected"], vector["rel_tol"])


@pytest.mark.shared_data
def test_golden_equals_the_reference(shared: Path) -> None:
    reference = json.loads((shared / "vectors" / "statistics.json").read_text())["vectors"]
    mine = [vector for vector in reference if vector["method"] in {*CHECKS, ON_REAL_SALES}]
    assert [{key: value for key, value in vector.items() if key != "note"} for vector in mine] == VECTORS
