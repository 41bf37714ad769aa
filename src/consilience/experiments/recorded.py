"""What a run folder holds of an item: its question and evidence, and the course its turns took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from consilience.core.deliberation import Deliberation
from consilience.core.outcomes import Outcome, outcome_from_json
from consilience.core.packet import Item
from consilience.core.panel import seating_of
from consilience.core.question import Question
from consilience.core.showing import Ask, Seating
from consilience.errors import IntegrityError, reason
from consilience.experiments.plan import Plan
from consilience.journal.events import Where
from consilience.journal.reader import RunState
from consilience.protocols import Protocol, Single


def recorded_items(folder: Path, plan: Plan) -> list[Item]:
    """Return the items of a run from its packets, without truth.

    Raises:
        IntegrityError: A packet is missing or is not the one that was shown.
    """
    items: list[Item] = []
    for item_id, digest in plan.items.items():
        path = folder / "packets" / f"{item_id}.json"
        try:
            item = Item.model_validate_json(path.read_bytes())
        except (OSError, ValueError) as error:
            raise IntegrityError(
                f"{path} cannot be read: {reason(error)}", hint="Restore it from a copy of the run."
            ) from error
        if item.digest != digest:
            raise IntegrityError(
                f"{path} is not the question and packet that were asked", hint="Restore it from a copy of the run."
            )
        items.append(item)
    return items


@dataclass(frozen=True)
class RecordedSession:
    """A session whose members say what they are recorded to have said; nothing is rendered and nobody is called."""

    question: Question
    seating: Seating
    state: RunState

    async def ask(self, asks: Sequence[Ask]) -> tuple[Outcome, ...]:
        """Return the recorded outcomes.

        Raises:
            IntegrityError: A turn is not on record.
        """
        return tuple(
            self._outcome(Where(self.question.id, ask.turn.round, ask.seat, ask.turn.kind, ask.turn.sample))
            for ask in asks
        )

    def _outcome(self, where: Where) -> Outcome:
        ended = self.state.turns.get(where)
        if ended is None:
            raise IntegrityError(
                f"the record holds no turn at {where.label()}", hint="Restore it from a copy of the run."
            )
        return outcome_from_json(ended.outcome)


async def recorded_course(state: RunState, plan: Plan, item: Item) -> Deliberation:
    """Return the course of a finished item as its protocol takes it through the recorded turns.

    Raises:
        IntegrityError: A turn is not on record.
    """
    session = RecordedSession(item.question, seating_of(plan.seats(item.question.id)), state)
    return await _protocol(state, plan, item).run(session)


def _protocol(state: RunState, plan: Plan, item: Item) -> Protocol:
    """Return the protocol an item was asked by; under a match, as its own record says."""
    protocol = plan.make_protocol()
    if plan.match is None or not isinstance(protocol, Single):
        return protocol
    finished = state.items_finished[item.question.id].data
    return replace(protocol, samples=finished["samples"], refine=finished["refine"])
