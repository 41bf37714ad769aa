"""What an agent may do at a step, as one flat JSON object, and how its reply is read: strictly, with typed reasons.

The model names what it wants and nothing else: a cutoff, a list of domains or a limit of results is no field of any
action, so a reply that holds one is rejected. The answer inside a forecast is read by `consilience.core.contracts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, JsonValue

from consilience.core.answers import AnyAnswer
from consilience.core.canonical import canonical_json, tagged_hash
from consilience.core.outcomes import Adjusted
from consilience.core.question import Kind, Strict
from consilience.core.schema import lint_schema, wire_schema
from consilience.models.request import Contract

EvidenceType = Literal["base_rate", "evidence_for", "evidence_against", "context"]
Confidence = Literal["high", "medium", "low"]
ActionName = Literal["search", "read", "note", "forecast", "abstain", "update"]

RejectionType = Literal[
    "too_long",
    "not_json",
    "truncated",
    "too_deep",
    "two_objects",
    "list",
    "duplicate_key",
    "not_finite",
    "not_text",
    "unknown_field",
    "unknown_action",
    "not_allowed",
    "missing_field",
    "superfluous_field",
    "wrong_type",
    "out_of_range",
    "contract",
    "empty_query",
    "query_too_long",
    "search_exhausted",
    "unknown_evidence",
    "no_source",
    "quote_not_found",
]

AGENT_ACTIONS: tuple[ActionName, ...] = ("search", "read", "note", "forecast", "abstain")
SUPERVISOR_ACTIONS: tuple[ActionName, ...] = ("search", "read", "note", "update", "abstain")
AGENT_FIELDS = ("action", "query", "evidence_id", "type", "answer", "reason")
SUPERVISOR_FIELDS = (*AGENT_FIELDS, "confidence", "disagreements", "resolved", "unresolved")


class Taken(Strict):
    """What every action carries.

    Attributes:
        reason: Why, in the model's words; None where it gave none.
        notes: How the reply was dressed (prose around it, code fence, byte-order mark).
    """

    reason: str | None = None
    notes: tuple[str, ...] = ()


class Search(Taken):
    """Look for documents.

    Attributes:
        query: Without white space around it.
        disagreements: What a supervisor hopes to settle; empty for an agent.
    """

    action: Literal["search"] = "search"
    query: str
    disagreements: tuple[str, ...] = ()


class Read(Taken):
    """Read the document behind a kept result."""

    action: Literal["read"] = "read"
    evidence_id: str


class Note(Taken):
    """Classify a result while gathering, because a log cannot recover that judgement later."""

    action: Literal["note"] = "note"
    evidence_id: str
    type: EvidenceType


class Forecast(Taken):
    """Answer the question.

    Attributes:
        answer: As read under the contract of the question's kind.
        adjusted: Every renormalisation, with before and after.
    """

    action: Literal["forecast"] = "forecast"
    answer: AnyAnswer
    adjusted: tuple[Adjusted, ...] = ()


class Abstain(Taken):
    """Decline to answer, with a reason."""

    action: Literal["abstain"] = "abstain"
    reason: str


class Update(Taken):
    """A supervisor's answer after its review.

    Attributes:
        answer: As read under the contract of the question's kind.
        confidence: How sure the supervisor is; decides what a declared rule does with the answer.
        disagreements: Where the panel disagreed.
        resolved: Which of these the searches settled.
        unresolved: Which they did not.
        adjusted: Every renormalisation, with before and after.
    """

    action: Literal["update"] = "update"
    answer: AnyAnswer
    confidence: Confidence
    disagreements: tuple[str, ...]
    resolved: tuple[str, ...]
    unresolved: tuple[str, ...]
    adjusted: tuple[Adjusted, ...] = ()


Action = Annotated[Search | Read | Note | Forecast | Abstain | Update, Field(discriminator="action")]
"""One of six; told apart by ``action``."""


class Rejected(Strict):
    """A reply that is no action. It costs a step and goes back to the model with the message.

    Attributes:
        type: The first rule that it breaks.
        message: What to mend; may repeat names that the model wrote, cut to a line.
    """

    type: RejectionType
    message: str


@cache
def action_schema(kind: Kind, option_ids: tuple[str, ...] = (), *, supervisor: bool = False) -> Mapping[str, JsonValue]:
    """Return the JSON schema of an action as vendors take it: every field present, null where the action has no use.

    Args:
        kind: The kind of answer the question takes.
        option_ids: Its options, for distributions and choices.
        supervisor: Whether the action is a supervisor's.

    Example:
        >>> list(action_schema("probability")["properties"])
        ['action', 'query', 'evidence_id', 'type', 'answer', 'reason']
    """
    text: dict[str, Any] = {"type": "string"}
    texts = {"type": "array", "items": text}
    names = SUPERVISOR_ACTIONS if supervisor else AGENT_ACTIONS
    fields: dict[str, Any] = {
        "action": {"type": "string", "enum": list(names)},
        "query": _nullable(text),
        "evidence_id": _nullable(text),
        "type": _nullable({"type": "string", "enum": list(get_args(EvidenceType))}),
        "answer": wire_schema(kind, option_ids)["properties"]["answer"],
        "reason": _nullable(text),
    }
    if supervisor:
        fields["confidence"] = _nullable({"type": "string", "enum": list(get_args(Confidence))})
        fields |= {name: _nullable(texts) for name in ("disagreements", "resolved", "unresolved")}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "null"}]}


@cache
def action_contract(kind: Kind, option_ids: tuple[str, ...] = (), *, supervisor: bool = False) -> Contract:
    """Return the response schema of a step, linted.

    Raises:
        PlanError: The schema is outside what vendors accept.

    Example:
        >>> action_contract("probability").name, action_contract("probability", supervisor=True).name
        ('probability_action', 'probability_review')
    """
    name = f"{kind}_{'review' if supervisor else 'action'}"
    schema = action_schema(kind, option_ids, supervisor=supervisor)
    lint_schema(schema, name=name)
    return Contract(name=name, schema=schema, sha256=tagged_hash("schema", schema), size=len(canonical_json(schema)))
