"""What a vote came to, and what every rule for votes does alike: sort ballots out, count, name the winners.

Counts are integers and exact fractions. A tie is never broken here: whoever must have one winner breaks it by
`consilience.aggregation.ties`, and the record then says so.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal

from consilience.aggregation.ballots import Ballot, flaw
from consilience.aggregation.seating import seat_order
from consilience.errors import DataError, QuorumError

Score = int | Fraction | float
Decided = Literal["winner", "tie", "no_decision"]
Denominator = Literal["cast", "seats"]
Reads = Literal["choice", "confidence", "ranking", "approvals"]

TOLERANCE: Final = 1e-12
"""Relative difference below which two sums of floating-point numbers are the same."""


@dataclass(frozen=True)
class Tally:
    """What a vote came to under one rule.

    Attributes:
        decided: ``winner``, ``tie``, or ``no_decision`` where no option reached what the rule demands.
        winners: Ids of the options that won, in the question's order; several on a tie, none without a decision.
        scores: The rule's own score by option id, in the question's order; more is better.
        counts: Counted ballots behind each option, by their first option (for approval: that approve it).
        shares: Each option's share of all scores where scores add up to something. Otherwise 1 split evenly among the
            winners, or the shares of the ballots when nobody won. They sum to 1 and are no probabilities.
        weights: Share of each counted seat, sum 1, in order of seat id; all 0 where all weights are.
        denominator: What a share was demanded of: ballots ``cast``, or all ``seats``.
        of: Its number.
        unused: Why a seat's ballot did not count, by seat id.
        flags: What happened beyond the rule's name: ``single_agent``, ``tie``, ``unused_ballots``, ``no_support``
            (every score is 0), ``equal_weights``, ``confidence_uncalibrated``, ``tie_sensitive``, ``too_many_paths``.
        n: Ballots counted.
        notes: What the rule did on its way, as JSON values.
    """

    decided: Decided
    winners: tuple[str, ...]
    scores: dict[str, Score]
    counts: dict[str, int]
    shares: dict[str, Score]
    weights: dict[str, Score]
    denominator: Denominator
    of: int
    unused: dict[str, str]
    flags: tuple[str, ...]
    n: int
    notes: dict[str, Any]

    @property
    def winner(self) -> str | None:
        """The one option that won; None on a tie and without a decision."""
        return self.winners[0] if len(self.winners) == 1 else None

    @property
    def strength(self) -> Score | None:
        """The winner's share under the rule's own scores; None without a winner. It is no probability."""
        return None if self.winner is None else self.shares[self.winner]

    @property
    def agreement_share(self) -> Fraction:
        """Share of the heads behind the winner; of a tie, or without a decision, the largest. It is no confidence."""
        return Fraction(max(self.counts[option] for option in self.winners or self.counts), self.n)

    def record(self) -> dict[str, Any]:
        """Return all of it as JSON values; what is exact stays so, such as ``"2/3"``."""
        told = {key: plain(value) if isinstance(value, dict) else value for key, value in vars(self).items()}
        return {**told, "agreement_share": str(self.agreement_share)}


def plain(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with fractions written out.

    Example:
        >>> plain({"x": Fraction(2, 3), "y": 1})
        {'x': '2/3', 'y': 1}
    """
    return {key: str(value) if isinstance(value, Fraction) else value for key, value in scores.items()}


@dataclass(frozen=True)
class Count:
    """What a rule makes of the ballots that count; `VoteRule` completes it to a `Tally`.

    Attributes:
        winners: In the question's order; empty without a decision.
        scores: By option id, in the question's order.
        shares: Sum 1; None where scores do not add up to anything.
        weights: By seat id, sum 1; None when all seats weigh the same.
        flags: Beyond those of every rule.
        notes: JSON values.
    """

    winners: tuple[str, ...]
    scores: dict[str, Score]
    shares: dict[str, Score] | None = None
    weights: dict[str, Score] | None = None
    flags: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)


def leaders(scores: Mapping[str, Score]) -> tuple[str, ...]:
    """Return the options with the highest score: exactly, or to 1e-12 relative where scores are floating-point.

    Example:
        >>> leaders({"x": 0.1 + 0.2, "y": 0.3, "z": 0.1})
        ('x', 'y')
    """
    most = max(scores.values())
    least = most - TOLERANCE * abs(most) if isinstance(most, float) else most
    return tuple(option for option, score in scores.items() if score >= least)


def total(scores: Sequence[Score]) -> Score:
    """Return a sum, exact and then rounded once when any term is floating-point.

    Example:
        >>> total([Fraction(1, 3), Fraction(2, 3)]), total([0.1] * 10)
        (Fraction(1, 1), 1.0)
    """
    if any(isinstance(score, float) for score in scores):
        return math.fsum(scores)
    return sum((Fraction(score) for score in scores), Fraction(0))


def parts(scores: Mapping[str, Score]) -> dict[str, Score] | None:
    """Return each score's share of their sum; None when it is 0.

    Example:
        >>> parts({"x": 2, "y": 1})
        {'x': Fraction(2, 3), 'y': Fraction(1, 3)}
    """
    whole = total(list(scores.values()))
    return {key: score / whole for key, score in scores.items()} if whole else None


