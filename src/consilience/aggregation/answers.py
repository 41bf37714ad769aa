"""One entry for every kind of answer, so that whoever aggregates need not ask which kind it carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

import numpy as np

from consilience.aggregation.ballots import ballot_of
from consilience.aggregation.distributions import DEFAULT_DISTRIBUTION_RULE, DISTRIBUTION_RULES, Pooled
from consilience.aggregation.fitted import FittedRole
from consilience.aggregation.numbers import DEFAULT_POINT_RULE, POINT_RULES
from consilience.aggregation.pooling import PooledProbability
from consilience.aggregation.probabilities import MANY_SEATS, default_probability_rule, ready_rules
from consilience.aggregation.resolved import FittedProbabilities
from consilience.aggregation.rows import MIXTURE_ROW, AggregateRow, aggregate_estimates
from consilience.aggregation.stages import StagedProbability, blend, strict, supervised
from consilience.aggregation.tallies import Tally
from consilience.aggregation.votes import DEFAULT_VOTE_RULE, VOTE_RULES
from consilience.core.answers import Answer, AnyAnswer, Choice, Distribution, Estimate, Probability
from consilience.core.deliberation import Stages
from consilience.core.question import Kind, Question
from consilience.errors import DataError, QuorumError

OPTION_PREFIX: Final = "option:"
NUMBER_COLUMNS: Final = ("point", "q05", "q25", "q50", "q75", "q95")

A = TypeVar("A", bound=Answer)


@dataclass(frozen=True)
class AnswerRow:
    """A panel's answer under one rule, of any kind.

    Attributes:
        rule: Name of the rule.
        made: What the rule returned, by kind: an estimate's row, a probability, a pool, a tally.
        headline: The answer as a JSON value: a number, ``{option: probability}``, or winner, tied and agreement share.
        cells: Its cells in the prediction frame.
        interval: Rule and five quantiles of an estimate; None for other kinds.
    """

    rule: str
    made: AggregateRow | PooledProbability | Pooled | Tally | StagedProbability
    headline: Any
    cells: dict[str, float]
    interval: tuple[str, tuple[float, ...]] | None = None

    def record(self) -> dict[str, Any]:
        """Return all that the rule said, as JSON values; shares of ballots are exact, such as ``"2/3"``."""
        if not isinstance(self.made, Tally):
            return {"rule": self.rule, **asdict(self.made)}
        return {"rule": self.rule, **self.made.record()}


Answers = Sequence[tuple[str, AnyAnswer]]
"""The seats that answered, each with its answer."""


@dataclass(frozen=True)
class FittedPanel:
    """What validation taught about the members of one panel.

    Attributes:
        numbers: By seat label, for the fitted point rules; None gives equal weights.
        probabilities: For the fitted rules of probabilities; None gives equal weights and no correlation of errors.
    """

    numbers: Mapping[str, FittedRole] | None = None
    probabilities: FittedProbabilities | None = None


UNFITTED: Final = FittedPanel()
"""Nothing was learnt: fitted rules use equal weights and say so."""


def _of(answers: Answers, kind: type[A]) -> list[A]:
    found: list[A] = [answer for _, answer in answers if isinstance(answer, kind)]
    if len(found) != len(answers):
        other = next((seat, answer) for seat, answer in answers if not isinstance(answer, kind))
        raise DataError(
            f"seat {other[0]} answered with {type(other[1]).__name__} where {kind.__name__} was asked",
            hint="Read answers under the contract of their question.",
        )
    return found


def _seats(answers: Answers) -> tuple[str, ...]:
    return tuple(seat for seat, _ in answers)


def _estimates(question: Question, answers: Answers, fitted: FittedPanel) -> list[AnswerRow]:
    given = _of(answers, Estimate)
    made = aggregate_estimates(
        seats=_seats(answers),
        points=np.array([answer.point for answer in given]),
        quantiles=np.array([answer.quantiles for answer in given]),
        scale=question.scale,
        weights=fitted.numbers,
    )
    return [
        AnswerRow(
            row.rule,
            row,
            row.point,
            {name: getattr(row, name) for name in NUMBER_COLUMNS},
            (row.interval_rule, (row.q05, row.q25, row.q50, row.q75, row.q95)),
        )
        for row in made
    ]


def _probabilities(question: Question, answers: Answers, fitted: FittedPanel) -> list[AnswerRow]:
    del question
    learnt = fitted.probabilities
    p = np.array([answer.p_yes for answer in _of(answers, Probability)])
    made = [(rule.name, rule(probabilities=p, seats=_seats(answers), fitted=learnt)) for rule in ready_rules(learnt)]
    return [AnswerRow(name, row, row.value, {"p": row.value}) for name, row in made]


def _distributions(question: Question, answers: Answers, fitted: FittedPanel) -> list[AnswerRow]:
    del fitted
    options = tuple(option.id for option in question.options)
    tables = [answer.as_dict() for answer in _of(answers, Distribution)]
    p = np.array([[table[option] for option in options] for table in tables])
    made = [(rule.name, rule(probabilities=p, options=options, seats=_seats(answers))) for rule in DISTRIBUTION_RULES]
    return [
        AnswerRow(name, row, row.probabilities, {f"{OPTION_PREFIX}{key}": p for key, p in row.probabilities.items()})
        for name, row in made
    ]


def _votes(question: Question, answers: Answers, fitted: FittedPanel) -> list[AnswerRow]:
    """Return a row per rule for which more than half of the answers are ballots; only those that rank serve some."""
    del fitted
    options = tuple(option.id for option in question.options)
    ballots = [ballot_of(seat, given) for seat, given in zip(_seats(answers), _of(answers, Choice), strict=True)]
    rules = [rule for rule in VOTE_RULES if 2 * len(rule.split(ballots=ballots, options=options)[0]) > len(ballots)]
    made = [(rule.name, rule(ballots=ballots, options=options)) for rule in rules]
    return [
        AnswerRow(
            name,
            row,
            {
                "winner": row.winner,
                "tied": list(row.winners) if row.decided == "tie" else [],
                "agreement_share": str(row.agreement_share),
            },
            {f"{OPTION_PREFIX}{key}": float(share) for key, share in row.shares.items()},
        )
        for name, row in made
    ]


_AGGREGATE: Final[dict[Kind, Callable[[Question, Answers, FittedPanel], list[AnswerRow]]]] = {
    "estimate": _estimates,
    "probability": _probabilities,
    "distribution": _distributions,
    "choice": _votes,
}

PRIMARY_RULES: Final[dict[Kind, dict[int, str]]] = {
    "estimate": {1: DEFAULT_POINT_RULE},
    "probability": {seats: default_probability_rule(seats) for seats in (1, MANY_SEATS)},
    "distribution": {1: DEFAULT_DISTRIBUTION_RULE},
    "choice": {1: DEFAULT_VOTE_RULE},
}
"""The rule of each kind that is the primary comparison, from how many declared seats on; fixed beforehand."""


def default_rule(kind: Kind, n_seats: int) -> str:
    """Return the primary comparison of a panel: by its declared seats, however many of them answered.

    Example:
        >>> default_rule("probability", 3), default_rule("probability", 8), default_rule("estimate", 3)
        ('geometric_odds', 'median', 'median')
    """
    by_seats = PRIMARY_RULES[kind]
    return by_seats[max(least for least in by_seats if least <= max(n_seats, 1))]


def aggregate_answers(question: Question, answers: Answers, fitted: FittedPanel | None = None) -> list[AnswerRow]:
    """Return a row for every rule that serves the question's kind.

    Args:
        question: What was asked.
        answers: The seats that answered, each with its answer.
        fitted: What validation taught about the seats; None gives fitted rules equal weights, flagged.

    Raises:
        QuorumError: No seat answered.
        DataError: An answer is of another kind, names an unknown option, its numbers do not fit, or a seat that
            answered is missing from what was fitted.

    Example:
        >>> said = dict(rationale="", evidence_ids=(), reasoning_summary="", counterarguments=(), missing_data=())
        >>> rain = Question(id="q", text="Rain?", kind="probability")
        >>> panel = [("a", Probability(p_yes=0.25, **said)), ("b", Probability(p_yes=0.5, **said))]
        >>> aggregate_answers(rain, panel)[0].cells
        {'p': 0.375}
    """
    if not answers:
        raise QuorumError(f"nobody answered {question.id}", hint="Ask more members or lower what may fail.")
    return _AGGREGATE[question.kind](question, answers, fitted or UNFITTED)


def aggregate_stages(stages: Stages, made: Sequence[AnswerRow], *, n_seats: int) -> list[AnswerRow]:
    """Return the rows of the rules that read a panel's stages: ``blend`` of its primary rule, ``strict`` of its mean.

    Args:
        stages: What came after the members' answers.
        made: The rows of the members' answers.
        n_seats: Declared members.

    Example:
        >>> said = dict(rationale="", evidence_ids=(), reasoning_summary="", counterarguments=(), missing_data=())
        >>> panel = [("a", Probability(p_yes=0.05, **said)), ("b", Probability(p_yes=0.05, **said))]
        >>> rows = aggregate_answers(Question(id="q", text="Rain?", kind="probability"), panel)
        >>> [round(row.headline, 4) for row in aggregate_stages(Stages((0.08, 0.04), True, None), rows, n_seats=2)]
        [0.053, 0.0084]
    """
    panel = {row.rule: float(row.headline) for row in made}
    supervisor = supervised(stages.supervisor)
    final = {
        "blend": blend(
            panel=panel[default_rule("probability", n_seats)], advocates=stages.advocates, supervisor=supervisor
        ),
        "strict": strict(
            panel=panel["mean"], advocates=stages.advocates, consensus=stages.consensus, supervisor=supervisor
        ),
    }
    return [AnswerRow(name, row, row.value, {"p": row.value}) for name, row in final.items()]


def rule_names(kind: Kind, fitted: FittedPanel | None = None) -> list[str]:
    """Return the names of the rules that serve a kind, in the order of their rows; some need what validation taught.

    Example:
        >>> rule_names("choice")[:3]
        ['plurality', 'majority', 'supermajority']
    """
    if kind == "estimate":
        return [*POINT_RULES.names(), MIXTURE_ROW]
    if kind == "probability":
        return [rule.name for rule in ready_rules((fitted or UNFITTED).probabilities)]
    return DISTRIBUTION_RULES.names() if kind == "distribution" else VOTE_RULES.names()


def answer_columns(question: Question) -> list[str]:
    """Return the columns of the prediction frame that an answer to the question fills.

    Example:
        >>> answer_columns(Question(id="q", text="Rain?", kind="probability"))
        ['p']
    """
    if question.kind == "estimate":
        return list(NUMBER_COLUMNS)
    if question.kind == "probability":
        return ["p"]
    return [f"{OPTION_PREFIX}{option.id}" for option in question.options]
