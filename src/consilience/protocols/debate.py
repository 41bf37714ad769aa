"""Structured debate: independent answers, then rounds of critique and simultaneous revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consilience.core.deliberation import Deliberation, Stopped, Table, first_table, has_quorum, next_table, present
from consilience.core.kinds import KINDS
from consilience.core.question import Question
from consilience.core.turn import Turn, TurnKind
from consilience.errors import PlanError
from consilience.protocols.base import Protocol, Session, critiques_said

MOST_ROUNDS = 20


@dataclass(frozen=True)
class Debate(Protocol):
    """Rounds r = 1…R of critique from all, then revision from all.

    Attributes:
        rounds: R, from 1 to 20.
        settled_change: Stop when the spread of answers changes by less than this share (never after the last round,
            and never used to choose the best round).

    Raises:
        PlanError: ``rounds`` or ``settled_change`` is out of range.

    Example:
        >>> len(Debate(rounds=2).plan())
        5
    """

    name: ClassVar[str] = "debate"
    rounds: int = 2
    settled_change: float = 0.01

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise PlanError(f"a debate of {self.rounds} rounds is none", hint="Use the independent protocol instead.")
        if self.rounds > MOST_ROUNDS:
            raise PlanError(
                f"a debate of {self.rounds} rounds is more than the {MOST_ROUNDS} that are allowed",
                hint=f"Give from 1 to {MOST_ROUNDS}.",
            )
        if not 0 <= self.settled_change < 1:
            raise PlanError(f"settled_change is {self.settled_change}", hint="Give a share from 0 up to 1.")

    async def run(self, session: Session) -> Deliberation:
        """Ask in rounds; every member revises on the same table, so the order of asking changes nothing."""
        table = first_table(session.seats, await session.ask_all(Turn(kind="estimate", round=0)))
        tables = [table]
        for round_ in range(1, self.rounds + 1):
            if not has_quorum(table):
                return Deliberation(tuple(tables), Stopped("no_quorum", round_ - 1))
            said = critiques_said(
                session.seats, await session.ask_all(Turn(kind="critique", round=round_), table=table)
            )
            revised = await session.ask_all(Turn(kind="revision", round=round_), table=table, critiques=said)
            before, table = table, next_table(table, revised, round_=round_)
            tables.append(table)
            settled = self._settled(before, table, session.question)
            if settled is not None and round_ < self.rounds:
                return Deliberation(tuple(tables), Stopped("settled", round_, *settled))
        return Deliberation(tuple(tables))

    def _settled(self, before: Table, after: Table, question: Question) -> tuple[float, float] | None:
        """Return the spreads before and after when they differ by less than the declared share."""
        spread = KINDS[question.kind].spread
        was = spread([answer for _, answer in present(before)], question)
        now = spread([answer for _, answer in present(after)], question)
        change = abs(now - was) / was if was > 0 else now
        return (was, now) if change < self.settled_change else None

    def plan(self) -> tuple[tuple[TurnKind, int], ...]:
        """Return one estimate, then a critique and a revision per round."""
        rounds: list[tuple[TurnKind, int]] = [("estimate", 0)]
        for round_ in range(1, self.rounds + 1):
            rounds += [("critique", round_), ("revision", round_)]
        return tuple(rounds)
