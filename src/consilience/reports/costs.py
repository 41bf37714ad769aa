"""The cost table of several arms: bounds before, actuals after."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from consilience.experiments.costs import ArmCost
from consilience.reports.tables import ABSENT, Column, Record, Table, count, dollars, percent

TOKENS = {
    "tokens_input": "input",
    "tokens_cache_write_5m": "cache write",
    "tokens_cache_read": "cache read",
    "tokens_output_visible": "output",
    "tokens_output_reasoning": "reasoning",
}


def cost_table(costs: Sequence[ArmCost], *, simulated: bool) -> Table:
    """Return one row per arm; dollars are at list price.

    Calls without an answer have a column of their own, where any may have been billed. Of an arm with no finished item
    there is nothing per item.
    """
    word = "Simulated: no real model spoke; dollars are what the same tokens cost at list price. " if simulated else ""
    after = any(cost.run_id is not None for cost in costs)
    lost = any(cost.unanswered_nano for cost in costs)
    columns = [
        Column("arm", lambda row: str(row["arm"]), numeric=False),
        Column("items", _finished),
        Column("turns", lambda row: count(_whole(row, "turns"))),
    ]
    if after:
        columns += [
            *(Column(label, _counted(name)) for name, label in TOKENS.items()),
            Column("cached", lambda row: percent(_real(row, "cached_share"), 0)),
            Column("cost", _money("cost_usd")),
            *([Column("unanswered, at most", _money("unanswered_at_most_usd"))] if lost else []),
            Column("per item", _per_item("cost_per_item_usd")),
            Column("uncached per item", _per_item("uncached_per_item_usd")),
        ]
    columns += [Column("expected", _money("expected_usd")), Column("at most", _money("worst_usd"))]
    said = (
        "Cost: the answered calls; per item: those of finished items; uncached: the same with every input token at the "
        "plain rate. "
        if after
        else "Nothing was asked yet. "
    )
    if lost:
        said += "Unanswered: calls that failed or were lost and may have been billed, at their reservation. "
    bounds = "Expected: four bytes a token, replies of the assumed length, nothing stops early; at most: every limit."
    return Table(f"{word}{said}{bounds}", tuple(columns), tuple(cost.record() for cost in costs))


def _whole(row: Record, name: str) -> int | None:
    value = row[name]
    return value if isinstance(value, int) else None


def _finished(row: Record) -> str:
    """Return the number of finished items, and of how many where some are not."""
    planned, items = _whole(row, "planned_items"), _whole(row, "items")
    return count(items) if items == planned else f"{count(items)} of {count(planned)}"


def _real(row: Record, name: str) -> float | None:
    value = row[name]
    return float(value) if isinstance(value, int | float) else None


def _counted(name: str) -> Callable[[Record], str]:
    return lambda row: count(_whole(row, name))


def _money(name: str) -> Callable[[Record], str]:
    return lambda row: "$0.00" if row[name] == 0 else dollars(_real(row, name))


def _per_item(name: str) -> Callable[[Record], str]:
    return lambda row: _money(name)(row) if row["items"] else ABSENT
