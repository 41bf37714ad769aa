"""What a protocol is, and the small session it is given."""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from consilience.core.answers import CritiqueSet
from consilience.core.deliberation import Deliberation
from consilience.core.outcomes import Answered, Outcome
from consilience.core.question import Kind, Question
from consilience.core.showing import NOTHING, Ask, Planned, Seating, Shown
from consilience.core.turn import Turn, TurnKind

ALL_KINDS: tuple[Kind, ...] = ("estimate", "probability", "distribution", "choice")


class Session(typing.Protocol):
    """One question put to one panel. The only way a protocol can reach a member."""

    @property
    def question(self) -> Question:
        """The question asked."""
        ...

    @property
    def seating(self) -> Seating:
        """Who is a member, and who has a part beside the members."""
        ...

    async def ask(self, asks: Sequence[Ask]) -> tuple[Outcome, ...]:
        """Ask all of these at once and return their outcomes in the order given."""
        ...


async def ask_all(session: Session, turn: Turn, shown: Shown = NOTHING) -> tuple[Outcome, ...]:
    """Ask every member the same at once and return their outcomes in seat order."""
    return await session.ask([Ask(seat, turn, shown) for seat in session.seating.members])


@dataclass(frozen=True)
class Protocol(ABC):
    """A protocol: a frozen dataclass whose fields are its parameters.

    Attributes:
        name: Registry name.
        kinds: The answer kinds it serves.
        parts: Seats it needs beside the members.
        least_members: Below so many members it cannot work.
        most_members: Above so many it would leave some unasked; None for no limit.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[Kind, ...]] = ALL_KINDS
    parts: ClassVar[tuple[str, ...]] = ()
    least_members: ClassVar[int] = 1
    most_members: ClassVar[int | None] = None

    @abstractmethod
    async def run(self, session: Session) -> Deliberation:
        """Ask in this protocol's order and return who stood where after every round."""

    def variants(self) -> tuple[str, ...]:
        """Return the names of other final answers that a course of this protocol has besides its table."""
        return ()

    @abstractmethod
    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return the turns that will be taken when nothing stops early, in order."""


def planned_rounds(seating: Seating, turns: Sequence[tuple[TurnKind, int]]) -> tuple[Planned, ...]:
    """Return turns that every member takes, those after round 0 with everybody else's answer in view.

    Example:
        >>> [planned.rows for planned in planned_rounds(Seating(("a", "b")), [("estimate", 0), ("revision", 1)])]
        [0, 0, 1, 1]
    """
    others = len(seating.members) - 1
    return tuple(
        Planned(seat, Turn(kind=kind, round=round_), others if round_ else 0)
        for kind, round_ in turns
        for seat in seating.members
    )


def critiques_said(seats: tuple[str, ...], outcomes: tuple[Outcome, ...]) -> dict[str, CritiqueSet]:
    """Return the critiques by author; members that gave none are absent."""
    return {
        seat: outcome.said
        for seat, outcome in zip(seats, outcomes, strict=True)
        if isinstance(outcome, Answered) and isinstance(outcome.said, CritiqueSet)
    }
