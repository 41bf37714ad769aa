"""How a panel moved over the rounds of one item: spread, who moved toward whom, flips, and the evidence they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

from consilience.aggregation.positions import distance, is_right, position, stance
from consilience.core.answers import AnyAnswer, Estimate
from consilience.core.deliberation import Deliberation, Table, present
from consilience.core.kinds import KINDS, compact
from consilience.core.question import Question

Turned = Literal["right_to_wrong", "wrong_to_right"]

_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Toward:
    """A member that another came closer to.

    Attributes:
        seat: The member's label.
        share: Share of the gap closed, in (0, 1]; 1 is full agreement with where it stood the round before.
    """

    seat: str
    share: float


@dataclass(frozen=True)
class Move:
    """What one member did in one round.

    Attributes:
        seat: The member's label.
        round: The round of the revision.
        carried: It gave no new answer, so its latest stands.
        distance: How far it moved (`consilience.aggregation.positions.distance`).
        toward: Whom it came closer to, measured at their positions of the round before; the largest share first.
        changed: Whether what the answer comes down to is another option or side; None for estimates.
        turned: Whether it turned right or wrong; None when it did not, and without a truth.
    """

    seat: str
    round: int
    carried: bool
    distance: float
    toward: tuple[Toward, ...]
    changed: bool | None
    turned: Turned | None


@dataclass(frozen=True)
class Overlap:
    """How far the members relied on the same evidence.

    Attributes:
        pairs: Pairs of members of whom at least one cited something.
        jaccard: Mean over these pairs of shared ids over all ids of the two, in [0, 1]; None without such a pair.
        by_all: Ids that every member cited, sorted; empty with one member.
        by_one: Ids that a single member cited, sorted; empty with one member.
    """

    pairs: int
    jaccard: float | None
    by_all: tuple[str, ...]
    by_one: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return the overlap as JSON values, to six digits."""
        return {
            "pairs": self.pairs,
            "jaccard": None if self.jaccard is None else compact(self.jaccard),
            "by_all": list(self.by_all),
            "by_one": list(self.by_one),
        }


@dataclass(frozen=True)
class RoundState:
    """The table after one round.

    Attributes:
        round: 0 for the independent answers.
        answered: Members with an answer.
        carried: How many of them stand by one of an earlier round.
        spread: The kind's spread: IQR of (log) points, of probabilities (the largest over options), or the share of
            ballots not for the leading option; None below two answers.
        right: Members whose answer turned out right; None without a truth.
        evidence: What they cited.
    """

    round: int
    answered: int
    carried: int
    spread: float | None
    right: int | None
    evidence: Overlap


@dataclass(frozen=True)
class ItemDiagnostics:
    """The course of one item.

    Attributes:
        rounds: The table after every round.
        moves: Every member's move in every round after the first, by round, in seat order.
    """

    rounds: tuple[RoundState, ...]
    moves: tuple[Move, ...]

    def record(self) -> dict[str, Any]:
        """Return the diagnostics as JSON values, numbers to six digits."""
        return {
            "rounds": [
                {
                    **vars(state),
                    "spread": None if state.spread is None else compact(state.spread),
                    "evidence": state.evidence.record(),
                }
                for state in self.rounds
            ],
            "moves": [
                {
                    **vars(move),
                    "distance": compact(move.distance),
                    "toward": [{"seat": one.seat, "share": compact(one.share)} for one in move.toward],
                }
                for move in self.moves
            ],
        }


def item_diagnostics(
    question: Question, deliberation: Deliberation, *, truth: float | str | None = None
) -> ItemDiagnostics:
    """Return how the panel moved.

    Args:
        question: What was asked.
        deliberation: The tables after every round.
        truth: What turned out right; None leaves what needs it None.

    Example:
        >>> from consilience.core.outcomes import Failed
        >>> from consilience.core.deliberation import first_table
        >>> table = first_table(["analyst_01"], [Failed(error="TransientModelError", message="overloaded")])
        >>> item_diagnostics(Question(id="q", text="?", kind="probability"), Deliberation((table,))).rounds[0].answered
        0
    """
    tables = deliberation.tables
    moves = [
        move
        for round_ in range(1, len(tables))
        for move in moves_between(tables[round_ - 1], tables[round_], question, round_=round_, truth=truth)
    ]
    states = tuple(_state(table, question, round_, truth) for round_, table in enumerate(tables))
    return ItemDiagnostics(states, tuple(moves))


