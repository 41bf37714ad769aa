"""From finished validation runs to frozen weights. Answers of any other split are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from consilience.aggregation.fitting import BoolArray, fit_numbers
from consilience.aggregation.location import FloatArray
from consilience.aggregation.probabilities import PROBABILITY_RULES, default_probability_rule
from consilience.aggregation.recalibration import Method, Recalibration, fit_recalibration
from consilience.aggregation.resolved import fit_probabilities
from consilience.core.deliberation import Table
from consilience.core.question import Kind, Question
from consilience.errors import DataError, PlanError
from consilience.experiments.plan import Plan
from consilience.experiments.protocol import read_frozen
from consilience.experiments.recorded import recorded_course, recorded_items
from consilience.experiments.verification import verify_run
from consilience.experiments.weights import FITTED_SPLIT, PanelWeights, Weights, WeightSource
from consilience.journal.reader import fold

NUMBER_OF: Final[dict[Kind, str]] = {"estimate": "point", "probability": "p_yes"}
"""The number of an answer that weights are fitted on, by kind."""


@dataclass
class _Pile:
    """What one panel said, as a number by item and role, to questions of one sort."""

    plan: Plan
    arm: str
    question: Question
    roles: tuple[str, ...]
    said: dict[str, dict[str, float]] = field(default_factory=dict)


async def fit_weights(
    folders: Sequence[Path],
    *,
    truths: Mapping[str, float],
    package_version: str,
    recalibration: Method | None = None,
) -> Weights:
    """Return the weights that finished validation runs teach: one entry per panel and sort of question.

    Single seats and kinds without fitted rules teach nothing and are passed over. Runs of one panel are taken together.

    Args:
        folders: Run folders.
        truths: What each item turned out to be, in its unit; 0 or 1 for a probability.
        package_version: To be named in the artefact.
        recalibration: Map to fit on what each panel's primary rule said of probabilities; None fits none.

    Raises:
        PlanError: A run belongs to another split than validation, two panels of one arm differ, or there is nothing to
            fit.
        DataError: A run is not finished, an item has no truth, two runs of one panel share an item, or the map has no
            sound fit.
        IntegrityError: A run is not what was recorded.
    """
    sources: list[WeightSource] = []
    piles: dict[tuple[Any, ...], _Pile] = {}
    for folder in sorted(folders, key=lambda folder: folder.name):
        plan = read_frozen(folder).plan
        if plan.split != FITTED_SPLIT:
            raise PlanError(
                f"{folder.name} is of the split {plan.split}; weights are fitted on {FITTED_SPLIT} only",
                hint="Run the arm with --split validation and fit on that run.",
            )
        sources.append(WeightSource(run_id=folder.name, journal_head=_head(folder), items=dict(plan.items)))
        state = fold(folder)
        for item in recorded_items(folder, plan):
            course = await recorded_course(state, plan, item)
            role_of = {seat.label: seat.role.id for seat in plan.seats(item.question.id)}
            for arm, rounds in plan.levels.items():
                part = course.after(rounds) if len(plan.levels) > 1 else course
                if not part.sampled:
                    _take(piles, _Asked(plan, arm, item.question, role_of), part.final)
    panels = [_fitted(pile, truths, recalibration) for _, pile in sorted(piles.items(), key=lambda each: repr(each[0]))]
    if not panels:
        raise PlanError(
            "there is nothing to fit: no run has a panel that answered with numbers or probabilities",
            hint="Fit on validation runs of arms with several seats.",
        )
    return Weights(package_version=package_version, sources=tuple(sources), panels=tuple(panels)).sealed()


def _head(folder: Path) -> str:
    """Return the head of a finished run that is what was recorded."""
    checked = verify_run(folder)
    error = checked.error()
    if error is not None and (not checked.journal.ok or any(not each.derived for each in checked.files)):
        raise error
    if not checked.journal.finished or checked.journal.head is None:
        raise DataError(f"{folder.name} is not finished", hint="The run's own command finishes it.")
    return checked.journal.head


@dataclass(frozen=True)
class _Asked:
    """Which arm of a run was asked which question."""

    plan: Plan
    arm: str
    question: Question
    role_of: Mapping[str, str]


def _take(piles: dict[tuple[Any, ...], _Pile], asked: _Asked, final: Table) -> None:
    """Put the final answers to one item on the pile of its panel."""
    plan, arm, question = asked.plan, asked.arm, asked.question
    roles = [asked.role_of[row.seat] for row in final]
    number = NUMBER_OF.get(question.kind)
    if number is None or len(set(roles)) < max(2, len(roles)):
        return
    names = tuple(sorted(roles))
    now = _mandates(plan, names)
    key = (arm, plan.committee, plan.models, question.kind, question.scale, question.unit)
    pile = piles.setdefault(key, _Pile(plan, arm, question, names))
    fitted = _mandates(pile.plan, pile.roles)
    if fitted != now:
        odd = [role for role in sorted(now.keys() | fitted.keys()) if now.get(role) != fitted.get(role)]
        raise PlanError(
            f"the panels of two runs of {arm} differ in {', '.join(odd)}",
            hint="Fit on runs of one panel per arm and committee.",
        )
    if question.id in pile.said:
        raise DataError(f"item {question.id} stands in two runs of {arm}", hint="Fit on one run per panel and item.")
    pile.said[question.id] = {
        role: getattr(row.answer, number) for role, row in zip(roles, final, strict=True) if row.answer is not None
    }


def _mandates(plan: Plan, roles: Sequence[str]) -> dict[str, str]:
    return {role.id: role.digest for role in plan.roles if role.id in roles}


def _fitted(pile: _Pile, truths: Mapping[str, float], recalibration: Method | None) -> PanelWeights:
    items = sorted(pile.said)
    unknown = [item for item in items if item not in truths]
    if unknown:
        raise DataError(
            f"no truth is known of {', '.join(unknown[:5])}{' …' if len(unknown) > 5 else ''}",
            hint="Build the table the items were drawn from, or give the questions: --questions FILE.jsonl.",
        )
    rows = [[pile.said[item].get(role) for role in pile.roles] for item in items]
    present = np.array([[value is not None for value in row] for row in rows])
    said = np.array([[0.0 if value is None else value for value in row] for row in rows])
    truth = np.array([truths[item] for item in items])
    question = pile.question
    panel = PanelWeights(
        arm=pile.arm,
        committee=pile.plan.committee,
        models=pile.plan.models,
        kind=question.kind,
        scale=question.scale,
        unit=question.unit,
        roles=pile.roles,
        mandates=_mandates(pile.plan, pile.roles),
    )
    if question.kind == "estimate":
        numbers = fit_numbers(points=said, present=present, truth=truth, roles=pile.roles, scale=question.scale)
        return panel.model_copy(update={"numbers": numbers})
    spoke = [bool(column.any()) for column in present.T]
    heard = tuple(role for role, any_answer in zip(pile.roles, spoke, strict=True) if any_answer)
    made = fit_probabilities(probabilities=said[:, spoke], present=present[:, spoke], outcomes=truth, seats=heard)
    if recalibration is not None:
        made = replace(made, recalibration=_map(pile, said, present, truth, recalibration))
    return panel.model_copy(update={"probabilities": made})


def _map(pile: _Pile, said: FloatArray, present: BoolArray, truth: FloatArray, method: Method) -> Recalibration:
    """Return the map of what the panel's primary rule said, over the items that anybody answered."""
    pool = default_probability_rule(len(pile.roles))
    asked = present.any(axis=1)
    pooled = [
        PROBABILITY_RULES[pool](
            probabilities=row[here], seats=tuple(role for role, spoke in zip(pile.roles, here, strict=True) if spoke)
        ).value
        for row, here in zip(said[asked], present[asked], strict=True)
    ]
    return fit_recalibration(
        method=method,
        probabilities=np.array(pooled),
        outcomes=truth[asked],
        pool=pool,
        version=f"{pile.arm}-{method}-{len(pooled)}",
    )
