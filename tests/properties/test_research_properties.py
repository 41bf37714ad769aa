"""What a model writes never breaks the reading of an action, and what is derived from it keeps to its rules."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from consilience.core.answers import Probability
from consilience.forecasting.research.actions import AGENT_ACTIONS, SUPERVISOR_FIELDS, Forecast, Rejected, Update
from consilience.forecasting.research.citations import cited_ids
from consilience.forecasting.research.derived import all_findings, derive, extremity, sentiment, uncertainties
from consilience.forecasting.research.gates import consistency, freshness
from consilience.forecasting.research.replies import Standing, read_action
from consilience.forecasting.research.state import AgentState, GatheredEvidence
from engine_cases import answer_json, question

TEXT = st.text(st.characters(codec=None), max_size=30)
NUMBERS = st.floats() | st.integers() | st.sampled_from([0, 1, 0.5, 10**400, True])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT | st.sampled_from(["D01", "D09", "B1", "high", "context"]),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(TEXT, part, max_size=3),
    max_leaves=8,
)
PIECES = st.sampled_from(
    [
        *("but", "However", "risk", "distribution", "U.S.", "e.g.", "3.5", "Dr.", "no.", "A", "b", "🎲"),
        *(".", "!", "?", "…", "。", ":", " ", "\n", "\u2028", "\u00a0", "_", "*", '"'),
        *("- ", "* ", "1. ", "2) ", "(1) ", "(2) ", "(3)"),
    ]
)
PROSE = st.lists(PIECES | TEXT, max_size=25).map("".join)


@st.composite
def replies(draw: st.DrawFn) -> str:
    """A reply in which a field, or a few characters, are not what they should be."""
    answer: Any = answer_json("probability", evidence_ids=["D01"])
    for name in draw(st.lists(st.sampled_from([*answer, "quotes", "confidence"]), max_size=2)):
        answer[name] = draw(VALUES)
    names = st.sampled_from([*AGENT_ACTIONS, "update", "sell"])
    said: dict[str, Any] = {"action": draw(names), "answer": draw(st.sampled_from([answer, None]))}
    for name in draw(st.lists(st.sampled_from([*SUPERVISOR_FIELDS, "cutoff"]), max_size=4)):
        said[name] = draw(VALUES)
    text = json.dumps(said)
    at = draw(st.integers(0, len(text)))
    return draw(st.sampled_from([text, text[:at], text[:at] + draw(TEXT) + text[at:]])) + draw(st.just("") | TEXT)


def standing(*, supervisor: bool) -> Standing:
    found: dict[str, JsonValue] = {"D01": {"text": "The bank cut its rate."}}
    told: dict[str, JsonValue] = {"B1": {"share": 0.31}}
    return Standing(question("probability"), found, told, closed_book=False, may_search=True, supervisor=supervisor)


@given(text=replies() | TEXT, supervisor=st.booleans())
def test_a_reply_is_an_action_or_a_rejection_that_can_be_sent(text: str, supervisor: bool) -> None:
    at = standing(supervisor=supervisor)
    found = read_action(text, at)
    assert read_action(text, at) == found
    if isinstance(found, Rejected):
        assert found.message.encode()
        return
    assert found.action in at.actions
    assert found.model_dump_json()
    if isinstance(found, Forecast | Update):
        assert isinstance(found.answer, Probability)
        assert 0 <= found.answer.p_yes <= 1
        assert set(cited_ids(found.answer)) <= {"D01", "B1"}


@given(st.floats(0, 1))
def test_extremity_is_even_about_one_half_and_orders_with_sentiment(p: float) -> None:
    assert 0 <= extremity(p) <= 1
    assert extremity(p) == pytest.approx(extremity(1 - p))
    if sentiment(p).startswith("strongly"):
        assert extremity(p) >= 0.6 - 1e-12


@given(PROSE)
def test_what_is_derived_stands_in_the_text(text: str) -> None:
    answer = Probability(
        p_yes=0.5, rationale=text, evidence_ids=(), reasoning_summary="", counterarguments=(), missing_data=()
    )
    found = derive(answer, sources=0, queries=0)
    squeezed = "".join(text.split())
    assert len(found.key_findings) <= min(10, found.findings_found)
    assert len(found.uncertainties) <= min(5, found.uncertainties_found)
    for part in found.key_findings:
        assert re.search(r"\w", part)
        assert "".join(part.split()) in squeezed
    for sentence in found.uncertainties:
        words = re.findall(r"[^\W_]+", sentence.lower())
        assert any(re.match("uncertain|unclear|unknown|risk|caveat|however|but|although", word) for word in words)
    if not re.search("uncertain|unclear|unknown|risk|caveat|however|but|although", text, re.IGNORECASE):
        assert not found.uncertainties


@given(st.lists(st.from_regex(r"[A-Za-z][a-z ]{0,20}[a-z]", fullmatch=True), min_size=1, max_size=15))
def test_every_bulleted_line_is_a_finding(lines: list[str]) -> None:
    text = "Because:\n" + "\n".join(f"{'*-•'[index % 3]} {line}" for index, line in enumerate(lines)) + "\nSo."
    assert all_findings(text) == tuple(lines)


@given(
    st.lists(st.from_regex(r"[A-Z][a-z]{1,9} [a-z]{4,9}", fullmatch=True), min_size=1, max_size=4), st.integers(0, 3)
)
def test_a_doubt_is_found_in_its_own_sentence_only(sentences: list[str], place: int) -> None:
    place = min(place, len(sentences) - 1)
    sentences = [sentence.replace(" ", " xx") for sentence in sentences]
    sentences[place] = "Nobody, however, knew"
    found = uncertainties(". ".join(sentences) + ".")
    assert "Nobody, however, knew." in found


INSTANTS = st.datetimes(datetime(2024, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds


@given(when=INSTANTS, limit=INSTANTS)
def test_time_gates_compare_instants(when: datetime, limit: datetime) -> None:
    assert (consistency({"D01": when}, cutoff=limit).status == "pass") == (when < limit)
    fresh = timedelta(0) <= limit - when <= timedelta(hours=24)
    assert (freshness({"D01": when}, as_of=limit).status == "pass") == fresh


@given(
    names=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), unique=True, max_size=4),
    asked=st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=3),
    cutoff=st.none() | INSTANTS,
)
def test_a_state_goes_to_json_and_back(names: list[str], asked: list[str], cutoff: datetime | None) -> None:
    items = tuple(
        GatheredEvidence(
            id=name, url=name, title=name, sha256="0", published=cutoff, date_source="none", retrieved_at=cutoff
        )
        for name in names
    )
    state = AgentState(question_id="q", cutoff=cutoff, run_id="r", evidence=items, open_questions=tuple(asked))
    for name in names:
        state = state.noted(name, "context", step=0)
    assert AgentState.from_json(state.begun().to_json()) == state.begun()
