"""No table of yes-no questions or choices shows an arm without its cost and an interval on its differences."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from consilience.core.undefined import Undefined
from consilience.experiments.evaluate import evaluate
from consilience.experiments.evaluation import Evaluation
from consilience.experiments.predictions import predictions_frame
from consilience.reports.answers import choices_table, probabilities_table
from consilience.reports.evaluation import describe_resampling
from consilience.reports.scored import calibration_table
from consilience.reports.tables import Table

ARMS = {"E_single": (0.6, 0.5), "F_independent": (0.8, 4.0), "J_single_matched.F_independent": (0.7, 4.0)}


def yes_no(n: int, groups: int, kind: str = "p") -> Evaluation:
    rows: list[dict[str, Any]] = []
    for k in range(n):
        for arm, (sure, cost) in ARMS.items():
            wobble = sure + 0.01 * ((k * 7 + len(arm)) % 11)
            right = wobble if k % 2 or kind != "p" else 1 - wobble
            share = {"p": right} if kind == "p" else {"option:a": right - 0.3, "option:b": 1.3 - right}
            told = {"item_id": f"q{k:02d}", "arm": arm, "committee": "c", "aggregation": "mean", "run_id": f"_{arm}"}
            counts = {"status": "answered", "n_answered": 3, "n_seats": 3, "exposure": "unknown", "cost_usd": cost}
            rows.append(told | counts | share)
    truth = {"item_id": [f"q{k:02d}" for k in range(n)], "cluster": [f"c{k % groups}" for k in range(n)]}
    truths = {"truth": [float(k % 2) for k in range(n)]} if kind == "p" else {"truth": [None] * n, "option": ["a"] * n}
    return evaluate(predictions_frame(rows), pl.DataFrame(truth | truths), n_resamples=200)


def rows_of(table: Table) -> dict[str, dict[str, str]]:
    heads = [column.label for column in table.columns]
    return {row[0].removesuffix(" (simulated)"): dict(zip(heads, row, strict=True)) for row in table.cells()}


def test_each_arm_has_cost_difference_with_interval_and_adjusted_p() -> None:
    found = yes_no(48, 24)
    table = probabilities_table(found)
    told = rows_of(table)
    assert list(told) == list(ARMS)
    panel = told["F_independent"]
    assert panel["Cost per item"] == "$4.00 (8.0×)"
    assert panel["Brier less that of E_single [95 %]"].startswith("−0.")
    assert "[" in panel["Brier less that of E_single [95 %]"]
    assert panel["Against a single agent"] == "J_single_matched.F_independent (1×\u00a0its\u00a0money)"
    assert "[" in panel["Difference from it [95 %]"]
    assert told["E_single"]["Brier less that of E_single [95 %]"] == "baseline"
    (record,) = [one for one in table.records if one["arm"] == "F_independent"]
    assert isinstance(record["adjusted_p"], float)
    assert isinstance(record["matched_adjusted_p"], float)
    assert "n = 48, G = 24 clusters, B = 200, seed 0." in table.caption
    assert "over the 3 comparisons here" in table.caption
    assert "n = 48" in calibration_table(found).caption
    assert found.probabilities is not None
    assert describe_resampling(found.probabilities) in table.caption
    told_of = {one.arm: one for one in found.probabilities.results}["F_independent"]
    assert isinstance(told_of.p, float)
    assert isinstance(told_of.holm, float)
    assert told_of.holm >= told_of.p


@pytest.mark.parametrize(
    ("groups", "said", "caption"),
    [(5, "descriptive only", "only describe"), (1, "no interval: one cluster", "no interval from one cluster")],
)
def test_what_few_clusters_do_to_an_interval_stands_in_its_cell(groups: int, said: str, caption: str) -> None:
    found = yes_no(10, groups)
    table = probabilities_table(found)
    panel = rows_of(table)["F_independent"]
    assert said in panel["Brier"]
    assert said in panel["Brier less that of E_single [95 %]"]
    assert panel["Adjusted p"] == "–"
    assert caption in table.caption
    assert any("cluster" in text for text in found.warnings)
    assert found.probabilities is not None
    assert isinstance(found.probabilities.results[1].p, Undefined)


def test_choices_stand_with_cost_and_both_differences() -> None:
    told = rows_of(choices_table(yes_no(24, 24, "options")))
    assert told["F_independent"]["Cost per item"] == "$4.00 (8.0×)"
    assert "Points of accuracy from E_single [95 %]" in told["F_independent"]
    assert told["E_single"]["Points of accuracy from E_single [95 %]"] == "baseline"
    assert "Difference from it [95 %]" in told["F_independent"]
