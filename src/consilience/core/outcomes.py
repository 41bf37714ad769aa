"""What came of a turn: an answer, or one of three ways to have none.

Aggregates take answers; reports count the other three by name. None of them is ever NaN, 0 or False.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, TypeAdapter

from consilience.core.answers import Abstention, Choice, CritiqueSet, Distribution, Estimate, Probability
from consilience.core.question import Strict

Status = Literal["answered", "abstained", "unreadable", "failed"]


class Adjusted(Strict):
    """One change between what was said and what was read, such as a renormalisation."""

    rule: str
    before: float | str
    after: float | str


class Answered(Strict):
    """The turn has something to say.

    Attributes:
        said: The answer or critiques, as read under the contract.
        adjusted: Every clip, renormalisation or repair, with rule, before and after.
        notes: How the reply was dressed (prose around it, code fence, byte-order mark).
    """

    status: Literal["answered"] = "answered"
    said_type: Literal["estimate", "probability", "distribution", "choice", "critiques"]
    said: Estimate | Probability | Distribution | Choice | CritiqueSet = Field(union_mode="left_to_right")
    adjusted: tuple[Adjusted, ...] = ()
    notes: tuple[str, ...] = ()


class Abstained(Strict):
    """The member, or its vendor, declined to answer."""

    status: Literal["abstained"] = "abstained"
    said: Abstention


class Unreadable(Strict):
    """Replies came, but none could be read under the contract after all corrective retries."""

    status: Literal["unreadable"] = "unreadable"
    problems: tuple[str, ...]


class Failed(Strict):
    """No complete reply came."""

    status: Literal["failed"] = "failed"
    error: str
    message: str


Outcome = Answered | Abstained | Unreadable | Failed

_MODELS: dict[str, type[Strict]] = {
    "estimate": Estimate,
    "probability": Probability,
    "distribution": Distribution,
    "choice": Choice,
    "critiques": CritiqueSet,
}
_OTHERS: TypeAdapter[Abstained | Unreadable | Failed] = TypeAdapter(Abstained | Unreadable | Failed)


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON values for the journal.

    Example:
        >>> outcome_to_json(Unreadable(problems=("q05 is missing",)))
        {'status': 'unreadable', 'problems': ['q05 is missing']}
    """
    return outcome.model_dump(mode="json")


def outcome_from_json(value: Mapping[str, Any]) -> Outcome:
    """Return the outcome that `outcome_to_json` wrote.

    Raises:
        ValueError: The value is no outcome.

    Example:
        >>> lost = Failed(error="TransientModelError", message="overloaded")
        >>> outcome_from_json(outcome_to_json(lost)) == lost
        True
    """
    if value.get("status") != "answered":
        return _OTHERS.validate_python(value, strict=False)
    said = _MODELS[value["said_type"]].model_validate(value["said"], strict=False)
    rest = {key: part for key, part in value.items() if key != "said"}
    return Answered.model_validate(rest | {"said": said}, strict=False)
