"""``consilience score`` on the example tables: a table for people, one document for machines, clear refusals."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from cli_cases import Cli

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = ("--forecasts", EXAMPLES / "forecasts.csv", "--outcomes", EXAMPLES / "outcomes.csv")


def test_people_get_scores_comparisons_fits_and_signs(cli: Cli, tmp_path: Path) -> None:
    curves = tmp_path / "curves.csv"
    done = cli(
        "score", *FILES, "--aggregate", "mean,geometric_odds", "--fit-before", "2025-04-01", "--reliability", curves
    )
    assert done.code == 0, done.err
    for told in (
        "39 targets of 20 questions, 2 dates of forecast",
        "MCB (null)",
        "market price",
        "mean of individuals",
        "2025-04-01, forward",
        "not known then",
        "model_b: 4 unsubmitted at exactly 0.5",
        "only some of the targets of 2 questions",
        "left out as they resolved to neither yes nor no: 1",
    ):
        assert told in done.out
    assert "nan" not in done.out
    written = pl.read_csv(curves)
    assert set(written["name"]) == {"analyst", "model_a", "model_b", "mean", "geometric_odds"}
    assert written.filter(pl.col("low") > pl.col("high")).height == 0


def test_machines_get_one_document_that_says_why_a_number_is_missing(cli: Cli) -> None:
    arguments = ("score", *FILES, "--forecasters", "analyst, model_b", "--aggregate", "median", "--json")
    done = cli(*arguments)
    document = done.document
    entrants = {one["name"]: one for one in document["entrants"]}
    assert list(entrants) == ["model_b", "analyst", "median", "market price"]
    assert entrants["median"]["peer_score"] is None
    assert entrants["median"]["undefined"] == {"peer_score": "pools are no peers"}
    assert {"value", "null"} == set(entrants["analyst"]["calibration"]["ece"])
    assert document["common"]["n"] == 39
    assert document["calls"] == 0
    assert cli(*arguments).out == done.out


@pytest.mark.parametrize(
    ("more", "code", "named"),
    [
        (("--aggregate", "medain"), 2, '"median"'),
        (("--forecasters", "analist"), 2, '"analyst"'),
        (("--columns", "probability"), 2, "NAME=COLUMN"),
        (("--columns", "chance=p"), 2, '"chance"'),
        (("--fit-before", "2031-01-01"), 1, "2025-04-01"),
        (("--fit-before", "soon"), 2, "--fit-before"),
    ],
)
def test_refusals_name_what_is_wrong(cli: Cli, more: tuple[str, ...], code: int, named: str) -> None:
    done = cli("score", *FILES, *more)
    assert done.code == code
    assert done.out == ""
    assert named in done.err
    assert "Traceback" not in done.err
