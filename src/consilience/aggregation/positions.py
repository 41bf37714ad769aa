"""Where an answer of any kind lies, how far two lie apart, and whether one turned out right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from consilience.core.answers import AnyAnswer, Choice, Estimate, Probability
from consilience.core.question import Question

CLOSE: Final = 0.10
"""An estimate within this share of the truth counts as right."""
_EDGE: Final = 1e-12

Position = tuple[float, ...]
"""An estimate (its logarithm on a log scale) or probability alone, or a number per option in the question's order."""


def position(answer: AnyAnswer, question: Question) -> Position:
    """Return where an answer lies: a ballot is the distribution that puts everything on its option.

    Example:
        >>> said = dict(rationale="", evidence_ids=(), reasoning_summary="", counterarguments=(), missing_data=())
        >>> position(Probability(p_yes=0.7, **said), Question(id="q", text="Rain?", kind="probability"))
        (0.7,)
    """
    if isinstance(answer, Estimate):
        return (_on_scale(answer.point, question),)
    if isinstance(answer, Probability):
        return (answer.p_yes,)
    if isinstance(answer, Choice):
        return _all_on(answer.choice, question)
    shares = answer.as_dict()
    return tuple(shares[option.id] for option in question.options)


def truth_position(truth: float | str, question: Question) -> Position:
    """Return where the truth lies, on the scale of `position`.

    Example:
        >>> truth_position(1, Question(id="q", text="Rain?", kind="probability"))
        (1.0,)
    """
    return _all_on(truth, question) if isinstance(truth, str) else (_on_scale(truth, question),)


def distance(one: Position, other: Position) -> float:
    """Return how far two positions lie apart.

    Of numbers it is the absolute difference (of logarithms on a log scale, of probabilities in [0, 1]); over options it
    is the total variation, half the sum of absolute differences, in [0, 1]: for ballots 0 or 1.

    Example:
        >>> distance((0.5,), (0.75,)), distance((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
        (0.25, 1.0)
    """
    apart = math.fsum(abs(a - b) for a, b in zip(one, other, strict=True))
    return apart if len(one) == 1 else apart / 2


def stance(answer: AnyAnswer, question: Question) -> str | None:
    """Return what an answer comes down to: the option on top, or ``yes`` or ``no``.

    None where it comes down to nothing: for estimates, for a probability of one half, and when options share the top.

    Example:
        >>> said = dict(rationale="", evidence_ids=(), reasoning_summary="", counterarguments=(), missing_data=())
        >>> stance(Probability(p_yes=0.7, **said), Question(id="q", text="Rain?", kind="probability"))
        'yes'
    """
    if isinstance(answer, Estimate):
        return None
    if isinstance(answer, Probability):
        return None if answer.p_yes == 0.5 else "yes" if answer.p_yes > 0.5 else "no"
    top = _likeliest(position(answer, question))
    return question.options[top[0]].id if len(top) == 1 else None


def is_right(answer: AnyAnswer, question: Question, truth: float | str) -> bool:
    """Return whether an answer turned out right.

    An estimate is right within 10 % of the truth (a truth of 0 only when hit), a probability on the right side of one
    half, a distribution or ballot with the true option alone on top.

    Example:
        >>> said = dict(rationale="", evidence_ids=(), reasoning_summary="", counterarguments=(), missing_data=())
        >>> is_right(Probability(p_yes=0.5, **said), Question(id="q", text="Rain?", kind="probability"), 1)
        False
    """
    if isinstance(answer, Estimate):
        target = float(truth)
        return abs(answer.point - target) <= (CLOSE + _EDGE) * abs(target)
    if isinstance(answer, Probability):
        return stance(answer, question) == ("yes" if truth == 1 else "no")
    return stance(answer, question) == truth


def _on_scale(value: float, question: Question) -> float:
    return math.log(value) if question.scale == "log" else float(value)


def _all_on(choice: str, question: Question) -> Position:
    return tuple(float(option.id == choice) for option in question.options)


def _likeliest(shares: Sequence[float]) -> list[int]:
    most = max(shares)
    return [index for index, share in enumerate(shares) if share == most]
