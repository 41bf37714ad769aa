"""Conformity from finished runs: who moved how far in its first revision, what it was shown, and the fits by role.

The first revision only: later ones start from answers that were moved already, in some arms and not in others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from consilience.aggregation.positions import position
from consilience.core.answers import Estimate, Probability
from consilience.core.kinds import compact
from consilience.core.outcomes import Answered, outcome_from_json
from consilience.core.question import Question
from consilience.errors import DataError, PlanError
from consilience.experiments.plan import Plan
from consilience.experiments.protocol import read_frozen
from consilience.experiments.recorded import recorded_items
from consilience.inference.conformity import Coefficient, Revision, controlled, displaced, revision_regression
from consilience.inference.effective import FloatArray, Undefined
from consilience.journal.events import Where
from consilience.journal.reader import RunState, fold

EVIDENCE_ONLY: Final = "evidence_only"
MOVING: Final = ("reask", "peers_only", EVIDENCE_ONLY, "displaced", "debate", "delphi")
"""Protocols whose members answer alone and then revise."""

Evidence = Mapping[tuple[str, str], float]
"""What the whole evidence implies, by item and role, on the scale of positions."""


@dataclass(frozen=True)
class Moved:
    """One member's first revision of one item.

    Attributes:
        item_id: The item, which is the cluster.
        family: Kind, scale and unit of the question.
        arm: Label of the arm.
        role: Who revised.
        before: Its first answer: the logarithm on a log scale, or the probability.
        after: Its revision.
        consensus: Median of the others' first answers, shown or not.
        shown: The consensus as journaled; None where the others were not shown.
        displaced: How far the others' answers were moved before they were shown.
        informed: It was shown the whole evidence for the first time.
    """

    item_id: str
    family: str
    arm: str
    role: str
    before: float
    after: float
    consensus: float
    shown: float | None
    displaced: float
    informed: bool


def read_moves(folder: Path) -> tuple[Moved, ...]:
    """Return the first revisions of a run, sorted by item and role; of items of numbers and probabilities only.

    Raises:
        IntegrityError: The record is not what was written.
        PlanError: Its members do not revise what they answered alone.
    """
    plan = read_frozen(folder).plan
    (protocol,) = plan.protocol
    if protocol not in MOVING:
        raise PlanError(
            f"the members of arm {plan.arm} do not revise what they answered alone",
            hint=f"Name runs of these protocols: {', '.join(MOVING)}.",
        )
    state = fold(folder)
    found: list[Moved] = []
    for item in recorded_items(folder, plan):
        question = item.question
        if question.id in state.items_finished and question.kind in {"estimate", "probability"}:
            found += _of_item(plan, state, question, informed=protocol == EVIDENCE_ONLY)
    return tuple(sorted(found, key=lambda one: (one.item_id, one.role)))


def _of_item(plan: Plan, state: RunState, question: Question, *, informed: bool) -> Iterable[Moved]:
    roles = {seat.label: seat.role.id for seat in plan.seats(question.id) if seat.part is None}
    first = {label: _answer(state, question, Where(question.id, 0, label, "estimate", 0)) for label in roles}
    unit = f" ({question.scale}{'' if question.unit is None else f', {question.unit}'})"
    for label, role in roles.items():
        where = Where(question.id, 1, label, "revision", 0)
        before, after = first[label], _answer(state, question, where)
        others = [value for name, value in first.items() if name != label and value is not None]
        if before is None or after is None or not others:
            continue
        data = state.turns[where].data
        yield Moved(
            item_id=question.id,
            family=f"{question.kind}{unit if question.kind == 'estimate' else ''}",
            arm=plan.arm,
            role=role,
            before=before,
            after=after,
            consensus=statistics.median(others),
            shown=_shown(data.get("consensus_of_others"), question),
            displaced=float(data.get("displaced", 0.0)),
            informed=informed,
        )


def _answer(state: RunState, question: Question, where: Where) -> float | None:
    ended = state.turns.get(where)
    outcome = None if ended is None else outcome_from_json(ended.outcome)
    if not isinstance(outcome, Answered) or not isinstance(outcome.said, Estimate | Probability):
        return None
    return position(outcome.said, question)[0]


def _shown(consensus: Any, question: Question) -> float | None:
    if consensus is None:
        return None
    value = float(consensus["median"])
    return math.log(value) if question.scale == "log" else value


def read_fresh(folder: Path) -> dict[tuple[str, str], float]:
    """Return the answers given alone on the whole evidence, by item and role: the value of the evidence for ζ.

    They carry their own noise, which draws ζ towards 0.

    Raises:
        IntegrityError: The record is not what was written.
        PlanError: The run's members did not see the whole evidence.
    """
    plan = read_frozen(folder).plan
    if not plan.treatment.full_view:
        raise PlanError(
            f"the members of arm {plan.arm} saw their own views only", hint="Name a run of an arm with full_view."
        )
    state = fold(folder)
    found: dict[tuple[str, str], float] = {}
    for item in recorded_items(folder, plan):
        for seat in plan.seats(item.question.id):
            value = _answer(state, item.question, Where(item.question.id, 0, seat.label, "estimate", 0))
            if value is not None and seat.part is None:
                found[item.question.id, seat.role.id] = value
    return found


@dataclass(frozen=True)
class Conformity:
    """What moved one role in one arm that shows the others.

    Attributes:
        arm: The arm.
        role: The role.
        plain: The arm alone: holds regression to the mean.
        controlled: With the control arms: the answer.
        displaced: By the random displacement; undefined in arms without it.
    """

    arm: str
    role: str
    plain: Revision
    controlled: Revision | Undefined
    displaced: Revision | Undefined

    def record(self) -> dict[str, Any]:
        """Return the fits as JSON values, to six digits; what is undefined is null, with its reason beside."""
        fits = {"plain": self.plain, "controlled": self.controlled, "displaced": self.displaced}
        return {"arm": self.arm, "role": self.role, **{name: _record(fit) for name, fit in fits.items()}}


def _record(fit: Revision | Undefined) -> dict[str, Any]:
    if isinstance(fit, Undefined):
        return {"undefined": fit.reason}
    told = {"lambda": fit.lam, "zeta": fit.zeta, "total": fit.total, "spontaneous": fit.spontaneous}
    return {
        **{name: _numbers(one) for name, one in told.items()},
        "undefined": {name: one.reason for name, one in told.items() if isinstance(one, Undefined)},
        "n": fit.n,
        "n_items": fit.n_clusters,
        "flags": list(fit.flags),
    }


def _numbers(one: Coefficient | Undefined) -> dict[str, float] | None:
    return None if isinstance(one, Undefined) else {name: compact(value) for name, value in vars(one).items()}


def conformity(moves: Sequence[Moved], *, evidence: Evidence | None = None) -> tuple[Conformity, ...]:
    """Return λ and ζ by arm and role, each arm that shows the others beside all revisions that do not.

    Args:
        moves: Of runs over the same items and panel (`read_moves`), social arms and controls.
        evidence: From `read_fresh`, or the truth's position by item and role, which makes ζ the pull of accuracy. With
            it the evidence-only arm is a control, too, and only revisions it has a value for enter. None leaves ζ out.

    Returns:
        By arm and role; empty where no arm shows the others.

    Raises:
        DataError: The items are of several kinds, scales or units.
    """
    families = sorted({one.family for one in moves})
    if len(families) > 1:
        raise DataError(
            f"revisions of {' and '.join(families)} cannot be put together", hint="Give the moves of one family."
        )
    kept = [one for one in moves if evidence is None or (one.item_id, one.role) in evidence]
    alone = [one for one in kept if one.shown is None and (evidence is not None or not one.informed)]
    social: dict[tuple[str, str], list[Moved]] = {}
    for one in kept:
        if one.shown is not None:
            social.setdefault((one.arm, one.role), []).append(one)
    return tuple(
        _conformity(arm, role, rows, [one for one in alone if one.role == role], evidence)
        for (arm, role), rows in sorted(social.items())
    )


def _conformity(
    arm: str, role: str, rows: Sequence[Moved], controls: Sequence[Moved], evidence: Evidence | None
) -> Conformity:
    mine, every = _Columns.of(rows), _Columns.of([*rows, *controls])
    informed = np.array([one.informed for one in (*rows, *controls)])
    value = None
    if evidence is not None and informed.any():
        value = np.array([evidence[one.item_id, role] for one in (*rows, *controls)])
    return Conformity(
        arm=arm,
        role=role,
        plain=revision_regression(before=mine.before, after=mine.after, consensus=mine.shown, clusters=mine.items),
        controlled=controlled(
            before=every.before,
            after=every.after,
            consensus=every.consensus,
            shown=every.shown,
            peers=np.array([one.shown is not None for one in (*rows, *controls)]),
            evidence=value,
            informed=None if value is None else informed,
            clusters=every.items,
        ),
        displaced=displaced(
            before=mine.before,
            after=mine.after,
            consensus=mine.consensus,
            shown=mine.shown,
            displacement=np.array([one.displaced for one in rows]),
            clusters=mine.items,
        ),
    )


@dataclass(frozen=True)
class _Columns:
    before: FloatArray
    after: FloatArray
    consensus: FloatArray
    shown: FloatArray
    items: Any

    @classmethod
    def of(cls, rows: Sequence[Moved]) -> _Columns:
        return cls(
            before=np.array([one.before for one in rows]),
            after=np.array([one.after for one in rows]),
            consensus=np.array([one.consensus for one in rows]),
            shown=np.array([0.0 if one.shown is None else one.shown for one in rows]),
            items=np.array([one.item_id for one in rows]),
        )
