"""When an item was asked and when its truth became known, as its packet says: nothing may be learnt before that day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any


@dataclass(frozen=True)
class Days:
    """The days of one item.

    Attributes:
        admitted: Last day whose facts may be known to whoever answers.
        known: Day the answer is for, from which on the truth is known; None where the packet does not say.
    """

    admitted: date
    known: date | None = None

    @property
    def learnt(self) -> date:
        """Day from which on the truth may be learnt from; where nobody says it is taken to be the day after."""
        return self.admitted + timedelta(days=1) if self.known is None else max(self.known, self.admitted)


Times = Mapping[str, Days]
"""Days by item."""


def days_of(packet: Mapping[str, Any]) -> Days:
    """Return the days that a packet's JSON says.

    Example:
        >>> told = {"cutoff": "2025-03-01", "cutoff_rule": "first_inadmissible", "valuation_date": "2025-06-30"}
        >>> days = days_of(told)
        >>> days.admitted.isoformat(), days.learnt.isoformat(), Days(days.admitted).learnt.isoformat()
        ('2025-02-28', '2025-06-30', '2025-03-01')
    """
    cutoff, day = date.fromisoformat(packet["cutoff"]), packet.get("valuation_date")
    admitted = cutoff if packet["cutoff_rule"] == "last_admissible" else cutoff - timedelta(days=1)
    return Days(admitted, None if day is None else date.fromisoformat(day))


def asked_on(times: Times, item: str, cutoff: date) -> Days:
    """Return the days of an item; one without a packet is taken to admit nothing of its cutoff day."""
    return times.get(item) or Days(cutoff - timedelta(days=1))
