from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from consilience.errors import ConfigError
from consilience.valuation.adapters import ADAPTERS, build
from consilience.valuation.exclusions import KEEP_ALL, MARKET, ExclusionRule, ExclusionSet, exclude, exclusion_set
from consilience.valuation.flags import FLAGS, flag_counts
from consilience.valuation.pipeline import Project, build_table
from consilience.valuation.schema import read_analytic, read_manifest
from consilience.valuation.synthetic import generate, write_town

MINE = """
name: mine
rules:
  - {name: flips, flags: [flip]}
  - {name: odd, flags: [duplicate, impossible_value]}
"""


def flagged() -> pl.DataFrame:
    return pl.DataFrame(
        {"tx_id": list("abcd"), "flags": [["flip", "duplicate"], ["duplicate"], ["shared_date_price"], []]},
        schema_overrides={"flags": pl.List(pl.String)},
    )


def test_a_sale_counts_under_the_first_rule_that_drops_it(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(MINE)
    done = exclude(flagged(), exclusion_set(str(tmp_path / "mine.yaml")))
    assert done.kept["tx_id"].to_list() == ["c", "d"]
    assert done.counts == {"flips": 1, "odd": 1}
    assert exclude(flagged(), KEEP_ALL).kept.equals(flagged())
    assert flag_counts(flagged()) == {"duplicate": 2, "flip": 1, "shared_date_price": 1}


def test_the_default_drops_nothing_and_the_market_set_knows_its_flags() -> None:
    assert KEEP_ALL.rules == ()
    used = [flag for rule in MARKET.rules for flag in rule.flags]
    assert len(used) == len(set(used))
    assert set(used) <= set(FLAGS)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[flip]", "[flop]", 'Did you mean "flip"'),
        ("[flip]", "[]", "flags"),
        ("name: odd", "name: flips", 'the rule "flips" stands twice'),
        ("name: mine", "name: market", "comes with the package"),
        ("name: mine", "nam: mine", 'Did you mean "name"'),
        ("name: mine", "name: Mine!", "name"),
    ],
)
def test_a_wrong_set_says_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MINE
    (tmp_path / "mine.yaml").write_text(MINE.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        exclusion_set(str(tmp_path / "mine.yaml"))
    assert said in str(caught.value)


def test_an_unknown_set_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match='Did you mean "market"'):
        exclusion_set("markets")


def test_the_manifest_says_which_set_dropped_how_many(tmp_path: Path) -> None:
    town = tmp_path / "town.parquet"
    write_town(generate(sales=400, seed=3), town)
    whole = build(ADAPTERS["synthetic"], town)
    assert (whole.manifest.exclusion_set, whole.manifest.exclusions) == ("keep_all", {})
    made = build_table(Project(tmp_path), adapter="synthetic", source=town, exclusions="market")
    again = read_manifest(Project(tmp_path).analytic)
    assert (again, list(again.exclusions)) == (made, list(made.exclusions))
    assert made.exclusion_set == "market"
    assert list(made.exclusions) == [rule.name for rule in MARKET.rules]
    assert made.exclusion_rules == {rule.name: rule.flags for rule in MARKET.rules}
    kept = read_analytic(Project(tmp_path).analytic)
    assert sum(made.exclusions.values()) == whole.frame.height - kept.height > 0
    assert not set(made.flag_counts) & {flag for rule in MARKET.rules for flag in rule.flags}


def test_rules_are_strict() -> None:
    one = ExclusionRule(name="flips", flags=("flip",))
    with pytest.raises(ValueError, match="stands twice"):
        ExclusionSet(name="twice", rules=(one, one))
