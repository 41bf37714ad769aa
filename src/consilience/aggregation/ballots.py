"""A ballot, and what makes it none: it is valid or it does not count, and nothing is ever repaired into a vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from consilience.core.answers import Choice


@dataclass(frozen=True)
class Ballot:
    """What one seat put in; each rule reads its own part of it.

    Attributes:
        seat: Who cast it.
        choice: Id of the one option chosen.
        confidence: As the seat reports it, in [0, 1]; it is not calibrated.
        ranking: Option ids, best first; shorter than the question's list where the seat stopped.
        approvals: Option ids the seat approves, in any order; an empty tuple approves none.

    Example:
        >>> Ballot("a", ranking=("x", "y")).first
        'x'
    """

    seat: str
    choice: str | None = None
    confidence: float | None = None
    ranking: tuple[str, ...] | None = None
    approvals: tuple[str, ...] | None = None

    @property
    def first(self) -> str | None:
        """The option chosen, or the best one ranked; None when the ballot says neither."""
        return self.ranking[0] if self.choice is None and self.ranking else self.choice


def flaw(*, ballot: Ballot, options: Sequence[str]) -> str | None:
    """Return why a ballot is none under any rule; None when it is sound.

    Args:
        ballot: As cast.
        options: Ids of all options.

    Example:
        >>> flaw(ballot=Ballot("a", ranking=("x", "x")), options=("x", "y"))
        'its ranking names x twice'
        >>> flaw(ballot=Ballot("a", choice="y"), options=("x", "y")) is None
        True
    """
    if ballot.choice is not None and ballot.choice not in options:
        return f'it chooses "{ballot.choice}", which is no option'
    for part, named in (("ranking", ballot.ranking), ("approval set", ballot.approvals)):
        if named and not (len(set(named)) == len(named) and set(named) <= set(options)):
            for option in named:
                if option not in options:
                    return f'its {part} names "{option}", which is no option'
                if named.count(option) > 1:
                    return f"its {part} names {option} twice"
    if ballot.choice is not None and ballot.ranking and ballot.ranking[0] != ballot.choice:
        return f"it chooses {ballot.choice} and ranks {ballot.ranking[0]} first"
    if ballot.confidence is not None and not 0 <= ballot.confidence <= 1:
        return f"its confidence {ballot.confidence} does not lie in [0, 1]"
    return None


def ballot_of(seat: str, said: Choice, *, own: str | None = None) -> Ballot:
    """Return the ballot that a vote casts.

    Where a seat may not vote for an option of its own, that option is taken out of ranking and approvals; a vote for it
    goes to the next in the ranking, and without a ranking it is no ballot.

    Args:
        seat: Who voted.
        said: The vote.
        own: Id of the option that the seat may not vote for; None where it may vote for any.

    Example:
        >>> said = Choice(choice="x", confidence=0.9, rationale="", ranking=("x", "y", "z"), evidence_ids=(),
        ...               reasoning_summary="", counterarguments=(), missing_data=())
        >>> ballot_of("a", said, own="x").first, ballot_of("a", said, own="x").ranking
        ('y', ('y', 'z'))
    """
    if own is None:
        return Ballot(seat, said.choice, said.confidence, said.ranking, said.approvals)
    ranking = None if said.ranking is None else tuple(option for option in said.ranking if option != own)
    approvals = None if said.approvals is None else tuple(option for option in said.approvals if option != own)
    choice = said.choice if said.choice != own else ranking[0] if ranking else None
    return Ballot(seat, choice, said.confidence, ranking, approvals)
