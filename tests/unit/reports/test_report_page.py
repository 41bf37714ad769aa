from __future__ import annotations

import re
from datetime import date
from html.parser import HTMLParser

import polars as pl
import pytest

from consilience.experiments.evaluate import evaluate
from consilience.experiments.evaluation import Evaluation
from consilience.experiments.predictions import predictions_frame
from consilience.reports.evaluation import main_table, outcomes_table, rules_table, runs_table
from consilience.reports.facts import FACTS
from consilience.reports.html import render_report
from consilience.reports.scope import Asked, Scope, Source

ITEMS = [f"i{k:02d}" for k in range(24)]
VOID = {"meta"}


RULES = ("mean", "median", "stacking")


def asked(arm: str, *, roles: tuple[str, ...], abstained: int = 0) -> Asked:
    return Asked(
        run_id=f"_r{arm}",
        arm=arm,
        protocol="independent",
        roles=roles,
        models=("m-one", "m-two"),
        committee="mixed_random",
        tier="mid",
        split="validation",
        seed=77,
        weights_source="none: fitted rules use equal weights",
        turns={"answered": 24 * len(roles) - abstained, "abstained": abstained, "failed": 0},
        questions=dict.fromkeys(ITEMS, "What is the price?"),
        units=("EUR",),
        first=date(2020, 1, 2),
        last=date(2020, 3, 4),
    )


SCOPE = Scope(
    (asked("E_single", roles=("generalist",)), asked("F_independent", roles=("a", "b", "c"), abstained=7)),
    (Source("csv", "sales.csv", "cd" * 32, 480, places=(("town", ("Ashby", "Birch")),)),),
)


def evaluation(
    *,
    run: str = "_r",
    arm: str = "F_independent",
    exposures: tuple[str, ...] = ("unknown",),
    rules: tuple[str, ...] = ("median",),
) -> Evaluation:
    rows = [
        {
            "item_id": item,
            "split": "validation",
            "arm": name,
            "committee": "c",
            "aggregation": rule,
            "run_id": f"{run}{name}",
            "status": "answered",
            "n_answered": 1,
            "n_seats": 1,
            "exposure": exposures[k % len(exposures)],
            "cost_usd": cost,
            "point": 100.0 + scale * (k - 9),
        }
        for name, scale, cost in (("E_single", 2.0, 0.01), (arm, 1.0, None if arm == "X" else 0.12))
        for k, item in enumerate(ITEMS)
        for rule in rules
    ]
    truth = pl.DataFrame({"item_id": ITEMS, "truth": [100.0] * len(ITEMS)})
    return evaluate(predictions_frame(rows), truth, n_resamples=200)


def page(told: Evaluation, **options: object) -> str:
    fields: dict[str, object] = {"title": "Demo", "heads": {}, "simulated": False}
    return render_report(told, **(fields | options))  # type: ignore[arg-type]


class Balance(HTMLParser):
    """Collects tags that do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that closes itself needs no partner."""

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_every_table_with_errors_shows_cost_and_difference() -> None:
    told = evaluation()
    for table in (main_table(told), rules_table(told)):
        labels = [column.label for column in table.columns]
        assert "Cost per item" in labels
        assert "Points of MdAPE from E_single [95 %]" in labels
        assert table.caption.startswith("Simulated.")
        assert all("(simulated)" in row[0] for row in table.cells())
    assert outcomes_table(told).cells()[0][1:] == ["24", "24", "0", "0", "0", "0", "0", "unknown"]


def test_the_main_table_reads_as_the_numbers_are() -> None:
    cells = main_table(evaluation()).cells()
    assert cells[0][1:] == ["12.0\xa0%", "45.8\xa0%", "–", "$0.0100 (1.0×)", "baseline"]
    assert cells[1][1:5] == ["6.0\xa0%", "83.3\xa0%", "–", "$0.1200 (12.0×)"]
    assert re.fullmatch(r"−6\.0 \[−[\d.]+,\xa0−[\d.]+\]", cells[1][5])


def test_an_unknown_cost_is_called_unknown() -> None:
    table = main_table(evaluation(arm="X"))
    assert table.cells()[1][4] == "unknown"
    assert table.to_json()[1]["cost_usd"] is None


