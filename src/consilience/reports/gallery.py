"""Which pictures an evaluation has, with the data, the alt text and the caption of each; what is not known has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from consilience.experiments.evaluation import Evaluation
from consilience.reports.cells import captioned
from consilience.reports.gallery_calibration import (
    coverage,
    left_out,
    n_groups,
    n_items,
    pit,
    quantiles,
    reliabilities,
    scored,
)
from consilience.reports.gallery_forest import forest
from consilience.reports.gallery_murphy import murphy_of_medians, murphy_of_probabilities
from consilience.reports.gallery_pulls import pulls
from consilience.reports.gallery_recalibration import recalibrated
from consilience.reports.members import Members
from consilience.reports.pictures import arms as of_arms
from consilience.reports.pictures.canvas import Picture, of_sample
from consilience.reports.pictures.members import correlations, influences
from consilience.reports.pictures.panel import Course, draw_rounds
from consilience.reports.pictures.values import Ratios, draw_ratios
from consilience.reports.pulls import Pulls
from consilience.reports.stated import Stated
from consilience.reports.tables import dollars, percent
from consilience.scoring.point import FloatArray

CONTROL: Final = "control_reask"
"""Arms that begin so show members nothing of the others."""
_COVERED: Final = 0.9
_UNKNOWN: Final = "unit of the answers"
_AVM: Final = ("D_avm", "C_boosting", "A_hedonic")
"""Baselines to stand beside the panel, the strongest first."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What an arm said under its primary rule and what was true, row by row.

    Attributes:
        estimate: Its points, shape (n,).
        truth: Prices, shape (n,).
    """

    estimate: FloatArray
    truth: FloatArray


@dataclass(frozen=True, eq=False)
class Details:
    """What pictures need beyond an evaluation; what is left out is not drawn.

    Attributes:
        answers: By arm.
        members: Errors of the members of the panel in focus.
        points: What arms estimated on common items.
        probabilities: What arms said of yes on common items.
        pulls: What moved the members in their first revision.
        unit: Of the answers.
        seed: Of every draw made for a picture.
    """

    answers: Mapping[str, Answers] = field(default_factory=dict)
    members: Members | None = None
    points: Stated | None = None
    probabilities: Stated | None = None
    pulls: tuple[Pulls, ...] = ()
    unit: str = ""
    seed: int = 0


def pictures_of(evaluation: Evaluation, details: Details) -> tuple[Picture, ...]:
    """Return the pictures of an evaluation in the order of a report."""
    makers: tuple[Callable[[Evaluation, Details], Picture | None], ...] = (
        lambda told, _: forest(told),
        _skill_cost,
        lambda told, _: coverage(told),
        _score_parts,
        _murphy,
        lambda told, _: quantiles(told),
        lambda told, more: pit(told, seed=more.seed),
        _rounds,
        _ratios,
        _run_to_run,
    )
    made = [maker(evaluation, details) for maker in makers]
    made += [*pulls(details.pulls), *reliabilities(evaluation), *recalibrated(evaluation)]
    if details.probabilities is not None:
        made.append(murphy_of_probabilities(details.probabilities, baseline=evaluation.baseline_arm))
    if details.members is not None:
        made += [correlations(details.members), influences(details.members, seed=details.seed)]
    return tuple(replace(one, caption=captioned(evaluation, one.caption)) for one in made if one is not None)


def focus(evaluation: Evaluation) -> str | None:
    """Return the run of the panel that is looked at closely: the first of the declared contrasts, else the first."""
    by_arm = {one.arm: one.run_id for one in evaluation.panels}
    declared = () if evaluation.contrasts is None else evaluation.contrasts.declared
    named = [by_arm[one.arm] for one in declared if one.arm in by_arm]
    return next(iter([*named, *by_arm.values()]), None)


def _skill_cost(evaluation: Evaluation, details: Details) -> Picture | None:
    del details
    arms = scored(evaluation)
    base = next((arm.intervals.wis.value for arm in arms if arm.arm == evaluation.baseline_arm and arm.intervals), None)
    priced = [arm for arm in arms if arm.cost_per_item_usd is not None]
    if not base or not priced:
        return None
    rows = []
    for arm in priced:
        if arm.intervals is None or arm.cost_per_item_usd is None:
            continue
        score = arm.intervals.wis
        low, high = (None if end is None else 1 - end / base for end in (score.high, score.low))
        rows.append(of_arms.Priced(arm.arm, arm.cost_per_item_usd, 1 - score.value / base, low, high))
    best = [row.label for row in of_arms.frontier(rows)]
    drawn = evaluation.overall.resampling
    told = of_sample(
        n=n_items(arms),
        groups=n_groups(arms),
        resamples=None if drawn is None else drawn.n_resamples,
        seed=None if drawn is None else drawn.seed,
        interval=f"95 % cluster bootstrap of each arm's own score, that of {evaluation.baseline_arm} held fixed",
    )
    unpriced = [arm.arm for arm in arms if arm.cost_per_item_usd is None]
    return Picture(
        "skill-cost",
        "Skill against cost",
        "; ".join(
            f"{row.label}: {percent(row.skill)} at {dollars(row.cost) if row.cost else 'no cost'}" for row in rows
        )
        + f". On the frontier: {', '.join(best)}.",
        f"Skill is 1 − WIS5 / WIS5 of {evaluation.baseline_arm}. Blue: no other arm is as good for less "
        f"({', '.join(best)}). Baselines without any model call are free.{left_out(evaluation)}"
        f"{f' Of unknown cost: {chr(44).join(unpriced)}.' if unpriced else ''} {told}",
        tuple(
            {
                "arm": row.label,
                "cost_per_item_usd": row.cost,
                "skill": row.skill,
                "low": row.low,
                "high": row.high,
                "frontier": row.label in best,
            }
            for row in rows
        ),
        partial(of_arms.draw_skill_cost, rows, reference=evaluation.baseline_arm, score="WIS5"),
    )


def _score_parts(evaluation: Evaluation, details: Details) -> Picture | None:
    del details
    arms = scored(evaluation)
    if not arms:
        return None
    rows = [
        of_arms.ScoreParts(
            arm.arm, arm.intervals.dispersion, arm.intervals.overprediction, arm.intervals.underprediction
        )
        for arm in arms
        if arm.intervals is not None
    ]
    return Picture(
        "wis-parts",
        "What the interval score consists of",
        "; ".join(
            f"{row.label}: {row.total * 100:.1f} = width {row.dispersion * 100:.1f} + truth below {row.over * 100:.1f} "
            f"+ truth above {row.under * 100:.1f}"
            for row in sorted(rows, key=lambda row: row.total)
        ),
        "Weighted interval score over five quantiles of the log price, × 100: near 100 times the share by which a "
        f"statement is off.{left_out(evaluation)} "
        + of_sample(n=n_items(arms), groups=n_groups(arms), interval="none; those of the scores stand in the tables"),
        tuple(
            {
                "arm": row.label,
                "dispersion": row.dispersion,
                "overprediction": row.over,
                "underprediction": row.under,
                "wis": row.total,
            }
            for row in rows
        ),
        partial(of_arms.draw_score_parts, rows),
    )


def _murphy(evaluation: Evaluation, details: Details) -> Picture | None:
    if details.points is None:
        return None
    unit = details.unit or _UNKNOWN
    return murphy_of_medians(details.points, baseline=evaluation.baseline_arm, unit=unit)


def _rounds(evaluation: Evaluation, details: Details) -> Picture | None:
    del details
    rows = [
        Course(
            one.arm,
            tuple(float(np.sqrt(each.mean_error)) for each in one.rounds if each.mean_error is not None),
            tuple(each.spread for each in one.rounds if each.spread is not None),
            control=one.arm.startswith(CONTROL),
        )
        for one in evaluation.panels
        if len(one.rounds) > 1 and all(r.mean_error is not None and r.spread is not None for r in one.rounds)
    ]
    if not rows:
        return None
    n = max(one.n_items for one in evaluation.panels)
    dashed = [row.label for row in rows if row.control]
    said = (
        f"Dashed: {', '.join(dashed)}, whose members were asked again without seeing anybody: what second thoughts do."
        if dashed
        else "There is no control arm here, so nothing tells second thoughts from the pull of the others."
    )
    return Picture(
        "rounds",
        "Error and spread from round to round",
        "; ".join(f"{row.label}: error {_steps(row.error)}, spread {_steps(row.spread)}" for row in rows),
        f"Error: root mean square log error of the members' mean. {said} A spread that falls while the error does "
        "not is "
        f"agreement without knowledge. {of_sample(n=n, interval='none')}",
        tuple(
            {
                "arm": row.label,
                "round": k,
                "rmse_of_mean": row.error[k],
                "spread": row.spread[k],
                "control": row.control,
            }
            for row in rows
            for k in range(len(row.error))
        ),
        partial(draw_rounds, rows),
    )


def _steps(values: Sequence[float]) -> str:
    return " → ".join(f"{value:.3f}" for value in values)


def _ratios(evaluation: Evaluation, details: Details) -> Picture | None:
    panel = next((one.arm for one in evaluation.panels if one.run_id == focus(evaluation)), None)
    wanted = [panel, evaluation.baseline_arm, next((arm for arm in _AVM if arm in details.answers), None)]
    scores = {arm.arm: arm.ratios for arm in evaluation.overall.arms}
    rows = []
    for name in dict.fromkeys(arm for arm in wanted if arm is not None):
        found, score = details.answers.get(name), scores.get(name)
        if found is None or score is None:
            continue
        ratio = found.estimate / found.truth
        proxy = (found.truth + found.estimate / np.median(ratio)) / 2
        prb = f"{score.prb.value:+.3f}".replace("-", "−") if hasattr(score.prb, "value") else "–"
        vei = f"{score.vei.value:+.0f} %".replace("-", "−") if hasattr(score.vei, "value") else "–"
        text = f"COD {score.cod.value:.1f}, PRD {score.prd.value:.2f}, PRB {prb}, VEI {vei}"
        rows.append(Ratios(name, proxy, ratio, text))
    if not rows:
        return None
    n = max(row.ratio.size for row in rows)
    return Picture(
        "ratios",
        "Estimate over price, from cheap to dear homes",
        "; ".join(f"{row.label}: {row.text}" for row in rows),
        "Red: running median over a fifth of the homes. A line that falls to the right: dear homes are valued lower "
        "than "
        "cheap ones, relative to price; an error in the price itself looks the same. Value: (price + estimate / median "
        f"ratio) / 2. {of_sample(n=n, interval='none; those of COD, PRD, PRB stand in the tables')}",
        tuple(
            {"arm": row.label, "value": float(value), "ratio": float(ratio)}
            for row in rows
            for value, ratio in zip(row.proxy, row.ratio, strict=True)
        ),
        partial(draw_ratios, rows, unit=details.unit or _UNKNOWN),
    )


def _run_to_run(evaluation: Evaluation, details: Details) -> Picture | None:
    del details
    rows = [
        of_arms.Repeated(one.arm, item, said)
        for one in evaluation.run_to_run
        for item, said in sorted(one.items.items())
        if len(said) > 1 and min(said) > 0
    ]
    if not rows:
        return None
    names = sorted({row.arm for row in rows})
    spread = {name: of_arms.run_sd([row for row in rows if row.arm == name]) for name in names}
    runs = max(len(row.points) for row in rows)
    n = max(sum(row.arm == name for row in rows) for name in names)
    return Picture(
        "run-to-run",
        "How much an arm differs from itself",
        "; ".join(f"{name}: standard deviation {percent(value)}" for name, value in spread.items()),
        f"Each line is one item, asked up to {runs} times; dots are the answers relative to their mean. SD: from "
        "run to "
        f"run, pooled over items, of the log answer. {of_sample(n=n, interval='none')}",
        tuple(
            {"arm": row.arm, "item_id": row.item_id, "run": k, "point": point, "deviation": away}
            for row in rows
            for k, (point, away) in enumerate(zip(row.points, row.deviations(), strict=True))
        ),
        partial(of_arms.draw_run_to_run, rows),
    )
