"""A run trace reads back as it was written, is never written over, and derives anew what is derived."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from consilience.errors import DataError, IntegrityError
from consilience.forecasting.traces import AgentTrace, RunTrace, read_trace, write_trace
from forecast_cases import accepted, document, probability, run_trace


def test_a_trace_reads_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "traces" / "q.json"
    trace = run_trace().sealed()
    write_trace(run_trace(), path)
    assert read_trace(path) == trace
    assert set(trace.hashes) == {"question", "settings", "agents", "stages", "final", "trace"}
    assert trace.escaped == 0
    written = json.loads(path.read_bytes())["agents"]
    assert written[0]["derived"]["label"] == "heuristic"
    assert (written[0]["cited"], written[1]["derived"]) == (["D01"], None)


def test_the_same_trace_again_changes_nothing_and_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    first = write_trace(run_trace(), path)
    before = path.read_bytes()
    assert write_trace(run_trace(), path) == first
    with pytest.raises(DataError, match="not written over"):
        write_trace(run_trace(final=None), path)
    assert path.read_bytes() == before
    with pytest.raises(DataError, match="cannot be read"):
        write_trace(run_trace(), tmp_path)


def test_what_is_derived_is_computed_from_the_rest() -> None:
    agent = accepted(p=0.9)
    assert agent.counts.model_dump() == {"before": 1, "undated": 1, "after": 1}
    assert agent.cited == ("D01",)
    assert agent.derived is not None
    assert agent.derived.label == "heuristic"
    assert (agent.derived.sentiment, agent.derived.evidence_volume) == ("strongly_bullish", "low")
    assert agent.derived.key_findings == ("It is wet.", "However, it dries.")
    assert AgentTrace(agent_id="a", status="failed", reason="timeout").derived is None


def edit(path: Path, change: str, value: Any) -> None:
    content = json.loads(path.read_bytes())
    place = content
    *way, last = change.split(".")
    for part in way:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("change", ["agents.0.derived", "agents.0.counts", "agents.0.cited"])
def test_what_a_file_says_of_derived_fields_is_not_read_back(tmp_path: Path, change: str) -> None:
    path = tmp_path / "q.json"
    write_trace(run_trace(), path)
    edit(path, change, {"sentiment": "strongly_bearish"})
    assert read_trace(path) == run_trace().sealed()


@pytest.mark.parametrize(
    ("change", "value", "told"),
    [
        ("settings.panel", 4, "settings, trace"),
        ("final.probability", 0.9, "final, trace"),
        ("agents.0.answer.p_yes", 0.31, "agents, trace"),
        ("stages.0.status", "skipped", "stages, trace"),
        ("question.text", "Will it snow?", "question, trace"),
        ("code.commit", "def", "hash of trace"),
        ("hashes.final", "0" * 64, "hash of final"),
        ("hashes", {}, "question, settings, agents"),
    ],
)
def test_a_change_is_found_and_named(tmp_path: Path, change: str, value: Any, told: str) -> None:
    path = tmp_path / "q.json"
    write_trace(run_trace(), path)
    edit(path, change, value)
    with pytest.raises(IntegrityError, match=told):
        read_trace(path)


@pytest.mark.parametrize("odd", ["", "[]", "{}", '{"schema_version": 2}', "\udcff", "[" * 100_000, '{"notebook": "x"}'])
def test_what_is_no_trace_is_refused(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "q.json"
    path.write_bytes(odd.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match="holds no run trace"):
        read_trace(path)
    with pytest.raises(DataError, match="holds no run trace"):
        read_trace(tmp_path / "gone.json")


def test_a_lone_surrogate_is_kept_as_its_escape_and_counted(tmp_path: Path) -> None:
    hostile = accepted().model_copy(update={"documents": (document("D01", title="a\ud800b", text="\udfff"),)})
    path = tmp_path / "q.json"
    write_trace(run_trace(agents=(hostile,)), path)
    read = read_trace(path)
    assert read.escaped == 2
    assert read.agents[0].documents[0].title == "a\\ud800b"
    assert write_trace(read, path)


@pytest.mark.parametrize(
    "bad",
    [
        {"status": "accepted"},
        {"status": "abstained", "reason": "no_source", "answer": probability(0.5)},
        {"status": "failed"},
        {"status": "failed", "reason": ""},
        {"status": "failed", "reason": "x", "documents": (document("D01"), document("D01"))},
        {"status": "failed", "reason": "x", "surprise": 1},
    ],
)
def test_an_artefact_that_contradicts_itself_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AgentTrace.model_validate({"agent_id": "a"} | bad)


def test_agents_have_ids_of_their_own() -> None:
    with pytest.raises(ValidationError, match="share an id"):
        run_trace(agents=(accepted(), accepted()))
    assert RunTrace.model_validate_json(run_trace().model_dump_json()) == run_trace()
