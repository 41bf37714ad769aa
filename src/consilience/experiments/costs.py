"""What an arm cost: its bounds before, its tokens and dollars after, and what it would have cost without caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from consilience.experiments.foresight import Foresight
from consilience.experiments.manifest import cached_share
from consilience.journal.events import TOKEN_BUCKETS
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
        items: Items asked about.
        turns: Planned turns before, turns taken after.
        tokens: By bucket; None before, or where any is unknown.
        cost_nano: What was spent, lost and failed calls too; None before or when unknown.
        uncached_nano: What the answered calls would have cost had nothing been read from or written to a cache.
        expected_nano: Expected cost before; None when a price is unknown.
        worst_nano: The most the planned turns could cost.
    """

    arm: str
    run_id: str | None
    items: int
    turns: int
    tokens: Mapping[str, int] | None
    cost_nano: int | None
    uncached_nano: int | None
    expected_nano: int | None
    worst_nano: int | None

    def record(self) -> dict[str, Any]:
        """Return it as one row of a table, dollars as dollars."""
        tokens = self.tokens or {}
        return {
            "arm": self.arm,
            "run_id": self.run_id,
            "items": self.items,
            "turns": self.turns,
            **{f"tokens_{name}": tokens.get(name) for name in TOKEN_BUCKETS},
            "cached_share": None if self.tokens is None else cached_share(self.tokens),
            "cost_usd": _dollars(self.cost_nano),
            "cost_per_item_usd": _dollars(self.cost_nano, per=self.items),
            "uncached_usd": _dollars(self.uncached_nano),
            "uncached_per_item_usd": _dollars(self.uncached_nano, per=self.items),
            "expected_usd": _dollars(self.expected_nano),
            "worst_usd": _dollars(self.worst_nano),
        }


def _dollars(nano: int | None, *, per: int = 1) -> float | None:
    return None if nano is None or not per else nano / NANO / per


def foreseen_cost(arm: str, ahead: Foresight) -> ArmCost:
    """Return what is known of an arm before it is run."""
    return ArmCost(arm, None, len(ahead.by_item), ahead.turns, None, None, None, ahead.expected_nano, ahead.worst_nano)


def actual_cost(
    folder: Path,
    *,
    arm: str,
    items: int,
    turns: int,
    prices: Mapping[str, Price | Literal["free"] | None],
    before: Foresight,
) -> ArmCost:
    """Return what a run cost, read from its journal.

    Args:
        folder: The run folder.
        arm: Label of its arm.
        items: Items asked about.
        turns: Turns taken.
        prices: By model id.
        before: Its bounds.

    Raises:
        IntegrityError: The record was changed.
    """
    rows = ledger_rows(read_events(folder))
    total = totals(rows)[None]
    known = {name: count for name, count in total.tokens.items() if count is not None}
    return ArmCost(
        arm=arm,
        run_id=folder.name,
        items=items,
        turns=turns,
        tokens=known if len(known) == len(TOKEN_BUCKETS) else None,
        cost_nano=None if total.cost_unknown else total.cost_nano,
        uncached_nano=_uncached(rows, prices),
        expected_nano=before.expected_nano,
        worst_nano=before.worst_nano,
    )


def _uncached(rows: Iterable[LedgerRow], prices: Mapping[str, Price | Literal["free"] | None]) -> int | None:
    """Return what answered calls cost with every input token at the plain rate; None when that is unknown."""
    spent = 0
    for row in rows:
        if row.status != "answered":
            continue
        buckets = [getattr(row, name) for name in TOKEN_BUCKETS]
        if None in buckets:
            return None
        read = sum(buckets[:4])
        cost = cost_nano(Usage(read, 0, 0, 0, buckets[4], buckets[5]), prices[row.model])
        if cost is None:
            return None
        spent += -(-cost // DISCOUNT) if row.tier == TIER else cost
    return spent
