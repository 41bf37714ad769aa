"""When a panel stops early: its spread hardly changes any more."""

from __future__ import annotations

from consilience.core.deliberation import Stopped, Table, present
from consilience.core.kinds import KINDS
from consilience.core.question import Question
from consilience.errors import PlanError

MOST_ROUNDS = 20


def check_rounds(rounds: int, settled_change: float, *, what: str) -> None:
    """Raise where a protocol in rounds cannot work.

    Raises:
        PlanError: ``rounds`` is not from 1 to 20, or ``settled_change`` no share from 0 up to 1.

    Example:
        >>> check_rounds(2, 0.01, what="debate")
    """
    if rounds < 1:
        raise PlanError(f"a {what} of {rounds} rounds is none", hint="Use the independent protocol instead.")
    if rounds > MOST_ROUNDS:
        raise PlanError(
            f"a {what} of {rounds} rounds is more than the {MOST_ROUNDS} that are allowed",
            hint=f"Give from 1 to {MOST_ROUNDS}.",
        )
    if not 0 <= settled_change < 1:
        raise PlanError(f"settled_change is {settled_change}", hint="Give a share from 0 up to 1.")


def settled(before: Table, after: Table, question: Question, *, round_: int, share: float) -> Stopped | None:
    """Return why to stop after a round, when its spread differs from that before by less than this share.

    A spread of 0 has settled when it stays below the share itself.
    """
    spread = KINDS[question.kind].spread
    was = spread([answer for _, answer in present(before)], question)
    now = spread([answer for _, answer in present(after)], question)
    change = abs(now - was) / was if was > 0 else now
    return Stopped("settled", round_, was, now) if change < share else None
