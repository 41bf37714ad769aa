"""Evidence exports: bands, hit rates, subgroups, the sample, hashes, and what no model may read."""

from __future__ import annotations

import csv
import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import ConfigError, DataError, PlanError
from consilience.experiments.predictions import predictions_frame, write_predictions
from consilience.valuation.export_files import markdown, read_subject, write_export
from consilience.valuation.exports import PROTECTED, AvmExport, Subject, confidence, make_export, refuse_protected
from consilience.valuation.features import CATEGORIES, FEATURES
from consilience.valuation.schema import ANALYTIC, IDENTITY, Manifest, Observation, RegionMap

DAY = date(2022, 3, 1)


def sales(n: int = 90, **columns: Any) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    rows = [
        {
            "tx_id": f"t{k:03d}",
            "parcel_id": f"p{k}",
            "sale_date": DAY + timedelta(days=k),
            "price": float(np.exp(rng.normal(12.5, 0.3))),
            "currency": "CAD",
            "property_class": "house",
            "source": "s",
            "flags": [],
            "da_median_income": 40_000.0 + 500 * k,
        }
        | columns
        for k in range(n)
    ]
    return pl.DataFrame(rows, schema=ANALYTIC)


def manifest(rows: int = 90) -> Manifest:
    return Manifest(
        adapter="csv",
        source_file="s.csv",
        source_sha256="0" * 64,
        rows=rows,
        currency="CAD",
        region=RegionMap(municipality="town", region="county"),
        observations={name: Observation(rule="at_sale") for name in ANALYTIC if name not in IDENTITY},
    )


