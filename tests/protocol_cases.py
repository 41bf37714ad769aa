"""Protocols without an engine: a session whose members answer by seat and turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from consilience.core.answers import Choice, Critique, CritiqueSet, Distribution, Estimate, Probability
from consilience.core.deliberation import Deliberation
from consilience.core.outcomes import Answered, Failed, Outcome
from consilience.core.question import Question
from consilience.core.showing import Ask, Planned, Seating
from consilience.core.turn import Turn
from consilience.protocols.base import Protocol
from engine_cases import answer_json, question

MODELS: dict[str, Any] = {
    "estimate": Estimate,
    "probability": Probability,
    "distribution": Distribution,
    "choice": Choice,
}
LOST = Failed(error="TransientModelError", message="overloaded")
Say = Callable[[str, Turn], Outcome]


@dataclass
class FakeSession:
    """A session whose members answer by seat and turn; it notes what a protocol does with it, stage by stage."""

    question: Question
    seating: Seating
    say: Say
    asked: list[tuple[Ask, ...]] = field(default_factory=list)

    async def ask(self, asks: Sequence[Ask]) -> tuple[Outcome, ...]:
        self.asked.append(tuple(asks))
        return tuple(self.say(ask.seat, ask.turn) for ask in asks)

    def turns(self) -> list[tuple[str, Turn]]:
        """Return who was asked what, in order."""
        return [(ask.seat, ask.turn) for stage in self.asked for ask in stage]


def seated(members: int, *parts: str) -> Seating:
    """Return members under neutral labels, and after them a seat for every part."""
    labels = [f"analyst_{number:02d}" for number in range(1, members + len(parts) + 1)]
    return Seating(tuple(labels[:members]), dict(zip(parts, labels[members:], strict=True)))


def turns_of(planned: Sequence[Planned]) -> list[tuple[str, Turn]]:
    return [(one.seat, one.turn) for one in planned]


def answered(kind: Any = "estimate", **changes: Any) -> Outcome:
    said = MODELS[kind].model_validate(answer_json(kind, **changes), strict=False)
    return Answered(said_type=kind, said=said)


def critic(*targets: str) -> Outcome:
    return Answered(
        said_type="critiques",
        said=CritiqueSet(
            critiques=tuple(Critique(target_role=name, agrees=False, points=(), evidence_ids=()) for name in targets)
        ),
    )


def deliberate(
    protocol: Protocol, say: Say, *, kind: Any = "estimate", seats: int = 3, parts: Mapping[str, str] | None = None
) -> tuple[Deliberation, FakeSession]:
    """Let so many members, and a seat for every part of the protocol beside them, go through a protocol."""
    seating = seated(seats, *protocol.parts) if parts is None else Seating(seated(seats).members, parts)
    session = FakeSession(question(kind), seating, say)
    return anyio.run(protocol.run, session), session


def moving(share: float) -> Say:
    """Answers whose spread shrinks by this share in every round."""

    def say(seat: str, turn: Turn) -> Outcome:
        if turn.yields == "critiques":
            return critic()
        number = int(seat[-2:])
        return answered(point=1_000.0 * 1.1 ** ((number - 2) * (1 - share) ** turn.round))

    return say
