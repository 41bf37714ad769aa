"""What a member is shown beside its view: its own answer, the others' anonymous and shuffled, critiques, flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consilience.core.answers import AnyAnswer, Critique, CritiqueSet
from consilience.core.deliberation import present
from consilience.core.kinds import KINDS, compact
from consilience.core.panel import seeded_order
from consilience.core.question import Question
from consilience.core.showing import Argument, Shown
from consilience.core.turn import Turn
from consilience.evidence.verification import Flag


@dataclass(frozen=True)
class State:
    """What stands in one member's prompt beside its view, and what is recorded about it.

    Attributes:
        committee: The committee state; None when the others are not shown.
        own_answer: The member's own latest answer, or None.
        critiques: Those addressed to the member, authors hidden.
        flags: Verification flags on the member's own answer that it is shown.
        arguments: What advocates said.
        order: The recorded permutation of the other members' rows.
        consensus_of_others: The leading value of the others as shown (for λ); None when nobody else is shown.
        displaced: How far the others' answers were moved before they were shown.
    """

    committee: dict[str, Any] | None = None
    own_answer: dict[str, Any] | None = None
    critiques: tuple[dict[str, Any], ...] = ()
    flags: tuple[dict[str, Any], ...] = ()
    arguments: tuple[dict[str, Any], ...] = ()
    order: tuple[int, ...] = ()
    consensus_of_others: Any = None
    displaced: float = 0.0

    def recorded(self) -> dict[str, Any]:
        """Return what the journal and the transcript keep of it."""
        moved = {"displaced": self.displaced} if self.displaced else {}
        return {"order": list(self.order), "consensus_of_others": self.consensus_of_others, **moved}


@dataclass(frozen=True)
class Recipient:
    """Who is shown something.

    Attributes:
        seat: Its label.
        visible: Evidence ids in its view.
        flags: Verification flags on its latest answer.
    """

    seat: str
    visible: frozenset[str]
    flags: Sequence[Flag] = ()


def state_of(shown: Shown, *, to: Recipient, question: Question, turn: Turn, seed: int) -> State:
    """Return what a member is shown: it depends on the table, never on the order in which members are asked.

    Args:
        shown: What the protocol has shown.
        to: The recipient.
        question: The question; its id and the seed decide the shuffling.
        turn: The turn to be taken.
        seed: The run's seed.
    """
    members = present(shown.table or ())
    mine = next((answer for label, answer in members if label == to.seat), None)
    received = _addressed(shown.critiques, to.seat)
    shuffled = seeded_order(len(received), seed, question.id, "critiques", turn.round, to.seat)
    alone = State(
        own_answer=None if mine is None else KINDS[question.kind].row(mine) | {"reasoning": mine.reasoning_summary},
        critiques=tuple(_anonymous(received[index]) for index in shuffled),
        flags=tuple(flag.model_dump(mode="json") for flag in to.flags) if shown.flags else (),
        arguments=tuple(_argued(argument) for argument in shown.arguments),
    )
    if shown.table is None or shown.others == "hidden":
        return alone
    return _with_committee(alone, members, mine, shown, to=to, question=question, turn=turn, seed=seed)


def _with_committee(
    alone: State,
    members: Sequence[tuple[str, AnyAnswer]],
    mine: AnyAnswer | None,
    shown: Shown,
    *,
    to: Recipient,
    question: Question,
    turn: Turn,
    seed: int,
) -> State:
    kind = KINDS[question.kind]
    step = shown.displaced * (1 if seeded_order(2, seed, question.id, "displaced", turn.round, to.seat)[0] else -1)
    others = [(label, answer) for label, answer in members if label != to.seat]
    if step:
        others = [(label, kind.displace(answer, step, question)) for label, answer in others]
    said = [answer for _, answer in others]
    everybody = said if mine is None else [*said, mine]
    order = seeded_order(len(others), seed, question.id, turn.kind, turn.round, to.seat)
    with_reasons, verdicts = shown.others in {"reasons", "arguments"}, shown.others != "arguments"
    committee: dict[str, Any] = {
        "round": turn.round,
        **(kind.leading(everybody, question) if everybody and verdicts else {}),
        **({"still_in_question": list(shown.among)} if shown.among else {}),
        "others": [
            {
                "seat": label,
                **(kind.row(answer) if verdicts else {}),
                **({"reasoning": answer.reasoning_summary} if with_reasons else {}),
            }
            for label, answer in (others[index] for index in order)
        ],
    }
    unseen = sorted({cited for answer in said for cited in answer.evidence_ids} - to.visible)
    if unseen and with_reasons:
        committee["cited_outside_your_view"] = unseen
    return State(
        committee=committee,
        own_answer=alone.own_answer,
        critiques=alone.critiques,
        flags=alone.flags,
        arguments=alone.arguments,
        order=order,
        consensus_of_others=kind.leading(said, question) if said else None,
        displaced=step,
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


def _argued(argument: Argument) -> dict[str, Any]:
    """Return an argument as the others read it: its side, its rationale, what it cites, and the probability."""
    told = argument.said.model_dump(mode="json", include={"p_yes", "rationale", "evidence_ids", "reasoning_summary"})
    return {"side": argument.side, **told}