def predictions(table: pl.DataFrame, *, arm: str = "C_boosting", sd: float = 0.1, silent: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    rows = []
    for k, (tx_id, price) in enumerate(table.select("tx_id", "price").iter_rows()):
        row: dict[str, Any] = {"item_id": tx_id, "arm": arm, "committee": "none", "aggregation": "model", "run_id": "r"}
        row |= {"n_answered": 1, "n_seats": 1, "status": "answered", "exposure": "after", "information_date": DAY}
        if k < silent:
            rows.append(row | {"status": "abstained", "n_answered": 0})
            continue
        point = price * float(np.exp(rng.normal(0, sd)))
        names = ("q05", "q25", "q50", "q75", "q95")
        steps = dict(zip(names, (-1.6449, -0.6745, 0.0, 0.6745, 1.6449), strict=True))
        rows.append(row | {"point": point} | {name: point * float(np.exp(sd * step)) for name, step in steps.items()})
    return predictions_frame(rows)


def subject(table: pl.DataFrame, **changed: Any) -> Subject:
    run_id = changed.pop("run_id", "C_boosting-test-1")
    features = changed.pop("features", ("ln_floor_area", "da_median_income"))
    return Subject(run_id, predictions(table, **changed), features, {"parameters": {"trees": 3}})


def export(**options: Any) -> AvmExport:
    table = sales()
    return make_export(subject(table), table, manifest(), seed=options.pop("seed", 7), **options)


def test_the_band_of_a_normal_law_is_one_standard_deviation() -> None:
    band = confidence(predictions(sales(), sd=0.1))
    assert (band["high_683"] / band["point"]).log().to_numpy() == pytest.approx(0.1, abs=1e-4)
    assert (band["low_683"] / band["point"]).log().to_numpy() == pytest.approx(-0.1, abs=1e-4)
    assert band["fsd"].to_numpy() == pytest.approx(np.sinh(0.1), abs=1e-4)


@given(st.lists(st.floats(1, 1e7), min_size=5, max_size=5))
def test_a_band_lies_within_the_quantiles_around_it(numbers: list[float]) -> None:
    row = dict(zip(("q05", "q25", "q50", "q75", "q95"), sorted(numbers), strict=True))
    band = confidence(pl.DataFrame([row | {"point": row["q50"]}])).row(0, named=True)
    assert row["q05"] * (1 - 1e-9) <= band["low_683"] <= row["q25"] * (1 + 1e-9)
    assert row["q75"] * (1 - 1e-9) <= band["high_683"] <= row["q95"] * (1 + 1e-9)
    assert band["fsd"] >= -1e-12


def test_values_without_quantiles_have_no_band() -> None:
    table = sales(4)
    bare = predictions(table).with_columns(
        pl.lit(None, dtype=pl.Float64).alias(f"q{at:02d}") for at in (5, 25, 50, 75, 95)
    )
    made = make_export(Subject("r", bare, (), {}), table, manifest(4), seed=1)
    assert made.summary["confidence"] is None
    assert made.values[0]["fsd"] is None
    assert "no confidence per value" in markdown(made)


def test_what_was_not_valued_lowers_the_hit_rate_alone() -> None:
    table = sales()
    made = make_export(subject(table, silent=9), table, manifest(), seed=1)
    accuracy = made.summary["accuracy"]
    assert (accuracy["sales"], accuracy["valued"], accuracy["hit_rate"]) == (90, 81, 0.9)
    assert 0.03 < accuracy["mdape"] < 0.12
    assert made.summary["confidence"]["within"]["value"] == pytest.approx(0.683, abs=0.15)
    assert made.values[0]["value"] is None
    assert made.values[0]["status"] == "abstained"


def test_subgroups_are_terciles_of_the_areas_income() -> None:
    table = sales().with_columns(da_median_income=pl.when(pl.int_range(pl.len()) >= 6).then("da_median_income"))
    made = make_export(subject(table), table, manifest(), seed=1)
    assert [(row["income_tercile"], row["sales"]) for row in made.subgroups] == [
        ("lowest", 28),
        ("middle", 28),
        ("highest", 28),
        ("unknown", 6),
    ]
    assert made.summary["income"]["known"] == 84
    bare = table.with_columns(da_median_income=pl.lit(None, dtype=pl.Float64))
    (row,) = make_export(subject(bare), bare, manifest(), seed=1).subgroups
    assert row["income_tercile"] == "unknown"


def test_the_sample_follows_the_seed() -> None:
    first, again, other = (export(retest=10, seed=seed) for seed in (7, 7, 8))
    assert first.retest == again.retest
    assert first.retest != other.retest
    assert len(first.retest) == 10
    assert {row["item_id"] for row in first.retest} <= {row["item_id"] for row in first.values}
    assert len(export(retest=1_000).retest) == 90


def test_the_index_is_compared_where_both_value() -> None:
    table = sales()
    index = subject(table, arm="D_index", sd=0.3, silent=60, run_id="D_index-test-1")
    made = make_export(subject(table), table, manifest(), seed=1, index=index)
    told = made.summary["index"]
    assert (told["items"], told["both"]) == (90, 30)
    assert told["hit_rate"] == pytest.approx(1 / 3)
    assert told["mdape"] < told["index_mdape"]
    assert "values 33.3\N{NO-BREAK SPACE}% of 90 sales" in markdown(made)
    assert "No run of prior price times index" in markdown(export())


def test_hashes_follow_configuration_and_data() -> None:
    table = sales()
    first = export().summary
    other = Subject("r", predictions(table), (), {"parameters": {"trees": 4}})
    second = make_export(other, table, manifest(), seed=7).summary
    assert first["configuration_sha256"] != second["configuration_sha256"]
    assert first["data_sha256"] == second["data_sha256"]


def test_every_export_says_that_it_is_no_legal_advice_and_what_is_made_up(tmp_path: Path) -> None:
    table = sales()
    made = make_export(subject(table, run_id="_C_boosting-test-1"), table, manifest(), seed=7, retest=5)
    hashes = write_export(made, tmp_path / "export")
    assert sorted(hashes) == ["export.json", "export.md", "retest.csv", "subgroups.csv", "values.csv"]
    page = (tmp_path / "export" / "export.md").read_text(encoding="utf-8")
    document = json.loads((tmp_path / "export" / "export.json").read_text(encoding="utf-8"))
    assert "not legal advice" in page
    assert "not legal advice" in document["disclaimer"]
    assert "made up" in page
    assert document["made_up"] is True
    with (tmp_path / "export" / "values.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 90
    assert float(rows[3]["value"]) / float(rows[3]["price"]) == pytest.approx(float(rows[3]["ratio"]))
    assert write_export(made, tmp_path / "again") == hashes


def test_no_protected_attribute_is_a_feature() -> None:
    refuse_protected([*ANALYTIC.names(), *FEATURES, *CATEGORIES])
    table = sales(3)
    for word in PROTECTED:
        with pytest.raises(PlanError, match="attribute of persons"):
            make_export(subject(table, features=(f"share_{word}",)), table, manifest(3), seed=1)


def test_what_cannot_be_exported_is_refused() -> None:
    table = sales(5)
    with pytest.raises(DataError, match="is no sale of the table"):
        make_export(subject(sales(6)), table, manifest(5), seed=1)
    with pytest.raises(DataError, match="values no sale"):
        make_export(subject(table, silent=5), table, manifest(5), seed=1)
    two = pl.concat([predictions(table), predictions(table, arm="B")])
    with pytest.raises(DataError, match='several predictions of "t000"'):
        make_export(Subject("r", two, (), {}), table, manifest(5), seed=1)
    with pytest.raises(DataError, match="no item in common"):
        make_export(subject(table[:2]), table, manifest(5), seed=1, index=subject(table[2:]))


def test_a_run_is_read_by_its_card_or_its_protocol(tmp_path: Path) -> None:
    table = sales(3)
    two = pl.concat([predictions(table), predictions(table, arm="B")])
    write_predictions(two, tmp_path / "predictions.parquet")
    with pytest.raises(DataError, match=r"protocol\.json cannot be read"):
        read_subject(tmp_path, arm="B")
    (tmp_path / "protocol.json").write_text(json.dumps({"plan": {"arm": "B", "models": ["m"]}}))
    agents = read_subject(tmp_path, arm="B", aggregation="model")
    assert agents.configuration["models"] == ["m"]
    assert "floor_area_m2" in agents.features
    (tmp_path / "card.json").write_text(json.dumps({"arm": "B", "features": ["age"], "hashes": {"table": "0"}}))
    model = read_subject(tmp_path, arm="B")
    assert (model.features, model.configuration["hashes"]) == (("age",), {"table": "0"})
    assert model.predictions.height == 3
    with pytest.raises(ConfigError, match="several of arm: B, C_boosting"):
        read_subject(tmp_path)
    with pytest.raises(ConfigError, match='no arm "C_bosting"'):
        read_subject(tmp_path, arm="C_bosting")
