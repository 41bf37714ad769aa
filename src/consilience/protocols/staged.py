"""A panel, then a debate of two advocates, then a supervisor: stages that a declared rule makes a final answer of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consilience.core.answers import Probability
from consilience.core.deliberation import Deliberation, Stages, Table, first_table, present
from consilience.core.outcomes import Outcome
from consilience.core.question import Kind
from consilience.core.showing import Ask, Planned, Seating, Shown
from consilience.core.turn import Turn
from consilience.errors import PlanError
from consilience.protocols.adversarial import (
    ADVOCATES,
    JUDGE,
    MOST_ROUNDS,
    Debate,
    argue,
    log_odds,
    planned_arguments,
)
from consilience.protocols.base import Protocol, Session, ask_all, planned_rounds

SUPERVISOR = "supervisor"
STAGED_RULES = ("blend", "strict")
"""Rules that read the stages; nobody said what they give."""


@dataclass(frozen=True)
class Staged(Protocol):
    """Independent answers; a debate where they are far enough apart; a supervisor who is shown all of it.

    The members' answers alone enter the rules of aggregation. What the stages add stands in rows of its own: those who
    judged and oversaw, and the rules that blend the stages.

    Attributes:
        rounds: Most rounds of arguments, from 0 (no debate) to 3.
        consensus_gap: Arguing ends early when the advocates' log-odds differ by less.
        least_spread: There is no debate where the members' log-odds span less.
        judge: One who took no side answers after the debate.
        supervise: A supervisor answers last.

    Raises:
        PlanError: A parameter is out of range.

    Example:
        >>> seating = Seating(("a", "b"), {"advocate_yes": "c", "advocate_no": "d", "judge": "e", "supervisor": "f"})
        >>> [planned.seat for planned in Staged(rounds=1).plan(seating)]
        ['a', 'b', 'c', 'd', 'f']
    """

    name: ClassVar[str] = "staged"
    kinds: ClassVar[tuple[Kind, ...]] = ("probability",)
    parts: ClassVar[tuple[str, ...]] = (*ADVOCATES, JUDGE, SUPERVISOR)
    least_members: ClassVar[int] = 2
    rounds: int = 3
    consensus_gap: float = 0.2
    least_spread: float = 0.3
    judge: bool = False
    supervise: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.rounds <= MOST_ROUNDS:
            raise PlanError(f"{self.rounds} rounds of arguments", hint=f"Give from 0 to {MOST_ROUNDS}.")
        for name in ("consensus_gap", "least_spread"):
            if getattr(self, name) < 0:
                raise PlanError(f"{name} is {getattr(self, name)}", hint="Give a difference of log-odds from 0 up.")

    async def run(self, session: Session) -> Deliberation:
        """Ask the members, let the advocates argue, then ask judge and supervisor."""
        seats = session.seating.parts
        table = first_table(session.seating.members, await ask_all(session, Turn(kind="estimate", round=0)))
        spread = _spread(table)
        debate = Debate((), (), 0, self.consensus_gap)
        if spread is not None and spread >= self.least_spread:
            debate = await argue(session, rounds=self.rounds, consensus_gap=self.consensus_gap)
        after: dict[str, Outcome] = {}
        if self.judge and debate.said:
            turn = Turn(kind="judgement", round=debate.rounds + 1)
            (after[JUDGE],) = await session.ask([Ask(seats[JUDGE], turn, Shown(arguments=debate.said))])
        if self.supervise:
            turn = Turn(kind="supervision", round=debate.rounds + 1)
            shown = Shown(table=table, arguments=debate.said)
            (after[SUPERVISOR],) = await session.ask([Ask(seats[SUPERVISOR], turn, shown)])
        told = {
            name: first_table([seats[name]], [outcome], round_=debate.rounds + 1)[0] for name, outcome in after.items()
        }
        oversaw = told[SUPERVISOR].answer if SUPERVISOR in told else None
        return Deliberation(
            tables=(table,),
            variants=told,
            stages=Stages(debate.last, debate.consensus, oversaw if isinstance(oversaw, Probability) else None),
            notes={"spread": spread, **debate.told()},
        )

    def variants(self) -> tuple[str, ...]:
        """Return who else answers, and the rules that read the stages."""
        asked = ((JUDGE, self.judge and self.rounds > 0), (SUPERVISOR, self.supervise))
        return (*(name for name, wanted in asked if wanted), *STAGED_RULES)

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return the members' turns, all arguments, judgement and supervision."""
        members = planned_rounds(seating, [("estimate", 0)])
        arguments = planned_arguments(seating, self.rounds)
        later = self.rounds + 1
        judged = [Planned(seating.parts[JUDGE], Turn(kind="judgement", round=later), len(arguments))]
        overseen = Planned(
            seating.parts[SUPERVISOR], Turn(kind="supervision", round=later), len(members) + len(arguments)
        )
        return (
            *members,
            *arguments,
            *(judged if self.judge and self.rounds else ()),
            *([overseen] if self.supervise else ()),
        )


def _spread(table: Table) -> float | None:
    """Return the range of the members' log-odds; None where fewer than two answered."""
    odds = [log_odds(answer.p_yes) for _, answer in present(table) if isinstance(answer, Probability)]
    return max(odds) - min(odds) if len(odds) > 1 else None
