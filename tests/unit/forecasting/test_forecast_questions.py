"""Forecast questions: their ids, what they refuse, how they resolve, and when they may be asked."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from consilience.core.question import Option
from consilience.errors import ConfigError, PlanError
from consilience.forecasting.questions import (
    ForecastQuestion,
    MarketPrice,
    Resolution,
    Target,
    check_askable,
    question_id,
)
from consilience.forecasting.resolutions import settled

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "question_ids.json"
RED, BLUE = Option(id="red", label="Red list"), Option(id="blue", label="Blue list")


def question(**fields: Any) -> ForecastQuestion:
    return ForecastQuestion.model_validate({"text": "Will it rain?", "kind": "binary"} | fields)


def resolved(outcome: float | str | None, **fields: Any) -> Resolution:
    return Resolution(outcome=outcome, source="desk", **fields)


# Ids


@pytest.mark.parametrize(("text", "expected"), json.loads(GOLDEN.read_text(encoding="utf-8")).items())
def test_ids_are_those_of_the_founding_runs(text: str, expected: str) -> None:
    assert question_id(text) == expected
    assert question(text=text).id == expected


@pytest.mark.shared_data
def test_golden_ids_are_the_shared_ones(shared: Path) -> None:
    told = json.loads((shared / "vectors" / "probability.json").read_text(encoding="utf-8"))["question_ids"]
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == told


def test_the_exact_text_counts_and_a_given_id_stays() -> None:
    assert question_id("Rain? ") != question_id("Rain?")
    assert question(id="q-1").id == "q-1"


@pytest.mark.parametrize("bad", ["a/b", "", ".hidden", "con", "x" * 118, "é"])
def test_an_id_names_a_file(bad: str) -> None:
    with pytest.raises(ValidationError, match="id"):
        question(id=bad)


@pytest.mark.parametrize("name", ["text", "description", "resolution_criteria"])
def test_a_text_of_any_length_is_none(name: str) -> None:
    assert len(getattr(question(**{name: "x" * 100_000}), name)) == 100_000
    with pytest.raises(ValidationError, match="at most 100000 characters"):
        question(**{name: "x" * 100_001})


def test_a_question_needs_a_text() -> None:
    with pytest.raises(ValidationError, match="text"):
        question(text="")


# Cutoffs


@pytest.mark.parametrize(
    ("given_cutoff", "expected"),
    [
        ("2025-03-01", datetime(2025, 3, 1, tzinfo=UTC)),
        (date(2025, 3, 1), datetime(2025, 3, 1, tzinfo=UTC)),
        ("2025-02-19T23:30-05:00", datetime(2025, 2, 20, 4, 30, tzinfo=UTC)),
        (datetime(2025, 2, 19, 23, 30, tzinfo=timezone(-timedelta(hours=5))), datetime(2025, 2, 20, 4, 30, tzinfo=UTC)),
        (None, None),
    ],
)
def test_a_cutoff_is_an_instant_and_a_bare_date_begins_in_utc(given_cutoff: Any, expected: datetime | None) -> None:
    assert question(cutoff=given_cutoff).cutoff == expected


@pytest.mark.parametrize("bad", ["2025-03-01T12:00", datetime(2025, 3, 1), "soon", "0001-01-01", 7])  # noqa: DTZ001 - meant
def test_a_time_without_an_offset_is_no_cutoff(bad: Any) -> None:
    with pytest.raises(ValidationError, match="cutoff"):
        question(cutoff=bad)


# What contradicts itself


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"options": (RED, BLUE)}, "takes no options"),
        ({"kind": "multiple_choice", "options": (RED,)}, "at least two"),
        ({"kind": "multiple_choice", "options": (RED, RED)}, "ids of their own"),
        ({"kind": "multiple_choice", "options": (RED, Option(id="x", label=f" {RED.label} "))}, "one label"),
        ({"text": " \n\u00a0\u200b"}, "says nothing"),
        ({"kind": "discrete", "inbound_outcomes": 10_001}, "inbound_outcomes"),
        ({"close_date": date(2025, 2, 2), "resolution_date": date(2025, 2, 1)}, "before it closes"),
        ({"unit": "cm"}, "belong to numeric"),
        ({"open_lower": True}, "belong to numeric"),
        ({"kind": "numeric", "lower": 2.0, "upper": 2.0}, "below upper"),
        ({"kind": "numeric", "lower": 1.0, "upper": 2.0, "zero_point": 1.5}, "outside"),
        ({"kind": "numeric", "lower": 1.0, "zero_point": 0.0}, "both ends"),
        ({"kind": "numeric", "inbound_outcomes": 3}, "discrete"),
        ({"kind": "numeric", "market": MarketPrice(price=0.5, source="m")}, "yes-no"),
        ({"open_date": date(2025, 2, 2), "close_date": date(2025, 2, 1)}, "closes before"),
        ({"kind": "numeric", "lower": 1.0, "upper": 2.0, "resolution": resolved(3.0)}, "closed end"),
        (
            {"targets": (Target(resolution_date=date(2025, 2, 2)), Target(resolution_date=date(2025, 2, 2)))},
            "order of their days",
        ),
        ({"targets": (Target(resolution_date=date(2025, 2, 2)),), "resolution": resolved(1.0)}, "target by target"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        question(**fields)


@pytest.mark.parametrize("price", [-0.01, 1.01, float("nan")])
def test_a_price_is_a_probability(price: float) -> None:
    with pytest.raises(ValidationError, match="price"):
        MarketPrice(price=price, source="m")


# Outcomes


@pytest.mark.parametrize(
    ("said", "outcome"),
    [("yes", 1.0), ("YES", 1.0), ("true", 1.0), (1.0, 1.0), (1, 1.0), ("no", 0.0), (0.0, 0.0), ("0", 0.0)],
)
def test_yes_and_no_are_one_and_zero(said: float | str, outcome: float) -> None:
    found = question(resolution=resolved(said)).resolution
    assert found is not None
    assert found.outcome == outcome


@pytest.mark.parametrize("said", [0.49, "0.49", "N/A", "annulled", "MKT", "", 0.999999, -1.0])
def test_what_is_neither_yes_nor_no_is_null_and_never_zero(said: float | str) -> None:
    whole = question(
        targets=(Target(resolution_date=date(2025, 2, 2), resolution=resolved(said)),),
    )
    for found in (question(resolution=resolved(said)).resolution, whole.targets[0].resolution):
        assert found is not None
        assert found.outcome is None
        assert found.said == str(said)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_only_one_and_zero_are_outcomes_of_a_yes_no_question(said: float) -> None:
    found = question(resolution=resolved(said)).resolution
    assert found is not None
    assert found.outcome == (said if said in {0.0, 1.0} else None)


@pytest.mark.parametrize(("said", "outcome"), [("blue", "blue"), ("Blue list", "blue"), ("green", None), (1.0, None)])
def test_an_option_is_named_by_its_id_or_label(said: float | str, outcome: str | None) -> None:
    found = question(kind="multiple_choice", options=(RED, BLUE), resolution=resolved(said)).resolution
    assert found is not None
    assert found.outcome == outcome


def test_a_label_of_two_options_names_neither() -> None:
    twins = (RED, Option(id="red2", label="Red list"))
    assert settled(resolved("Red list"), kind="multiple_choice", options=twins).outcome is None


@pytest.mark.parametrize(
    ("kind", "said", "outcome"),
    [
        ("numeric", "12.5", 12.5),
        ("numeric", "above_upper_bound", None),
        ("numeric", "nan", None),
        ("discrete", "3", 3.0),
        ("date", "1970-01-03", 172_800.0),
        ("date", "1970-01-01T12:00:00Z", 43_200.0),
        ("date", "ambiguous", None),
    ],
)
def test_numbers_and_dates_are_read(kind: str, said: str, outcome: float | None) -> None:
    found = question(kind=kind, resolution=resolved(said)).resolution
    assert found is not None
    assert found.outcome == outcome


def test_a_question_survives_json() -> None:
    whole = question(
        cutoff="2025-02-01T12:00Z",
        market=MarketPrice(price=0.3, source="m", as_of=datetime(2025, 1, 1, tzinfo=UTC)),
        blocked_domains=("example.org",),
        targets=(Target(resolution_date=date(2025, 2, 2), resolution=resolved(0.49)),),
    )
    assert ForecastQuestion.model_validate_json(whole.model_dump_json()) == whole


# Asking


KNOWN = resolved(1.0, known_on=date(2025, 3, 5))


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"cutoff": "2025-03-01", "resolution_date": date(2025, 3, 1)}, None),
        ({"cutoff": "2025-03-01T00:00:01Z", "resolution_date": date(2025, 3, 1)}, "cutoff_after_resolution"),
        ({"cutoff": "2025-02-28T23:30-05:00", "resolution_date": date(2025, 3, 1)}, "cutoff_after_resolution"),
        ({"cutoff": "2025-03-05", "resolution": KNOWN}, None),
        ({"cutoff": "2025-03-05T00:00:01Z", "resolution": KNOWN}, "outcome_known"),
        ({"cutoff": "2025-03-06", "resolution": KNOWN, "resolution_date": date(2025, 4, 1)}, "outcome_known"),
        ({"resolution": KNOWN}, "outcome_known"),
        ({"resolution": resolved("N/A")}, None),
        ({}, None),
        ({"cutoff": "2025-03-01", "resolution": resolved(0.0)}, "outcome_undated"),
        ({"cutoff": "2025-03-01", "resolution": resolved(0.0), "resolution_date": date(2025, 3, 2)}, None),
        (
            {
                "cutoff": "2025-03-02",
                "targets": (Target(resolution_date=date(2025, 3, 1)), Target(resolution_date=date(2025, 4, 1))),
            },
            "cutoff_after_resolution",
        ),
    ],
)
def test_what_forecasts_nothing_is_refused_unless_allowed_by_name(fields: dict[str, Any], refused: str | None) -> None:
    asked = question(**fields)
    if refused is None:
        assert check_askable(asked) is None  # type: ignore[func-returns-value]
        return
    with pytest.raises(PlanError, match=asked.id) as caught:
        check_askable(asked)
    assert refused in caught.value.hint
    others = {"cutoff_after_resolution", "outcome_known", "outcome_undated"} - {refused}
    with pytest.raises(PlanError, match=asked.id):
        check_askable(asked, allow=frozenset(others))
    check_askable(asked, allow=frozenset({refused}))


def test_a_misspelt_permission_is_refused() -> None:
    with pytest.raises(ConfigError, match="outcome_know"):
        check_askable(question(), allow=frozenset({"outcome_know"}))