class VoteRule(ABC):
    """A rule that turns ballots into the set of options that won.

    The declared properties are checked by the tests over the registry, and what is declared False is refuted there.

    Attributes:
        kinds: Answer kinds the rule serves.
        reads: The part of a ballot the rule reads; a ballot without it is no ballot for the rule.
        effort: One count of n options takes about n to this power of steps.
        order_invariant: The order of the ballots changes nothing, that of the options only the order of the result.
        unanimity: An option that every ballot puts first, or approves, wins alone.
        neutral: Other names of the options name the winners otherwise and change nothing else.
        monotone: A ballot moved to a winner, or that raises it and nothing else, leaves it a winner.
    """

    kinds: ClassVar[tuple[str, ...]] = ("choice",)
    reads: ClassVar[Reads] = "choice"
    effort: ClassVar[int] = 2
    order_invariant: ClassVar[bool] = True
    unanimity: ClassVar[bool] = True
    neutral: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and in every prediction row."""

    @property
    def denominator(self) -> Denominator:
        """What a demanded share is a share of: ballots ``cast``, or all ``seats``."""
        return "cast"

    @abstractmethod
    def _count(
        self, ballots: tuple[Ballot, ...], options: tuple[str, ...], of: int, weights: Mapping[str, Score] | None
    ) -> Count:
        """Return what sound ballots, in order of seat id, come to; ``of`` is the denominator's number."""

    def _lack(self, ballot: Ballot, options: tuple[str, ...]) -> str | None:
        """Return what a sound ballot lacks to be one for this rule; None when it counts."""
        del options
        return "it chooses no option" if ballot.first is None else None

    def behind(self, ballot: Ballot) -> tuple[str, ...]:
        """Return the options that a counted ballot stands behind: its first, or for approval all it approves."""
        return () if ballot.first is None else (ballot.first,)

    def split(
        self, *, ballots: Sequence[Ballot], options: tuple[str, ...]
    ) -> tuple[tuple[Ballot, ...], dict[str, str]]:
        """Return the ballots that count for this rule, in order of seat id, and why the others do not, by seat id.

        Args:
            ballots: At most one per seat.
            options: Distinct option ids.

        Raises:
            DataError: Two seats, or two options, share an id.
            QuorumError: There is no ballot.

        Example:
            >>> from consilience.aggregation.votes import VOTE_RULES
            >>> VOTE_RULES["borda"].split(ballots=[Ballot("a", choice="x")], options=("x", "y"))
            ((), {'a': 'it ranks no option'})
        """
        order = seat_order(rule=self.name, seats=tuple(ballot.seat for ballot in ballots), answers=len(ballots))
        if len(set(options)) != len(options):
            raise DataError(f"options share an id: {', '.join(options)}", hint="Give every option its own id.")
        used: list[Ballot] = []
        unused: dict[str, str] = {}
        for ballot in (ballots[index] for index in order):
            why = flaw(ballot=ballot, options=options) or self._lack(ballot, options)
            if why is None:
                used.append(ballot)
            else:
                unused[ballot.seat] = why
        return tuple(used), unused

    def __call__(
        self,
        *,
        ballots: Sequence[Ballot],
        options: tuple[str, ...],
        n_seats: int | None = None,
        weights: Mapping[str, Score] | None = None,
    ) -> Tally:
        """Return what the ballots came to; a single counted one is flagged ``single_agent``.

        Args:
            ballots: At most one per seat. An abstaining seat casts none.
            options: Distinct option ids.
            n_seats: All seats, those without a ballot included; None when every seat cast one.
            weights: Declared before the vote, by seat id; only ``weighted`` reads them.

        Raises:
            QuorumError: No ballot counts.
            DataError: Ids or numbers do not fit.
        """
        used, unused = self.split(ballots=ballots, options=options)
        if not used:
            told = "; ".join(f"{seat}: {why}" for seat, why in unused.items())
            raise QuorumError(f"{self.name} has no ballot to count: {told}", hint="Ask for what the rule reads.")
        if n_seats is not None and n_seats < len(ballots):
            raise DataError(f"{len(ballots)} ballots of {n_seats} seats", hint="Count all seats, silent ones too.")
        seats = len(ballots) if n_seats is None else n_seats
        n = len(used)
        of = seats if self.denominator == "seats" else n
        made = self._count(used, options, of, weights)
        counts = dict.fromkeys(options, 0)
        for ballot in used:
            for option in self.behind(ballot):
                counts[option] += 1
        several = len(made.winners) > 1
        decided: Decided = "tie" if several else "winner" if made.winners else "no_decision"
        own = (*(("single_agent",) if n == 1 else ()), *(("tie",) if several else ()), *made.flags)
        return Tally(
            decided=decided,
            winners=made.winners,
            scores=made.scores,
            counts=counts,
            shares=made.shares or _even(options, made.winners) or parts(counts) or _even(options, options),
            weights=made.weights or {ballot.seat: Fraction(1, n) for ballot in used},
            denominator=self.denominator,
            of=of,
            unused=unused,
            flags=(*own, "unused_ballots") if unused else own,
            n=n,
            notes=made.notes,
        )


def _even(options: tuple[str, ...], winners: tuple[str, ...]) -> dict[str, Score]:
    """Return 1 split evenly among the winners; empty when there is none."""
    return {option: Fraction(int(option in winners), len(winners)) for option in options} if winners else {}
