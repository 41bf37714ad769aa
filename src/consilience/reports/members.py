"""The errors of a panel's members, item by item, as the record of a run tells them: for pictures of the panel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consilience.aggregation.positions import position, truth_position
from consilience.experiments.protocol import read_frozen
from consilience.experiments.recorded import recorded_course, recorded_items
from consilience.inference.effective import FloatArray
from consilience.journal.reader import fold


@dataclass(frozen=True, eq=False)
class Members:
    """The members' errors before any of them saw another's answer.

    Attributes:
        arm: Label of the run's arm.
        run_id: The run.
        roles: Members, sorted; those who answered fewer than half of the items are left out.
        items: Items that all of them answered and whose truth is known, sorted.
        errors: Signed errors (of logarithms on a log scale), shape (items, roles).
    """

    arm: str
    run_id: str
    roles: tuple[str, ...]
    items: tuple[str, ...]
    errors: FloatArray


async def read_members(folder: Path, *, truths: Mapping[str, float]) -> Members | None:
    """Return the first answers' errors of a panel of distinct roles over numbers; None where there is none.

    Args:
        folder: The run folder.
        truths: What items turned out to be.

    Raises:
        IntegrityError: The record is not what was written.
    """
    plan = read_frozen(folder).plan
    if len(plan.roles) < 2:
        return None
    state = fold(folder)
    said: dict[str, dict[str, float]] = {}
    for item in recorded_items(folder, plan):
        question = item.question
        if question.id not in state.items_finished or question.id not in truths or question.kind != "estimate":
            continue
        course = await recorded_course(state, plan, item)
        if course.sampled:
            return None
        truth = truth_position(truths[question.id], question)[0]
        role_of = {seat.label: seat.role.id for seat in plan.seats(question.id)}
        said[question.id] = {
            role_of[row.seat]: position(row.answer, question)[0] - truth
            for row in course.tables[0]
            if row.answer is not None
        }
    names = sorted({role for errors in said.values() for role in errors})
    roles = tuple(role for role in names if 2 * sum(role in errors for errors in said.values()) >= len(said))
    items = tuple(item for item, errors in sorted(said.items()) if all(role in errors for role in roles))
    if len(roles) < 2 or not items:
        return None
    rows = np.array([[said[item][role] for role in roles] for item in items], dtype=np.float64)
    return Members(plan.arm, folder.name, roles, items, rows)
