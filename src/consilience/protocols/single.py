"""One agent alone, at the price of a panel: the same prompt many times, then criticism of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consilience.core.answers import CritiqueSet
from consilience.core.deliberation import Deliberation, Standing, first_table
from consilience.core.outcomes import Answered
from consilience.core.showing import Ask, Planned, Seating, Shown
from consilience.core.turn import Turn
from consilience.errors import PlanError
from consilience.protocols.base import Protocol, Session

MOST_SAMPLES = 1_000
SELF_REFINE = "self_refine"
REFINE_TURNS = (Turn(kind="self_critique", round=1), Turn(kind="self_refine", round=1))


def _sample_label(index: int) -> str:
    return f"sample_{index + 1:03d}"


@dataclass(frozen=True)
class Single(Protocol):
    """One seat sampled k times on one prompt, then a critique of its first sample by itself, and a refined answer.

    The samples are aggregated as a panel's answers are; the refined answer is a row of its own, ``self_refine``.

    References: Wang et al. 2023 (self-consistency); Madaan et al. 2023 (self-refine).

    Attributes:
        samples: k, from 1 to 1,000.
        refine: Whether the first sample is criticised and refined.

    Raises:
        PlanError: ``samples`` is out of range.

    Example:
        >>> len(Single(samples=12).plan(Seating(("analyst_01",))))
        14
    """

    name: ClassVar[str] = "single"
    most_members: ClassVar[int | None] = 1
    samples: int = 12
    refine: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MOST_SAMPLES:
            raise PlanError(f"{self.samples} samples of a single agent", hint=f"Give from 1 to {MOST_SAMPLES}.")

    async def run(self, session: Session) -> Deliberation:
        """Take all samples at once, then refine the first."""
        (seat,) = session.seating.members
        outcomes = await session.ask([Ask(seat, turn) for turn in self._sampling()])
        table = first_table([_sample_label(index) for index in range(self.samples)], outcomes)
        if not self.refine:
            return Deliberation(tables=(table,), sampled=True)
        first = first_table([seat], outcomes[:1])
        refined = await self._refined(session, seat, first)
        return Deliberation(tables=(table,), variants={SELF_REFINE: refined}, sampled=True)

    async def _refined(self, session: Session, seat: str, first: tuple[Standing, ...]) -> Standing:
        """Return the standing of the refined answer; a step that came to nothing leaves it without one."""
        if first[0].answer is None:
            return first[0]
        critique, refine = REFINE_TURNS
        (said,) = await session.ask([Ask(seat, critique, Shown(table=first, others="hidden"))])
        if not isinstance(said, Answered) or not isinstance(said.said, CritiqueSet):
            return Standing(seat, said, None, None)
        shown = Shown(table=first, others="hidden", critiques={seat: said.said})
        (refined,) = await session.ask([Ask(seat, refine, shown)])
        return first_table([seat], [refined], round_=refine.round)[0]

    def _sampling(self) -> list[Turn]:
        return [Turn(kind="estimate", round=0, sample=index) for index in range(self.samples)]

    def variants(self) -> tuple[str, ...]:
        """Return the refined answer, where there is one."""
        return (SELF_REFINE,) if self.refine else ()

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return the samples, then the two turns of refining."""
        (seat,) = seating.members
        return tuple(Planned(seat, turn) for turn in (*self._sampling(), *(REFINE_TURNS if self.refine else ())))
