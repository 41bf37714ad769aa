"""What happened to one item, as data: its transcript, derived from the turns and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from consilience.aggregation.movement import item_diagnostics
from consilience.core.deliberation import Deliberation
from consilience.core.outcomes import outcome_to_json
from consilience.core.packet import Item
from consilience.experiments.diagnostics import told_of_item
from consilience.experiments.rows import Level, status_of
from consilience.experiments.totals import totals
from consilience.models.prices import NANO
from consilience.runtime.session import TurnRecord


def transcript(item: Item, levels: Sequence[Level], records: Sequence[TurnRecord]) -> dict[str, Any]:
    """Return the transcript of an item as JSON values; what failed stands at the top.

    Args:
        item: The item.
        levels: Its arms, from the shortest course to the whole one.
        records: Its turns.
    """
    course, rows = levels[-1].course, levels[-1].rows
    table = course.final
    took = totals(records)
    return {
        "item_id": item.question.id,
        "status": status_of(table),
        "without_answer": {row.seat: row.outcome.status for row in table if row.answer is None},
        "packet_sha256": item.packet.digest,
        "committee": _committee(records),
        "rounds_run": course.rounds_run,
        "stopped": None if course.stopped is None else asdict(course.stopped),
        "course": dict(course.notes),
        "final": [
            {
                "seat": row.seat,
                "answer": None if row.answer is None else row.answer.model_dump(mode="json"),
                "carried_from_round": row.carried_at(course.rounds_run),
            }
            for row in table
        ],
        "aggregated": {row.rule: row.headline for row in rows},
        "aggregated_interval": {row.interval[0]: list(row.interval[1]) for row in reversed(rows) if row.interval},
        "aggregation_records": [row.record() for row in rows],
        "nested": {level.arm: {row.rule: row.headline for row in level.rows} for level in levels[:-1]},
        "diagnostics": _diagnostics(item, course),
        "totals": {
            "tokens": took.tokens,
            "cost_usd": None if took.cost_nano is None else took.cost_nano / NANO,
            "latency_s": took.latency_s,
        },
        "notes": list(item.packet.notes),
        "turns": [_turn(record) for record in records],
    }


def _diagnostics(item: Item, course: Deliberation) -> dict[str, Any] | None:
    """Return how the members stood to each other, also in words; None where they are fewer than two.

    No truth enters: transcripts are made anew from the record, which holds none.
    """
    if len(course.tables[-1]) < 2:
        return None
    found = item_diagnostics(item.question, course, truth=None)
    return {**found.record(), "told": told_of_item(found)}


def _committee(records: Sequence[TurnRecord]) -> list[dict[str, str]]:
    seats = {record.seat.label: record.seat for record in records}
    return [{"seat": label, "role": seat.role.id, "model": seat.model} for label, seat in seats.items()]


def _turn(record: TurnRecord) -> dict[str, Any]:
    outcome = outcome_to_json(record.taken.outcome)
    return {
        "seat": record.seat.label,
        "role": record.seat.role.id,
        "model": record.seat.model,
        "kind": record.turn.kind,
        "round": record.turn.round,
        "sample": record.turn.sample,
        "system_sha256": record.system_sha256,
        "view_sha256": record.view_sha256,
        "shown": None if record.state is None else record.state.recorded(),
        "asks": [
            {
                "key": call.key,
                "request_id": call.completion.request_id,
                "retries": call.retries,
                "stop_reason": call.completion.stop_reason,
                "tokens": None if call.completion.usage is None else dict(vars(call.completion.usage)),
                "cost_usd": None if call.cost_nano is None else call.cost_nano / NANO,
                "estimated": call.estimated,
                "latency_s": call.completion.latency_s,
                "reply": call.completion.text,
            }
            for call in record.taken.calls
        ],
        "outcome": outcome,
        "flags": [flag.model_dump(mode="json") for flag in record.flags],
        **({"log": record.log} if record.log else {}),
    }
