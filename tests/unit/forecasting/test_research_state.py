from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from consilience.errors import DataError, PlanError
from consilience.forecasting.research.state import SCHEMA_VERSION, AgentState, GateResult
from consilience.forecasting.search.document import Document
from consilience.forecasting.search.records import ToolRecord

CUTOFF = datetime(2025, 2, 20, tzinfo=UTC)
MOVES: dict[str, Callable[[AgentState], AgentState]] = {
    "begun": AgentState.begun,
    "completed": AgentState.completed,
    "abstained": AgentState.abstained,
}


def new_state(**changes: Any) -> AgentState:
    return AgentState(question_id="q1", cutoff=CUTOFF, run_id="r1", **changes)


def document(name: str = "D01", **changes: Any) -> Document:
    values: dict[str, Any] = {
        "id": name,
        "url": f"https://example.org/{name}",
        "title": "Rates 🌧",
        "text": "The bank cut its rate.",
        "published": CUTOFF - timedelta(days=2),
        "date_source": "metadata",
        "retrieved_at": CUTOFF,
        "sha256": "0" * 64,
    }
    return Document(**(values | changes))


def record(*kept: str, step: int = 0, **changes: Any) -> ToolRecord:
    values: dict[str, Any] = {"tool": "search", "query": "rate", "status": "success", "policy": "p", "attempt": 1}
    return ToolRecord(**(values | {"cutoff": CUTOFF, "step": step, "kept": kept} | changes))


def full_state() -> AgentState:
    state = new_state().gathered(record("D01", "D02"), [document(), document("D02", published=None, undated=True)])
    state = state.noted("D01", "context", step=1).noted("D01", "base_rate", step=2)
    gate = GateResult(name="coverage", status="fail", message="Few.", details={"items": 2, "share": None})
    return state.asking(["Who votes?"]).begun().gated([gate])


@pytest.mark.parametrize(
    ("path", "ends"),
    [
        ([], "pending"),
        (["begun"], "in_progress"),
        (["begun", "completed"], "complete"),
        (["begun", "abstained"], "abstained"),
        (["completed"], None),
        (["abstained"], None),
        (["begun", "begun"], None),
        (["begun", "completed", "abstained"], None),
        (["begun", "completed", "completed"], None),
        (["begun", "completed", "begun"], None),
        (["begun", "abstained", "completed"], None),
        (["begun", "abstained", "abstained"], None),
        (["begun", "abstained", "begun"], None),
    ],
)
def test_only_the_declared_transitions_are_possible(path: list[str], ends: str | None) -> None:
    state = new_state()
    for move in path[:-1]:
        state = MOVES[move](state)
    if ends is None:
        with pytest.raises(PlanError, match=f"is {state.synthesis}; it cannot become"):
            MOVES[path[-1]](state)
    else:
        assert (MOVES[path[-1]](state) if path else state).synthesis == ends


def test_a_transition_returns_a_new_state_and_leaves_the_old() -> None:
    old = new_state()
    new = old.gathered(record("D01"), [document()])
    assert (old.evidence, old.trace, old.synthesis) == ((), (), "pending")
    assert [item.id for item in new.evidence] == ["D01"]
    assert new.begun() is not new
    with pytest.raises(ValidationError, match="frozen"):
        setattr(new, "synthesis", "complete")  # noqa: B010 - types forbid it otherwise


def test_evidence_is_typed_while_gathering_and_the_last_word_counts() -> None:
    first, second = full_state().evidence
    assert (first.type, second.type) == ("base_rate", None)
    assert [(said.type, said.step) for said in first.classified] == [("context", 1), ("base_rate", 2)]
    assert (second.undated, second.published) == (True, None)


def test_a_document_read_again_keeps_its_place_and_what_it_was_taken_for() -> None:
    whole = document(sha256="1" * 64)
    state = full_state().gathered(record("D01", tool="read", query=None, evidence_id="D01", step=3), [whole])
    assert [(item.id, item.type) for item in state.evidence] == [("D01", "base_rate"), ("D02", None)]
    assert state.evidence[0].sha256 == "1" * 64
    assert [used.tool for used in state.trace] == ["search", "read"]


def test_a_failed_search_is_kept_in_the_trace() -> None:
    state = new_state().gathered(record(status="error", failure="timeout"))
    assert (state.evidence, state.trace[0].failure) == ((), "timeout")


def test_unknown_evidence_is_not_classified() -> None:
    with pytest.raises(DataError, match='question q1 holds no evidence "D09"'):
        full_state().noted("D09", "context", step=1)


@pytest.mark.parametrize("end", ["completed", "abstained"])
def test_nothing_is_gathered_once_the_synthesis_has_ended(end: str) -> None:
    state = MOVES[end](full_state())
    with pytest.raises(PlanError, match="nothing more can be gathered"):
        state.gathered(record())
    with pytest.raises(PlanError, match="nothing more can be gathered"):
        state.noted("D01", "context", step=3)
    assert len(state.gated(state.gates).gates) == 2


def test_two_pieces_of_evidence_do_not_share_an_id() -> None:
    twice = full_state().evidence[:1] * 2
    with pytest.raises(ValidationError, match="share an id"):
        new_state(evidence=twice)


@pytest.mark.parametrize("state", [new_state(), full_state(), full_state().completed(), full_state().abstained()])
def test_a_state_goes_to_json_and_back(state: AgentState) -> None:
    text = state.to_json()
    assert json.loads(text)["schema_version"] == SCHEMA_VERSION
    assert AgentState.from_json(text) == state
    assert AgentState.from_json(text.encode()) == state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": SCHEMA_VERSION + 1, "something": "new"}, "has schema version 2; .* Update consilience"),
        ({"schema_version": 0}, "has schema version 0"),
        ({"schema_version": "1"}, "has schema version None"),
        ({"schema_version": True}, "has schema version None"),
        ({"schema_version": None}, "has schema version None"),
        ({"something": "new"}, "breaks its schema: something"),
        ({"synthesis": "done"}, "breaks its schema: synthesis"),
        ({"cutoff": "2025-02-20T00:00:00"}, "breaks its schema: cutoff"),
        ({"run_id": None}, "breaks its schema: run_id"),
    ],
)
def test_what_is_no_state_of_this_version_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        AgentState.from_json(json.dumps(json.loads(full_state().to_json()) | change))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "3", "null", b"\xff"])
def test_what_is_no_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(DataError, match="an agent's state"):
        AgentState.from_json(text)
