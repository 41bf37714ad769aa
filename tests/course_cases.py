"""Answers and courses of small panels, of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consilience.core.answers import AnyAnswer, Choice, Distribution, Estimate, OptionProbability, Probability
from consilience.core.deliberation import Deliberation, Table, first_table, next_table
from consilience.core.outcomes import Answered, Failed, Outcome
from consilience.core.question import Kind, Option, Question

LOST = Failed(error="TransientModelError", message="overloaded")
OPTIONS = tuple(Option(id=name, label=name) for name in "xyz")


def ask(kind: Kind, *, scale: Any = "linear", name: str = "q") -> Question:
    options = OPTIONS if kind in {"choice", "distribution"} else ()
    return Question(id=name, text="?", kind=kind, scale=scale, options=options)


def make(kind: Kind, value: Any, *cites: str) -> AnyAnswer:
    said: dict[str, Any] = {
        "evidence_ids": cites,
        "reasoning_summary": "",
        "counterarguments": (),
        "missing_data": (),
    }
    if kind == "estimate":
        said |= {"adjustments": (), "key_assumptions": (), "confidence_rationale": ""}
        said |= dict.fromkeys(("point", "q05", "q25", "q50", "q75", "q95"), float(value))
        return Estimate(**said)
    said["rationale"] = ""
    if kind == "probability":
        return Probability(p_yes=value, **said)
    if kind == "choice":
        return Choice(choice=value, confidence=0.5, **said)
    rows = tuple(OptionProbability(option_id=o.id, p=p) for o, p in zip(OPTIONS, value, strict=True))
    return Distribution(probabilities=rows[::-1], **said)


def outcomes(kind: Kind, values: Sequence[Any]) -> list[Outcome]:
    """Return one outcome per value; None is a member that failed."""
    return [LOST if value is None else Answered(said_type=kind, said=make(kind, value)) for value in values]


def course(kind: Kind, *rounds: Sequence[Any], seats: Sequence[str] = "abc") -> tuple[Table, ...]:
    """Return the tables of a panel whose seats said these values in these rounds."""
    made = [first_table(seats, outcomes(kind, rounds[0]))]
    for round_, values in enumerate(rounds[1:], start=1):
        made.append(next_table(made[-1], outcomes(kind, values), round_=round_))
    return tuple(made)


def deliberation(kind: Kind, *rounds: Sequence[Any], seats: Sequence[str] = "abc") -> Deliberation:
    return Deliberation(course(kind, *rounds, seats=seats))
