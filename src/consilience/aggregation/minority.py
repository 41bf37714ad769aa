"""What a minority report of a vote says beyond names: which rules elect another option, and how many moves decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, islice, permutations
from typing import Final

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.tallies import Score, Tally, VoteRule
from consilience.errors import DataError

MOST_SEATS: Final = 20
MOST_COUNTS: Final = 5_000
"""Counts after which the search for a margin of victory stops and gives a lower bound."""
MOST_WORK: Final = 4_000_000
"""Steps of all counts together; one count of n options is n to the power of the rule's `effort`. With many options
fewer other ballots are tried, never none."""


def would_have_won(
    *,
    ballots: Sequence[Ballot],
    options: tuple[str, ...],
    rules: Iterable[VoteRule],
    weights: Mapping[str, Score] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Return, by option id, the rules under which it alone wins these ballots.

    A rule that has no ballot to count elects nobody; so does one that ties.

    Args:
        ballots: At most one per seat.
        options: Distinct option ids.
        rules: The rules to try.
        weights: Declared before the vote, by seat id.

    Example:
        >>> from consilience.aggregation.votes import VOTE_RULES
        >>> ballots = [Ballot("a", "x", 0.2), Ballot("b", "x", 0.2), Ballot("c", "y", 0.9)]
        >>> rules = [VOTE_RULES[name] for name in ("majority", "confidence_weighted", "borda")]
        >>> would_have_won(ballots=ballots, options=("x", "y"), rules=rules)
        {'x': ('majority',), 'y': ('confidence_weighted',)}
    """
    won: dict[str, list[str]] = {option: [] for option in options}
    for rule in rules:
        if rule.split(ballots=ballots, options=options)[0]:
            winner = rule(ballots=ballots, options=options, weights=weights).winner
            if winner is not None:
                won[winner].append(rule.name)
    return {option: tuple(names) for option, names in won.items()}


@dataclass(frozen=True)
class MarginOfVictory:
    """How many voters would have had to vote otherwise for another result.

    Attributes:
        switches: The smallest number; None when it is not known, as where a count gives up, or no number is enough.
        at_least: What it is at least; equal to ``switches`` when that is known. One more than the number of counted
            ballots says that no number is enough.
    """

    switches: int | None
    at_least: int


def margin_of_victory(
    *,
    rule: VoteRule,
    ballots: Sequence[Ballot],
    options: tuple[str, ...],
    n_seats: int | None = None,
    weights: Mapping[str, Score] | None = None,
) -> MarginOfVictory:
    """Return the smallest number of voters whose other ballots would have changed winners or decision, a tie included.

    By brute force over who switches and to what, fewest first, at most `MOST_COUNTS` counts, and fewer beyond about
    nine options (`MOST_WORK`). Under rules that read one choice, all who switch go to one option and the heaviest of
    each option's voters first, which loses nothing since those rules are monotone. A voter keeps its weight and its
    confidence.

    Args:
        rule: The rule of the vote.
        ballots: At most one per seat, at most 20.
        options: Distinct option ids.
        n_seats: All seats, as in the vote.
        weights: As in the vote.

    Raises:
        DataError: There are more than 20 ballots.
        QuorumError: No ballot counts.

    Example:
        >>> from consilience.aggregation.votes import VOTE_RULES
        >>> ballots = [Ballot(seat, "x") for seat in "abcd"] + [Ballot("e", "y")]
        >>> margin_of_victory(rule=VOTE_RULES["majority"], ballots=ballots, options=("x", "y"))
        MarginOfVictory(switches=2, at_least=2)
    """
    if len(ballots) > MOST_SEATS:
        raise DataError(f"{len(ballots)} ballots are too many to try", hint=f"At most {MOST_SEATS} are searched.")
    seats = len(ballots) if n_seats is None else n_seats

    def result(cast: Sequence[Ballot]) -> Tally:
        return rule(ballots=cast, options=options, n_seats=seats, weights=weights)

    before = result(ballots)
    if "too_many_paths" in before.flags:
        return MarginOfVictory(None, 1)
    used, _ = rule.split(ballots=ballots, options=options)
    single = rule.reads in {"choice", "confidence"}
    most = min(MOST_COUNTS, max(1, MOST_WORK // len(options) ** rule.effort))
    counted = 0
    for k in range(1, len(used) + 1):
        tried = (
            _moved(used, options, k, weights or {})
            if single
            else _recast(used, list(islice(_all_ballots(options, rule), most + 1)), k, rule)
        )
        for cast in tried:
            if counted == most:
                return MarginOfVictory(None, k)
            counted += 1
            after = result(cast)
            if "too_many_paths" in after.flags:
                return MarginOfVictory(None, k)
            if (after.decided, after.winners) != (before.decided, before.winners):
                return MarginOfVictory(k, k)
    return MarginOfVictory(None, len(used) + 1)


def _moved(
    used: tuple[Ballot, ...], options: tuple[str, ...], k: int, weights: Mapping[str, Score]
) -> Iterator[tuple[Ballot, ...]]:
    """Yield the ballots after k voters have moved to one option, the heaviest of each option first."""

    def heft(ballot: Ballot) -> tuple[Score, Score]:
        return weights.get(ballot.seat, 1), ballot.confidence or 0.0

    groups = {option: sorted((b for b in used if b.first == option), key=heft, reverse=True) for option in options}
    for target in options:
        others = [groups[option] for option in options if option != target and groups[option]]
        for taken in _taken([len(group) for group in others], k):
            gone = {ballot.seat for group, n in zip(others, taken, strict=True) for ballot in group[:n]}
            yield tuple(replace(b, choice=target, ranking=None) if b.seat in gone else b for b in used)


def _taken(sizes: Sequence[int], k: int) -> Iterator[tuple[int, ...]]:
    """Yield how many of each group can be taken, k together."""
    if not sizes:
        yield from [()] if k == 0 else []
        return
    for first in range(max(0, k - sum(sizes[1:])), min(k, sizes[0]) + 1):
        for others in _taken(sizes[1:], k - first):
            yield first, *others


def _recast(
    used: tuple[Ballot, ...], others: Sequence[tuple[str, ...]], k: int, rule: VoteRule
) -> Iterator[tuple[Ballot, ...]]:
    """Yield the ballots after k voters have cast any others; voters of equal ballots are not told apart."""
    tried: set[tuple[tuple[str, ...], ...]] = set()
    for out in combinations(range(len(used)), k):
        leaving = tuple(sorted(used[index].ranking or used[index].approvals or () for index in out))
        if leaving in tried:
            continue
        tried.add(leaving)
        for new in combinations_with_replacement(others, k):
            fresh = dict(zip(out, new, strict=True))
            yield tuple(
                _ballot(ballot.seat, fresh[index], rule) if index in fresh else ballot
                for index, ballot in enumerate(used)
            )


def _ballot(seat: str, named: tuple[str, ...], rule: VoteRule) -> Ballot:
    return Ballot(seat, ranking=named) if rule.reads == "ranking" else Ballot(seat, approvals=named)


def _all_ballots(options: tuple[str, ...], rule: VoteRule) -> Iterator[tuple[str, ...]]:
    """Yield every full ranking, or every approval set."""
    if rule.reads == "ranking":
        yield from permutations(options)
    else:
        for size in range(len(options) + 1):
            yield from combinations(options, size)
