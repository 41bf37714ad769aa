"""Reading the reply of a step: an action, or why it is none. Nothing is guessed, repaired or fished out of prose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from pydantic import JsonValue, ValidationError

from consilience.core.answers import AnyAnswer
from consilience.core.contracts import Expected, extract_object, read_reply
from consilience.core.outcomes import Adjusted, Answered
from consilience.core.question import Question
from consilience.errors import ContractError
from consilience.forecasting.research.actions import (
    AGENT_ACTIONS,
    AGENT_FIELDS,
    SUPERVISOR_ACTIONS,
    SUPERVISOR_FIELDS,
    Abstain,
    Action,
    ActionName,
    Confidence,
    EvidenceType,
    Forecast,
    Note,
    Read,
    Rejected,
    RejectionType,
    Search,
    Update,
)
from consilience.forecasting.research.citations import cited_ids, missing_quotes, unknown_ids
from consilience.forecasting.search.executor import LONGEST_QUERY

LONGEST_REPLY = 100_000
"""Characters of a reply; a longer one is rejected unread. The longest contract takes a small part of it."""
MOST_PROBLEMS = 20
LONGEST_PROBLEM = 300

_NEEDED: dict[ActionName, tuple[str, ...]] = {
    "search": ("query",),
    "read": ("evidence_id",),
    "note": ("evidence_id", "type"),
    "forecast": ("answer",),
    "abstain": ("reason",),
    "update": ("answer", "confidence", "disagreements", "resolved", "unresolved"),
}
_LISTS = ("disagreements", "resolved", "unresolved")
_ENUMS: dict[str, tuple[str, ...]] = {"type": get_args(EvidenceType), "confidence": get_args(Confidence)}
_OF_MODEL: dict[str, RejectionType] = {
    "missing": "missing_field",
    "extra_forbidden": "unknown_field",
    "finite_number": "not_finite",
    "greater_than_equal": "out_of_range",
    "less_than_equal": "out_of_range",
    "value_error": "contract",
    "json_invalid": "too_deep",
}
"""By pydantic's error type. What decoded once as JSON is only refused by its stricter reader for its depth."""
_LIST = re.compile(r"(?:```\w*\s*)?\[.*\]\s*(?:```)?", re.DOTALL)
_CUT_AT = re.compile(
    r"-|\.|[eE][+-]?|u[0-9a-fA-F]{0,4}|t|tr|tru|f|fa|fal|fals|n|nu|nul|N|Na|I|In|Inf|Infi|Infin|Infini|Infinit"
)
"""What the decoder stumbles over at the end of a number, an escape or a word that was cut."""


@dataclass(frozen=True)
class Standing:
    """What an agent may do at a step, and what it can cite.

    Attributes:
        question: The question it answers.
        retrieved: Content of every kept source, by id.
        given: Content of the evidence it was given without searching, by id.
        closed_book: The run searches nothing, and says so.
        may_search: A search is still possible; reading a kept source always is.
        supervisor: It reviews a panel.
    """

    question: Question
    retrieved: Mapping[str, JsonValue]
    given: Mapping[str, JsonValue]
    closed_book: bool
    may_search: bool
    supervisor: bool = False

    @property
    def actions(self) -> tuple[ActionName, ...]:
        """The actions there are for it, whether or not this step allows them."""
        return SUPERVISOR_ACTIONS if self.supervisor else AGENT_ACTIONS


class _RefusedError(Exception):
    """Ends the reading; becomes a `Rejected`."""

    def __init__(self, kind: RejectionType, *problems: str) -> None:
        self.kind: RejectionType = kind
        self.problems = problems
        super().__init__(kind)


def read_action(text: str, standing: Standing) -> Action | Rejected:
    r"""Return the action that a reply asks for, or why it is none; never raises for what a model wrote.

    A field that is null, an empty text or an empty list is not filled. Filled must be what the action needs; ``reason``
    may be filled with every action, ``disagreements`` with a supervisor's search; any other is rejected, for a reply
    that says two things says neither.

    A forecast is accepted with a valid answer whose cited, quoted and adjusted ids all exist, whose quotes stand in
    the items they name, and with at least one kept source unless the run is closed-book. A supervisor's update must
    also cite a kept source.

    Args:
        text: The whole reply.
        standing: What the agent may do at this step, and what it can cite.

    Example:
        >>> ask = Question(id="q", text="Rain?", kind="probability")
        >>> step = Standing(ask, retrieved={}, given={}, closed_book=False, may_search=True)
        >>> read_action('{"action": "search", "query": " rain in May "}', step).query
        'rain in May'
        >>> read_action('{"action": "search", "query": "rain", "cutoff": "2030-01-01"}', step).type
        'unknown_field'
    """
    try:
        return _read(text, standing)
    except _RefusedError as refused:
        return Rejected(type=refused.kind, message=_message(refused.problems))


