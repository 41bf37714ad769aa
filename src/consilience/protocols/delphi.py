"""Delphi: rounds of revision on the anonymous table, without a word of critique."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consilience.core.deliberation import Deliberation, Stopped, first_table, has_quorum, next_table
from consilience.core.showing import Planned, Seating, Shown
from consilience.core.turn import Turn, TurnKind
from consilience.protocols.base import Protocol, Session, ask_all, planned_rounds
from consilience.protocols.settling import check_rounds, settled


@dataclass(frozen=True)
class Delphi(Protocol):
    """Independent answers, then rounds in which everybody sees the others' answers with reasons and revises its own.

    Reference: Dalkey & Helmer 1963.

    Attributes:
        rounds: Rounds of revision, from 1 to 20.
        settled_change: Stop when the spread of answers changes by less than this share (never after the last round).

    Raises:
        PlanError: A parameter is out of range.

    Example:
        >>> [planned.turn.kind for planned in Delphi(rounds=2).plan(Seating(("analyst_01",)))]
        ['estimate', 'revision', 'revision']
    """

    name: ClassVar[str] = "delphi"
    least_members: ClassVar[int] = 2
    rounds: int = 2
    settled_change: float = 0.01

    def __post_init__(self) -> None:
        check_rounds(self.rounds, self.settled_change, what="delphi")

    async def run(self, session: Session) -> Deliberation:
        """Ask in rounds; every member revises on the same table."""
        table = first_table(session.seating.members, await ask_all(session, Turn(kind="estimate", round=0)))
        tables = [table]
        for round_ in range(1, self.rounds + 1):
            if not has_quorum(table):
                return Deliberation(tuple(tables), Stopped("no_quorum", round_ - 1))
            revised = await ask_all(session, Turn(kind="revision", round=round_), Shown(table=table))
            before, table = table, next_table(table, revised, round_=round_)
            tables.append(table)
            stopped = settled(before, table, session.question, round_=round_, share=self.settled_change)
            if stopped is not None and round_ < self.rounds:
                return Deliberation(tuple(tables), stopped)
        return Deliberation(tuple(tables))

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return one estimate, then a revision per round."""
        rounds: list[tuple[TurnKind, int]] = [("estimate", 0)]
        return planned_rounds(seating, [*rounds, *(("revision", number) for number in range(1, self.rounds + 1))])
