"""ForecastBench, Polymarket and Manifold by file."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.errors import DataError
from consilience.forecasting.feeds import FEEDS, Feed, Skipped
from consilience.forecasting.feeds.forecastbench import MARKETS, QuestionSets, ResolvedTargets
from consilience.forecasting.feeds.markets import Manifold, Polymarket
from consilience.forecasting.items import items_of
from consilience.forecasting.questions import ForecastQuestion, check_askable

SAVED = datetime(2025, 2, 1, tzinfo=UTC)
MARKET = {
    "id": "m1",
    "source": "polymarket",
    "question": "Will it?",
    "background": "N/A",
    "resolution_criteria": "As the market says.",
    "market_info_resolution_criteria": "Twice.",
    "market_info_open_datetime": "2025-01-01T10:00:00+00:00",
    "market_info_close_datetime": "2025-12-31T00:00:00+00:00",
    "url": "https://polymarket.com/market/x",
    "freeze_datetime": "2025-02-27T00:00:00+00:00",
    "freeze_datetime_value": "0.25",
    "freeze_datetime_value_explanation": "The market price.",
    "resolution_dates": "N/A",
}
SERIES = MARKET | {
    "id": "ABBV",
    "source": "yfinance",
    "question": "Higher on {resolution_date} than on {forecast_due_date}?",
    "market_info_resolution_criteria": "N/A",
    "market_info_open_datetime": "N/A",
    "freeze_datetime_value": "219.16",
    "freeze_datetime_value_explanation": "The close.",
    "resolution_dates": ["2025-06-01", "2025-04-01"],
}


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    def written(value: Any, name: str = "dump.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    return written


Save = Callable[..., Path]


def question_set(*rows: Any) -> dict[str, Any]:
    return {"forecast_due_date": "2025-03-09", "question_set": "2025-03-09-llm.json", "questions": list(rows)}


def resolution_set(*rows: Any, due: str = "2025-03-09") -> dict[str, Any]:
    return {"forecast_due_date": due, "question_set": f"{due}-llm.json", "resolutions": list(rows)}


def lone(feed: Feed, path: Path) -> ForecastQuestion:
    (found,) = feed.read(path)
    return found


# ForecastBench


def test_a_markets_question_has_a_price_and_a_series_a_value(save: Save) -> None:
    market, series = QuestionSets().read(save(question_set(MARKET, SERIES)))
    assert (market.id, series.id) == ("m1_2025-03-09", "ABBV_2025-03-09")
    assert market.cutoff == series.cutoff == datetime(2025, 3, 9, tzinfo=UTC)
    assert market.market is not None
    assert (market.market.price, market.market.source) == (0.25, "polymarket")
    assert market.market.as_of == datetime(2025, 2, 27, tzinfo=UTC)
    assert market.resolution_criteria == "As the market says.\n\nTwice."
    assert (market.description, market.open_date, market.close_date) == ("", date(2025, 1, 1), date(2025, 12, 31))
    assert series.market is None
    assert series.description == "Value of the series on 2025-02-27: 219.16. The close."
    assert series.text == "Higher on the resolution date than on 2025-03-09?"
    assert [target.resolution_date for target in series.targets] == [date(2025, 4, 1), date(2025, 6, 1)]
    assert all(target.resolution is None for target in series.targets)


def test_resolutions_are_joined_and_what_has_not_resolved_stays_unresolved(save: Save) -> None:
    def row(source: str, identity: str, day: str, to: float | None, *, resolved: bool = True) -> dict[str, Any]:
        return {"id": identity, "source": source, "resolution_date": day, "resolved_to": to, "resolved": resolved}

    known = save(
        resolution_set(
            row("polymarket", "m1", "2025-05-05", 0.49),
            row("yfinance", "ABBV", "2025-04-01", 1.0),
            row("yfinance", "ABBV", "2025-06-01", 0.31, resolved=False),
            {"id": ["m1", "m2"], "source": "polymarket", "resolution_date": "2025-05-05", "resolved_to": 1.0},
        ),
        "resolved.json",
    )
    market, series = QuestionSets(resolutions=known).read(save(question_set(MARKET, SERIES)))
    assert market.resolution is not None
    assert (market.resolution.outcome, market.resolution.said) == (None, "0.49")
    assert (market.resolution.known_on, market.resolution.label_version) == (date(2025, 5, 5), "resolved.json")
    assert "2025-05-05" not in items_of(market)[0].model_dump_json()
    first, second = series.targets
    assert first.resolution is not None
    assert first.resolution.outcome == 1.0
    assert second.resolution is None


def test_combinations_are_skipped_with_a_reason_or_refused(save: Save) -> None:
    path = save(question_set(MARKET, MARKET | {"id": ["m1", "m2"]}))
    with pytest.raises(DataError, match="question 2: a combination"):
        QuestionSets().read(path)
    skipped: list[Skipped] = []
    assert len(QuestionSets().read(path, skipped=skipped)) == 1
    assert [entry.reason for entry in skipped] == ["a combination of questions"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "forecast_due_date: missing"),
        ({"forecast_due_date": "2025-03-09"}, "no list"),
        (question_set(), "holds no question"),
        (question_set({"id": "a"}), "question 1, id"),
        (question_set(MARKET | {"freeze_datetime_value": "much"}), "question 1, freeze_datetime_value"),
        (question_set(MARKET | {"freeze_datetime_value": "17.5"}), "question 1: market.price"),
        (question_set(MARKET | {"source": "yfinance"}), "question 1, resolution_dates"),
        (question_set(SERIES | {"resolution_dates": ["some day"]}), "question 1, resolution_dates"),
        (question_set(MARKET | {"background": 7}), "question 1, background"),
        (question_set(MARKET, MARKET), "question 2 has the id"),
    ],
)
def test_a_broken_set_is_an_error_that_names_row_and_field(save: Save, value: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        QuestionSets().read(save(value))


def test_resolutions_of_another_day_are_refused(save: Save) -> None:
    other = save(resolution_set(due="2025-03-23"), "other.json")
    with pytest.raises(DataError, match="2025-03-23"):
        QuestionSets(resolutions=other).read(save(question_set(MARKET)))


@pytest.mark.shared_data
def test_the_resolved_targets_are_400_questions_with_791_targets(shared: Path) -> None:
    path = shared / "data" / "forecast" / "blf_targets.parquet"
    frame = pl.read_parquet(path)
    questions = FEEDS["forecastbench_targets"].read(path)
    assert len(questions) == 400
    assert sum(len(list(question.horizons())) for question in questions) == frame.height == 791
    outcomes = [found.outcome for question in questions for _, found in question.horizons() if found is not None]
    assert sum(1 for outcome in outcomes if outcome == 1) == frame["outcome"].sum()
    priced = [question for question in questions if question.market is not None]
    assert len(priced) == frame["market_prob"].count() == 200
    assert {question.family for question in priced} <= MARKETS
    for question in questions:
        assert check_askable(question) is None  # type: ignore[func-returns-value]
        assert items_of(question, show_market=True)
    shares = [question for question in questions if question.family == "yfinance"]
    assert all(question.market is None and "Value of the series on" in question.description for question in shares)
    ended = next(question for question in priced if question.resolution is not None)
    assert ended.resolution_date is None  # the day it ended tells how
    assert ended.resolution is not None
    assert ended.resolution.known_on is not None


@pytest.mark.shared_data
def test_the_day_of_the_freeze_is_that_of_the_published_file(shared: Path) -> None:
    freeze = pl.read_csv(shared / "data" / "forecast" / "forecastbench_market_freeze.csv")
    known = {f"{row['id']}_{row['forecast_due_date']}": row["freeze_datetime"] for row in freeze.iter_rows(named=True)}
    questions = ResolvedTargets().read(shared / "data" / "forecast" / "blf_targets.parquet")
    for question in questions:
        if question.market is not None:
            assert question.market.as_of is not None
            assert question.market.as_of.date().isoformat() == known[question.id]


def targets(**changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "question_id": "a_2025-10-26",
        "resolution_date": "2025-11-02",
        "outcome": 1,
        "source": "fred",
        "question": "Higher?",
        "url": "https://example.org/a",
        "forecast_due_date": "2025-10-26",
        "market_prob": None,
        "freeze_value": 3.5,
    }
    return row | changes


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([targets(), targets(resolution_date="2025-12-01", question="Lower?")], "row 2, question"),
        ([targets(question=None)], "row 1, question"),
        ([targets(), targets()], "row 1: targets"),
        ([targets(source="manifold"), targets(source="manifold", resolution_date="2025-12-01")], "second target"),
        ([targets(source="manifold", market_prob=3.5)], "row 1: market.price"),
    ],
)
def test_a_broken_table_of_targets_names_row_and_field(tmp_path: Path, rows: list[Any], said: str) -> None:
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=said):
        ResolvedTargets().read(tmp_path / "t.parquet")


def test_a_table_without_a_column_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"question_id": ["a"]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="lacks the column resolution_date"):
        ResolvedTargets().read(tmp_path / "t.parquet")


# Polymarket

GAMMA = {
    "id": "501",
    "question": "Will the bill pass?",
    "slug": "will-the-bill-pass",
    "description": "It may.",
    "outcomes": '["No", "Yes"]',
    "outcomePrices": '["0.7", "0.3"]',
    "startDate": "2025-01-01T00:00:00Z",
    "endDate": "2025-12-31T12:00:00Z",
    "closed": False,
}
SETTLED = {"closed": True, "umaResolutionStatus": "resolved", "closedTime": "2025-06-01 06:11:09+00"}


def test_an_open_market_has_the_price_of_yes(save: Save) -> None:
    found = lone(Polymarket(as_of=SAVED), save([GAMMA]))
    assert (found.id, found.kind, found.url) == (
        "polymarket-501",
        "binary",
        "https://polymarket.com/market/will-the-bill-pass",
    )
    assert found.market is not None
    assert (found.market.price, found.market.as_of) == (0.3, SAVED)
    assert found.resolution is None
    undated = lone(Polymarket(), save({"data": [GAMMA]})).market
    assert undated is not None
    assert undated.as_of is None


@pytest.mark.parametrize(
    ("changes", "outcome", "said"),
    [
        ({"outcomePrices": '["0", "1"]'}, 1.0, None),
        ({"outcomePrices": '["1", "0"]'}, 0.0, None),
        ({"outcomePrices": '["0.5", "0.5"]'}, None, "paid [0.5, 0.5]"),
    ],
)
def test_a_settled_market_has_an_outcome_and_no_price(
    save: Save, changes: dict[str, Any], outcome: float | None, said: str | None
) -> None:
    found = lone(Polymarket(as_of=SAVED), save([GAMMA | SETTLED | changes]))
    assert found.market is None
    assert found.resolution is not None
    assert (found.resolution.outcome, found.resolution.known_on) == (outcome, date(2025, 6, 1))
    assert outcome is not None or found.resolution.said == said


def test_a_last_price_is_no_settlement(save: Save) -> None:
    found = lone(Polymarket(), save([GAMMA | {"closed": True, "outcomePrices": '["0", "1"]'}]))
    assert found.market is None
    assert found.resolution is None


def test_two_named_outcomes_are_multiple_choice_also_within_events(save: Save) -> None:
    game = GAMMA | SETTLED | {"outcomes": '["Herons", "Lanterns"]', "outcomePrices": '["0", "1"]'}
    found = lone(Polymarket(), save([{"title": "An event", "markets": [game]}]))
    assert [option.label for option in found.options] == ["Herons", "Lanterns"]
    assert found.resolution is not None
    assert found.resolution.outcome == "B"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"error": "nope"}, "outcomes"),
        ([GAMMA | {"outcomes": "[Yes"}], "entry 1, outcomes is no JSON"),
        ([GAMMA | {"outcomePrices": '["0.7"]'}], "entry 1, outcomes: 2 with 1"),
        ([GAMMA | {"outcomePrices": '["x", "y"]'}], "entry 1, outcomePrices"),
        ([GAMMA | {"question": ""}], "entry 1: text"),
        ([GAMMA | {"endDate": "later"}], "entry 1, endDate"),
        ("text", "no list"),
    ],
)
def test_a_broken_dump_of_polymarket_is_an_error(save: Save, value: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        Polymarket().read(save(value))


# Manifold

LITE = {
    "id": "abc",
    "question": "Will it snow?",
    "outcomeType": "BINARY",
    "probability": 0.41,
    "isResolved": False,
    "createdTime": 1_735_689_600_000,
    "closeTime": 1_767_225_600_000,
    "url": "https://manifold.markets/u/snow",
}
DONE = {"isResolved": True, "resolutionTime": 1_748_736_000_000}


def test_an_open_market_of_manifold(save: Save) -> None:
    found = lone(Manifold(as_of=SAVED), save([LITE]))
    assert (found.id, found.open_date, found.close_date) == ("manifold-abc", date(2025, 1, 1), date(2026, 1, 1))
    assert found.market is not None
    assert found.market.price == 0.41


@pytest.mark.parametrize(("said", "outcome"), [("YES", 1.0), ("NO", 0.0), ("MKT", None), ("CANCEL", None)])
def test_a_resolved_market_of_manifold_has_no_price(save: Save, said: str, outcome: float | None) -> None:
    found = lone(Manifold(as_of=SAVED), save(LITE | DONE | {"resolution": said, "resolutionProbability": 0.49}))
    assert found.market is None
    assert found.resolution is not None
    assert (found.resolution.outcome, found.resolution.known_on) == (outcome, date(2025, 6, 1))


def test_a_closing_time_moved_to_an_early_end_is_not_kept(save: Save) -> None:
    ended = LITE | DONE | {"resolution": "YES"}
    assert lone(Manifold(), save([ended | {"closeTime": DONE["resolutionTime"]}])).close_date is None
    assert lone(Manifold(), save([ended | {"closeTime": 1_740_787_200_000}])).close_date == date(2025, 3, 1)


def test_answers_that_exclude_each_other_are_options(save: Save) -> None:
    answers = [{"id": "x1", "text": "Alpha"}, {"id": "x2", "text": "Beta"}]
    many = LITE | DONE | {"outcomeType": "MULTIPLE_CHOICE", "resolution": "x2", "answers": answers}
    found = lone(Manifold(), save([many | {"shouldAnswersSumToOne": True}]))
    assert found.resolution is not None
    assert found.resolution.outcome == "x2"
    skipped: list[Skipped] = []
    others = [LITE, many, {**many, "outcomeType": "POLL"}, {**many, "answers": None, "shouldAnswersSumToOne": True}]
    assert len(Manifold().read(save(others), skipped=skipped)) == 1
    assert len({entry.reason for entry in skipped}) == 3
    with pytest.raises(DataError, match="entry 3"):
        Manifold().read(save([LITE, {**LITE, "id": "d"}, {**many, "outcomeType": "POLL"}]))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"error": "nope"}, "outcomeType"),
        ([LITE | {"createdTime": True}], "createdTime"),
        ([LITE | {"createdTime": 1e30}], "createdTime"),
        ([LITE | {"probability": 1.5}], "market.price"),
        ([LITE, LITE], "question 2 has the id"),
    ],
)
def test_a_broken_dump_of_manifold_is_an_error(save: Save, value: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        Manifold().read(save(value))