def _message(problems: tuple[str, ...]) -> str:
    shown = [
        problem if len(problem) <= LONGEST_PROBLEM else f"{problem[:LONGEST_PROBLEM]}… ({len(problem)} characters)"
        for problem in problems[:MOST_PROBLEMS]
    ]
    if len(problems) > MOST_PROBLEMS:
        shown.append(f"and {len(problems) - MOST_PROBLEMS} more")
    return "; ".join(shown)


def _read(text: str, standing: Standing) -> Action:
    raw, notes = _object(text)
    fields = SUPERVISOR_FIELDS if standing.supervisor else AGENT_FIELDS
    unknown = [name for name in raw if name not in fields]
    if unknown:
        named = [f"{_named(name)} is no field of an action" for name in unknown]
        raise _RefusedError("unknown_field", *named, f"the fields are {', '.join(fields)}")
    name = _action_name(raw.get("action"), standing)
    said = {field: value for field, value in raw.items() if field != "action" and not _empty(value)}
    _check_fields(name, said, raw, standing)
    reason = cast("str | None", said.get("reason"))
    dressed: dict[str, Any] = {"reason": reason, "notes": notes}
    if name == "search":
        return Search(query=_query(said["query"]), disagreements=_texts(said, "disagreements"), **dressed)
    if name == "read":
        return Read(evidence_id=_result(said["evidence_id"], standing), **dressed)
    if name == "note":
        return Note(evidence_id=_result(said["evidence_id"], standing), type=said["type"], **dressed)
    if name == "abstain":
        return Abstain(**dressed)
    answer, adjusted = _answer(said["answer"], standing)
    if name == "forecast":
        return Forecast(answer=answer, adjusted=adjusted, **dressed)
    return Update(
        answer=answer,
        adjusted=adjusted,
        confidence=said["confidence"],
        disagreements=_texts(said, "disagreements"),
        resolved=_texts(said, "resolved"),
        unresolved=_texts(said, "unresolved"),
        **dressed,
    )


