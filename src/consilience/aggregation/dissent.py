"""Who differs from the panel's answer: the seats of a minority report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from consilience.aggregation.answers import AnswerRow, Answers
from consilience.aggregation.distributions import Pooled
from consilience.aggregation.pooling import PooledProbability
from consilience.aggregation.rows import AggregateRow
from consilience.aggregation.stages import StagedProbability
from consilience.core.answers import AnyAnswer, Choice, Distribution, Estimate, Probability

FAR: Final = 0.2
"""A probability farther than this from the panel's differs from it, on whichever side of one half both lie."""
_ROUNDING: Final = 1e-12


def dissenters(row: AnswerRow, answers: Answers) -> tuple[str, ...]:
    """Return the seats whose answer differs from the panel's, in the order given.

    An estimate differs when its own 90 % interval excludes the panel's point; a probability when it lies on the other
    side of one half or more than 0.2 away; a distribution when none of its likeliest options is one of the panel's; a
    ballot when it is not for the winner. On a tie, or without a decision, every one does.

    Args:
        row: The panel's answer under one rule.
        answers: The seats that answered, each with its answer.

    Example:
        >>> from consilience.aggregation.answers import aggregate_answers
        >>> from consilience.core.question import Question
        >>> said = dict(rationale="", evidence_ids=(), reasoning_summary="", counterarguments=(), missing_data=())
        >>> answers = [(seat, Probability(p_yes=p, **said)) for seat, p in (("a", 0.7), ("b", 0.6), ("c", 0.4))]
        >>> dissenters(aggregate_answers(Question(id="q", text="Rain?", kind="probability"), answers)[0], answers)
        ('c',)
    """
    differs = _test(row)
    return tuple(seat for seat, answer in answers if differs(answer))


def _test(row: AnswerRow) -> Callable[[AnyAnswer], bool]:
    made = row.made
    if isinstance(made, AggregateRow):
        point = made.point
        return lambda answer: isinstance(answer, Estimate) and not answer.q05 <= point <= answer.q95
    if isinstance(made, PooledProbability | StagedProbability):
        p = made.value
        return lambda answer: isinstance(answer, Probability) and _far(answer.p_yes, p)
    if isinstance(made, Pooled):
        top = _likeliest(made.probabilities)
        return lambda answer: isinstance(answer, Distribution) and top.isdisjoint(_likeliest(answer.as_dict()))
    winner = made.winner
    return lambda answer: isinstance(answer, Choice) and answer.choice != winner


def _far(said: float, panel: float) -> bool:
    return (said - 0.5) * (panel - 0.5) < 0 or abs(said - panel) > FAR + _ROUNDING


def _likeliest(probabilities: Mapping[str, float]) -> frozenset[str]:
    most = max(probabilities.values())
    return frozenset(option for option, p in probabilities.items() if p == most)
