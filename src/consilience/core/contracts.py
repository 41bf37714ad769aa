"""The contract of a reply and how it is read: strictly, with every repair recorded.

One envelope serves every turn kind of a role, because a schema that changes breaks the cached prefix: ``answer``,
``critiques`` and ``abstention``, all required, exactly the one the task asks for not null.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import ValidationError

from consilience.core.answers import (
    Abstention,
    Answer,
    AnyAnswer,
    Choice,
    Critique,
    CritiqueSet,
    Distribution,
    Estimate,
    OptionProbability,
    Probability,
)
from consilience.core.outcomes import Abstained, Adjusted, Answered
from consilience.core.question import Question, Strict
from consilience.errors import ContractError

MAX_CORRECTIONS = 2
SUM_TOLERANCE = 1e-3

A = TypeVar("A", bound=Answer)


class Envelope(Strict, Generic[A]):
    """What every reply is: one of three things."""

    answer: A | None
    critiques: tuple[Critique, ...] | None
    abstention: str | None


ENVELOPES: dict[str, type[Envelope[Any]]] = {
    "estimate": Envelope[Estimate],
    "probability": Envelope[Probability],
    "distribution": Envelope[Distribution],
    "choice": Envelope[Choice],
}


@dataclass(frozen=True)
class Expected:
    """What a reply must satisfy.

    Attributes:
        question: The question asked.
        yields: Which field of the envelope must be filled.
        addressees: The labels that critiques may address.
    """

    question: Question
    yields: Literal["answer", "critiques"]
    addressees: tuple[str, ...] = ()


def read_reply(text: str, expected: Expected) -> Answered | Abstained:
    r"""Return what a reply says, or refuse it; nothing is ever guessed, repaired or fished out of prose.

    Raises:
        ContractError: With one sentence per violated rule.

    Example:
        >>> q = Question(id="q", text="Rain?", kind="probability")
        >>> reply = ('{"answer": {"p_yes": 0.3, "rationale": "", "evidence_ids": [], "reasoning_summary": "dry",'
        ...          ' "counterarguments": [], "missing_data": []}, "critiques": null, "abstention": null}')
        >>> read_reply(reply, Expected(q, "answer")).said.p_yes
        0.3
    """
    raw, notes = extract_object(text)
    try:
        envelope: Envelope[Any] = ENVELOPES[expected.question.kind].model_validate_json(raw)
    except ValidationError as error:
        raise ContractError([_sentence(problem) for problem in error.errors(include_url=False)]) from error
    filled = [name for name in ("answer", "critiques", "abstention") if getattr(envelope, name) is not None]
    if filled == ["abstention"]:
        return Abstained(said=Abstention(reason=envelope.abstention or "no reason given"))
    if filled != [expected.yields]:
        found = " and ".join(filled) or "nothing"
        raise ContractError([f"the task asks for {expected.yields} alone (or abstention), but the reply fills {found}"])
    if envelope.critiques is not None:
        critiques = _read_critiques(envelope.critiques, expected)
        return Answered(said_type="critiques", said=critiques, notes=notes)
    answer, adjusted = _read_answer(cast("AnyAnswer", envelope.answer), expected.question)
    return Answered(said_type=expected.question.kind, said=answer, adjusted=adjusted, notes=notes)


def _sentence(problem: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in problem["loc"]) or "reply"
    return f"{place}: {problem['msg']}"


def extract_object(text: str) -> tuple[str, tuple[str, ...]]:
    r"""Return the one JSON object of a reply and notes on what stood around it.

    A byte-order mark, a code fence and prose around exactly one object are tolerated and noted.

    Raises:
        ContractError: No object, two objects, a list, duplicate keys, NaN or infinity, or broken JSON.

    Example:
        >>> extract_object('Sure:\n```json\n{"a": 1}\n```')
        ('{"a": 1}', ('prose_around_object', 'code_fence'))
    """
    notes: list[str] = []
    if text.startswith("\ufeff"):
        notes.append("byte_order_mark")
    body = text.lstrip("\ufeff").strip()
    start = body.find("{")
    if start < 0:
        raise ContractError(["the reply holds no JSON object"])
    end = _object_end(body, start)
    before, after = body[:start].strip(), body[end:].strip()
    if _is_part_of_list(before, after):
        raise ContractError(["the reply is a list; exactly one JSON object is allowed"])
    if "{" in after:
        raise ContractError(["the reply holds more than one JSON object"])
    prose = before.replace("```json", "").replace("```", "").strip() + after.replace("```", "").strip()
    if prose:
        notes.append("prose_around_object")
    if "```" in before or "```" in after:
        notes.append("code_fence")
    return body[start:end], tuple(notes)


def _is_part_of_list(before: str, after: str) -> bool:
    """Return whether an object stands in a JSON list; a comma alone is prose, as in "My answer, {…}"."""
    opened = before.endswith(",") and before.count("[") > before.count("]")
    closed = after.startswith(",") and after.count("]") > after.count("[")
    return before.endswith("[") or after.startswith("]") or opened or closed


def _object_end(body: str, start: int) -> int:
    try:
        _, end = _DECODER.raw_decode(body, start)
    except ContractError:
        raise
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise ContractError([f"the reply is not valid JSON: {reason}"]) from error
    return end


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ContractError([f"the key {json.dumps(twice)[:80]} stands twice in one object"])
    return result


def _no_constant(name: str) -> Any:
    raise ContractError([f"{name} is not a JSON number"])


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_no_constant)


def _read_critiques(critiques: tuple[Critique, ...], expected: Expected) -> CritiqueSet:
    problems = [
        f"critiques.{index}.target_role: {json.dumps(critique.target_role)[:80]} cannot be addressed here"
        for index, critique in enumerate(critiques)
        if critique.target_role not in expected.addressees
    ]
    if problems:
        raise ContractError([*problems, f"seats that can be addressed: {', '.join(expected.addressees)}"])
    try:
        return CritiqueSet(critiques=critiques)
    except ValidationError as error:
        raise ContractError([_sentence(problem) for problem in error.errors(include_url=False)]) from error


def _read_answer(answer: AnyAnswer, question: Question) -> tuple[AnyAnswer, tuple[Adjusted, ...]]:
    """Apply the rules that need the question."""
    if isinstance(answer, Estimate):
        _check_estimate(answer, question)
    elif isinstance(answer, Distribution):
        return _read_distribution(answer, question)
    elif isinstance(answer, Choice):
        _check_choice(answer, question)
    return answer, ()


def _check_estimate(answer: Estimate, question: Question) -> None:
    values = {"point": answer.point, **dict(zip(("q05", "q25", "q50", "q75", "q95"), answer.quantiles, strict=True))}
    problems = []
    for name, value in values.items():
        if question.scale == "log" and value <= 0:
            problems.append(f"answer.{name}: must be above 0")
        if question.lower is not None and value < question.lower:
            problems.append(f"answer.{name}: must not be below {question.lower:g}")
        if question.upper is not None and value > question.upper:
            problems.append(f"answer.{name}: must not be above {question.upper:g}")
    if problems:
        raise ContractError(problems)


def _read_distribution(answer: Distribution, question: Question) -> tuple[Distribution, tuple[Adjusted, ...]]:
    wanted = [option.id for option in question.options]
    given = [row.option_id for row in answer.probabilities]
    if sorted(given) != sorted(wanted):
        raise ContractError([f"answer.probabilities: must name each of {', '.join(wanted)} exactly once"])
    total = math.fsum(row.p for row in answer.probabilities)
    if total == 1.0:
        return answer, ()
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ContractError([f"answer.probabilities: sum to {total:.6g}; they must sum to 1"])
    scaled = tuple(
        OptionProbability(option_id=row.option_id, p=min(1.0, row.p / total)) for row in answer.probabilities
    )
    record = Adjusted(rule="renormalised", before=total, after=1.0)
    return answer.model_copy(update={"probabilities": scaled}), (record,)


def _check_choice(answer: Choice, question: Question) -> None:
    ids = [option.id for option in question.options]
    problems = []
    if answer.choice not in ids:
        problems.append(f"answer.choice: must be one of {', '.join(ids)}")
    if answer.ranking is not None:
        if sorted(answer.ranking) != sorted(ids):
            problems.append(f"answer.ranking: must name each of {', '.join(ids)} exactly once")
        elif answer.ranking[0] != answer.choice:
            problems.append("answer.ranking: its first option must be the choice")
    if answer.approvals is not None:
        approved = set(answer.approvals)
        if len(approved) != len(answer.approvals) or not approved <= set(ids):
            problems.append(f"answer.approvals: must name some of {', '.join(ids)}, each at most once")
        elif answer.choice not in approved:
            problems.append("answer.approvals: the choice must be among them")
    if problems:
        raise ContractError(problems)
