"""One question put to one panel: what each seat is asked and recorded to have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from consilience.core.answers import CritiqueSet
from consilience.core.canonical import canonical_json, text_hash
from consilience.core.contracts import Expected
from consilience.core.outcomes import Answered, Outcome
from consilience.core.packet import EvidenceItem
from consilience.core.panel import Seat, seating_of
from consilience.core.showing import NOTHING, Ask
from consilience.core.turn import Turn
from consilience.evidence.verification import Flag, verify_answer
from consilience.evidence.views import GATHERED, View, with_gathered
from consilience.journal.budget import Envelope
from consilience.journal.events import Where
from consilience.runtime.answerer import Answerer, Inquiry
from consilience.runtime.briefing import Briefing
from consilience.runtime.gather import gather
from consilience.runtime.state import Recipient, State, state_of
from consilience.runtime.steps import Steps
from consilience.runtime.turn import Taken, TurnTaker


@dataclass(frozen=True)
class TurnRecord:
    """One turn of one seat, as a transcript tells it; turns of one stage were asked at once.

    Attributes:
        log: How a turn of several steps went; empty for one call.
    """

    stage: int
    seat: Seat
    turn: Turn
    taken: Taken
    flags: tuple[Flag, ...]
    state: State | None
    system_sha256: str
    view_sha256: str
    log: dict[str, Any] = field(default_factory=dict)


class ItemSession:
    """The session that a protocol is given for one item; it implements `consilience.protocols.base.Session`.

    Args:
        briefing: What the seats are shown.
        taker: Takes and records turns.
        answerer: Takes some kinds of turn in steps of its own; None where every turn is one call.

    Attributes:
        question: The question asked.
        seating: Who is a member, and who has a part beside the members.
        records: Every turn taken so far, stage by stage, in the order asked.
        envelope: What the item holds against the spend cap, once it is admitted.
    """

    def __init__(self, briefing: Briefing, taker: TurnTaker, answerer: Answerer | None = None) -> None:
        self.question = briefing.item.question
        self.seating = seating_of(briefing.seats)
        self.records: list[TurnRecord] = []
        self.envelope: Envelope | None = None
        self._briefing = briefing
        self._taker = taker
        self._answerer = answerer
        self._gathered: dict[str, tuple[EvidenceItem, ...]] = {}
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
        gathered = self._gathered_for(label)
        view = with_gathered(brief.whole if ask.shown.whole_packet else brief.view(label), gathered)
        state = None
        if ask.shown != NOTHING:
            to = Recipient(label, frozenset(view.evidence_ids_visible), self._flags.get(label, ()))
            state = state_of(ask.shown, to=to, question=self.question, turn=turn, seed=brief.settings.seed)
        where = Where(self.question.id, turn.round, label, turn.kind, turn.sample)
        if self._answerer is not None and turn.kind in self._answerer.turns:
            inquiry = brief.inquiry(label, turn, state, view=view, gathered=gathered)
            return await self._inquire(self._answerer, inquiry, where, stage)
        taken = await self._taker.take(
            brief.request(label, turn, state, whole=ask.shown.whole_packet, gathered=gathered),
            Expected(self.question, turn.yields, self._addressees(label, turn)),
            where=where,
            role=seat.role.id,
            tag=brief.tag,
            envelope=self.envelope,
        )
        flags = self._flagged(taken.outcome, view)
        self._taker.record(taken, where=where, data=_noted(state, flags))
        return TurnRecord(stage, seat, turn, taken, flags, state, text_hash(brief.systems[label]), view.sha256)

    async def _inquire(self, answerer: Answerer, inquiry: Inquiry, where: Where, stage: int) -> TurnRecord:
        seat = inquiry.seat
        steps = Steps(self._taker, where=where, role=seat.role.id, envelope=self.envelope)
        found = await answerer.answer(inquiry, steps)
        self._gathered[seat.label] = found.evidence
        view = with_gathered(self._briefing.view(seat.label), (*inquiry.gathered, *found.evidence))
        flags = self._flagged(found.outcome, view)
        taken = Taken(found.outcome, tuple(steps.calls), live=steps.recorded is None)
        self._taker.record(taken, where=where, data=_noted(inquiry.state, flags) | found.summary)
        system = text_hash(self._briefing.systems[seat.label])
        return TurnRecord(stage, seat, inquiry.turn, taken, flags, inquiry.state, system, view.sha256, found.log)

    def _gathered_for(self, label: str) -> tuple[EvidenceItem, ...]:
        """Return what a seat gathered itself; one beside the members, who gather for it, what all of them did."""
        if label in self.seating.members or label in self._gathered:
            return self._gathered.get(label, ())
        return once([item for seat in self.seating.members for item in self._gathered.get(seat, ())])

    def _flagged(self, outcome: Outcome, view: View) -> tuple[Flag, ...]:
        if not isinstance(outcome, Answered) or isinstance(outcome.said, CritiqueSet):
            return ()
        packet = self._briefing.item.packet
        gathered = [section for section in view.sections if section.code == GATHERED]
        if gathered and GATHERED not in packet.sections:
            packet = packet.with_section(gathered[0])
        return verify_answer(outcome.said, view=view, packet=packet)

    def _addressees(self, label: str, turn: Turn) -> tuple[str, ...]:
        if turn.kind == "self_critique":
            return (label,)
        return tuple(member for member in self.seating.members if member != label)


def _noted(state: State | None, flags: Sequence[Flag]) -> dict[str, Any]:
    """Return what the journal keeps of a turn beside its outcome."""
    told = {"flags": [flag.model_dump(mode="json") for flag in flags]} if flags else {}
    return ({} if state is None else state.recorded()) | told


def once(items: Sequence[EvidenceItem]) -> tuple[EvidenceItem, ...]:
    """Return each distinct piece of evidence once, the first that was gathered, in order.

    Example:
        >>> same = {"url": "https://a.example/", "title": "A", "text": "a"}
        >>> [one.id for one in once([EvidenceItem(id="D101", content=same), EvidenceItem(id="D201", content=same)])]
        ['D101']
    """
    found: dict[bytes, EvidenceItem] = {}
    for item in items:
        found.setdefault(canonical_json(item.content), item)
    return tuple(found.values())
