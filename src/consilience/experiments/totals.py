"""What turns took: money, tokens and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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

    def of(self, unit: Literal["usd", "tokens"]) -> int | None:
        """Return the nano-dollars or the tokens; None when unknown.

        Example:
            >>> Totals(5, {"input": 2, "output_visible": 1}, 0.0).of("tokens")
            3
        """
        if unit == "usd":
            return self.cost_nano
        return None if self.tokens is None else sum(self.tokens.values())


def totals(records: Sequence[TurnRecord]) -> Totals:
    """Return the totals over an item's turns."""
    calls = [call for record in records for call in record.taken.calls]
    costs = [call.cost_nano for call in calls]
    usages = [call.completion.usage for call in calls]
    stages: dict[int, float] = {}
    for record in records:
        seconds = sum(call.completion.latency_s or 0.0 for call in record.taken.calls)
        stages[record.stage] = max(stages.get(record.stage, 0.0), seconds)
    timed = all(call.completion.latency_s is not None for call in calls)
    known = [usage for usage in usages if usage is not None]
    return Totals(
        cost_nano=None if None in costs else sum(cost for cost in costs if cost is not None),
        tokens={name: sum(getattr(usage, name) for usage in known) for name in BUCKETS}
        if len(known) == len(usages)
        else None,
        latency_s=round(sum(stages.values()), 6) if timed else None,
    )
