"""Structured debate: independent answers, then rounds of critique and simultaneous revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consilience.core.deliberation import Deliberation, Stopped, Table, first_table, has_quorum, next_table
from consilience.core.showing import Planned, Seating, Shown
from consilience.core.turn import Turn, TurnKind
from consilience.errors import PlanError
from consilience.protocols.base import Protocol, Session, ask_all, critiques_said, planned_rounds
from consilience.protocols.settling import check_rounds, settled


@dataclass(frozen=True)
class Debate(Protocol):
    """Rounds r = 1…R of critique from all, then revision from all.

    Attributes:
        rounds: R, from 1 to 20.
        settled_change: Stop when the spread of answers changes by less than this share (never after the last round,
            and never used to choose the best round).
        flags: Members whose answer was flagged in verification are shown the flags in their next prompts.
        nested: Rounds whose result is wanted too, of one course instead of separate ones; increasing, the last is R.

    Raises:
        PlanError: A parameter is out of range.

    Example:
        >>> len(Debate(rounds=2).plan(Seating(("analyst_01",))))
        5
    """

    name: ClassVar[str] = "debate"
    least_members: ClassVar[int] = 2
    rounds: int = 2
    settled_change: float = 0.01
    flags: bool = False
    nested: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_rounds(self.rounds, self.settled_change, what="debate")
        rising = all(low < high for low, high in zip(self.nested, self.nested[1:], strict=False))
        if self.nested and (not rising or self.nested[0] < 1 or self.nested[-1] != self.rounds):
            raise PlanError(
                f"nested rounds {', '.join(map(str, self.nested))} of a debate of {self.rounds}",
                hint="Give them in increasing order from 1 up, the last one being the number of rounds.",
            )

    async def run(self, session: Session) -> Deliberation:
        """Ask in rounds; every member revises on the same table, so the order of asking changes nothing."""
        members = session.seating.members
        table = first_table(members, await ask_all(session, Turn(kind="estimate", round=0)))
        tables = [table]
        for round_ in range(1, self.rounds + 1):
            if not has_quorum(table):
                return Deliberation(tuple(tables), Stopped("no_quorum", round_ - 1))
            before, table = table, await self._round(session, table, round_)
            tables.append(table)
            stopped = settled(before, table, session.question, round_=round_, share=self.settled_change)
            if stopped is not None and round_ < self.rounds:
                return Deliberation(tuple(tables), stopped)
        return Deliberation(tuple(tables))

    async def _round(self, session: Session, table: Table, round_: int) -> Table:
        shown = Shown(table=table, flags=self.flags)
        said = await ask_all(session, Turn(kind="critique", round=round_), shown)
        critiques = critiques_said(session.seating.members, said)
        shown = Shown(table=table, flags=self.flags, critiques=critiques)
        return next_table(table, await ask_all(session, Turn(kind="revision", round=round_), shown), round_=round_)

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return one estimate, then a critique and a revision per round."""
        rounds: list[tuple[TurnKind, int]] = [("estimate", 0)]
        for round_ in range(1, self.rounds + 1):
            rounds += [("critique", round_), ("revision", round_)]
        return planned_rounds(seating, rounds)
