"""Controls for what moves a member in a revision: asked again alone, shown peers only, evidence only, or moved peers.

Without them, a member's pull towards the others cannot be told from its own second thoughts, nor from the evidence that
the others brought (statistics of conformity, λ and ζ).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from consilience.core.deliberation import Deliberation, Stopped, Table, first_table, has_quorum, next_table
from consilience.core.question import Kind
from consilience.core.showing import Planned, Seating, Shown
from consilience.core.turn import Turn, TurnKind
from consilience.errors import PlanError
from consilience.protocols.base import Protocol, Session, ask_all, planned_rounds
from consilience.protocols.settling import check_rounds


@dataclass(frozen=True)
class Control(Protocol):
    """Independent answers, then revisions on what the control shows; nothing stops it early.

    Attributes:
        rounds: Rounds of revision, from 1 to 20.

    Raises:
        PlanError: ``rounds`` is out of range.
    """

    rounds: int = 1

    def __post_init__(self) -> None:
        check_rounds(self.rounds, 0.0, what=f"{self.name} control")

    @abstractmethod
    def shown(self, table: Table) -> Shown:
        """Return what a member is shown in a revision besides its view."""

    async def run(self, session: Session) -> Deliberation:
        """Ask in rounds; every member revises on the same table."""
        table = first_table(session.seating.members, await ask_all(session, Turn(kind="estimate", round=0)))
        tables = [table]
        for round_ in range(1, self.rounds + 1):
            if not has_quorum(table):
                return Deliberation(tuple(tables), Stopped("no_quorum", round_ - 1))
            revised = await ask_all(session, Turn(kind="revision", round=round_), self.shown(table))
            table = next_table(table, revised, round_=round_)
            tables.append(table)
        return Deliberation(tuple(tables))

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return one estimate, then a revision per round."""
        rounds: list[tuple[TurnKind, int]] = [("estimate", 0)]
        return planned_rounds(seating, [*rounds, *(("revision", number) for number in range(1, self.rounds + 1))])


@dataclass(frozen=True)
class Reask(Control):
    """Asked again with nothing but its own answer: spontaneous revision.

    Example:
        >>> Reask().shown(()).others
        'hidden'
    """

    name: ClassVar[str] = "reask"

    def shown(self, table: Table) -> Shown:
        """Return its own answer alone."""
        return Shown(table=table, others="hidden")


@dataclass(frozen=True)
class PeersOnly(Control):
    """Shown the others' numbers without a reason: social information alone.

    Example:
        >>> PeersOnly().shown(()).others
        'numbers'
    """

    name: ClassVar[str] = "peers_only"
    least_members: ClassVar[int] = 2

    def shown(self, table: Table) -> Shown:
        """Return the table of numbers."""
        return Shown(table=table, others="numbers")


@dataclass(frozen=True)
class EvidenceOnly(Control):
    """Shown the whole packet and nobody's answer: what the evidence outside its view is worth to it.

    Example:
        >>> EvidenceOnly().shown(()).whole_packet
        True
    """

    name: ClassVar[str] = "evidence_only"

    def shown(self, table: Table) -> Shown:
        """Return its own answer and the whole packet."""
        return Shown(table=table, others="hidden", whole_packet=True)


@dataclass(frozen=True)
class Displaced(Control):
    """Shown the others' numbers, all moved by one step whose sign is drawn per member: an instrument for the pull.

    Attributes:
        step: How far, as a share (on the logarithm of positive quantities, on the log-odds of probabilities).

    Raises:
        PlanError: The step is not between 0 and 1.

    Example:
        >>> Displaced(step=0.2).shown(()).displaced
        0.2
    """

    name: ClassVar[str] = "displaced"
    kinds: ClassVar[tuple[Kind, ...]] = ("estimate", "probability")
    least_members: ClassVar[int] = 2
    step: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.step < 1:
            raise PlanError(f"others displaced by {self.step}", hint="Give a share between 0 and 1, such as 0.1.")

    def shown(self, table: Table) -> Shown:
        """Return the table of numbers, moved."""
        return Shown(table=table, others="numbers", displaced=self.step)
