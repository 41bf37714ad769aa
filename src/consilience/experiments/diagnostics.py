"""What the members of a run's panel were worth to each other, over all its items.

Items are observed one by one as they end, so that no run holds every answer in memory; what is kept of each is small.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from consilience.aggregation.movement import ItemDiagnostics, RoundState, item_diagnostics
from consilience.aggregation.positions import Position, position, truth_position
from consilience.core.answers import CritiqueSet
from consilience.core.deliberation import Deliberation, Table
from consilience.core.kinds import compact
from consilience.core.outcomes import Answered
from consilience.core.packet import Item
from consilience.core.question import Kind, Question
from consilience.evidence.verification import Citations, Faithfulness, citations, faithfulness_summary
from consilience.experiments.independence import Independence, Places, independence
from consilience.inference.crowd import Crowd, diversity_prediction
from consilience.inference.effective import Undefined
from consilience.runtime.session import TurnRecord

_SHOWN: Final = 3


@dataclass(frozen=True)
class RoundCounts:
    """What one round of one item adds to the run's; errors and flips are None without a truth."""

    state: RoundState
    revised: int
    changed: int | None
    right_to_wrong: int | None
    wrong_to_right: int | None
    crowd: Crowd | None


@dataclass(frozen=True)
class Observed:
    """What is kept of one item.

    Attributes:
        item_id: The item.
        family: Kind, scale and unit of the question; only items of one family are put together.
        kind: The question's.
        rounds: One per table.
        first: Where every seat stood after the independent answers.
        final: Where every seat stood at the end.
        truth: Position of the truth; None where unknown.
        citations: How the answers stood to their evidence.
    """

    item_id: str
    family: str
    kind: Kind
    rounds: tuple[RoundCounts, ...]
    first: Places
    final: Places
    truth: Position | None
    citations: tuple[Citations, ...]


def cited(item: Item, records: Iterable[TurnRecord], *, arm: str) -> tuple[Citations, ...]:
    """Return how every answer of an item's turns stood to its evidence, for `observe`."""
    return tuple(
        citations(said, arm=arm, role=record.seat.role.id, packet=item.packet, flags=record.flags)
        for record in records
        if isinstance(record.taken.outcome, Answered) and not isinstance(said := record.taken.outcome.said, CritiqueSet)
    )


def observe_item(
    item: Item, course: Deliberation, records: Iterable[TurnRecord], *, arm: str, sealed: bool
) -> Observed | None:
    """Return what `panel_diagnostics` needs of an item that was asked; None where there is no panel.

    Args:
        item: The item.
        course: Its course; samples of one agent are no panel.
        records: Its turns.
        arm: Label of the arm.
        sealed: Its truth must not be used.
    """
    if len(course.final) < 2 or course.sampled:
        return None
    return observe(item.question, course, truth=None if sealed else item.truth, cited=cited(item, records, arm=arm))


def observe(
    question: Question,
    deliberation: Deliberation,
    *,
    truth: float | str | None,
    cited: tuple[Citations, ...] = (),
) -> Observed:
    """Return what `panel_diagnostics` needs of one item.

    Args:
        question: What was asked.
        deliberation: The tables after every round.
        truth: What turned out right; None where it is unknown or must stay sealed.
        cited: From `cited`.
    """
    told = item_diagnostics(question, deliberation, truth=truth)
    tables = deliberation.tables
    target = None if truth is None else truth_position(truth, question)
    return Observed(
        item_id=question.id,
        family=_family(question),
        kind=question.kind,
        rounds=tuple(
            _counts(told, state, _places(table, question), target)
            for state, table in zip(told.rounds, tables, strict=True)
        ),
        first=_places(tables[0], question),
        final=_places(deliberation.final, question),
        truth=target,
        citations=cited,
    )


def _family(question: Question) -> str:
    if question.kind != "estimate":
        return question.kind
    return f"estimate ({question.scale}{'' if question.unit is None else f', {question.unit}'})"


def _places(table: Table, question: Question) -> dict[str, Position | None]:
    return {row.seat: None if row.answer is None else position(row.answer, question) for row in table}


