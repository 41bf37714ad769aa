"""How a tie is broken where one option is needed: by a declared second score, then by the declared safety order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from consilience.aggregation.tallies import Tally, leaders
from consilience.errors import DataError


@dataclass(frozen=True)
class Settled:
    """Which option stands, and what it stands by.

    Attributes:
        winner: Its id; None when the vote gave no decision, or a tie that nothing declared breaks.
        decided_by: Name of the rule, or of the second rule, or ``safety_order``; None without a winner.
        tied: The options left when the deciding step began; empty when the rule itself decided.
    """

    winner: str | None
    decided_by: str | None
    tied: tuple[str, ...]


def safest(winners: Sequence[str], *, safety_order: Sequence[str]) -> str:
    """Return the one of some options that stands first in an order.

    Raises:
        DataError: There is no option, or the order repeats one or leaves one out.

    Example:
        >>> safest(("x", "z"), safety_order=("y", "z", "x"))
        'z'
    """
    if not winners or len(set(safety_order)) != len(safety_order) or not set(winners) <= set(safety_order):
        raise DataError(
            f"{', '.join(safety_order)} does not order {', '.join(winners) or 'nothing'}",
            hint="Name every option exactly once in the safety order, safest first.",
        )
    return min(winners, key=list(safety_order).index)


def break_tie(
    tally: Tally, *, rule: str, safety_order: Sequence[str] = (), second: tuple[str, Tally] | None = None
) -> Settled:
    """Return the option that stands, and whether the rule, a declared second score or the safety order decided.

    Args:
        tally: What the vote came to.
        rule: Name of its rule.
        safety_order: All options, safest first, declared before the vote; empty when none was.
        second: Name and tally of a second rule over the same ballots, declared before the vote, such as Borda behind
            Copeland; those of the tied with its highest score go on.

    Raises:
        DataError: The safety order does not order the tied options.

    Example:
        >>> from consilience.aggregation.ballots import Ballot
        >>> from consilience.aggregation.votes import VOTE_RULES
        >>> tie = VOTE_RULES["plurality"](ballots=[Ballot("a", "x"), Ballot("b", "y")], options=("x", "y"))
        >>> break_tie(tie, rule="plurality", safety_order=("y", "x"))
        Settled(winner='y', decided_by='safety_order', tied=('x', 'y'))
    """
    if tally.decided != "tie":
        return Settled(tally.winner, None if tally.winner is None else rule, ())
    left = tally.winners
    if second is not None:
        name, other = second
        ahead = leaders({option: other.scores[option] for option in left})
        if len(ahead) == 1:
            return Settled(ahead[0], name, left)
        left = ahead
    if not safety_order:
        return Settled(None, None, left)
    return Settled(safest(left, safety_order=safety_order), "safety_order", left)
