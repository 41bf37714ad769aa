"""One question put to one panel: what each seat is asked and recorded to have said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from consilience.core.answers import CritiqueSet
from consilience.core.canonical import text_hash
from consilience.core.contracts import Expected
from consilience.core.deliberation import Table
from consilience.core.outcomes import Answered, Outcome
from consilience.core.panel import Seat
from consilience.core.turn import Turn
from consilience.evidence.verification import Flag, verify_answer
from consilience.journal.budget import Envelope
from consilience.journal.events import Where
from consilience.runtime.briefing import Briefing
from consilience.runtime.gather import gather
from consilience.runtime.state import Shown, committee_state
from consilience.runtime.turn import Taken, TurnTaker


@dataclass(frozen=True)
class TurnRecord:
    """One turn of one seat, as a transcript tells it."""

    seat: Seat
    turn: Turn
    taken: Taken
    flags: tuple[Flag, ...]
    shown: Shown | None
    system_sha256: str
    view_sha256: str


class ItemSession:
    """The session that a protocol is given for one item; it implements `consilience.protocols.base.Session`.

    Args:
        briefing: What the seats are shown.
        taker: Takes and records turns.

    Attributes:
        question: The question asked.
        seats: The members' labels.
        records: Every turn taken so far, stage by stage, in seat order.
        envelope: What the item holds against the spend cap, once it is admitted.
    """

    def __init__(self, briefing: Briefing, taker: TurnTaker) -> None:
        self.question = briefing.item.question
        self.seats = tuple(seat.label for seat in briefing.seats)
        self.records: list[TurnRecord] = []
        self.envelope: Envelope | None = None
        self._briefing = briefing
        self._taker = taker
        self._visible = [frozenset(seen.evidence_ids_visible) for seen in briefing.views]

    async def ask_all(
        self, turn: Turn, *, table: Table | None = None, critiques: Mapping[str, CritiqueSet] | None = None
    ) -> tuple[Outcome, ...]:
        """Ask all seats at once and return their outcomes in seat order."""
        jobs = [partial(self._ask, index, turn, table, critiques or {}) for index in range(len(self._briefing.seats))]
        records = await gather(jobs)
        self.records.extend(records)
        return tuple(record.taken.outcome for record in records)

    async def _ask(
        self, index: int, turn: Turn, table: Table | None, critiques: Mapping[str, CritiqueSet]
    ) -> TurnRecord:
        seat = self._briefing.seats[index]
        shown = None
        if table is not None:
            shown = committee_state(
                question=self.question,
                turn=turn,
                seat=seat.label,
                table=table,
                critiques=critiques,
                visible=self._visible[index],
                seed=self._briefing.settings.seed,
            )
        where = Where(self.question.id, turn.round, seat.label, turn.kind, turn.sample)
        taken = await self._taker.take(
            self._briefing.request(index, turn, shown),
            Expected(self.question, turn.yields, seat.label, self.seats),
            where=where,
            role=seat.role.id,
            tag=self._briefing.tag,
            envelope=self.envelope,
        )
        flags: tuple[Flag, ...] = ()
        if isinstance(taken.outcome, Answered) and not isinstance(taken.outcome.said, CritiqueSet):
            flags = verify_answer(
                taken.outcome.said, view=self._briefing.views[index], packet=self._briefing.item.packet
            )
        self._taker.record(taken, where=where, data=_recorded(shown, flags))
        return TurnRecord(
            seat,
            turn,
            taken,
            flags,
            shown,
            text_hash(self._briefing.systems[seat.label]),
            self._briefing.views[index].sha256,
        )


def _recorded(shown: Shown | None, flags: Sequence[Flag]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if shown is not None:
        data |= {"order": list(shown.order), "consensus_of_others": shown.consensus_of_others}
    if flags:
        data["flags"] = [flag.model_dump(mode="json") for flag in flags]
    return data
