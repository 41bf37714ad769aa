"""The ledger: a view of the journal with one row per attempt, failed, corrective and lost ones too."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from consilience.errors import DataError
from consilience.journal.events import (
    TOKEN_BUCKETS,
    AttemptError,
    AttemptLost,
    AttemptReserved,
    AttemptResponse,
    Record,
    Where,
)

Group = Literal["item", "seat", "role", "model", "provider", "tier", "status", "kind", "round"]


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """One attempt. Money is an estimate at list price in integer nano-USD (10⁻⁹ USD), never an invoice.

    The token buckets are disjoint; a bucket, cost or latency that nobody reported is None, never 0.

    Attributes:
        at: When the attempt was reserved, ISO 8601.
        status: ``answered``, ``error``, or ``lost`` (no outcome; charged at its reservation).
        cost_nano: Charged; 0 for an answer taken from a recorded run.
        saved_nano: What such an answer would have cost.
        estimated: The charge is not computed from reported usage.
    """

    item: str | None
    round: int | None
    seat: str | None
    kind: str | None
    sample: int | None
    ask: int
    attempt: int
    at: str
    role: str
    model: str
    provider: str
    tier: str
    status: Literal["answered", "error", "lost"]
    input: int | None
    cache_write_5m: int | None
    cache_write_1h: int | None
    cache_read: int | None
    output_visible: int | None
    output_reasoning: int | None
    reserved_nano: int | None
    cost_nano: int | None
    saved_nano: int | None
    estimated: bool
    request_id: str | None
    latency_s: float | None


@dataclass(frozen=True, kw_only=True)
class Total:
    """Sums over a group of ledger rows.

    Attributes:
        attempts: Number of rows.
        tokens: Sum of each bucket over the rows that reported it; None when none did.
        tokens_unknown: Rows whose usage nobody reported (failed and lost attempts among them).
        cost_nano: Sum of the known costs; None when none is known.
        cost_unknown: Rows whose cost is unknown; with any, ``cost_nano`` is a lower bound.
        saved_nano: Sum of what answers from recorded runs would have cost.
    """

    attempts: int
    tokens: dict[str, int | None]
    tokens_unknown: int
    cost_nano: int | None
    cost_unknown: int
    saved_nano: int


def ledger_rows(records: Iterable[Record]) -> list[LedgerRow]:
    """Return the ledger of a run, sorted by logical coordinates.

    Args:
        records: The journal, such as `read_events` gives it.

    Raises:
        DataError: A response reports a token bucket that is not one of `TOKEN_BUCKETS`.

    Example:
        >>> ledger_rows([])
        []
    """
    reserved: dict[tuple[Where, int, int], tuple[Record, AttemptReserved]] = {}
    outcomes: dict[tuple[Where, int, int], AttemptResponse | AttemptError | AttemptLost] = {}
    for record in records:
        event = record.event
        if isinstance(event, AttemptReserved):
            reserved[record.where, event.ask, event.attempt] = (record, event)
        elif isinstance(event, AttemptResponse | AttemptError | AttemptLost):
            outcomes[record.where, event.ask, event.attempt] = event
    order = sorted(reserved, key=lambda at: (at[0].sort_key(), at[1:]))
    return [_row(*reserved[at], outcomes.get(at)) for at in order]


def _row(
    record: Record, event: AttemptReserved, outcome: AttemptResponse | AttemptError | AttemptLost | None
) -> LedgerRow:
    completion = outcome.completion if isinstance(outcome, AttemptResponse) else {}
    usage: dict[str, int | None] = completion.get("usage") or {}
    unknown = sorted(set(usage) - set(TOKEN_BUCKETS))
    if unknown:
        raise DataError(
            f"the response of {record.where.label()} reports tokens as {', '.join(unknown)}",
            hint=f"Buckets are {', '.join(TOKEN_BUCKETS)}.",
        )
    tokens: dict[str, Any] = {name: usage.get(name) for name in TOKEN_BUCKETS}
    status: Literal["answered", "error", "lost"] = "lost"
    cost, estimated, saved = event.reserved_nano, True, None
    if isinstance(outcome, AttemptResponse):
        status, cost, estimated, saved = "answered", outcome.cost_nano, outcome.estimated, outcome.saved_nano
    elif isinstance(outcome, AttemptError):
        status, cost, estimated = "error", outcome.charged_nano, bool(outcome.charged_nano)
    elif isinstance(outcome, AttemptLost):
        cost = outcome.charged_nano
    return LedgerRow(
        **record.where._asdict(),
        ask=event.ask,
        attempt=event.attempt,
        at=record.at,
        role=event.role,
        model=event.model,
        provider=event.provider,
        tier=event.tier,
        status=status,
        **tokens,
        reserved_nano=event.reserved_nano,
        cost_nano=cost,
        saved_nano=saved,
        estimated=estimated,
        request_id=completion.get("request_id"),
        latency_s=completion.get("latency_s"),
    )


def totals(rows: Iterable[LedgerRow], by: Group | None = None) -> dict[Any, Total]:
    """Return sums by a column, in sorted order; without ``by`` one total under None.

    Example:
        >>> totals([])[None].attempts
        0
    """
    groups: dict[Any, list[LedgerRow]] = {} if by is not None else {None: []}
    for row in rows:
        groups.setdefault(None if by is None else getattr(row, by), []).append(row)
    ordered = sorted(groups, key=lambda name: (name is not None, name if name is not None else ""))
    return {name: _total(groups[name]) for name in ordered}


def _total(rows: list[LedgerRow]) -> Total:
    known = [row.cost_nano for row in rows if row.cost_nano is not None]
    tokens: dict[str, int | None] = {}
    for name in TOKEN_BUCKETS:
        counts = [getattr(row, name) for row in rows]
        tokens[name] = None if all(count is None for count in counts) else sum(count or 0 for count in counts)
    return Total(
        attempts=len(rows),
        tokens=tokens,
        tokens_unknown=sum(all(getattr(row, name) is None for name in TOKEN_BUCKETS) for row in rows),
        cost_nano=sum(known) if known else None,
        cost_unknown=len(rows) - len(known),
        saved_nano=sum(row.saved_nano or 0 for row in rows),
    )


def write_jsonl(rows: Iterable[LedgerRow], path: Path) -> None:
    """Write the ledger as one JSON object per line."""
    with path.open("w", encoding="ascii", newline="\n") as out:
        out.writelines(json.dumps(asdict(row), allow_nan=False) + "\n" for row in rows)


def write_csv(rows: Iterable[LedgerRow], path: Path) -> None:
    """Write the ledger as CSV (RFC 4180); unknown is an empty cell.

    Text that a spreadsheet would run as a formula gets a leading apostrophe; lone surrogates are written as escapes.
    """
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
        writer = csv.writer(out)
        names = [column.name for column in fields(LedgerRow)]
        writer.writerow(names)
        writer.writerows([_cell(getattr(row, name)) for name in names] for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    if isinstance(value, bool):
        return str(value).lower()
    return value
