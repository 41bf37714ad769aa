"""Rules that count heads: plurality, majority, supermajority, unanimity, and approval.

Their thresholds are exact fractions of a declared denominator, the ballots cast or all seats.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.tallies import Count, Denominator, Reads, Score, VoteRule, leaders, parts
from consilience.errors import ConfigError


class HeadCount(VoteRule):
    """A rule that looks at nothing but how many heads are for each option."""

    @abstractmethod
    def _reached(self, counts: dict[str, int], of: int) -> tuple[str, ...]:
        """Return the options that won, in the order of ``counts``."""

    def _count(
        self, ballots: tuple[Ballot, ...], options: tuple[str, ...], of: int, weights: Mapping[str, Score] | None
    ) -> Count:
        del weights
        cast = Counter(ballot.first for ballot in ballots)
        counts = {option: cast[option] for option in options}
        return Count(winners=self._reached(counts, of), scores={**counts}, shares=parts(counts))


@dataclass(frozen=True)
class Plurality(HeadCount):
    """The option with most ballots, or all of them that have as many.

    Example:
        >>> vote = Plurality()
        >>> xy = ("x", "y")
        >>> vote(ballots=[Ballot("a", "x"), Ballot("b", "y"), Ballot("c", "x")], options=xy).agreement_share
        Fraction(2, 3)
        >>> vote(ballots=[Ballot("a", "x"), Ballot("b", "y")], options=xy).winners
        ('x', 'y')
    """

    name: ClassVar[str] = "plurality"

    def _reached(self, counts: dict[str, int], of: int) -> tuple[str, ...]:
        del of
        return leaders(counts)


@dataclass(frozen=True)
class Majority(HeadCount):
    """The option with more than half; two that hold exactly half each tie; otherwise there is no decision.

    Attributes:
        denominator: Half of the ballots ``cast``, or of all ``seats``.

    Example:
        >>> one, two = Ballot("a", "x"), Ballot("b", "y")
        >>> Majority()(ballots=[one], options=("x", "y")).winner
        'x'
        >>> Majority()(ballots=[one, two], options=("x", "y")).decided
        'tie'
        >>> Majority(denominator="seats")(ballots=[one], options=("x", "y"), n_seats=2).decided
        'no_decision'
    """

    denominator: Denominator = "cast"
    name: ClassVar[str] = "majority"

    def _reached(self, counts: dict[str, int], of: int) -> tuple[str, ...]:
        half = tuple(option for option, count in counts.items() if 2 * count >= of)
        return half if len(half) == 2 or any(2 * counts[option] > of for option in half) else ()


@dataclass(frozen=True)
class Supermajority(HeadCount):
    """The option that has at least a fraction of the denominator; otherwise there is no decision.

    Attributes:
        threshold: An exact fraction in (1/2, 1]; a float is refused, since 0.6666666666666667 rejects two of three.
        denominator: Of the ballots ``cast``, or of all ``seats``.

    Raises:
        ConfigError: The threshold is no fraction in (1/2, 1].

    Example:
        >>> ballots = [Ballot("a", "x"), Ballot("b", "y"), Ballot("c", "x")]
        >>> Supermajority()(ballots=ballots, options=("x", "y")).winner
        'x'
        >>> Supermajority(Fraction(3, 4))(ballots=ballots, options=("x", "y")).decided
        'no_decision'
    """

    threshold: Fraction = Fraction(2, 3)
    denominator: Denominator = "cast"
    name: ClassVar[str] = "supermajority"

    def __post_init__(self) -> None:
        given: object = self.threshold  # a type checker's word does not hold at run time
        if not isinstance(given, Fraction) or not Fraction(1, 2) < given <= 1:
            raise ConfigError(f"a supermajority of {given!r} is no fraction in (1/2, 1]", hint="Write Fraction(2, 3).")

    def _reached(self, counts: dict[str, int], of: int) -> tuple[str, ...]:
        return tuple(option for option, count in counts.items() if count >= self.threshold * of)


@dataclass(frozen=True)
class Unanimity(HeadCount):
    """The option that all heads are for, whatever their confidence; otherwise there is no decision.

    Attributes:
        denominator: All ballots ``cast``, or all ``seats``, where an abstention blocks.

    Example:
        >>> Unanimity()(ballots=[Ballot("a", "x", 0.9), Ballot("b", "x", 0.1)], options=("x", "y")).winner
        'x'
    """

    denominator: Denominator = "cast"
    name: ClassVar[str] = "unanimity"

    def _reached(self, counts: dict[str, int], of: int) -> tuple[str, ...]:
        return tuple(option for option, count in counts.items() if count == of)


@dataclass(frozen=True)
class Approval(VoteRule):
    """The option that most ballots approve (Brams & Fishburn 1978); nobody wins when nothing is approved.

    A ballot that approves nothing counts among the ballots and supports no option.

    Example:
        >>> ballots = [Ballot("a", approvals=("x", "y")), Ballot("b", approvals=("y",)), Ballot("c", approvals=())]
        >>> made = Approval()(ballots=ballots, options=("x", "y"))
        >>> made.winner, made.scores, made.n
        ('y', {'x': 1, 'y': 2}, 3)
    """

    name: ClassVar[str] = "approval"
    reads: ClassVar[Reads] = "approvals"
    unanimity: ClassVar[bool] = False  # another option may be approved by all too

    def _lack(self, ballot: Ballot, options: tuple[str, ...]) -> str | None:
        del options
        return "it has no approval set" if ballot.approvals is None else None

    def behind(self, ballot: Ballot) -> tuple[str, ...]:
        """Return all options that a ballot approves."""
        return ballot.approvals or ()

    def _count(
        self, ballots: tuple[Ballot, ...], options: tuple[str, ...], of: int, weights: Mapping[str, Score] | None
    ) -> Count:
        del of, weights
        approved = Counter(option for ballot in ballots for option in ballot.approvals or ())
        counts = {option: approved[option] for option in options}
        shares = parts(counts)
        if shares is None:
            return Count(winners=(), scores={**counts}, flags=("no_support",))
        return Count(winners=leaders(counts), scores={**counts}, shares=shares)
