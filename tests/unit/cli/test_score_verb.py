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
        "UNC",
        "Brier Index, 100 (1 - sqrt(Brier))",
        "clipped to 1e-06",
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


def test_names_with_commas_are_chosen_in_quotes_and_long_ones_shortened(cli: Cli, tmp_path: Path) -> None:
    long = "n" * 100_000
    said = pl.read_csv(FILES[1]).with_columns(pl.col("forecaster").replace({"analyst": "Smith, J", "model_a": long}))
    path = tmp_path / "said.csv"
    said.write_csv(path)
    read = ("--forecasts", path, *FILES[2:])
    chosen = cli("score", *read, "--forecasters", '"Smith, J",model_b', "--json").document
    assert {one["name"] for one in chosen["entrants"]} == {"Smith, J", "model_b", "market price"}
    shown = cli("score", *read)
    assert max(map(len, shown.out.splitlines())) < 400
    assert f"{'n' * 40}… (100,000 characters)" in shown.out
    twice = cli("score", *read, "--columns", "probability=a", "--columns", "probability=b")
    assert (twice.code, "probability is both a and b" in twice.err) == (2, True)


def test_an_interval_that_rounds_to_nothing_has_no_sign(cli: Cli, tmp_path: Path) -> None:
    lines = [f"q{k},{name},{0.5 + (k % 2) * 1e-9 * sign}" for k in range(30) for name, sign in (("a", 1), ("b", -1))]
    (tmp_path / "said.csv").write_text("question,forecaster,probability\n" + "\n".join(lines) + "\n")
    (tmp_path / "told.csv").write_text("question,outcome\n" + "".join(f"q{k},{k // 2 % 2}\n" for k in range(30)))
    done = cli("score", "--forecasts", tmp_path / "said.csv", "--outcomes", tmp_path / "told.csv")
    assert "0.0000 to 0.0000" in done.out
    assert "-0.0000" not in done.out
