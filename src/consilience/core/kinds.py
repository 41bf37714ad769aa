"""What each kind of answer brings to a committee: its row in the table, its leading value, and its spread."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from consilience.core.answers import AnyAnswer, Choice, Distribution, Estimate, Probability
from consilience.core.question import Question


@dataclass(frozen=True)
class AnswerKind:
    """The parts of a kind that protocols need, without knowing which kind they carry.

    Attributes:
        name: The kind.
        row: What others see of an answer.
        leading: The committee's current value: the median, or the leading option (None on a tie).
        spread: How far apart the answers are; 0 when they agree.
        displace: The answer moved by a step: by that share of it, on the logarithm of a positive quantity or on the
            log-odds of a probability. Raises `TypeError` for kinds that cannot be moved.
    """

    name: str
    row: Callable[[AnyAnswer], dict[str, Any]]
    leading: Callable[[Sequence[AnyAnswer], Question], Any]
    spread: Callable[[Sequence[AnyAnswer], Question], float]
    displace: Callable[[AnyAnswer, float, Question], AnyAnswer]


def compact(value: float) -> float | int:
    """Return a number as short as a reader needs it: six significant digits, integers without a point.

    Example:
        >>> compact(450123.4), compact(0.1234567)
        (450123, 0.123457)
    """
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def interquartile_range(values: Sequence[float]) -> float:
    """Return q75 − q25 with linear interpolation between order statistics (Hyndman & Fan 1996, type 7).

    Example:
        >>> interquartile_range([1.0, 2.0, 3.0, 4.0, 5.0])
        2.0
    """
    if len(values) < 2:
        return 0.0
    q25, _, q75 = statistics.quantiles(values, n=4, method="inclusive")
    return q75 - q25


def _on_scale(points: Sequence[float], question: Question) -> list[float]:
    return [math.log(point) for point in points] if question.scale == "log" else list(points)


def _points(answers: Sequence[AnyAnswer]) -> list[float]:
    return [answer.point for answer in answers if isinstance(answer, Estimate)]


def _estimate_row(answer: AnyAnswer) -> dict[str, Any]:
    if not isinstance(answer, Estimate):
        raise TypeError(f"not an estimate: {type(answer).__name__}")
    return {name: compact(getattr(answer, name)) for name in ("point", "q05", "q95")}


def _estimate_leading(answers: Sequence[AnyAnswer], question: Question) -> Any:
    middle = statistics.median(_on_scale(_points(answers), question))
    return {"median": compact(math.exp(middle) if question.scale == "log" else middle)}


def _estimate_spread(answers: Sequence[AnyAnswer], question: Question) -> float:
    return interquartile_range(_on_scale(_points(answers), question))


def _estimate_displaced(answer: AnyAnswer, step: float, question: Question) -> AnyAnswer:
    factor = math.exp(step) if question.scale == "log" else 1 + step
    moved = {name: getattr(answer, name) * factor for name in ("point", "q05", "q25", "q50", "q75", "q95")}
    return answer.model_copy(update=moved)


def _probabilities(answers: Sequence[AnyAnswer]) -> list[float]:
    return [answer.p_yes for answer in answers if isinstance(answer, Probability)]


def _probability_row(answer: AnyAnswer) -> dict[str, Any]:
    if not isinstance(answer, Probability):
        raise TypeError(f"not a probability: {type(answer).__name__}")
    return {"p_yes": answer.p_yes, "confidence": answer.confidence}


def _probability_leading(answers: Sequence[AnyAnswer], question: Question) -> Any:
    del question
    return {"median": compact(statistics.median(_probabilities(answers)))}


def _probability_spread(answers: Sequence[AnyAnswer], question: Question) -> float:
    del question
    return interquartile_range(_probabilities(answers))


def _probability_displaced(answer: AnyAnswer, step: float, question: Question) -> AnyAnswer:
    """Move log-odds; 0 and 1 have none and stay."""
    del question
    if not isinstance(answer, Probability):
        raise TypeError(f"not a probability: {type(answer).__name__}")
    p = answer.p_yes
    return answer.model_copy(update={"p_yes": p * math.exp(step) / (p * math.exp(step) + 1 - p)})


def _fixed(answer: AnyAnswer, step: float, question: Question) -> AnyAnswer:
    raise TypeError(f"{type(answer).__name__} of {question.id} cannot be moved by {step}")


def _distribution_row(answer: AnyAnswer) -> dict[str, Any]:
    if not isinstance(answer, Distribution):
        raise TypeError(f"not a distribution: {type(answer).__name__}")
    return {"probabilities": {key: compact(p) for key, p in answer.as_dict().items()}}


def _columns(answers: Sequence[AnyAnswer], question: Question) -> dict[str, list[float]]:
    tables = [answer.as_dict() for answer in answers if isinstance(answer, Distribution)]
    return {option.id: [table[option.id] for table in tables] for option in question.options}


def _distribution_leading(answers: Sequence[AnyAnswer], question: Question) -> Any:
    return {"mean": {key: compact(statistics.fmean(column)) for key, column in _columns(answers, question).items()}}


def _distribution_spread(answers: Sequence[AnyAnswer], question: Question) -> float:
    return max(interquartile_range(column) for column in _columns(answers, question).values())


def _choice_row(answer: AnyAnswer) -> dict[str, Any]:
    if not isinstance(answer, Choice):
        raise TypeError(f"not a choice: {type(answer).__name__}")
    return {"choice": answer.choice, "confidence": answer.confidence}


def _heads(answers: Sequence[AnyAnswer]) -> list[tuple[str, int]]:
    return Counter(answer.choice for answer in answers if isinstance(answer, Choice)).most_common()


def _choice_leading(answers: Sequence[AnyAnswer], question: Question) -> Any:
    del question
    heads = _heads(answers)
    tied = len(heads) > 1 and heads[0][1] == heads[1][1]
    return {"leading": None if tied else heads[0][0]}


def _choice_spread(answers: Sequence[AnyAnswer], question: Question) -> float:
    del question
    heads = _heads(answers)
    return 1.0 - heads[0][1] / sum(count for _, count in heads)


KINDS: dict[str, AnswerKind] = {
    kind.name: kind
    for kind in (
        AnswerKind("estimate", _estimate_row, _estimate_leading, _estimate_spread, _estimate_displaced),
        AnswerKind("probability", _probability_row, _probability_leading, _probability_spread, _probability_displaced),
        AnswerKind("distribution", _distribution_row, _distribution_leading, _distribution_spread, _fixed),
        AnswerKind("choice", _choice_row, _choice_leading, _choice_spread, _fixed),
    )
}
"""The four kinds; a closed set, so no registry."""
