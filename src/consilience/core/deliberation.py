"""What a protocol hands back: who stood where after every round, and why it stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from consilience.core.answers import AnyAnswer, CritiqueSet, Probability
from consilience.core.outcomes import Answered, Outcome


@dataclass(frozen=True)
class Standing:
    """Where one member stands after a round.

    Attributes:
        seat: The member's label.
        outcome: What its last turn came to.
        answer: Its latest valid answer, or None if it never gave one.
        answered_round: The round of that answer.
    """

    seat: str
    outcome: Outcome
    answer: AnyAnswer | None
    answered_round: int | None

    def carried_at(self, round_: int) -> int | None:
        """Return the round the answer was carried from, or None if it is of ``round_`` itself."""
        return self.answered_round if self.answered_round is not None and self.answered_round < round_ else None


Table = tuple[Standing, ...]
"""All members' standings, in seat order."""


def first_table(seats: Sequence[str], outcomes: Sequence[Outcome], *, round_: int = 0) -> Table:
    """Return the standings of seats that were asked for the first time, by default in round 0.

    Example:
        >>> from consilience.core.outcomes import Failed
        >>> first_table(["analyst_01"], [Failed(error="TransientModelError", message="overloaded")])[0].answer is None
        True
    """
    return tuple(_stand(seat, outcome, round_, None) for seat, outcome in zip(seats, outcomes, strict=True))


def next_table(table: Table, outcomes: Sequence[Outcome], *, round_: int) -> Table:
    """Return the standings after a revision; a member whose revision gave no answer keeps its latest valid one.

    Example:
        >>> from consilience.core.outcomes import Failed
        >>> lost = Failed(error="TransientModelError", message="overloaded")
        >>> next_table(first_table(["analyst_01"], [lost]), [lost], round_=1)[0].answered_round is None
        True
    """
    return tuple(
        _stand(standing.seat, outcome, round_, standing) for standing, outcome in zip(table, outcomes, strict=True)
    )


def _stand(seat: str, outcome: Outcome, round_: int, before: Standing | None) -> Standing:
    if isinstance(outcome, Answered) and not isinstance(outcome.said, CritiqueSet):
        return Standing(seat, outcome, outcome.said, round_)
    if before is None:
        return Standing(seat, outcome, None, None)
    return Standing(seat, outcome, before.answer, before.answered_round)


def present(table: Table) -> list[tuple[str, AnyAnswer]]:
    """Return the members that have an answer, with it.

    Example:
        >>> from consilience.core.outcomes import Failed
        >>> present(first_table(["analyst_01"], [Failed(error="TransientModelError", message="overloaded")]))
        []
    """
    return [(standing.seat, standing.answer) for standing in table if standing.answer is not None]


def has_quorum(table: Table) -> bool:
    """Return whether more than half of the seats have an answer.

    Example:
        >>> has_quorum(())
        False
    """
    return 2 * len(present(table)) > len(table)


@dataclass(frozen=True)
class Stopped:
    """Why a protocol ended before its last planned round."""

    reason: str
    round: int
    spread_before: float | None = None
    spread_after: float | None = None


@dataclass(frozen=True)
class Stages:
    """What came after the members' own answers to a yes-no question, for rules that read stages.

    Attributes:
        advocates: The last probabilities of the two who argued yes and no; None where they did not both argue.
        consensus: Whether they came to agree.
        supervisor: The answer of who oversaw the panel; its ``confidence`` says how sure it is. None without one.
    """

    advocates: tuple[float, float] | None
    consensus: bool
    supervisor: Probability | None


@dataclass(frozen=True)
class Deliberation:
    """The course of one item: who stood where after round 0, 1, …, and what came beside the rounds.

    Attributes:
        tables: The members' table after every round that was run.
        stopped: Why it ended early; None when it did not.
        verdicts: Standings of seats that answered after the last round, having had no part in it.
        variants: Other final answers of the same course by name, such as the refined one of a single agent; each
            becomes a row of its own and none enters the others.
        sampled: The table holds samples of one agent, not members.
        stages: What came after the members' answers, of a course in stages; None of any other.
        notes: What else is to be recorded about the course.
    """

    tables: tuple[Table, ...]
    stopped: Stopped | None = None
    verdicts: Table = ()
    variants: Mapping[str, Standing] = field(default_factory=dict)
    sampled: bool = False
    stages: Stages | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def final(self) -> Table:
        """Everybody's standing at the end: that after the last round, and the verdicts."""
        return (*self.tables[-1], *self.verdicts)

    @property
    def rounds_run(self) -> int:
        """How many rounds of deliberation followed the independent answers."""
        return len(self.tables) - 1

    def after(self, round_: int) -> Deliberation:
        """Return the course as it would have been with no more than this many rounds.

        Raises:
            ValueError: Seats answered after the last round, so that a shorter course is none of this one's.

        Example:
            >>> course = Deliberation(tables=((), (), ()), stopped=Stopped("settled", 2))
            >>> course.after(1).rounds_run, course.after(1).stopped, course.after(4) == course
            (1, None, True)
        """
        if self.verdicts or self.variants:
            raise ValueError("a course with verdicts cannot be cut short")
        if round_ >= self.rounds_run:
            return self
        return Deliberation(self.tables[: round_ + 1])
