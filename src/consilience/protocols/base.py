"""What a protocol is, and the small session it is given."""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from consilience.core.answers import CritiqueSet
from consilience.core.deliberation import Deliberation, Table
from consilience.core.outcomes import Answered, Outcome
from consilience.core.question import Kind, Question
from consilience.core.turn import Turn, TurnKind

ALL_KINDS: tuple[Kind, ...] = ("estimate", "probability", "distribution", "choice")


class Session(typing.Protocol):
    """One question put to one panel. The only way a protocol can reach a member."""

    @property
    def question(self) -> Question:
        """The question asked."""
        ...

    @property
    def seats(self) -> tuple[str, ...]:
        """The members' labels, in seat order."""
        ...

    async def ask_all(
        self, turn: Turn, *, table: Table | None = None, critiques: Mapping[str, CritiqueSet] | None = None
    ) -> tuple[Outcome, ...]:
        """Ask all members at once and return their outcomes in seat order.

        Args:
            turn: What is asked.
            table: Everybody's standings, shown to each member without its own row.
            critiques: By author; each member is shown those addressed to it, the author hidden.
        """
        ...


@dataclass(frozen=True)
class Protocol(ABC):
    """A protocol: a frozen dataclass whose fields are its parameters.

    Attributes:
        name: Registry name.
        kinds: The answer kinds it serves.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[Kind, ...]] = ALL_KINDS

    @abstractmethod
    async def run(self, session: Session) -> Deliberation:
        """Ask in this protocol's order and return who stood where after every round."""

    @abstractmethod
    def plan(self) -> tuple[tuple[TurnKind, int], ...]:
        """Return the turns every seat takes when nothing stops early, as (kind, round)."""


def critiques_said(seats: tuple[str, ...], outcomes: tuple[Outcome, ...]) -> dict[str, CritiqueSet]:
    """Return the critiques by author; members that gave none are absent."""
    return {
        seat: outcome.said
        for seat, outcome in zip(seats, outcomes, strict=True)
        if isinstance(outcome, Answered) and isinstance(outcome.said, CritiqueSet)
    }
