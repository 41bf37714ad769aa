"""The tables of arms that answered yes-no questions or chose an option: no arm without its cost and its differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from consilience.experiments.answers_judged import (
    ChoiceComparison,
    ChoiceResult,
    ProbabilityComparison,
    ProbabilityResult,
)
from consilience.experiments.evaluation import Evaluation
from consilience.experiments.gaps import Gap
from consilience.inference.intervals import DifferenceInterval
from consilience.reports.cells import captioned, ended, measured, money, number, p_value, shared, whole_percent
from consilience.reports.drawn import drawn, flagged
from consilience.reports.evaluation import arm_label, describe_resampling
from consilience.reports.tables import ABSENT, Column, Record, Table, Value, between, percent, points


def probabilities_table(evaluation: Evaluation) -> Table:
    """Return one row per arm over yes-no questions, under its primary rule: Brier score, cost, differences."""
    told = evaluation.probabilities
    rows = () if told is None else tuple(one for one in told.results if one.primary)
    recalibrated = any(one.calibrated is not None for one in rows)
    records = tuple(
        {
            **_whose(one, evaluation),
            **measured("brier", one.brier),
            "brier_flags": None if one.brier is None else " ".join(one.brier.flags),
            **measured("calibrated", one.calibrated),
            "calibrated_flags": None if one.calibrated is None else " ".join(one.calibrated.flags),
            **_compared(one, told, _money_of(evaluation, rows)),
        }
        for one in rows
    )
    columns = (
        *_WHOSE,
        Column("Brier", _measured("brier", _brier)),
        *((Column("Brier, calibrated", _measured("calibrated", _brier)),) if recalibrated else ()),
        *_columns(f"Brier less that of {evaluation.baseline_arm} [95 %]", _signed, records),
    )
    said = "Mean Brier score, 0 is best; a negative difference: the arm errs less."
    if recalibrated:
        said += f" Calibrated: by the frozen map {str(evaluation.calibration_sha256)[:12]} of validation."
    measures = [one.brier for one in rows if one.brier is not None]
    return Table(captioned(evaluation, _caption(said, evaluation, told, drawn(evaluation, measures))), columns, records)


def choices_table(evaluation: Evaluation) -> Table:
    """Return one row per arm over questions with options, under its primary rule: accuracy, cost, differences."""
    told = evaluation.choices
    rows = () if told is None else tuple(one for one in told.results if one.primary)
    records = tuple(
        {
            **_whose(one, evaluation),
            **shared("accuracy", one.accuracy),
            "accuracy_flags": None if one.accuracy is None else " ".join(one.accuracy.flags),
            "agreement": one.agreement,
            "given_to_truth": one.given_to_truth,
            **_compared(one, told, _money_of(evaluation, rows)),
        }
        for one in rows
    )
    columns = (
        *_WHOSE,
        Column("Judged", lambda r: str(r["n"])),
        Column("Accuracy", _measured("accuracy", whole_percent)),
        Column("Agreement", lambda r: percent(number(r["agreement"]), 0)),
        Column("Share given to the truth", lambda r: percent(number(r["given_to_truth"]), 0)),
        *_columns(f"Points of accuracy from {evaluation.baseline_arm} [95 %]", points, records),
    )
    said = (
        "Accuracy where the truth is known, with 95 % Wilson intervals widened for clusters; a tie of leading options "
        "is not right. Agreement is the mean share of the leading option: no confidence."
    )
    return Table(captioned(evaluation, _caption(said, evaluation, told, "")), columns, records)


def _caption(
    said: str, evaluation: Evaluation, told: ProbabilityComparison | ChoiceComparison | None, levels: str
) -> str:
    levels = f" Levels: {levels}" if levels else ""
    tested = 0 if told is None else sum(1 for one in _tested(told.results) if number(one.p) is not None)
    said += f"{levels} In brackets behind a cost: relative to {evaluation.baseline_arm}. Adjusted p: by Holm over "
    said += f"the {tested} comparisons here that have a p."
    return said if told is None else f"{said} {describe_resampling(told)}"


def _tested(
    results: Iterable[ProbabilityResult | ChoiceResult],
) -> Iterable[ProbabilityResult | ChoiceResult | Gap]:
    for one in results:
        if one.primary:
            yield one
            if one.matched is not None:
                yield one.matched


def _whose(one: ProbabilityResult | ChoiceResult, evaluation: Evaluation) -> dict[str, Value]:
    return {
        "arm": one.arm,
        "simulated": one.simulated,
        "baseline": one.arm == evaluation.baseline_arm,
        "aggregation": one.aggregation,
        "n_items": one.n_items,
        **dict(one.outcomes),
        "n": one.n,
    }


def _money_of(evaluation: Evaluation, rows: Iterable[ProbabilityResult | ChoiceResult]) -> float | None:
    found = [one.cost_usd / one.n_items for one in rows if one.arm == evaluation.baseline_arm and one.cost_usd]
    return found[0] if found else None


def _compared(
    one: ProbabilityResult | ChoiceResult, told: ProbabilityComparison | ChoiceComparison | None, base: float | None
) -> dict[str, Value]:
    cost, matched = None if one.cost_usd is None else one.cost_usd / one.n_items, one.matched
    return {
        "cost_per_item_usd": cost,
        "cost_ratio": cost / base if cost is not None and base else None,
        "tokens": one.tokens,
        "common": told is not None and told.resampling is not None,
        **_gap("difference", one.difference),
        "adjusted_p": number(one.holm),
        "matched": None if matched is None else matched.against,
        "matched_money": None if matched is None else matched.money_ratio,
        **_gap("matched_difference", None if matched is None else matched.difference),
        "matched_adjusted_p": None if matched is None else number(matched.holm),
    }


def _gap(name: str, gap: DifferenceInterval | None) -> dict[str, Value]:
    return {
        name: None if gap is None else gap.point,
        f"{name}_low": None if gap is None else gap.low,
        f"{name}_high": None if gap is None else gap.high,
        f"{name}_flags": None if gap is None else " ".join(gap.flags),
    }


def _columns(heading: str, shown: Callable[[float], str], records: Iterable[Record]) -> tuple[Column, ...]:
    """Return the cost and the differences, which no arm stands without."""
    matched = (
        Column("Against a single agent", _matched, numeric=False),
        Column("Difference from it [95 %]", _difference("matched_difference", shown)),
        Column("Adjusted p of that", lambda r: p_value(r["matched_adjusted_p"])),
    )
    return (
        Column("Cost per item", _cost),
        Column(heading, _difference("difference", shown)),
        Column("Adjusted p", lambda r: p_value(r["adjusted_p"])),
        *(matched if any(one["matched"] is not None for one in records) else ()),
    )


def _measured(name: str, shown: Callable[[float], str]) -> Callable[[Record], str]:
    return lambda record: flagged(ended(record, name, shown), record[f"{name}_flags"])


def _difference(name: str, shown: Callable[[float], str]) -> Callable[[Record], str]:
    def cell(record: Record) -> str:
        gap = number(record[name])
        if name == "difference" and record["baseline"]:
            return "baseline"
        if gap is None:
            alone = "not on common items" if record["common"] else "no common items"
            return alone if name == "difference" else ABSENT
        low, high = (number(record[f"{name}_{end}"]) for end in ("low", "high"))
        ends = (None if end is None else shown(end) for end in (low, high))
        return flagged(between(shown(gap), *ends), record[f"{name}_flags"])

    return cell


def _cost(record: Record) -> str:
    ratio, cost = number(record["cost_ratio"]), money(record["cost_per_item_usd"])
    if ratio is None or cost == "free":
        return cost
    return f"{cost} ({ratio:.1f}×)" if ratio >= 0.1 else f"{cost} ({ratio:.2g}×)"


def _matched(record: Record) -> str:
    ratio = number(record["matched_money"])
    name = str(record["matched"] or ABSENT)
    return name if ratio is None else f"{name} ({ratio:.2g}×\u00a0its\u00a0money)"


def _brier(value: float) -> str:
    return f"{value:.3f}"


def _signed(value: float) -> str:
    """Return a difference of scores with its sign; what rounds to 0 has none."""
    text = f"{value:+.3f}".replace("-", "−")
    return text if text.strip("+−0.") else "0.000"


_WHOSE = (
    Column("Arm", arm_label, numeric=False),
    Column("Rule", lambda r: str(r["aggregation"]), numeric=False),
    Column("Answered", lambda r: f"{r['answered']} of {r['n_items']}"),
)
