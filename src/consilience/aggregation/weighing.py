"""Rules that weigh ballots: by weights declared beforehand, or by the confidence each reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.tallies import Count, Reads, Score, VoteRule, leaders, parts, total
from consilience.errors import DataError


def _weighed(
    ballots: tuple[Ballot, ...], options: tuple[str, ...], weights: dict[str, Score], flags: tuple[str, ...] = ()
) -> Count:
    """Return the count of weighed ballots; nobody wins when all weights are 0."""
    scores = {
        option: total([weights[ballot.seat] for ballot in ballots if ballot.first == option]) for option in options
    }
    shares = parts(scores)
    if shares is None:
        return Count(winners=(), scores=scores, weights=weights, flags=(*flags, "no_support"))
    return Count(winners=leaders(scores), scores=scores, shares=shares, weights=parts(weights), flags=flags)


@dataclass(frozen=True)
class WeightedVote(VoteRule):
    """The option with the largest sum of weights, which are declared before the vote or earned on resolved decisions.

    Whole numbers and fractions are summed exactly; sums of floats within 1e-12 of each other tie. Without weights all
    seats weigh the same, flagged ``equal_weights``.

    Example:
        >>> ballots = [Ballot("a", "x"), Ballot("b", "y"), Ballot("c", "y")]
        >>> WeightedVote()(ballots=ballots, options=("x", "y"), weights={"a": 3, "b": 1, "c": 1}).winner
        'x'
    """

    name: ClassVar[str] = "weighted"

    def _count(
        self, ballots: tuple[Ballot, ...], options: tuple[str, ...], of: int, weights: Mapping[str, Score] | None
    ) -> Count:
        del of
        if weights is None:
            return _weighed(ballots, options, {ballot.seat: 1 for ballot in ballots}, ("equal_weights",))
        for ballot in ballots:
            weight = weights.get(ballot.seat)
            if weight is None or not 0 <= weight < math.inf:
                raise DataError(
                    f"the weight of seat {ballot.seat} is {weight}",
                    hint="Declare for every seat a finite weight of at least 0.",
                )
        return _weighed(ballots, options, {ballot.seat: weights[ballot.seat] for ballot in ballots})


@dataclass(frozen=True)
class ConfidenceWeighted(VoteRule):
    """The option with the largest share of summed confidence, that share being its strength.

    Confidence is as the seats report it and not calibrated, which the flag ``confidence_uncalibrated`` says.

    Example:
        >>> ballots = [Ballot("a", "x", 0.9), Ballot("b", "y", 0.3), Ballot("c", "y", 0.3)]
        >>> made = ConfidenceWeighted()(ballots=ballots, options=("x", "y"))
        >>> made.winner, made.strength
        ('x', 0.6)
    """

    name: ClassVar[str] = "confidence_weighted"
    reads: ClassVar[Reads] = "confidence"

    def _lack(self, ballot: Ballot, options: tuple[str, ...]) -> str | None:
        return super()._lack(ballot, options) or ("it states no confidence" if ballot.confidence is None else None)

    def _count(
        self, ballots: tuple[Ballot, ...], options: tuple[str, ...], of: int, weights: Mapping[str, Score] | None
    ) -> Count:
        del of, weights
        stated: dict[str, Score] = {
            ballot.seat: float(ballot.confidence) for ballot in ballots if ballot.confidence is not None
        }
        return _weighed(ballots, options, stated, ("confidence_uncalibrated",))