def _state(table: Table, question: Question, round_: int, truth: float | str | None) -> RoundState:
    answers = [answer for _, answer in present(table)]
    return RoundState(
        round=round_,
        answered=len(answers),
        carried=sum(row.carried_at(round_) is not None for row in table),
        spread=KINDS[question.kind].spread(answers, question) if len(answers) > 1 else None,
        right=None if truth is None else sum(is_right(answer, question, truth) for answer in answers),
        evidence=evidence_overlap(answers),
    )


def moves_between(
    before: Table, after: Table, question: Question, *, round_: int, truth: float | str | None = None
) -> list[Move]:
    """Return the move of every member that had an answer before and after, in seat order of ``after``.

    Members are met by label, so one that joins or first answers later makes no move.

    Example:
        >>> moves_between((), (), Question(id="q", text="?", kind="probability"), round_=1)
        []
    """
    stood = dict(present(before))
    places = {seat: position(answer, question) for seat, answer in stood.items()}
    moves: list[Move] = []
    for row in after:
        if row.answer is None or row.seat not in stood:
            continue
        was, now = stood[row.seat], row.answer
        here, there = places[row.seat], position(now, question)
        toward = [
            Toward(seat, share)
            for seat, other in places.items()
            if seat != row.seat and (share := _closed(distance(here, other), distance(there, other))) > 0
        ]
        moves.append(
            Move(
                seat=row.seat,
                round=round_,
                carried=row.carried_at(round_) is not None,
                distance=distance(here, there),
                toward=tuple(sorted(toward, key=lambda one: (-one.share, one.seat))),
                changed=None if isinstance(now, Estimate) else stance(was, question) != stance(now, question),
                turned=None if truth is None else _turned(was, now, question, truth),
            )
        )
    return moves


def _closed(gap: float, left: float) -> float:
    """Return the share of a gap that was closed; 0 for none, a wider one, and differences of rounding."""
    return (gap - left) / gap if gap - left > _ROUNDING * max(1.0, gap) else 0.0


def _turned(was: AnyAnswer, now: AnyAnswer, question: Question, truth: float | str) -> Turned | None:
    right, still = is_right(was, question, truth), is_right(now, question, truth)
    if right == still:
        return None
    return "right_to_wrong" if right else "wrong_to_right"


def cited_ids(answer: AnyAnswer) -> frozenset[str]:
    """Return the ids an answer cited, quoted or adjusted, as it wrote them.

    Example:
        >>> from consilience.core.answers import Probability
        >>> said = dict(rationale="", reasoning_summary="", counterarguments=(), missing_data=())
        >>> sorted(cited_ids(Probability(p_yes=0.5, evidence_ids=("C2", "C1", "C2"), **said)))
        ['C1', 'C2']
    """
    ids = {*answer.evidence_ids, *(quote.evidence_id for quote in answer.quotes)}
    if isinstance(answer, Estimate):
        ids.update(adjustment.evidence_id for adjustment in answer.adjustments)
    return frozenset(ids)


def evidence_overlap(answers: Iterable[AnyAnswer]) -> Overlap:
    """Return how far answers relied on the same evidence; the order of the answers does not matter.

    Reference: Jaccard 1912. Degenerate: two members that cite nothing share nothing to compare and are no pair.

    Example:
        >>> evidence_overlap([])
        Overlap(pairs=0, jaccard=None, by_all=(), by_one=())
    """
    cited = [cited_ids(answer) for answer in answers]
    shares = [len(one & other) / len(one | other) for one, other in combinations(cited, 2) if one | other]
    times = Counter(name for ids in cited for name in ids) if len(cited) > 1 else Counter[str]()
    return Overlap(
        pairs=len(shares),
        jaccard=math.fsum(shares) / len(shares) if shares else None,
        by_all=tuple(sorted(name for name, n in times.items() if n == len(cited))),
        by_one=tuple(sorted(name for name, n in times.items() if n == 1)),
    )
