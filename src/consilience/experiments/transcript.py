"""What happened to one item, as data: transcript and prediction rows, derived from the turns and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from consilience.aggregation.answers import AnswerRow, FittedPanel, aggregate_answers, answer_columns, rule_names
from consilience.core.deliberation import Deliberation, Table, has_quorum, present
from consilience.core.outcomes import outcome_to_json
from consilience.core.packet import Item
from consilience.core.turn import Turn
from consilience.models.prices import NANO
from consilience.models.request import Usage
from consilience.runtime.session import TurnRecord

BUCKETS = tuple(Usage.__dataclass_fields__)


@dataclass(frozen=True)
class Totals:
    """What an item took.

    Attributes:
        cost_nano: Of all answers used; None when any is unknown.
        tokens: By bucket; None when any answer's usage is unknown.
        latency_s: Along the critical path: the slowest seat of each stage, summed; None when any is unknown.
    """

    cost_nano: int | None
    tokens: dict[str, int] | None
    latency_s: float | None


def totals(records: Sequence[TurnRecord]) -> Totals:
    """Return the totals over an item's turns."""
    calls = [call for record in records for call in record.taken.calls]
    costs = [call.cost_nano for call in calls]
    usages = [call.completion.usage for call in calls]
    stages: dict[Turn, float] = {}
    for record in records:
        seconds = sum(call.completion.latency_s or 0.0 for call in record.taken.calls)
        stages[record.turn] = max(stages.get(record.turn, 0.0), seconds)
    timed = all(call.completion.latency_s is not None for call in calls)
    known = [usage for usage in usages if usage is not None]
    return Totals(
        cost_nano=None if None in costs else sum(cost for cost in costs if cost is not None),
        tokens={name: sum(getattr(usage, name) for usage in known) for name in BUCKETS}
        if len(known) == len(usages)
        else None,
        latency_s=round(sum(stages.values()), 6) if timed else None,
    )


def aggregate(item: Item, table: Table, fitted: FittedPanel | None = None) -> list[AnswerRow]:
    """Return a row per rule, under what validation taught about the seats; empty when the quorum does not hold."""
    return aggregate_answers(item.question, present(table), fitted) if has_quorum(table) else []


def status_of(table: Table) -> str:
    """Return ``answered``, or the one way in which a single seat or a panel has no answer."""
    if has_quorum(table):
        return "answered"
    return table[0].outcome.status if len(table) == 1 else "no_quorum"


def transcript(
    item: Item, deliberation: Deliberation, records: Sequence[TurnRecord], rows: Sequence[AnswerRow]
) -> dict[str, Any]:
    """Return the transcript of an item as JSON values; what failed stands at the top."""
    table = deliberation.final
    took = totals(records)
    return {
        "item_id": item.question.id,
        "status": status_of(table),
        "without_answer": {row.seat: row.outcome.status for row in table if row.answer is None},
        "packet_sha256": item.packet.digest,
        "committee": _committee(records),
        "rounds_run": deliberation.rounds_run,
        "stopped": None if deliberation.stopped is None else asdict(deliberation.stopped),
        "final": [
            {
                "seat": row.seat,
                "answer": None if row.answer is None else row.answer.model_dump(mode="json"),
                "carried_from_round": row.carried_at(deliberation.rounds_run),
            }
            for row in table
        ],
        "aggregated": {row.rule: row.headline for row in rows},
        "aggregated_interval": {row.interval[0]: list(row.interval[1]) for row in reversed(rows) if row.interval},
        "aggregation_records": [row.record() for row in rows],
        "totals": {
            "tokens": took.tokens,
            "cost_usd": None if took.cost_nano is None else took.cost_nano / NANO,
            "latency_s": took.latency_s,
        },
        "notes": list(item.packet.notes),
        "turns": [_turn(record) for record in records],
    }


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
        "shown": None
        if record.shown is None
        else {"order": list(record.shown.order), "consensus_of_others": record.shown.consensus_of_others},
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
    }


def prediction_rows(
    item: Item,
    rows: Sequence[AnswerRow],
    *,
    final: Table,
    took: Totals,
    paid_nano: int,
    run: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return a row per aggregation rule; an item without an answer has its rows too, with null numbers.

    Args:
        item: The item.
        rows: Its aggregates; empty when it has no answer.
        final: The last table.
        took: Totals over its turns.
        paid_nano: What this process paid.
        run: Columns that are the same for the whole run or item: run_id, arm, committee, split, exposure.
    """
    common = {
        **run,
        "item_id": item.question.id,
        "cost_usd": None if took.cost_nano is None else took.cost_nano / NANO,
        "latency_s": took.latency_s,
        "tokens": None if took.tokens is None else sum(took.tokens.values()),
        "n_answered": len(present(final)),
        "n_seats": len(final),
        "status": status_of(final),
        "information_date": None,
        "cutoff": item.packet.cutoff,
        "paid_usd": None if took.cost_nano is None else paid_nano / NANO,
    }
    if not rows:
        silent = dict.fromkeys(answer_columns(item.question))
        return [{**common, **silent, "aggregation": name} for name in rule_names(item.question.kind)]
    return [{**common, **row.cells, "aggregation": row.rule} for row in rows]
