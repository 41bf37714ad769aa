"""The tables of verdicts: each arm with all that one needs, and every contrast of two arms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from consilience.core.undefined import Undefined
from consilience.experiments.contrasts import ContrastResult, Contrasts
from consilience.experiments.evaluation import ArmResult, Evaluation
from consilience.experiments.panel_scores import Faithful, PanelScores
from consilience.inference.intervals import DifferenceInterval
from consilience.reports.cells import (
    captioned,
    ended,
    hundredths,
    measured,
    money,
    number,
    p_value,
    shared,
    unsigned,
    whole_percent,
)
from consilience.reports.evaluation import arm_label, describe_resampling
from consilience.reports.panel_tables import whole
from consilience.reports.tables import ABSENT, Column, Record, Table, Value, percent, points

SINGLE: Final = "J_single_matched"


def overview_table(evaluation: Evaluation) -> Table:
    """Return one row per arm with all that a verdict needs.

    Error, quality of its intervals, cost, the contrast with the single agent that was given the same money, what that
    comparison could have shown, flips, and how it kept to its evidence.
    """
    panels = {one.arm: one for one in evaluation.panels}
    costs = {one.arm: one.cost_per_item_usd for one in evaluation.overall.arms}
    records = tuple(
        _overview(arm, matched_contrast(evaluation, arm.arm), panels.get(arm.arm), costs)
        for arm in evaluation.overall.arms
    )
    columns = (
        Column("Arm", arm_label, numeric=False),
        Column("MdAPE", lambda r: ended(r, "mdape", percent)),
        Column("WIS5 × 100", lambda r: ended(r, "wis", hundredths)),
        Column("Coverage of 90 %", lambda r: ended(r, "coverage90", whole_percent)),
        Column("Cost per item", lambda r: money(r["cost_per_item_usd"])),
        Column("Against", _against, numeric=False),
        Column("Points of MdAPE [95 %]", lambda r: ended(r, "difference", points)),
        Column("Adjusted p", lambda r: p_value(r["adjusted_p"])),
        Column("MDE in points", lambda r: unsigned(r["least_detectable"])),
        Column("Flips to wrong, to right", lambda r: str(r["flips"] or ABSENT)),
        Column("Flagged", lambda r: str(r["flagged"] or ABSENT)),
    )
    said = (
        "Each arm against the single agent that was given the same money, else against the one nearest in price, whose "
        f"money is told. By the rule {evaluation.primary}. Adjusted p: by Holm over the declared family, else for the "
        "rate of false discoveries over all explored pairs. MDE: the true difference that these clusters would show at "
        "80 % power. Flips: revisions over all rounds; right is within 10 % of the truth. Flagged: answers that did "
        f"with their evidence what they should not have. {describe_resampling(evaluation.overall)}"
    )
    return Table(captioned(evaluation, said), columns, records)


def matched_contrast(evaluation: Evaluation, arm: str) -> ContrastResult | None:
    """Return an arm's contrast with the single agent matched to its price, else with the one nearest in price.

    An arm that is free, or whose price is unknown, stands against the baseline arm.
    """
    found, base = evaluation.contrasts, evaluation.baseline_arm
    if found is None:
        return None
    costs = {one.arm: one.cost_per_item_usd for one in evaluation.overall.arms}
    every = (*found.declared, *found.exploratory)
    own = [*(one for one in every if one.arm == arm), *(turned(one) for one in every if one.against == arm)]
    single = [one for one in own if one.against.startswith(SINGLE) or one.against == base]

    def far(one: ContrastResult) -> tuple[bool, float, bool, str]:
        ratio = money_ratio(costs.get(one.against), costs.get(arm))
        away = math.inf if ratio is None else abs(math.log(ratio))
        return one.matched != "own", away, one.against != base, one.against

    return min(single, key=far, default=None)


def money_ratio(other: float | None, own: float | None) -> float | None:
    """Return how many times the money of an arm another has; None where either is free or unknown.

    Example:
        >>> money_ratio(0.5, 0.25), money_ratio(0.5, 0.0)
        (2.0, None)
    """
    return other / own if other and own else None


def turned(contrast: ContrastResult) -> ContrastResult:
    """Return the difference of the same two arms the other way round; what has no direction is as it was."""
    return replace(
        contrast,
        arm=contrast.against,
        against=contrast.arm,
        matched=None,
        difference=_negative(contrast.difference),
        wis=contrast.wis if isinstance(contrast.wis, Undefined) else _negative(contrast.wis),
        ppe10=contrast.ppe10 if isinstance(contrast.ppe10, Undefined) else _negative(contrast.ppe10),
    )


def _negative(gap: DifferenceInterval) -> DifferenceInterval:
    low, high = (None if end is None else -end for end in (gap.high, gap.low))
    return replace(gap, point=-gap.point, low=low, high=high)


def _against(record: Record) -> str:
    if record["against"] is None:
        return ABSENT
    ratio = number(record["money_ratio"])
    return str(record["against"]) if ratio is None else f"{record['against']} ({ratio:.2g}×\u00a0its\u00a0money)"


def adjusted(contrast: ContrastResult) -> float | None:
    """Return the adjusted p of a contrast: by Holm in the declared family, else for the rate of false discoveries."""
    return number(contrast.holm if contrast.declared else contrast.bh)


def _overview(
    arm: ArmResult,
    contrast: ContrastResult | None,
    panel: PanelScores | None,
    costs: Mapping[str, float | None],
) -> dict[str, Value]:
    record: dict[str, Value] = {"arm": arm.arm, "simulated": arm.simulated, "n_items": arm.n_items}
    record |= measured("mdape", arm.mdape)
    record |= measured("wis", None if arm.intervals is None else arm.intervals.wis)
    record |= shared("coverage90", None if arm.intervals is None else arm.intervals.coverage90)
    record |= {"cost_per_item_usd": arm.cost_per_item_usd}
    gap = None if contrast is None else contrast.difference
    record |= {
        "against": None if contrast is None else contrast.against,
        "matched": None if contrast is None else contrast.matched,
        "money_ratio": None if contrast is None else money_ratio(costs.get(contrast.against), arm.cost_per_item_usd),
        "difference": None if gap is None else gap.point,
        "difference_low": None if gap is None else gap.low,
        "difference_high": None if gap is None else gap.high,
        "adjusted_p": None if contrast is None else adjusted(contrast),
        "least_detectable": None if contrast is None else number(contrast.least_detectable),
    }
    return record | {"flips": _flips(panel), "flagged": _flagged(None if panel is None else whole(panel))}


def _flips(panel: PanelScores | None) -> str | None:
    if panel is None or len(panel.rounds) < 2:
        return None
    wrong = [one.right_to_wrong for one in panel.rounds if one.right_to_wrong is not None]
    right = [one.wrong_to_right for one in panel.rounds if one.wrong_to_right is not None]
    return (
        f"{sum(wrong):,}, {sum(right):,} of {sum(one.revised for one in panel.rounds):,}" if wrong and right else None
    )


def _flagged(row: Faithful | None) -> str | None:
    return None if row is None else f"{row.flagged:,} of {row.answers:,}"


def contrasts_table(evaluation: Evaluation, *, explored: bool = False) -> Table:
    """Return one row per contrast: difference, interval, p raw and adjusted, MDE.

    Args:
        evaluation: The evaluation.
        explored: All other pairs in place of the declared family.
    """
    found = evaluation.contrasts
    rows = () if found is None else found.exploratory if explored else found.declared
    records = tuple(_contrast(one) for one in rows)
    columns = (
        Column("Contrast", lambda r: f"{r['arm']} − {r['against']}", numeric=False),
        *(() if explored else (Column("Matched in cost", lambda r: str(r["matched"] or ABSENT), numeric=False),)),
        Column("Points of MdAPE [95 %]", lambda r: ended(r, "difference", points)),
        Column("p", lambda r: p_value(r["p"])),
        *(_EXPLORED if explored else _DECLARED),
        Column("MDE in points", lambda r: unsigned(r["least_detectable"])),
        Column("Equivalent", lambda r: _yes(r["equivalent"])),
        Column("Sign-flip p of mean log error", lambda r: p_value(r["sign_flip"])),
    )
    said = f"Negative: the first arm errs less. {describe_resampling(evaluation.overall)}"
    if found is not None:
        said += (
            f" MDE: with {percent(found.power, 0)} power at level {found.alpha:g}. Equivalent: the difference is shown "
        )
        said += f"to be below {points(found.margin).lstrip('+')} points."
        said += " Adjusted over all these pairs for the rate of false discoveries (BH)." if explored else _family(found)
    return Table(captioned(evaluation, said), columns, records)


def _family(found: Contrasts) -> str:
    """Return over what the declared contrasts are adjusted, which are lacking, and what is not told from the best."""
    said = f" Adjusted over the {found.family} declared contrasts with a p."
    lacking = "; ".join(f"{one.arm} − {one.against} ({one.reason})" for one in found.missing)
    said += f" Declared but not here: {lacking}." if lacking else ""
    if not isinstance(found.best, Undefined):
        said += f" Not told from the best at {percent(found.best.size, 0)}: {', '.join(found.best.included)}."
    return said


_DECLARED: Final = (
    Column("Holm", lambda r: p_value(r["holm"])),
    Column("max-T", lambda r: p_value(r["max_t"])),
)
_EXPLORED: Final = (Column("BH", lambda r: p_value(r["bh"])),)


def _contrast(one: ContrastResult) -> dict[str, Value]:
    return {
        "arm": one.arm,
        "against": one.against,
        "declared": one.declared,
        "asks": "; ".join(one.asks),
        "matched": one.matched,
        "difference": one.difference.point,
        "difference_low": one.difference.low,
        "difference_high": one.difference.high,
        "interval": one.difference.rule,
        "n_clusters": one.difference.n_clusters,
        "p": number(one.p),
        "holm": number(one.holm),
        "max_t": number(one.max_t),
        "bh": number(one.bh),
        "least_detectable": number(one.least_detectable),
        "equivalent": None if isinstance(one.equivalence, Undefined) else one.equivalence.equivalent,
        "equivalence_p": None if isinstance(one.equivalence, Undefined) else number(one.equivalence.p),
        "mean_log_difference": one.mean_log.mean,
        "mean_log_p": number(one.mean_log.p),
        "sign_flip": number(one.sign_flip),
    }


def _yes(value: Value) -> str:
    return ABSENT if value is None else "yes" if value else "no"
