"""Independent answers: every seat once, concurrently, knowing nothing of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consilience.core.deliberation import Deliberation, first_table
from consilience.core.turn import Turn, TurnKind
from consilience.protocols.base import Protocol, Session


@dataclass(frozen=True)
class Independent(Protocol):
    """Round 0 only. With one seat this is the single agent (arm E), with all of them the independent panel (arm F)."""

    name: ClassVar[str] = "independent"

    async def run(self, session: Session) -> Deliberation:
        """Ask every seat once."""
        outcomes = await session.ask_all(Turn(kind="estimate", round=0))
        return Deliberation(tables=(first_table(session.seats, outcomes),))

    def plan(self) -> tuple[tuple[TurnKind, int], ...]:
        """Return one estimate per seat."""
        return (("estimate", 0),)