def _named(value: Any) -> str:
    """Return a name that the model wrote, as a short JSON string."""
    shown = json.dumps(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def _object(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of the one object of a reply, and how it was dressed."""
    if len(text) > LONGEST_REPLY:
        raise _RefusedError("too_long", f"the reply has {len(text)} characters; at most {LONGEST_REPLY} are read")
    try:
        raw, notes = extract_object(text)
        fields: dict[str, Any] = json.loads(raw)
        json.dumps(fields, ensure_ascii=False).encode()
    except ContractError as error:
        raise _unreadable(error, text) from error
    except RecursionError as error:
        raise _RefusedError("too_deep", "the reply is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise _RefusedError("not_text", "the reply holds half of a surrogate pair, which is no character") from error
    return fields, notes


def _unreadable(error: ContractError, text: str) -> _RefusedError:
    """Return the typed reason of what `extract_object` refused: by its cause, else by how its one sentence begins."""
    problem, cause = error.problems[0], error.__cause__
    kind: RejectionType = "not_json"
    if isinstance(cause, json.JSONDecodeError):
        if _is_cut(cause):
            kind, problem = "truncated", "the reply ends within its JSON object"
    elif isinstance(cause, RecursionError):
        kind, problem = "too_deep", "the reply is nested too deeply"
    elif isinstance(cause, ValueError):  # the only other thing Python's decoder refuses
        kind, problem = "out_of_range", "the reply holds a number with thousands of digits"
    elif problem.startswith("the key "):
        kind = "duplicate_key"
    elif problem.endswith("is not a JSON number"):
        kind = "not_finite"
    elif problem.startswith("the reply holds more than one"):
        kind = "two_objects"
    elif problem.startswith("the reply is a list") or _LIST.fullmatch(text.lstrip("\ufeff").strip()):
        kind, problem = "list", "the reply is a list; exactly one JSON object is allowed"
    return _RefusedError(kind, problem)


def _is_cut(error: json.JSONDecodeError) -> bool:
    """Return whether JSON is wrong only where it ends: what stands there could go on."""
    rest = error.doc[error.pos :].rstrip()
    return not rest or error.msg.startswith("Unterminated string") or _CUT_AT.fullmatch(rest) is not None


def _empty(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


def _action_name(value: Any, standing: Standing) -> ActionName:
    allowed = ", ".join(standing.actions)
    if value is None:
        raise _RefusedError("missing_field", f"action: must be one of {allowed}")
    if not isinstance(value, str):
        raise _RefusedError("wrong_type", f"action: must be a text, one of {allowed}")
    if value not in get_args(ActionName):
        raise _RefusedError("unknown_action", f"action: {_named(value)} is none of {allowed}")
    if value not in standing.actions:
        raise _RefusedError("not_allowed", f"action: {value} is not for you; possible are {allowed}")
    if value in {"search", "read"} and standing.closed_book:
        raise _RefusedError("not_allowed", f"action: {value} is not possible, for this run searches nothing")
    if value == "search" and not standing.may_search:
        raise _RefusedError("search_exhausted", "action: no more searching is possible; answer or abstain")
    return value


def _check_fields(name: ActionName, said: Mapping[str, Any], raw: Mapping[str, Any], standing: Standing) -> None:
    needed = _NEEDED[name]
    missing = [field for field in needed if field not in said and not (field in _LISTS and raw.get(field) == [])]
    if missing:
        asked = name == "search" and isinstance(raw.get("query"), str)
        kind: RejectionType = "empty_query" if asked else "missing_field"
        raise _RefusedError(kind, *(f"{field}: {name} needs it" for field in missing))
    welcome = {*needed, "reason"} | ({"disagreements"} if name == "search" and standing.supervisor else set())
    superfluous = [field for field in said if field not in welcome]
    if superfluous:
        raise _RefusedError("superfluous_field", *(f"{field}: must be null for {name}" for field in superfluous))
    wrong = [field for field, value in said.items() if field != "answer" and not _fits(field, value)]
    if wrong:
        raise _RefusedError(
            "wrong_type", *(f"{field}: must be a {'list of texts' if field in _LISTS else 'text'}" for field in wrong)
        )
    unlisted = [field for field, values in _ENUMS.items() if field in said and said[field] not in values]
    if unlisted:
        raise _RefusedError(
            "out_of_range", *(f"{field}: must be one of {', '.join(_ENUMS[field])}" for field in unlisted)
        )


def _fits(field: str, value: Any) -> bool:
    if field in _LISTS:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    return isinstance(value, str)


def _texts(said: Mapping[str, Any], field: str) -> tuple[str, ...]:
    return tuple(said.get(field, ()))


def _query(value: str) -> str:
    query = value.strip()
    if len(query) > LONGEST_QUERY:
        raise _RefusedError(
            "query_too_long", f"query: has {len(query)} characters; at most {LONGEST_QUERY} are allowed"
        )
    return query


def _result(evidence_id: str, standing: Standing) -> str:
    """Return the id of a search result; what was given has nothing behind it, and whoever gave it said what it is."""
    _check_ids([evidence_id], standing)
    if evidence_id not in standing.retrieved:
        raise _RefusedError("not_allowed", f"evidence_id: {_named(evidence_id)} was given whole; name a search result")
    return evidence_id


def _check_ids(ids: Iterable[str], standing: Standing) -> None:
    unknown = [name for name in ids if name not in standing.retrieved and name not in standing.given]
    if unknown:
        known = ", ".join((*standing.given, *standing.retrieved)) or "none"
        problems = (f"evidence {_named(name)} does not exist" for name in unknown)
        raise _RefusedError("unknown_evidence", *problems, f"the ids are: {known}")


def _answer(value: Any, standing: Standing) -> tuple[AnyAnswer, tuple[Adjusted, ...]]:
    try:
        envelope = json.dumps({"answer": value, "critiques": None, "abstention": None})
        outcome = read_reply(envelope, Expected(standing.question, "answer"))
    except ContractError as error:
        raise _RefusedError(_broken_rule(error), *error.problems) from error
    except RecursionError as error:
        raise _RefusedError("too_deep", "answer: is nested too deeply") from error
    if not isinstance(outcome, Answered):  # pragma: no cover - the envelope holds no abstention
        raise TypeError(f"an answer was read as {type(outcome).__name__}")
    answer = cast("AnyAnswer", outcome.said)
    _check_sources(answer, standing)
    return answer, outcome.adjusted


def _broken_rule(error: ContractError) -> RejectionType:
    """Return the typed reason of the first problem of an answer; rules that need the question are ``contract``."""
    cause = error.__cause__
    if isinstance(cause, RecursionError):
        return "too_deep"
    if isinstance(cause, ValidationError):
        return _OF_MODEL.get(str(cause.errors(include_url=False)[0]["type"]), "wrong_type")
    return "not_finite" if error.problems[0].endswith("is not a JSON number") else "contract"


def _check_sources(answer: AnyAnswer, standing: Standing) -> None:
    contents = {**standing.given, **standing.retrieved}
    _check_ids(unknown_ids(answer, contents), standing)
    if not standing.closed_book and not standing.retrieved:
        raise _RefusedError("no_source", "answer: no search result was kept, so there is nothing it can rest on")
    if standing.supervisor and not standing.closed_book and not standing.retrieved.keys() & set(cited_ids(answer)):
        raise _RefusedError("no_source", "answer.evidence_ids: an update must cite a search result")
    absent = missing_quotes(answer, contents)
    if absent:
        problems = (f"answer.quotes: {_named(quote.evidence_id)} does not contain this passage" for quote in absent)
        raise _RefusedError("quote_not_found", *problems)
