"""Which seats of a run had no answer in how many turns, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consilience.cli.console import clean, counted
from consilience.journal.events import Where
from consilience.journal.reader import RunState, fold

LONGEST_REASON = 120


@dataclass(frozen=True)
class Unanswered:
    """The turns of one seat that ended in the same way without an answer.

    Attributes:
        seat: Its label.
        role: Its role.
        status: ``abstained``, ``unreadable`` or ``failed``.
        turns: How many.
        first: Where the first of them stands.
        reason: Why that one has no answer.
    """

    seat: str
    role: str
    status: str
    turns: int
    first: str
    reason: str

    def __str__(self) -> str:
        """Return it as one line; the reason is shortened."""
        reason = " ".join(clean(self.reason).split())
        short = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"
        return f"{self.role} ({self.seat}): {self.status} in {counted(self.turns, 'turn')}; {self.first}: {short}"


def unanswered(folder: Path) -> list[Unanswered]:
    """Return the turns without an answer of a recorded run, by seat and status.

    Raises:
        IntegrityError: The record is not what was written.

    Example:
        >>> unanswered(Path("no-such-run"))
        []
    """
    state = fold(folder)
    found: dict[tuple[str, str], list[Where]] = {}
    for where in sorted(state.turns, key=Where.sort_key):
        status = state.turns[where].outcome["status"]
        if status != "answered":
            found.setdefault((where.seat or "", status), []).append(where)
    return [_told(state, status, places) for (_, status), places in sorted(found.items())]


def _told(state: RunState, status: str, places: list[Where]) -> Unanswered:
    first = places[0]
    roles = (attempt.reserved.role for at, attempt in state.attempts.items() if at.where == first)
    return Unanswered(
        seat=first.seat or "",
        role=next(roles, "unknown role"),
        status=status,
        turns=len(places),
        first=f"{first.kind} of {first.item}, round {first.round}",
        reason=_reason(state.turns[first].outcome),
    )


def _reason(outcome: dict[str, Any]) -> str:
    """Return the reason in an outcome, which each way to have no answer keeps elsewhere."""
    if outcome["status"] == "abstained":
        return str(outcome["said"]["reason"])
    return str(outcome["message"] if outcome["status"] == "failed" else "; ".join(outcome["problems"]))
