"""Ratio statistics of published tables and real sales equal the figures of the reference software."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from consilience.core.undefined import Undefined
from consilience.inference.bootstrap import analysis_rng, cluster_weights
from consilience.scoring.equity import VerticalEquity, vertical_equity
from consilience.scoring.point import FloatArray
from consilience.scoring.ratio import PriceRelatedBias, beyond_iqr, prb, ratio, ratio_draws
from consilience.scoring.summaries import summarise_ratios

pytestmark = pytest.mark.shared_data

Sales = dict[str, tuple[FloatArray, FloatArray]]


@pytest.fixture(scope="module")
def avm(shared: Path) -> Path:
    return shared / "data" / "avm"


@pytest.fixture(scope="module")
def golden(avm: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((avm / "golden" / "ratio_metrics.json").read_text())
    return found


@pytest.fixture(scope="module")
def cook(avm: Path) -> pl.DataFrame:
    return pl.read_parquet(avm / "cook_county_cmf_ratios.parquet")


@pytest.fixture(scope="module")
def sales(avm: Path, cook: pl.DataFrame) -> Sales:
    fixtures = json.loads((avm / "golden" / "ratio_fixtures.json").read_text())
    found = {name: (np.array(one["estimate"]), np.array(one["sale_price"])) for name, one in fixtures.items()}
    sample = pl.read_parquet(avm / "golden" / "ccao_ratios_sample.parquet")
    found["ccao_sample"] = columns(sample, "estimate", "sale_price")
    for (town,), rows in sample.group_by("township_name"):
        found[f"ccao_sample/{town}"] = columns(rows, "estimate", "sale_price")
    found["lucas"] = columns(pl.read_parquet(avm / "lucas_oh_1993_1998.parquet"), "assessed_value", "price")
    for (year,), rows in cook.group_by("sale_year", maintain_order=True):
        found[f"cook_cmf_{year}"] = columns(rows, "assessed_value", "sale_price")
    return found


def columns(rows: pl.DataFrame, estimate: str, price: str) -> tuple[FloatArray, FloatArray]:
    """The two columns as numbers; an absent estimate becomes NaN, which has no ratio."""
    return rows[estimate].cast(pl.Float64).to_numpy(), rows[price].cast(pl.Float64).to_numpy()


def test_every_set_equals_the_reference(sales: Sales, golden: dict[str, Any]) -> None:
    assert set(sales) == {name for name in golden if not name.startswith("_")}
    for name, (estimate, price) in sales.items():
        expected, made = golden[name], summarise_ratios(estimate=estimate, price=price)
        assert made.n == expected["n"], name
        assert isinstance(made.prb, PriceRelatedBias)
        found = {
            "median_ratio": made.median,
            "mean_ratio": made.mean,
            "weighted_mean_ratio": made.weighted_mean,
            "cod": made.cod,
            "prd": made.prd,
            "prb": made.prb.value,
            "prb_se": made.prb.se,
            "prb_intercept": made.prb.intercept,
            "mki": made.concentration.modified,
            "ki": made.concentration.kakwani,
        }
        for key, value in found.items():
            assert value == pytest.approx(expected[key], rel=1e-8, abs=1e-12), (name, key)
        assert (made.prb.low, made.prb.high) == pytest.approx(expected["prb_ci95"], rel=1e-8), name


def test_vertical_equity_cut_at_percentiles_equals_the_reference(sales: Sales, golden: dict[str, Any]) -> None:
    for name, (estimate, price) in sales.items():
        if name.startswith("cook"):
            fine = np.isfinite(estimate) & (estimate > 0)
            estimate, price = estimate[fine], price[fine]  # noqa: PLW2901 - the scorable rows of the same set
        made = vertical_equity(estimate=estimate, price=price, grouping="percentile")
        if np.isnan(golden[name]["vei"]):
            assert isinstance(made, Undefined), name
            continue
        assert isinstance(made, VerticalEquity), name
        assert made.value == pytest.approx(golden[name]["vei"], rel=1e-9), name
        by_rank = vertical_equity(estimate=estimate, price=price)
        assert isinstance(by_rank, VerticalEquity)
        assert max(by_rank.group_sizes) - min(by_rank.group_sizes) <= 1, name


def test_closed_form_intervals_and_outliers(sales: Sales, golden: dict[str, Any]) -> None:
    expected = golden["_assesspy_test_expectations"]
    estimate, price = sales["ccao_sample"]
    for alpha, ends in expected["ccao_ci_nboot500_seed42"]["prb_closed_form"].items():
        made = prb(estimate=estimate, price=price, level=1 - float(alpha))
        assert isinstance(made, PriceRelatedBias)
        assert (made.low, made.high) == pytest.approx(ends, abs=1e-8)
    for name, key in (("ccao_sample", "ccao"), ("quintos", "quintos")):
        found = ratio(estimate=sales[name][0], price=sales[name][1])
        assert int(beyond_iqr(ratio=found, multiple=3).sum()) == expected["outliers"][key]["iqr3"]


def test_resampled_intervals_agree_with_the_reference(sales: Sales, golden: dict[str, Any]) -> None:
    """Its 500 resamples of single sales leave a Monte Carlo error of about a tenth of an interval."""
    estimate, price = sales["ccao_sample"]
    rows = np.arange(price.size)
    weights = cluster_weights(clusters=rows, n_resamples=2000, rng=analysis_rng(seed=3, analysis="ratios"))
    made = ratio_draws(estimate=estimate, price=price, clusters=rows, weights=weights)
    expected = golden["_assesspy_test_expectations"]["ccao_ci_nboot500_seed42"]
    for alpha in ("0.50", "0.20", "0.10", "0.05"):
        tail = float(alpha) / 2
        for draws, ends in ((made.cod, expected["cod"][alpha]), (made.prd, expected["prd"][alpha])):
            assert np.quantile(draws, (tail, 1 - tail)) == pytest.approx(ends, abs=0.15 * (ends[1] - ends[0]))


def test_cook_county_by_year(cook: pl.DataFrame) -> None:
    unscorable = 0
    for (year,), rows in cook.group_by("sale_year", maintain_order=True):
        estimate, price = columns(rows, "assessed_value", "sale_price")
        plain, trimmed = (summarise_ratios(estimate=estimate, price=price, trim=trim) for trim in (None, 3.0))
        assert 40 <= round(plain.cod) <= 62, year
        assert 22 <= round(trimmed.cod) <= 26, year
        assert plain.n + plain.unscorable == trimmed.n + trimmed.unscorable + trimmed.trimmed == rows.height
        assert trimmed.trimmed > 0
        unscorable += plain.unscorable
    assert unscorable == 9  # 8 assessed values of 0 and 1 null
