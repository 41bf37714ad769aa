"""Instant run-off: the option with fewest ballots goes, one at a time, until one has most of those that go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Final

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.tallies import Count, Reads, Score, VoteRule
from consilience.aggregation.ties import safest
from consilience.errors import DataError

Rankings = Mapping[tuple[str, ...], int]
"""How often each ranking was cast."""

MOST_STATES: Final = 10_000
"""Beyond this many sets of options left over, the orders of elimination are not followed; the problem is NP-hard."""
MOST_WORK: Final = 2_000_000
"""Nor beyond this many options and places of ballots looked at: a set costs the more, the more options there are."""


@dataclass(frozen=True)
class Elimination:
    """One run of eliminations.

    Attributes:
        winner: The option that had more than half of the ballots that went on.
        eliminated: Who went, first to last.
        rounds: Ballots by option left, before each elimination and in the end.
        tied: Rounds, counted from 0, in which the safety order said who of several had to go.
        exhausted: Ballots that ranked none of the options left in the end.
    """

    winner: str
    eliminated: tuple[str, ...]
    rounds: tuple[dict[str, int], ...]
    tied: tuple[int, ...]
    exhausted: int


def eliminate(
    *, rankings: Sequence[tuple[str, ...]], options: tuple[str, ...], safety_order: Sequence[str]
) -> Elimination:
    """Return the run-off in which, of several with fewest ballots, the least safe goes.

    Args:
        rankings: One per ballot, best first; it may stop early, and is exhausted when all it ranks have gone.
        options: Distinct option ids.
        safety_order: All options, safest first.

    Raises:
        DataError: The safety order is no order of the options, or no ballot ranks an option.

    Example:
        >>> votes = [("x", "y", "z"), ("y", "z", "x"), ("z", "x", "y")]
        >>> made = eliminate(rankings=votes, options=("x", "y", "z"), safety_order=("y", "z", "x"))
        >>> made.winner, made.eliminated, made.tied
        ('y', ('x',), (0,))
    """
    if not any(rankings):
        raise DataError("no ballot ranks an option", hint="A run-off needs rankings.")
    cast = Counter(rankings)
    safest(options, safety_order=safety_order)
    left = options
    rounds: list[dict[str, int]] = []
    gone: list[str] = []
    tied: list[int] = []
    while True:
        counts = _counts(cast, left)
        rounds.append(counts)
        on = sum(counts.values())
        most = max(counts, key=counts.__getitem__)
        if 2 * counts[most] > on:
            return Elimination(most, tuple(gone), tuple(rounds), tuple(tied), len(rankings) - on)
        last = _fewest(counts)
        if len(last) > 1:
            tied.append(len(gone))
        out = max(last, key=list(safety_order).index)
        gone.append(out)
        left = tuple(option for option in left if option != out)


def _counts(cast: Rankings, left: tuple[str, ...]) -> dict[str, int]:
    counts = dict.fromkeys(left, 0)
    for ranking, times in cast.items():
        first = next((option for option in ranking if option in counts), None)
        if first is not None:
            counts[first] += times
    return counts


def _fewest(counts: Mapping[str, int]) -> tuple[str, ...]:
    least = min(counts.values())
    return tuple(option for option, count in counts.items() if count == least)


def _doomed(counts: Mapping[str, int]) -> frozenset[str]:
    """Return the options that all go before any other does, whatever their order: together fewer than the next one."""
    upward = sorted(counts, key=counts.__getitem__)
    sums = list(accumulate(counts[option] for option in upward))
    size = next((k for k in range(len(upward) - 1, 0, -1) if sums[k - 1] < counts[upward[k]]), 0)
    return frozenset(upward[:size])


def runoff_winners(*, cast: Rankings, options: tuple[str, ...]) -> frozenset[str] | None:
    """Return every option that wins under some order of eliminating those that tie for fewest.

    Returns None beyond `MOST_STATES` sets of options left over or `MOST_WORK` steps.

    Example:
        >>> sorted(runoff_winners(cast={("x",): 1, ("y",): 1, ("z", "x"): 1}, options=("x", "y", "z")))
        ['x', 'y', 'z']
    """
    won: set[str] = set()
    seen: set[tuple[str, ...]] = set()
    waiting = [options]
    work = 0
    while waiting:
        left = waiting.pop()
        if left in seen:
            continue
        seen.add(left)
        work += len(left) + len(cast) * (len(options) - len(left) + 1)
        if len(seen) > MOST_STATES or work > MOST_WORK:
            return None
        counts = _counts(cast, left)
        on = sum(counts.values())
        ahead = [option for option in left if 2 * counts[option] > on]
        if ahead:
            won.update(ahead)
            continue
        doomed = _doomed(counts)
        out = [doomed] if doomed else [frozenset({option}) for option in _fewest(counts)]
        waiting += [tuple(option for option in left if option not in those) for those in out]
    return frozenset(won)


@dataclass(frozen=True)
class InstantRunoff(VoteRule):
    """Every option that wins the instant run-off under some order of eliminating those that tie for fewest ballots.

    Options go one at a time until one has more than half of the ballots that still rank an option left; ballots that
    rank none leave the denominator. Where ties decide, all their winners are named and flagged ``tie_sensitive``; where
    they are too many to follow nobody wins, flagged ``too_many_paths``. A ballot may stop early.

    Example:
        >>> ballots = [Ballot("a", ranking=("x",)), Ballot("b", ranking=("x",)), Ballot("c", ranking=("y", "z"))]
        >>> InstantRunoff()(ballots=ballots, options=("x", "y", "z")).winner
        'x'
    """

    name: ClassVar[str] = "irv"
    effort: ClassVar[int] = 3
    reads: ClassVar[Reads] = "ranking"
    monotone: ClassVar[bool] = False  # more support may change who goes first

    def _lack(self, ballot: Ballot, options: tuple[str, ...]) -> str | None:
        del options
        return None if ballot.ranking else "it ranks no option"

    def _count(
        self, ballots: tuple[Ballot, ...], options: tuple[str, ...], of: int, weights: Mapping[str, Score] | None
    ) -> Count:
        del of, weights
        rankings = [ballot.ranking for ballot in ballots if ballot.ranking]
        won = runoff_winners(cast=Counter(rankings), options=options)
        if won is None:
            none: dict[str, Score] = dict.fromkeys(options, 0)
            return Count(winners=(), scores=none, flags=("tie_sensitive", "too_many_paths"))
        winners = tuple(option for option in options if option in won)
        notes: dict[str, Any] = {}
        if len(winners) == 1:
            one = eliminate(rankings=rankings, options=options, safety_order=options)
            # Where a tie was met on the way, this is one of several ways to the same winner.
            notes = {
                "eliminated": list(one.eliminated),
                "rounds": list(one.rounds),
                "tied_rounds": list(one.tied),
                "exhausted": one.exhausted,
            }
        return Count(
            winners=winners,
            scores={option: int(option in won) for option in options},
            flags=("tie_sensitive",) if len(winners) > 1 else (),
            notes=notes,
        )
