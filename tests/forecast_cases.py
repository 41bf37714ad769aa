"""Traces for tests: an agent that searched and answered, one that abstained, one that failed."""

from __future__ import annotations

from datetime import UTC, datetime

from consilience.core.answers import Probability
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.research.state import GateResult
from consilience.forecasting.search.document import Document
from consilience.forecasting.search.records import Filtered, ToolRecord
from consilience.forecasting.traces import (
    AgentTrace,
    CodeVersion,
    FinalForecast,
    JournalReference,
    RunTrace,
    StageTrace,
    StepTrace,
    Tokens,
)

CUTOFF = datetime(2025, 2, 20, tzinfo=UTC)
RETRIEVED = datetime(2025, 3, 1, 12, tzinfo=UTC)
QUESTION = ForecastQuestion(text="Will it rain?", kind="binary", cutoff=CUTOFF)


def document(
    name: str, title: str = "A title", text: str = "A snippet.", published: datetime | None = None
) -> Document:
    return Document(
        id=name,
        url=f"https://example.org/{name}",
        title=title,
        text=text,
        published=published,
        date_source="none" if published is None else "metadata",
        retrieved_at=RETRIEVED,
        sha256="0" * 64,
        undated=published is None,
    )


def probability(p: float, rationale: str = "- It is wet.\n- However, it dries.") -> Probability:
    return Probability(
        p_yes=p,
        rationale=rationale,
        evidence_ids=("D01",),
        reasoning_summary="Wet.",
        counterarguments=(),
        missing_data=(),
    )


def accepted(name: str = "outside_view", p: float = 0.3) -> AgentTrace:
    late = Filtered(url="https://late.example", title="Late", reason="after the cutoff", published=RETRIEVED)
    search = ToolRecord(
        tool="search",
        query="rain",
        status="success",
        cutoff=CUTOFF,
        policy="p",
        kept=("D01", "D02"),
        filtered=(late,),
        before=1,
        undated=1,
        after=1,
        duration_s=0.5,
        step=1,
        attempt=1,
    )
    again = search.model_copy(update={"step": 2, "attempt": 2, "repeated": True})
    return AgentTrace(
        agent_id=name,
        framing="outside view",
        model="simulated",
        status="accepted",
        answer=probability(p),
        rationale=probability(p).rationale,
        steps=(
            StepTrace(step=1, action="search"),
            StepTrace(step=2, action="search"),
            StepTrace(step=3, action="invalid", rejected="not_json", message="Reply with one object.", reply="hm"),
            StepTrace(step=4, action="forecast"),
        ),
        tool_log=(search, again),
        documents=(document("D01", published=datetime(2025, 2, 1, tzinfo=UTC)), document("D02", title="No date")),
        tokens=Tokens(input=100, output=20),
        gates=(GateResult(name="coverage", status="fail", message="2 pieces of evidence"),),
    )


def run_trace(**changes: object) -> RunTrace:
    given: dict[str, object] = {
        "question": QUESTION,
        "settings": {"panel": 3, "search": "corpus"},
        "code": CodeVersion(package="0.1.0", commit="abc", rooms={"core": "d"}),
        "created_at": RETRIEVED,
        "agents": (
            accepted(),
            AgentTrace(agent_id="inside_view", status="abstained", reason="no_source", rationale="Nothing was found."),
            AgentTrace(agent_id="contrarian", status="failed", reason="out_of_steps"),
        ),
        "stages": (StageTrace(name="aggregate", status="done", record={"mean": 0.3}),),
        "final": FinalForecast(rule="panel_only", probability=0.3),
        "journal": JournalReference(run_id="r", path="runs/r", head="e" * 64),
    }
    return RunTrace.model_validate(given | changes)
