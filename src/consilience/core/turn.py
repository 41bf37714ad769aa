"""A turn: one structured call of one seat, with its corrective retries."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from consilience.core.question import Strict

TurnKind = Literal[
    "estimate",
    "critique",
    "revision",
    "skeptic_verdict",
    "self_critique",
    "self_refine",
    "argument",
    "judgement",
    "supervision",
    "moderation",
]


class Turn(Strict):
    """Which turn of a seat this is.

    Attributes:
        kind: What is asked for.
        round: 0 for independent answers; r >= 1 for what follows them.
        sample: Replicate index when one prompt is sampled several times.
    """

    kind: TurnKind
    round: int = Field(ge=0)
    sample: int = Field(default=0, ge=0)

    @property
    def yields(self) -> Literal["answer", "critiques"]:
        """Which field of the envelope the turn must fill."""
        return "critiques" if self.kind in {"critique", "self_critique"} else "answer"