def _counts(told: ItemDiagnostics, state: RoundState, places: Places, target: Position | None) -> RoundCounts:
    moves = [move for move in told.moves if move.round == state.round and not move.carried]
    turned = Counter(move.turned for move in moves)
    changed = [move.changed for move in moves if move.changed is not None]
    stood = [where for where in places.values() if where is not None]
    known = target is not None
    return RoundCounts(
        state=state,
        revised=len(moves),
        changed=sum(changed) if changed else None,
        right_to_wrong=turned["right_to_wrong"] if known else None,
        wrong_to_right=turned["wrong_to_right"] if known else None,
        crowd=diversity_prediction(predictions=np.array(stood), truth=np.array(target)) if known and stood else None,
    )


@dataclass(frozen=True)
class RoundSummary:
    """One round over the items that came to it; means are over the items that have the figure, None without any.

    Attributes:
        round: 0 for the independent answers.
        n_items: Items that came to this round.
        answers: Answers that stand after it, carried ones included.
        revised: New answers given in it by members that had one.
        spread: Mean spread.
        jaccard: Mean evidence overlap.
        changed: Revisions that came down to another option or side; None for estimates and where nobody revised.
        n_known: Items with a known truth and an answer; the figures below are of these.
        revised_known: Revisions on items with a known truth.
        right: Answers that are right; None without a truth.
        right_to_wrong: Revisions that turned wrong; None without a truth.
        wrong_to_right: Revisions that turned right; None without a truth.
        crowd: Means of the members' squared error, that of their mean, and their diversity; None without a truth.
    """

    round: int
    n_items: int
    answers: int
    revised: int
    spread: float | None
    jaccard: float | None
    changed: int | None
    n_known: int
    revised_known: int
    right: int | None
    right_to_wrong: int | None
    wrong_to_right: int | None
    crowd: Crowd | None

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON values, to six digits."""
        crowd = None if self.crowd is None else {name: compact(value) for name, value in vars(self.crowd).items()}
        means = {"spread": self.spread, "jaccard": self.jaccard}
        short = {name: None if value is None else compact(value) for name, value in means.items()}
        return {**vars(self), **short, "crowd": crowd}


@dataclass(frozen=True)
class FamilyDiagnostics:
    """The items of one kind, scale and unit.

    Attributes:
        family: Their name, such as ``estimate (log, USD)``.
        n_items: How many.
        first: Independence of the first answers, before anybody saw another's.
        final: Independence after the last round.
        rounds: One per round that any item came to.
    """

    family: str
    n_items: int
    first: Independence
    final: Independence
    rounds: tuple[RoundSummary, ...]

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "family": self.family,
            "n_items": self.n_items,
            "first": self.first.record(),
            "final": self.final.record(),
            "rounds": [one.record() for one in self.rounds],
        }


@dataclass(frozen=True)
class PanelDiagnostics:
    """A run's panel: how independent, how moved, how faithful to its evidence.

    Attributes:
        families: By name.
        faithfulness: Per arm and per role of it.
    """

    families: tuple[FamilyDiagnostics, ...]
    faithfulness: tuple[Faithfulness, ...]

    def record(self) -> dict[str, Any]:
        """Return the diagnostics as JSON values."""
        rows = [
            {**vars(row), "share_existing": None if row.share_existing is None else compact(row.share_existing)}
            for row in self.faithfulness
        ]
        return {"families": [family.record() for family in self.families], "faithfulness": rows}


def panel_diagnostics(observed: Iterable[Observed]) -> PanelDiagnostics:
    """Return the diagnostics of a run's panel; neither the order of items nor that of members matters."""
    items = sorted(observed, key=lambda one: one.item_id)
    families: dict[str, list[Observed]] = {}
    for one in items:
        families.setdefault(one.family, []).append(one)
    return PanelDiagnostics(
        families=tuple(_of_family(name, families[name]) for name in sorted(families)),
        faithfulness=tuple(faithfulness_summary(record for one in items for record in one.citations)),
    )


def _of_family(name: str, items: Sequence[Observed]) -> FamilyDiagnostics:
    kind, truths = items[0].kind, [one.truth for one in items]
    longest = max(len(one.rounds) for one in items)
    reached = [[one.rounds[round_] for one in items if len(one.rounds) > round_] for round_ in range(longest)]
    return FamilyDiagnostics(
        family=name,
        n_items=len(items),
        first=independence(kind, [one.first for one in items], truths),
        final=independence(kind, [one.final for one in items], truths),
        rounds=tuple(_summary(round_, counts) for round_, counts in enumerate(reached)),
    )


