"""What an arm cost: its bounds before, its tokens and dollars after, and what it would have cost without caches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from consilience.experiments.foresight import Foresight
from consilience.experiments.manifest import cached_share
from consilience.journal.events import TOKEN_BUCKETS, ItemFinished, Record
from consilience.journal.ledger import LedgerRow, ledger_rows, totals
from consilience.journal.reader import read_events
from consilience.models.batch import DISCOUNT, TIER
from consilience.models.prices import NANO, Price, cost_nano
from consilience.models.request import Usage


@dataclass(frozen=True)
class ArmCost:
    """The cost of one run.

    Attributes:
        arm: Label of its arm.
        run_id: Its id; None before it was run.
        planned_items: Items to be asked about; the bounds speak of them.
        items: Items asked to their end; before, the planned ones.
        turns: Planned turns before, turns taken after.
        tokens: By bucket, of all calls that reported them; None before, or where any is unknown.
        cost_nano: What the answered calls cost; None before or when unknown.
        unanswered_nano: What calls that failed or were lost with their process cost at most: their reservation where
            they may have been billed.
        finished_nano: What the answered calls of finished items cost; None before, when unknown, or with no such item.
        uncached_nano: What those would have cost had nothing been read from or written to a cache; None likewise.
        expected_nano: Expected cost before; None when a price is unknown.
        worst_nano: The most the planned turns could cost.
    """

    arm: str
    run_id: str | None
    planned_items: int
    items: int
    turns: int
    tokens: Mapping[str, int] | None
    cost_nano: int | None
    unanswered_nano: int
    finished_nano: int | None
    uncached_nano: int | None
    expected_nano: int | None
    worst_nano: int | None

    def record(self) -> dict[str, Any]:
        """Return it as one row of a table, dollars as dollars."""
        tokens = self.tokens or {}
        return {
            "arm": self.arm,
            "run_id": self.run_id,
            "planned_items": self.planned_items,
            "items": self.items,
            "turns": self.turns,
            **{f"tokens_{name}": tokens.get(name) for name in TOKEN_BUCKETS},
            "cached_share": None if self.tokens is None else cached_share(self.tokens),
            "cost_usd": _dollars(self.cost_nano),
            "unanswered_at_most_usd": None if self.run_id is None else _dollars(self.unanswered_nano),
            "cost_per_item_usd": _dollars(self.finished_nano, per=self.items),
            "uncached_usd": _dollars(self.uncached_nano),
            "uncached_per_item_usd": _dollars(self.uncached_nano, per=self.items),
            "expected_usd": _dollars(self.expected_nano),
            "worst_usd": _dollars(self.worst_nano),
        }


def _dollars(nano: int | None, *, per: int = 1) -> float | None:
    return None if nano is None or not per else nano / NANO / per


def foreseen_cost(arm: str, ahead: Foresight) -> ArmCost:
    """Return what is known of an arm before it is run."""
    items = len(ahead.by_item)
    return ArmCost(
        arm=arm,
        run_id=None,
        planned_items=items,
        items=items,
        turns=ahead.turns,
        tokens=None,
        cost_nano=None,
        unanswered_nano=0,
        finished_nano=None,
        uncached_nano=None,
        expected_nano=ahead.expected_nano,
        worst_nano=ahead.worst_nano,
    )


def actual_cost(
    folder: Path, *, arm: str, turns: int, prices: Mapping[str, Price | Literal["free"] | None], before: Foresight
) -> ArmCost:
    """Return what a run cost, read from its journal.

    Args:
        folder: The run folder.
        arm: Label of its arm.
        turns: Turns taken.
        prices: By model id.
        before: Its bounds.

    Raises:
        IntegrityError: The record was changed.
    """
    finished: set[str | None] = set()

    def noted() -> Iterator[Record]:
        for record in read_events(folder):
            if isinstance(record.event, ItemFinished):
                finished.add(record.where.item)
            yield record

    rows = ledger_rows(noted())
    answered = [row for row in rows if row.status == "answered"]
    whole = [row for row in answered if row.item in finished]
    tokens = totals(rows)[None].tokens if rows else dict.fromkeys(TOKEN_BUCKETS, 0)
    known = {name: count for name, count in tokens.items() if count is not None}
    return ArmCost(
        arm=arm,
        run_id=folder.name,
        planned_items=len(before.by_item),
        items=len(finished),
        turns=turns,
        tokens=known if len(known) == len(TOKEN_BUCKETS) else None,
        cost_nano=_cost(answered),
        unanswered_nano=sum(row.cost_nano or 0 for row in rows if row.status != "answered"),
        finished_nano=_cost(whole) if finished else None,
        uncached_nano=_uncached(whole, prices) if finished else None,
        expected_nano=before.expected_nano,
        worst_nano=before.worst_nano,
    )


def _cost(answered: Iterable[LedgerRow]) -> int | None:
    """Return what answered calls cost; None when any is unknown."""
    spent = 0
    for row in answered:
        if row.cost_nano is None:
            return None
        spent += row.cost_nano
    return spent


def _uncached(answered: Iterable[LedgerRow], prices: Mapping[str, Price | Literal["free"] | None]) -> int | None:
    """Return what answered calls cost with every input token at the plain rate; None when that is unknown."""
    spent = 0
    for row in answered:
        buckets = [getattr(row, name) for name in TOKEN_BUCKETS]
        if None in buckets:
            return None
        read = sum(buckets[:4])
        cost = cost_nano(Usage(read, 0, 0, 0, buckets[4], buckets[5]), prices[row.model])
        if cost is None:
            return None
        spent += -(-cost // DISCOUNT) if row.tier == TIER else cost
    return spent
