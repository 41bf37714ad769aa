"""``consilience ratios``: the figures of the reference software from tables, and refusals that name the cell."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from cli_cases import Cli

SALES = "est,paid,parcel,town\n90,100,a,x\n110,100,a,x\n100,100,b,y\n95,100,c,y\n0,100,d,y\n,100,e,y\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    path.write_text(SALES)
    return path


NAMED = ("--columns", "estimate=est", "--columns", "price=paid")


def test_ratios_of_a_table_with_what_was_left_out(cli: Cli, table: Path) -> None:
    done = cli("ratios", table, *NAMED, "--json")
    (one,) = done.document["studies"]
    assert (one["n_rows"], one["summary"]["n"], one["summary"]["unscorable"]) == (6, 4, 2)
    assert one["cod"]["value"] == pytest.approx(100 * (7.5 + 12.5 + 2.5 + 2.5) / 4 / 97.5)
    assert one["vei"] is None
    assert "at least" in one["undefined"]["vei"]
    shown = cli("ratios", table, *NAMED)
    assert "left out, as they have no positive estimate and price: 2 sales" in shown.out
    assert "(few)" in shown.out
    assert cli("ratios", table, *NAMED, "--json").out == done.out


def test_groups_and_clusters(cli: Cli, table: Path) -> None:
    told = cli("ratios", table, *NAMED, "--columns", "by=town", "--columns", "cluster=parcel", "--json").document
    assert [(one["group"], one["cod"]["n_clusters"]) for one in told["studies"]] == [("x", 1), ("y", 2)]
    assert told["studies"][0]["cod"]["flags"] == ["no_interval"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ((), 'no column "estimate" for estimate'),
        (("--columns", "estimate=town", "--columns", "price=paid"), "row 1, column \"town\": 'x' is no number"),
        ((*NAMED, "--columns", "parcel=parcel"), 'unknown name "parcel"'),
        ((*NAMED, "--vei", "quartile"), '--vei: unknown "quartile"'),
    ],
)
def test_refusals_name_what_is_wrong(more: tuple[str, ...], named: str, cli: Cli, table: Path) -> None:
    done = cli("ratios", table, *more)
    assert done.code in {1, 2}
    assert done.out == ""
    assert named in done.err


@pytest.mark.shared_data
def test_lucas_and_cook_county_equal_the_reference(cli: Cli, shared: Path) -> None:
    avm = shared / "data" / "avm"
    golden = json.loads((avm / "golden" / "ratio_metrics.json").read_text())
    lucas = ("--columns", "estimate=assessed_value", "--columns", "price=price")
    cook = ("--columns", "estimate=assessed_value", "--columns", "price=sale_price", "--columns", "by=sale_year")
    few = ("--resamples", 3, "--json")
    found = {"lucas": cli("ratios", avm / "lucas_oh_1993_1998.parquet", *lucas, *few).document["studies"][0]}
    made = cli("ratios", avm / "cook_county_cmf_ratios.parquet", *cook, *few).document["studies"]
    found |= {f"cook_cmf_{one['group']}": one for one in made}
    assert found.keys() == {name for name in golden if name == "lucas" or name.startswith("cook")}
    assert sum(one["n_rows"] for one in made) == pl.read_parquet(avm / "cook_county_cmf_ratios.parquet").height
    for name, one in found.items():
        told = golden[name]
        assert one["summary"]["n"] == told["n"]
        for key, value in (
            ("cod", one["cod"]["value"]),
            ("prd", one["prd"]["value"]),
            ("prb", one["prb"]["value"]),
            ("vei", one["vei"]["value"]),
            ("median_ratio", one["median"]["value"]),
        ):
            assert value == pytest.approx(told[key], rel=1e-8), (name, key)
        assert [one["prb"]["low"], one["prb"]["high"]] == pytest.approx(told["prb_ci95"], rel=1e-8)
        assert one["cod"]["low"] < one["cod"]["high"]