def test_the_page_is_self_contained_and_well_formed() -> None:
    html = page(evaluation())
    for outside in ("<script", "http:", "https:", "src=", "@import", "url(", "<link"):
        assert outside not in html
    parser = Balance()
    parser.feed(html)
    assert (parser.open, parser.wrong) == ([], [])
    for part in ("<svg", "n = 24 common items", "G = 24 clusters", "B = 200", "seed 0", "(percentile)", "viewport"):
        assert part in html


def test_the_page_is_the_same_every_time() -> None:
    assert page(evaluation()) == page(evaluation())


def test_simulated_is_said_wherever_it_applies() -> None:
    assert page(evaluation()).count("SIMULATED") == 1
    assert "<title>Demo (simulated)</title>" in page(evaluation())
    real = page(evaluation(run="r"))
    assert "SIMULATED" not in real
    assert "(simulated)" not in real
    assert "SIMULATED" in page(evaluation(run="r"), simulated=True)


def test_readers_are_told_the_facts_and_where_the_record_is() -> None:
    told = evaluation()
    html = page(told, heads={"_rE_single": "ab" * 32}, notes=("One later snapshot.",))
    assert all(
        fact.source.replace("'", "&#39;").replace("&", "&amp;").replace("&amp;#", "&#") in html for fact in FACTS
    )
    assert "professional opinion of value" in html
    assert "One later snapshot." in html
    assert "ab" * 32 in html
    assert runs_table(told, {}).cells()[0][1] == "unknown"


def test_the_page_says_what_was_asked_of_whom_about_what() -> None:
    html = page(evaluation(), scope=SCOPE)
    for part in ("sales.csv", "csv, 480 rows", "cdcdcdcdcdcd", "town: Ashby, Birch", "2020-01-02 to 2020-03-04"):
        assert part in html
    for part in (
        "<dd>EUR</dd>",
        "m-one, m-two",
        "mixed_random",
        ">77<",
        "24 questions such as",
        "No weights were fitted",
    ):
        assert part in html
    assert "What was asked" not in page(evaluation())


def test_the_measures_are_defined_and_few_items_are_called_few() -> None:
    html = page(evaluation())
    for term in ("MdAPE", "PPE10", "Coverage", "Cost"):
        assert f"<dt>{term}</dt>" in html
    assert "With so few items the interval is rough." in html


def test_a_lone_member_has_one_row_and_a_panel_one_per_rule() -> None:
    told = evaluation(rules=RULES)
    rows = rules_table(told, SCOPE).cells()
    assert [row[1] for row in rows] == ["any (one member)", *RULES]
    assert "No weights were fitted" in rules_table(told, SCOPE).caption
    assert len(rules_table(told).records) == 2 * len(RULES)


def test_turns_without_an_answer_are_counted_by_kind() -> None:
    cells = outcomes_table(evaluation(), SCOPE).cells()
    assert [row[-1] for row in cells] == ["0 of 24", "7 abstained of 72"]


def test_a_simulated_run_is_not_warned_of_training() -> None:
    assert "training cutoff" not in page(evaluation())
    assert "training cutoff" in page(evaluation(run="r"))


def test_exposure_is_shown_where_it_varies() -> None:
    html = page(evaluation(exposures=("before", "after")))
    assert "may have been seen" in html
    assert html.count("Cost per item</th>") == 4


@pytest.mark.parametrize("evil", ["<img src=x onerror=alert(1)>", "</style><script>", "\u202eevil", "a\x1b[2J"])
def test_text_from_data_never_acts(evil: str) -> None:
    html = page(evaluation(arm=evil), title=evil, notes=(evil,))
    assert evil not in html
    assert "<script" not in html
    assert "<img" not in html


def test_without_common_items_the_page_says_so() -> None:
    told = evaluation()
    frame = [
        {
            "item_id": item,
            "split": "validation",
            "arm": arm,
            "committee": "c",
            "aggregation": "median",
            "run_id": "_r",
            "status": "failed" if arm == "E_single" else "answered",
            "n_answered": 0,
            "n_seats": 1,
            "exposure": "unknown",
            "point": None if arm == "E_single" else 100.0,
        }
        for item in ITEMS
        for arm in ("E_single", "F_independent")
    ]
    truth = pl.DataFrame({"item_id": ITEMS, "truth": [100.0] * len(ITEMS)})
    told = evaluate(predictions_frame(frame), truth, n_resamples=10)
    assert main_table(told).cells()[1][5] == "not on common items"
    assert "no common items" in page(told)
    assert "<svg" not in page(told)
