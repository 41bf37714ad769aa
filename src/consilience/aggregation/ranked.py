"""Rules over full rankings: Borda, and those that compare the options two by two."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.pairwise import (
    Margins,
    condorcet_winner,
    margins,
    ranked_pairs_winners,
    smith_set,
    strongest_paths,
)
from consilience.aggregation.tallies import Count, Reads, Score, VoteRule, leaders, parts


def ranking_lack(ballot: Ballot, options: tuple[str, ...]) -> str | None:
    """Return why a sound ballot is no full ranking; None when it is.

    Example:
        >>> ranking_lack(Ballot("a", ranking=("x",)), ("x", "y"))
        'it ranks 1 of 2 options'
    """
    if not ballot.ranking:
        return "it ranks no option"
    return f"it ranks {len(ballot.ranking)} of {len(options)} options" if len(ballot.ranking) < len(options) else None


@dataclass(frozen=True)
class Borda(VoteRule):
    """The option with most points: n - 1 - position, of n options, summed over the rankings (Borda 1781).

    Attributes:
        truncated: ``refuse``: a ballot that does not rank all options is no ballot. ``average``: the options it leaves
            out share the points left to them evenly.

    Example:
        >>> ballots = [Ballot("a", ranking=("x", "y", "z")), Ballot("b", ranking=("y", "z", "x"))]
        >>> Borda()(ballots=ballots, options=("x", "y", "z")).scores
        {'x': 2, 'y': 3, 'z': 1}
        >>> Borda("average")(ballots=[Ballot("a", ranking=("x",))], options=("x", "y", "z")).scores
        {'x': Fraction(2, 1), 'y': Fraction(1, 2), 'z': Fraction(1, 2)}
    """

    truncated: Literal["refuse", "average"] = "refuse"
    name: ClassVar[str] = "borda"
    reads: ClassVar[Reads] = "ranking"

    def _lack(self, ballot: Ballot, options: tuple[str, ...]) -> str | None:
        return None if ballot.ranking and self.truncated == "average" else ranking_lack(ballot, options)

    def _count(
        self, ballots: tuple[Ballot, ...], options: tuple[str, ...], of: int, weights: Mapping[str, Score] | None
    ) -> Count:
        del of, weights
        halves = dict.fromkeys(options, 0)
        for ranking in (ballot.ranking or () for ballot in ballots):
            for position, option in enumerate(ranking):
                halves[option] += 2 * (len(options) - 1 - position)
            if len(ranking) < len(options):
                for option in set(options).difference(ranking):
                    halves[option] += len(options) - 1 - len(ranking)
        scores: dict[str, Score] = {
            option: twice // 2 if self.truncated == "refuse" else Fraction(twice, 2) for option, twice in halves.items()
        }
        return Count(winners=leaders(scores), scores=scores, shares=parts(scores))


class Compared(VoteRule):
    """A rule that reads nothing but the margins between options; its notes name the Condorcet winner and Smith set."""

    reads: ClassVar[Reads] = "ranking"
    effort: ClassVar[int] = 3

    @abstractmethod
    def _scores(self, m: Margins) -> tuple[list[int], tuple[str, ...]]:
        """Return a score per option, the largest of which win, and flags; no scores without a decision."""

    def _shares(self, scores: Mapping[str, int]) -> dict[str, Score] | None:
        """Return the options' shares where the scores add up to something."""
        del scores
        return None

    def _lack(self, ballot: Ballot, options: tuple[str, ...]) -> str | None:
        return ranking_lack(ballot, options)

    def _count(
        self, ballots: tuple[Ballot, ...], options: tuple[str, ...], of: int, weights: Mapping[str, Score] | None
    ) -> Count:
        del of, weights
        m = margins(rankings=[ballot.ranking or () for ballot in ballots], options=options)
        beats_all = condorcet_winner(m)
        notes: dict[str, Any] = {
            "condorcet_winner": None if beats_all is None else options[beats_all],
            "smith_set": [options[index] for index in smith_set(m)],
        }
        made, flags = self._scores(m)
        if not made:
            return Count(winners=(), scores=dict.fromkeys(options, 0), flags=flags, notes=notes)
        scores = dict(zip(options, made, strict=True))
        return Count(winners=leaders(scores), scores={**scores}, shares=self._shares(scores), flags=flags, notes=notes)


@dataclass(frozen=True)
class Copeland(Compared):
    """The option with most options beaten less options it loses to (Copeland 1951).

    Its shares are those of all comparisons won, a tie counting half to each side.

    Example:
        >>> ballots = [Ballot("a", ranking=("x", "y", "z")), Ballot("b", ranking=("x", "z", "y"))]
        >>> Copeland()(ballots=ballots, options=("x", "y", "z")).scores
        {'x': 2, 'y': -1, 'z': -1}
    """

    name: ClassVar[str] = "copeland"

    def _scores(self, m: Margins) -> tuple[list[int], tuple[str, ...]]:
        return [sum(margin > 0 for margin in row) - sum(margin < 0 for margin in row) for row in m], ()

    def _shares(self, scores: Mapping[str, int]) -> dict[str, Score] | None:
        others = len(scores) - 1
        return parts({option: score + others for option, score in scores.items()})


@dataclass(frozen=True)
class Minimax(Compared):
    """The option whose worst comparison is the least bad; the score is its smallest margin over another option.

    Example:
        >>> ballots = [Ballot("a", ranking=("x", "y", "z")), Ballot("b", ranking=("x", "z", "y"))]
        >>> Minimax()(ballots=ballots, options=("x", "y", "z")).scores
        {'x': 2, 'y': -2, 'z': -2}
    """

    name: ClassVar[str] = "minimax"

    def _scores(self, m: Margins) -> tuple[list[int], tuple[str, ...]]:
        return [min((margin for j, margin in enumerate(row) if j != i), default=0) for i, row in enumerate(m)], ()


@dataclass(frozen=True)
class RankedPairs(Compared):
    """Every option that ranked pairs elects under some order of equal pairs (Tideman 1987); those have score 1.

    When there are too many orders to try nobody wins, flagged ``too_many_paths``.

    Example:
        >>> ballots = [Ballot("a", ranking=("x", "y", "z")), Ballot("b", ranking=("y", "x", "z"))]
        >>> RankedPairs()(ballots=ballots, options=("x", "y", "z")).winners
        ('x', 'y')
    """

    name: ClassVar[str] = "ranked_pairs"
    effort: ClassVar[int] = 4

    def _scores(self, m: Margins) -> tuple[list[int], tuple[str, ...]]:
        found = ranked_pairs_winners(m)
        return ([], ("too_many_paths",)) if found is None else ([int(index in found) for index in range(len(m))], ())


@dataclass(frozen=True)
class Schulze(Compared):
    """Every option with no other whose strongest path to it is stronger than the one back (Schulze 2011).

    The strength of a path is its weakest margin. The score is minus the number of options that are so stronger.

    Example:
        >>> ballots = [Ballot("a", ranking=("x", "y", "z")), Ballot("b", ranking=("x", "z", "y"))]
        >>> Schulze()(ballots=ballots, options=("x", "y", "z")).scores
        {'x': 0, 'y': -1, 'z': -1}
    """

    name: ClassVar[str] = "schulze"

    def _scores(self, m: Margins) -> tuple[list[int], tuple[str, ...]]:
        p = strongest_paths(m)
        return [-sum(p[j][i] > p[i][j] for j in range(len(p))) for i in range(len(p))], ()
