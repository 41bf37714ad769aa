"""A debate with a blinded skeptic: it takes no part in the rounds and judges their result alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from consilience.core.deliberation import Deliberation, first_table, has_quorum
from consilience.core.showing import Ask, Planned, Seating, Shown
from consilience.core.turn import Turn
from consilience.protocols.base import Protocol, Session
from consilience.protocols.debate import Debate

SKEPTIC = "skeptic"


@dataclass(frozen=True)
class BlindedSkeptic(Protocol):
    """A debate of the members, in which flagged answers must be defended, then a verdict of the skeptic.

    The skeptic sees its view and the final table of numbers; no critique, no reason, no round before. Its verdict is an
    answer of its own and stands beside the members' final ones.

    Attributes:
        rounds: Rounds of the members' debate.
        settled_change: As in a debate.
        flags: Members are shown the verification flags on their answer.

    Raises:
        PlanError: A parameter is out of range.

    Example:
        >>> seating = Seating(("analyst_01", "analyst_02"), {"skeptic": "analyst_03"})
        >>> BlindedSkeptic(rounds=1).plan(seating)[-1].turn.kind
        'skeptic_verdict'
    """

    name: ClassVar[str] = "skeptic"
    parts: ClassVar[tuple[str, ...]] = (SKEPTIC,)
    least_members: ClassVar[int] = 2
    rounds: int = 2
    settled_change: float = 0.01
    flags: bool = True

    def __post_init__(self) -> None:
        self._debate()

    def _debate(self) -> Debate:
        return Debate(rounds=self.rounds, settled_change=self.settled_change, flags=self.flags)

    async def run(self, session: Session) -> Deliberation:
        """Let the members debate, then ask the skeptic, unless there is nothing to judge."""
        course = await self._debate().run(session)
        if not has_quorum(course.final):
            return course
        skeptic = session.seating.parts[SKEPTIC]
        round_ = course.rounds_run + 1
        shown = Shown(table=course.final, others="numbers")
        (outcome,) = await session.ask([Ask(skeptic, Turn(kind="skeptic_verdict", round=round_), shown)])
        return replace(course, verdicts=first_table([skeptic], [outcome], round_=round_))

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return the members' debate, then the verdict."""
        verdict = Turn(kind="skeptic_verdict", round=self.rounds + 1)
        return (*self._debate().plan(seating), Planned(seating.parts[SKEPTIC], verdict, len(seating.members)))
