"""What a protocol hands back: who stood where after every round, and why it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from consilience.core.answers import AnyAnswer, CritiqueSet
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


def first_table(seats: Sequence[str], outcomes: Sequence[Outcome]) -> Table:
    """Return the standings after independent answers.

    Example:
        >>> from consilience.core.outcomes import Failed
        >>> first_table(["analyst_01"], [Failed(error="TransientModelError", message="overloaded")])[0].answer is None
        True
    """
    return tuple(_stand(seat, outcome, 0, None) for seat, outcome in zip(seats, outcomes, strict=True))


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
class Deliberation:
    """The course of one item: the table after round 0, 1, …, and whether it stopped early."""

    tables: tuple[Table, ...]
    stopped: Stopped | None = None

    @property
    def final(self) -> Table:
        """The table after the last round that was run."""
        return self.tables[-1]

    @property
    def rounds_run(self) -> int:
        """How many rounds of deliberation followed the independent answers."""
        return len(self.tables) - 1
