"""The cost table of several arms: bounds before, actuals after."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from consilience.experiments.costs import ArmCost
from consilience.reports.tables import Column, Record, Table, count, dollars, percent

TOKENS = {
    "tokens_input": "input",
    "tokens_cache_write_5m": "cache write",
    "tokens_cache_read": "cache read",
    "tokens_output_visible": "output",
    "tokens_output_reasoning": "reasoning",
}


def cost_table(costs: Sequence[ArmCost], *, simulated: bool) -> Table:
    """Return one row per arm; dollars are at list price, an unknown number is absent."""
    word = "Simulated: no real model spoke; dollars are what the same tokens cost at list price. " if simulated else ""
    after = any(cost.run_id is not None for cost in costs)
    columns = [
        Column("arm", lambda row: str(row["arm"]), numeric=False),
        Column("items", lambda row: count(_whole(row, "items"))),
        Column("turns", lambda row: count(_whole(row, "turns"))),
    ]
    if after:
        columns += [
            *(Column(label, _counted(name)) for name, label in TOKENS.items()),
            Column("cached", lambda row: percent(_real(row, "cached_share"), 0)),
            Column("cost", _money("cost_usd")),
            Column("per item", _money("cost_per_item_usd")),
            Column("uncached per item", _money("uncached_per_item_usd")),
        ]
    columns += [Column("expected", _money("expected_usd")), Column("at most", _money("worst_usd"))]
    said = (
        "Tokens by bucket and dollars as journaled, failed and lost calls too; uncached: the answered calls with every "
        "input token at the plain rate. "
        if after
        else "Nothing was asked yet. "
    )
    bounds = "Expected: four bytes a token, replies of the assumed length, nothing stops early; at most: every limit."
    return Table(f"{word}{said}{bounds}", tuple(columns), tuple(cost.record() for cost in costs))


def _whole(row: Record, name: str) -> int | None:
    value = row[name]
    return value if isinstance(value, int) else None


def _real(row: Record, name: str) -> float | None:
    value = row[name]
    return float(value) if isinstance(value, int | float) else None


def _counted(name: str) -> Callable[[Record], str]:
    return lambda row: count(_whole(row, name))


def _money(name: str) -> Callable[[Record], str]:
    return lambda row: dollars(_real(row, name))
