"""The shape of the founding notebooks' traces, older and newer, as they stand in files.

Unlike every model of ours these keep what they do not know (`unknown`), and nothing in them is required but what makes
a file such a trace at all: an importer describes what is there, it does not judge it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Probability = float | None
Strings = list[str] | None


class Found(BaseModel):
    """Base: frozen, unknown fields kept, nothing converted, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)

    def unknown(self) -> dict[str, Any]:
        """Return the fields that no known generation has."""
        return dict(self.model_extra or {})


class FoundQuestion(Found):
    """What was asked; a date is an ISO date or empty."""

    question: str
    description: str | None = None
    resolution_date: str | None = None
    cutoff_date: str | None = None
    current_market_price: float | None = None
    resolved_outcome: bool | float | str | None = None
    outcome_sources: JsonValue = None
    outcome_note: str | None = None
    known_before_cutoff: bool | None = None
    market_price_provenance: JsonValue = None


class FoundResult(Found):
    """One search result."""

    title: str | None = None
    url: str | None = None
    snippet: str | None = None
    published: str | None = None
    score: float | None = None


class FoundStep(Found):
    """One turn of an agent; ``action`` is whatever the model sent."""

    step: int | None = None
    action: str | None = None
    query: str | None = None
    results: list[FoundResult] | None = None
    llm_raw: str | None = None


class FoundTokens(Found):
    """Tokens used."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


class FoundAgent(Found):
    """The artefact of one agent."""

    agent_id: str
    p_yes: Probability = None
    rationale: str | None = None
    traces: list[FoundStep] | None = None
    confidence: float | str | None = None
    sentiment: str | None = None
    key_findings: Strings = None
    evidence_quality: str | None = None
    uncertainties: Strings = None
    token_usage: FoundTokens | None = None
    search_queries_made: JsonValue = None
    sources_consulted: JsonValue = None
    forecast_produced: bool | None = None
    status: str | None = None
    failure_reason: str | None = None
    messages: JsonValue = None
    execution_mode: str | None = None

    def steps(self) -> list[FoundStep]:
        """Return its turns; empty where none were recorded."""
        return self.traces or []

    def results(self) -> list[FoundResult]:
        """Return every result it was shown, in order."""
        return [result for step in self.steps() for result in step.results or []]


class FoundAggregation(Found):
    """How the agents' probabilities became one."""

    method: str | None = None
    raw_probability: Probability = None
    extremized_probability: Probability = None
    extremization_factor: float | None = None
    input_probabilities: list[float] | None = None
    input_weights: list[float] | None = None
    effective_n: float | None = None


class FoundRound(Found):
    """One round of the debate."""

    round_number: int | None = None
    bull_argument: str | None = None
    bull_probability: Probability = None
    bear_argument: str | None = None
    bear_probability: Probability = None
    consensus_reached: bool | None = None
    bull_key_evidence: JsonValue = None
    bear_key_evidence: JsonValue = None


class FoundDebate(Found):
    """The debate of two advocates."""

    rounds: list[FoundRound] | None = None
    bull_final_probability: Probability = None
    bear_final_probability: Probability = None
    consensus_reached: bool | None = None
    early_termination: bool | None = None
    token_usage: FoundTokens | None = None


class FoundSupervisor(Found):
    """The supervisor's review."""

    disagreements: JsonValue = None
    queries: Strings = None
    search_results: dict[str, list[FoundResult]] | None = None
    p_yes: Probability = None
    confidence: str | None = None
    rationale: str | None = None
    resolved_disagreements: JsonValue = None
    unresolved_uncertainties: JsonValue = None
    token_usage: FoundTokens | None = None


class FoundMessage(Found):
    """One message of a prompt."""

    role: str | None = None
    content: JsonValue = None

    def text(self) -> str:
        """Return what it says; of a message in parts their JSON."""
        return self.content if isinstance(self.content, str) else json.dumps(self.content, ensure_ascii=False)


class FoundCall(Found):
    """One call of the model that succeeded."""

    seq: int | None = None
    label: str | None = None
    model: str | None = None
    json_mode: bool | None = None
    messages: list[FoundMessage] | None = None
    response: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    timestamp: str | float | None = None


class FoundTrace(Found):
    """One file."""

    notebook: str | None = None
    provider: str | None = None
    question: FoundQuestion
    params: dict[str, JsonValue] = Field(default_factory=dict)
    agents: list[FoundAgent]
    aggregation: FoundAggregation | None = None
    debate: FoundDebate | None = None
    supervisor: FoundSupervisor | None = None
    final_probability: Probability = None
    final_confidence: float | str | None = None
    status: str | None = None
    failure_reason: str | None = None
    execution_mode: str | None = None
    duration_seconds: float | None = None
    llm_calls: list[FoundCall] | None = None
    notes: JsonValue = None
    created_at: str | None = None
    run_id: str | None = None

    def calls(self) -> list[FoundCall]:
        """Return the recorded calls; empty where none were."""
        return self.llm_calls or []

    def supervisor_results(self) -> list[FoundResult]:
        """Return what the supervisor's searches brought."""
        found = self.supervisor.search_results if self.supervisor is not None else None
        return [result for results in (found or {}).values() for result in results]


def parts(found: Found, path: str = "") -> Iterator[tuple[str, Found]]:
    """Yield every object of a file with its path, positions in lists as ``[]``.

    Example:
        >>> read = FoundTrace.model_validate({"question": {"question": "?"}, "agents": [{"agent_id": "a"}]})
        >>> [path for path, _ in parts(read)]
        ['', 'question', 'agents[]']
    """
    yield path, found
    for name in type(found).model_fields:
        value = getattr(found, name)
        below = f"{path}.{name}".lstrip(".")
        if isinstance(value, Found):
            yield from parts(value, below)
        rows = value if isinstance(value, list) else []
        if name == "search_results" and isinstance(value, dict):
            rows = [row for results in value.values() for row in results]
        for row in rows:
            if isinstance(row, Found):
                yield from parts(row, f"{below}[]")
