"""Two advocates argue yes and no in alternation; a judge who was neither answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from consilience.core.answers import Probability
from consilience.core.deliberation import Deliberation, first_table
from consilience.core.outcomes import Answered
from consilience.core.question import Kind
from consilience.core.showing import Argument, Ask, Planned, Seating, Shown
from consilience.core.turn import Turn
from consilience.errors import PlanError
from consilience.protocols.base import Protocol, Session

ADVOCATES = ("advocate_yes", "advocate_no")
JUDGE = "judge"
MOST_ROUNDS = 3
LOGIT_CLIP = 0.005


@dataclass(frozen=True)
class Adversarial(Protocol):
    """Rounds in which each advocate answers the other's last argument, then the judge's answer, which alone counts.

    Advocates and judge see their views; an advocate sees what the other said last, the judge everything that was said.
    A reply that came to nothing is lost and nothing else is. Opening and closing gap are recorded on log-odds.

    Attributes:
        rounds: Rounds of arguments, from 1 to 3.
        consensus_gap: Arguing ends early when the advocates' log-odds differ by less.

    Raises:
        PlanError: A parameter is out of range.

    Example:
        >>> seating = Seating((), {"advocate_yes": "a", "advocate_no": "b", "judge": "c"})
        >>> [planned.seat for planned in Adversarial(rounds=2).plan(seating)]
        ['a', 'b', 'a', 'b', 'c']
    """

    name: ClassVar[str] = "adversarial"
    kinds: ClassVar[tuple[Kind, ...]] = ("probability",)
    parts: ClassVar[tuple[str, ...]] = (*ADVOCATES, JUDGE)
    least_members: ClassVar[int] = 0
    most_members: ClassVar[int | None] = 0
    rounds: int = 3
    consensus_gap: float = 0.2

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= MOST_ROUNDS:
            raise PlanError(f"{self.rounds} rounds of arguments", hint=f"Give from 1 to {MOST_ROUNDS}.")
        if self.consensus_gap < 0:
            raise PlanError(f"consensus_gap is {self.consensus_gap}", hint="Give a difference of log-odds from 0 up.")

    async def run(self, session: Session) -> Deliberation:
        """Let the advocates argue in turn, then ask the judge."""
        seats = session.seating.parts
        debate = await argue(session, rounds=self.rounds, consensus_gap=self.consensus_gap)
        turn = Turn(kind="judgement", round=debate.rounds + 1)
        (verdict,) = await session.ask([Ask(seats[JUDGE], turn, Shown(arguments=debate.said))])
        table = first_table([seats[JUDGE]], [verdict], round_=turn.round)
        return Deliberation(tables=((),), verdicts=table, notes=debate.told())

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return the arguments in order, then the judgement."""
        arguments = planned_arguments(seating, self.rounds)
        judgement = Turn(kind="judgement", round=self.rounds + 1)
        return (*arguments, Planned(seating.parts[JUDGE], judgement, len(arguments)))


@dataclass(frozen=True)
class Debate:
    """What two advocates said to each other.

    Attributes:
        said: Arguments in order; a reply that came to nothing is none.
        gaps: How far apart their log-odds lay after each round in which both had spoken.
        rounds: Rounds that were run.
        consensus_gap: Below it they agree.
    """

    said: tuple[Argument, ...]
    gaps: tuple[float, ...]
    rounds: int
    consensus_gap: float

    @property
    def consensus(self) -> bool:
        """Whether they came to agree."""
        return bool(self.gaps) and self.gaps[-1] < self.consensus_gap

    @property
    def last(self) -> tuple[float, float] | None:
        """Their last probabilities, yes first; None until both have spoken."""
        latest = {argument.side: argument.said for argument in self.said}
        p = [said.p_yes for side in ADVOCATES if isinstance(said := latest.get(side), Probability)]
        return (p[0], p[1]) if len(p) == len(ADVOCATES) else None

    def told(self) -> dict[str, object]:
        """Return what is recorded of it."""
        if not self.gaps:
            return {"rounds_argued": self.rounds, "opening_gap": None, "closing_gap": None, "debate": "no_arguments"}
        opening, closing = self.gaps[0], self.gaps[-1]
        came_to = "reconciled" if self.consensus else "diverged" if closing > opening else "unresolved"
        return {"rounds_argued": self.rounds, "opening_gap": opening, "closing_gap": closing, "debate": came_to}


async def argue(session: Session, *, rounds: int, consensus_gap: float) -> Debate:
    """Let two advocates answer each other's last argument, until they agree or the rounds are over."""
    said: list[Argument] = []
    gaps: list[float] = []
    round_ = 0
    for round_ in range(1, rounds + 1):
        for side in ADVOCATES:
            heard = tuple([argument for argument in said if argument.side != side][-1:])
            turn = Turn(kind="argument", round=round_)
            (outcome,) = await session.ask([Ask(session.seating.parts[side], turn, Shown(arguments=heard))])
            if isinstance(outcome, Answered) and isinstance(outcome.said, Probability):
                said.append(Argument(side, outcome.said))
        gap = _gap(said)
        gaps += [] if gap is None else [gap]
        if gap is not None and gap < consensus_gap:
            break
    return Debate(tuple(said), tuple(gaps), round_, consensus_gap)


def planned_arguments(seating: Seating, rounds: int) -> tuple[Planned, ...]:
    """Return the arguments of a whole debate, in order."""
    return tuple(
        Planned(seating.parts[side], Turn(kind="argument", round=round_), min(1, round_ - 1 + place))
        for round_ in range(1, rounds + 1)
        for place, side in enumerate(ADVOCATES)
    )


def log_odds(p: float) -> float:
    """Return the log-odds of a probability, which counts as no nearer to 0 or 1 than .005.

    Example:
        >>> log_odds(0.5), round(log_odds(1.0), 3)
        (0.0, 5.293)
    """
    clipped = min(max(p, LOGIT_CLIP), 1 - LOGIT_CLIP)
    return math.log(clipped / (1 - clipped))


def _gap(arguments: list[Argument]) -> float | None:
    """Return how far apart the advocates' latest log-odds lie; None until both have spoken."""
    latest = Debate(tuple(arguments), (), 0, 0.0).last
    return None if latest is None else abs(log_odds(latest[0]) - log_odds(latest[1]))