def _summary(round_: int, counts: Sequence[RoundCounts]) -> RoundSummary:
    crowds = [one.crowd for one in counts if one.crowd is not None]
    return RoundSummary(
        round=round_,
        n_items=len(counts),
        answers=sum(one.state.answered for one in counts),
        revised=sum(one.revised for one in counts),
        spread=_mean([one.state.spread for one in counts]),
        jaccard=_mean([one.state.evidence.jaccard for one in counts]),
        changed=_total([one.changed for one in counts]),
        n_known=len(crowds),
        revised_known=sum(one.revised for one in counts if one.right_to_wrong is not None),
        right=_total([one.state.right for one in counts]),
        right_to_wrong=_total([one.right_to_wrong for one in counts]),
        wrong_to_right=_total([one.wrong_to_right for one in counts]),
        crowd=Crowd(
            avg_error=math.fsum(one.avg_error for one in crowds) / len(crowds),
            crowd_error=math.fsum(one.crowd_error for one in crowds) / len(crowds),
            diversity=math.fsum(one.diversity for one in crowds) / len(crowds),
        )
        if crowds
        else None,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def told(diagnostics: PanelDiagnostics) -> list[str]:
    """Return the diagnostics as short lines of plain text."""
    lines: list[str] = []
    for family in diagnostics.families:
        head = "" if len(diagnostics.families) == 1 else f"{family.family}: "
        lines += [f"{head}{line}" for line in _family_told(family)]
    whole = [row for row in diagnostics.faithfulness if row.role is None]
    return lines + [_faithful(row) for row in whole]


def _family_told(family: FamilyDiagnostics) -> list[str]:
    lines = [_independent(family.final, "effective members")]
    rounds = family.rounds
    if len(rounds) > 1:
        lines.insert(0, _independent(family.first, "effective members before the discussion"))
    spreads = ", ".join("none" if one.spread is None else f"{one.spread:.3g}" for one in rounds)
    if any(one.spread is not None for one in rounds):
        lines.append(f"mean spread by round: {spreads}")
    for one in rounds[1:]:
        if one.right_to_wrong is not None and one.wrong_to_right is not None:
            turned = f"{one.right_to_wrong} right to wrong, {one.wrong_to_right} wrong to right"
            lines.append(f"flips in round {one.round}: {turned}, of {one.revised_known} revisions")
        elif one.changed is not None:
            lines.append(f"flips in round {one.round}: {one.changed} of {one.revised} revisions")
    if rounds[-1].jaccard is not None:
        lines.append(f"evidence two members share, of what they cite: {rounds[-1].jaccard:.0%} on average")
    return lines


def _independent(one: Independence, name: str) -> str:
    if isinstance(one.numbers, Undefined):
        return f"{name}: unknown ({one.numbers.reason})"
    made, of = one.numbers.equal_weight, len(one.members)
    value = f"undefined ({made.reason})" if isinstance(made, Undefined) else f"{made:.2g} of {of}"
    return f"{name}: {value} (equal weights, from {one.basis} on {one.n_items} items)"


def _faithful(row: Faithfulness) -> str:
    codes = ", ".join(f"{code} {count}" for code, count in row.counts.items())
    return f"answers flagged against their evidence: {row.flagged} of {row.answers}{f' ({codes})' if codes else ''}"


def told_of_item(diagnostics: ItemDiagnostics) -> list[str]:
    """Return what one item shows, as short lines of plain text: spread, who moved toward whom, evidence."""
    first, last = diagnostics.rounds[0], diagnostics.rounds[-1]
    lines: list[str] = []
    if any(state.spread is not None for state in diagnostics.rounds):
        spreads = ("none" if state.spread is None else f"{state.spread:.3g}" for state in diagnostics.rounds)
        lines.append(f"spread{' by round' if last is not first else ''}: {', '.join(spreads)}")
    for move in diagnostics.moves:
        if not move.distance:
            continue
        toward = ", ".join(f"{one.seat} ({one.share:.0%} of the gap)" for one in move.toward[:_SHOWN])
        flip = ", and changed sides" if move.changed else ""
        lines.append(f"round {move.round}: {move.seat} moved {f'toward {toward}' if toward else 'away'}{flip}")
    shared = last.evidence
    if shared.jaccard is not None:
        alone = f"{len(shared.by_all)} cited by all, {len(shared.by_one)} by one only"
        lines.append(f"evidence: two members share {shared.jaccard:.0%} of what they cite; {alone}")
    return lines
