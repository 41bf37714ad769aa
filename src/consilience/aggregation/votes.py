"""Rules for votes: ballots become a winner or a tie, counted exactly.

A ballot names one option or it is no ballot; nothing is ever repaired into a vote, and a tie is never broken here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from consilience.aggregation.seating import seat_order
from consilience.errors import DataError
from consilience.registry import Registry


@dataclass(frozen=True)
class Tally:
    """What a vote came to.

    Attributes:
        winners: Ids of the options that won, in the question's order; more than one is a tie.
        counts: Ballots by option id, in the question's order.
        weights: Share of each seat, sum 1, in order of seat id.
        flags: What happened beyond the rule's name: ``single_agent``, ``tie``.
        n: Ballots counted.
    """

    winners: tuple[str, ...]
    counts: dict[str, int]
    weights: dict[str, Fraction]
    flags: tuple[str, ...]
    n: int

    @property
    def winner(self) -> str | None:
        """The one option that won; None on a tie."""
        return self.winners[0] if len(self.winners) == 1 else None

    @property
    def shares(self) -> dict[str, Fraction]:
        """Share of the ballots by option id; they sum to exactly 1."""
        return {option: Fraction(count, self.n) for option, count in self.counts.items()}

    @property
    def agreement_share(self) -> Fraction:
        """Share of the ballots behind the winner, or behind each of the tied; agreement is no confidence."""
        return self.shares[self.winners[0]]


class VoteRule(ABC):
    """A rule that turns ballots into the set of options that won.

    The declared properties are checked by the tests over the registry, and what is declared False is refuted there.

    Attributes:
        kinds: Answer kinds the rule serves.
        order_invariant: The order of the ballots changes nothing, that of the options only the order of the result.
        unanimity: An option that has every ballot wins alone.
        neutral: Other names of the options name the winners otherwise and change nothing else.
        monotone: A ballot moved to a winner makes it lose to nobody.
    """

    kinds: ClassVar[tuple[str, ...]] = ("choice",)
    order_invariant: ClassVar[bool] = True
    unanimity: ClassVar[bool] = True
    neutral: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and in every prediction row."""

    @abstractmethod
    def _winners(self, counts: dict[str, int]) -> tuple[str, ...]:
        """Return the options that won, in the order of ``counts``."""

    def __call__(self, *, choices: tuple[str, ...], options: tuple[str, ...], seats: tuple[str, ...]) -> Tally:
        """Return what the ballots came to; a single one is flagged ``single_agent``.

        Args:
            choices: One option id per seat. An abstaining seat is absent.
            options: Distinct option ids; those without a ballot count 0.
            seats: Distinct seat ids.

        Raises:
            QuorumError: No seat voted.
            DataError: Ids do not fit, or a ballot names no option.
        """
        order = seat_order(rule=self.name, seats=seats, answers=len(choices))
        for seat, choice in zip(seats, choices, strict=True):
            if choice not in options:
                raise DataError(
                    f'the ballot of {seat} names "{choice}", which is no option',
                    hint="Reject it where answers are read; it is never made into a vote.",
                )
        if len(set(options)) != len(options):
            raise DataError(f"options share an id: {', '.join(options)}", hint="Give every option its own id.")
        cast = Counter(choices)
        counts = {option: cast[option] for option in options}
        winners = self._winners(counts)
        n = len(seats)
        flags = (*(("single_agent",) if n == 1 else ()), *(("tie",) if len(winners) > 1 else ()))
        weights = {seats[i]: Fraction(1, n) for i in order}
        return Tally(winners=winners, counts=counts, weights=weights, flags=flags, n=n)


@dataclass(frozen=True)
class Plurality(VoteRule):
    """The option with most ballots, or all of them that have as many.

    Example:
        >>> vote = Plurality()
        >>> vote(choices=("x", "y", "x"), options=("x", "y", "z"), seats=("a", "b", "c")).agreement_share
        Fraction(2, 3)
        >>> vote(choices=("x", "y"), options=("x", "y"), seats=("a", "b")).winners
        ('x', 'y')
    """

    name: ClassVar[str] = "plurality"

    def _winners(self, counts: dict[str, int]) -> tuple[str, ...]:
        most = max(counts.values())
        return tuple(option for option, count in counts.items() if count == most)


VOTE_RULES: Final[Registry[VoteRule]] = Registry("vote rule", (Plurality(),), group="consilience.vote_rules")

DEFAULT_VOTE_RULE: Final = "plurality"
"""The primary comparison, fixed beforehand."""
