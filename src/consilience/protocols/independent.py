"""Independent answers: every seat once, concurrently, knowing nothing of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consilience.core.deliberation import Deliberation, first_table
from consilience.core.showing import Planned, Seating
from consilience.core.turn import Turn
from consilience.protocols.base import Protocol, Session, ask_all, planned_rounds


@dataclass(frozen=True)
class Independent(Protocol):
    """Round 0 only. With one seat this is the single agent (arm E), with all of them the independent panel (arm F).

    Example:
        >>> [planned.turn.kind for planned in Independent().plan(Seating(("analyst_01", "analyst_02")))]
        ['estimate', 'estimate']
    """

    name: ClassVar[str] = "independent"

    async def run(self, session: Session) -> Deliberation:
        """Ask every seat once."""
        outcomes = await ask_all(session, Turn(kind="estimate", round=0))
        return Deliberation(tables=(first_table(session.seating.members, outcomes),))

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return one estimate per seat."""
        return planned_rounds(seating, [("estimate", 0)])
