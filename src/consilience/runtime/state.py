"""What a member is shown of the committee: the others' answers, anonymous and shuffled, and its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from consilience.core.answers import Critique, CritiqueSet
from consilience.core.deliberation import Table, present
from consilience.core.kinds import KINDS, compact
from consilience.core.panel import seeded_order
from consilience.core.question import Question
from consilience.core.turn import Turn


@dataclass(frozen=True)
class Shown:
    """What one member is shown in one turn, and what is recorded about it.

    Attributes:
        committee: The committee state.
        own_answer: The member's own latest answer, or None.
        critiques: Those addressed to the member, authors hidden.
        order: The recorded permutation of the other members' rows.
        consensus_of_others: The leading value without this member (for λ); None when nobody else answered.
    """

    committee: dict[str, Any]
    own_answer: dict[str, Any] | None
    critiques: tuple[dict[str, Any], ...]
    order: tuple[int, ...]
    consensus_of_others: Any


def committee_state(
    *,
    question: Question,
    turn: Turn,
    seat: str,
    table: Table,
    critiques: Mapping[str, CritiqueSet],
    visible: frozenset[str],
    seed: int,
) -> Shown:
    """Return what ``seat`` is shown: it depends on the table, never on the order in which members are asked.

    Args:
        question: The question; its id and the seed decide the shuffling.
        turn: The turn to be taken.
        seat: The recipient's label.
        table: Everybody's standings.
        critiques: By author.
        visible: Evidence ids in the recipient's view.
        seed: The run's seed.
    """
    kind = KINDS[question.kind]
    members = present(table)
    others = [(label, answer) for label, answer in members if label != seat]
    mine = next((answer for label, answer in members if label == seat), None)
    order = seeded_order(len(others), seed, question.id, turn.kind, turn.round, seat)
    cited = {cited_id for _, answer in others for cited_id in answer.evidence_ids}
    committee: dict[str, Any] = {
        "round": turn.round,
        **(kind.leading([answer for _, answer in members], question) if members else {}),
        "others": [
            {"seat": label, **kind.row(answer), "reasoning": answer.reasoning_summary}
            for label, answer in (others[index] for index in order)
        ],
    }
    unseen = sorted(cited - visible)
    if unseen:
        committee["cited_outside_your_view"] = unseen
    received = _addressed(critiques, seat)
    shuffled = seeded_order(len(received), seed, question.id, "critiques", turn.round, seat)
    return Shown(
        committee=committee,
        own_answer=None if mine is None else {**kind.row(mine), "reasoning": mine.reasoning_summary},
        critiques=tuple(_anonymous(received[index]) for index in shuffled),
        order=order,
        consensus_of_others=kind.leading([answer for _, answer in others], question) if others else None,
    )


def _addressed(critiques: Mapping[str, CritiqueSet], seat: str) -> list[Critique]:
    said = (critiques[author] for author in sorted(critiques))
    return [critique for group in said for critique in group.critiques if critique.target_role == seat]


def _anonymous(critique: Critique) -> dict[str, Any]:
    shown: dict[str, Any] = {"agrees": critique.agrees, "points": list(critique.points)}
    if critique.evidence_ids:
        shown["evidence_ids"] = list(critique.evidence_ids)
    if critique.suggested_value is not None:
        shown["suggested_value"] = compact(critique.suggested_value)
    return shown
