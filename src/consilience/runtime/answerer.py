"""What may stand behind a seat instead of one call to a model: anything that answers an inquiry in recorded steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from consilience.core.outcomes import Outcome
from consilience.core.packet import EvidenceItem
from consilience.core.panel import Seat
from consilience.core.question import Question
from consilience.core.turn import Turn, TurnKind
from consilience.evidence.views import View
from consilience.models.request import Effort
from consilience.runtime.state import State
from consilience.runtime.steps import Steps


@dataclass(frozen=True)
class Inquiry:
    """One turn that a seat is to take in steps of its own.

    Attributes:
        question: The question asked.
        seat: Who answers.
        number: 1-based place of the seat on the panel.
        alone: There is one seat only.
        turn: What is asked for.
        view: What the seat sees, with what was gathered for it so far.
        view_block: The same as every prompt of the seat begins with.
        state: What it is shown besides, such as arguments; None for its view alone.
        gathered: Evidence that others gathered and it is shown.
        preamble: Shared text of the application's roles.
        tag: The item's fence tag.
        max_output_tokens: Output limit of a call.
        effort: Reasoning effort.
        replicate: Index that tells apart samples of one prompt.
    """

    question: Question
    seat: Seat
    number: int
    alone: bool
    turn: Turn
    view: View
    view_block: str
    state: State | None
    gathered: tuple[EvidenceItem, ...]
    preamble: str
    tag: str
    max_output_tokens: int
    effort: Effort
    replicate: int


@dataclass(frozen=True)
class Inquired:
    """What came of an inquiry.

    Attributes:
        outcome: As of any turn.
        evidence: What was gathered and kept, for the seat's later turns and for those who are shown it.
        log: How it went, as JSON values; stands in the transcript.
        summary: The part of it that the journal keeps.
    """

    outcome: Outcome
    evidence: tuple[EvidenceItem, ...] = ()
    log: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)


class Answerer(Protocol):
    """Takes certain kinds of turn in steps of its own; protocols do not know which."""

    @property
    def turns(self) -> Collection[TurnKind]:
        """The kinds of turn it takes; all others are one call each."""
        ...

    def room(self, turn: TurnKind) -> Sequence[int]:
        """Return for each step of a turn how many bytes of what it gathered may stand in the prompt."""
        ...

    async def answer(self, inquiry: Inquiry, steps: Steps) -> Inquired:
        """Answer in steps.

        Raises:
            BudgetError: The cap does not bear the next call.
            JournalError: The record cannot be written.
            StoppedError: The run was asked to stop.
        """
        ...
