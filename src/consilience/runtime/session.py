"""One question put to one panel: what each seat is asked and recorded to have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from consilience.core.answers import CritiqueSet
from consilience.core.canonical import text_hash
from consilience.core.contracts import Expected
from consilience.core.outcomes import Answered, Outcome
from consilience.core.panel import Seat, seating_of
from consilience.core.showing import NOTHING, Ask
from consilience.core.turn import Turn
from consilience.evidence.verification import Flag, verify_answer
from consilience.journal.budget import Envelope
from consilience.journal.events import Where
from consilience.runtime.briefing import Briefing
from consilience.runtime.gather import gather
from consilience.runtime.state import Recipient, State, state_of
from consilience.runtime.turn import Taken, TurnTaker


@dataclass(frozen=True)
class TurnRecord:
    """One turn of one seat, as a transcript tells it; turns of one stage were asked at once."""

    stage: int
    seat: Seat
    turn: Turn
    taken: Taken
    flags: tuple[Flag, ...]
    state: State | None
    system_sha256: str
    view_sha256: str


class ItemSession:
    """The session that a protocol is given for one item; it implements `consilience.protocols.base.Session`.

    Args:
        briefing: What the seats are shown.
        taker: Takes and records turns.

    Attributes:
        question: The question asked.
        seating: Who is a member, and who has a part beside the members.
        records: Every turn taken so far, stage by stage, in the order asked.
        envelope: What the item holds against the spend cap, once it is admitted.
    """

    def __init__(self, briefing: Briefing, taker: TurnTaker) -> None:
        self.question = briefing.item.question
        self.seating = seating_of(briefing.seats)
        self.records: list[TurnRecord] = []
        self.envelope: Envelope | None = None
        self._briefing = briefing
        self._taker = taker
        self._flags: dict[str, tuple[Flag, ...]] = {}
        self._stage = 0

    async def ask(self, asks: Sequence[Ask]) -> tuple[Outcome, ...]:
        """Ask all of these at once and return their outcomes in the order given."""
        self._stage += 1
        records = await gather([partial(self._ask, ask, self._stage) for ask in asks])
        self.records.extend(records)
        for record in records:
            if isinstance(record.taken.outcome, Answered) and record.turn.yields == "answer":
                self._flags[record.seat.label] = record.flags
        return tuple(record.taken.outcome for record in records)

    async def _ask(self, ask: Ask, stage: int) -> TurnRecord:
        brief, turn, label = self._briefing, ask.turn, ask.seat
        seat = brief.seat(label)
        view = brief.whole if ask.shown.whole_packet else brief.view(label)
        state = None
        if ask.shown != NOTHING:
            to = Recipient(label, frozenset(view.evidence_ids_visible), self._flags.get(label, ()))
            state = state_of(ask.shown, to=to, question=self.question, turn=turn, seed=brief.settings.seed)
        where = Where(self.question.id, turn.round, label, turn.kind, turn.sample)
        taken = await self._taker.take(
            brief.request(label, turn, state, whole=ask.shown.whole_packet),
            Expected(self.question, turn.yields, self._addressees(label, turn)),
            where=where,
            role=seat.role.id,
            tag=brief.tag,
            envelope=self.envelope,
        )
        flags: tuple[Flag, ...] = ()
        if isinstance(taken.outcome, Answered) and not isinstance(taken.outcome.said, CritiqueSet):
            flags = verify_answer(taken.outcome.said, view=view, packet=brief.item.packet)
        data = ({} if state is None else state.recorded()) | (
            {"flags": [flag.model_dump(mode="json") for flag in flags]} if flags else {}
        )
        self._taker.record(taken, where=where, data=data)
        return TurnRecord(stage, seat, turn, taken, flags, state, text_hash(brief.systems[label]), view.sha256)

    def _addressees(self, label: str, turn: Turn) -> tuple[str, ...]:
        if turn.kind == "self_critique":
            return (label,)
        return tuple(member for member in self.seating.members if member != label)
