"""The tables of what intervals, probabilities and ratios were worth."""

from __future__ import annotations

from collections.abc import Callable

from consilience.core.undefined import Undefined
from consilience.experiments.arm_scores import RATIO_RESAMPLES
from consilience.experiments.evaluation import ArmResult, Evaluation
from consilience.experiments.measures import IntervalScores
from consilience.reports.cells import (
    captioned,
    ended,
    hundredths,
    measured,
    number,
    one_digit,
    shared,
    thousandths,
    two_digits,
    whole_percent,
)
from consilience.reports.drawn import drawn
from consilience.reports.evaluation import arm_label
from consilience.reports.tables import ABSENT, Column, Record, Table, Value, percent


def coverage_table(evaluation: Evaluation) -> Table:
    """Return one row per arm with quantiles, and a second one where a frozen calibration was applied."""
    by = f"calibrated ({str(evaluation.calibration_sha256)[:12]})"
    rows = [
        (arm, word, scores)
        for arm in evaluation.overall.arms
        for word, scores in (("as stated", arm.intervals), (by, arm.calibrated))
        if scores is not None
    ]
    columns = (
        Column("Arm", arm_label, numeric=False),
        Column("Intervals", lambda r: str(r["intervals"]), numeric=False),
        Column("Items", lambda r: str(r["n"])),
        Column("Coverage of 50 %", lambda r: ended(r, "coverage50", whole_percent)),
        Column("Coverage of 90 %", lambda r: ended(r, "coverage90", whole_percent)),
        Column("Width of 50 %", lambda r: percent(number(r["width50"]), 0)),
        Column("Width of 90 %", lambda r: percent(number(r["width90"]), 0)),
        Column("WIS5 × 100", lambda r: ended(r, "wis", hundredths)),
        Column("CRPS × 100", lambda r: ended(r, "crps", hundredths)),
        Column("Interval score × 100", lambda r: ended(r, "interval_score90", hundredths)),
    )
    said = (
        "Coverage with 95 % Wilson intervals, widened for clusters; scores of log prices with 95 % cluster-bootstrap "
        "intervals, less is better. WIS5 is over five quantiles, CRPS of the law they stand for. Width is the median, "
        f"relative to the point. {drawn(evaluation, [scores.wis for *_, scores in rows])}"
    )
    return Table(captioned(evaluation, said), columns, tuple(_covered(arm, word, scores) for arm, word, scores in rows))


def _covered(arm: ArmResult, word: str, scores: IntervalScores) -> dict[str, Value]:
    record: dict[str, Value] = {"arm": arm.arm, "simulated": arm.simulated, "intervals": word, "n": scores.n}
    record |= shared("coverage50", scores.coverage50) | shared("coverage90", scores.coverage90)
    record |= {"width50": scores.width50, "width90": scores.width90}
    for name in ("wis", "crps", "interval_score90"):
        record |= measured(name, getattr(scores, name))
    parts = ("dispersion", "overprediction", "underprediction", "point_masses")
    return record | {name: getattr(scores, name) for name in parts}


def calibration_table(evaluation: Evaluation) -> Table:
    """Return the calibration of stated probabilities, each error beside what a perfect forecaster gets.

    Where no arm states probabilities, it is the share of truths at or below each stated quantile.
    """
    if evaluation.probabilities is None:
        return _quantile_table(evaluation)
    records: tuple[Record, ...] = tuple(
        {
            "arm": one.arm,
            "simulated": one.simulated,
            "aggregation": one.aggregation,
            "n": one.n,
            **measured("brier", one.brier),
            "mcb": None if one.corp is None else one.corp.mcb,
            "dsc": None if one.corp is None else one.corp.dsc,
            "unc": None if one.corp is None else one.corp.unc,
            "ece": None if one.calibration is None else one.calibration.ece.value,
            "ece_null": None if one.calibration is None else one.calibration.ece.null,
            **measured("log_score", one.log_score),
            "n_clipped": one.n_clipped,
            "skill": number(one.skill),
        }
        for one in evaluation.probabilities.results
    )
    columns = (
        Column("Arm", arm_label, numeric=False),
        Column("Rule", lambda r: str(r["aggregation"]), numeric=False),
        Column("Questions", lambda r: str(r["n"])),
        Column("Brier", lambda r: ended(r, "brier", thousandths)),
        Column("Miscalibration", lambda r: thousandths(r["mcb"])),
        Column("Discrimination", lambda r: thousandths(r["dsc"])),
        Column("Uncertainty", lambda r: thousandths(r["unc"])),
        Column("ECE (of a perfect forecaster)", _beside_null),
        Column("Log score", lambda r: ended(r, "log_score", thousandths)),
        Column("Clipped", lambda r: str(r["n_clipped"])),
        Column("Skill over the base rate", lambda r: percent(number(r["skill"]))),
    )
    said = (
        "Brier = miscalibration − discrimination + uncertainty (CORP). The expected calibration error is never 0, "
        "so the "
        "mean of a perfect forecaster stands beside it. Clipped: probabilities moved off 0 or 1 for the log score. "
    )
    said += drawn(evaluation, [one.brier for one in evaluation.probabilities.results if one.brier is not None])
    return Table(captioned(evaluation, said), columns, records)


def _quantile_table(evaluation: Evaluation) -> Table:
    names = ("q05", "q25", "q50", "q75", "q95")
    records: tuple[Record, ...] = tuple(
        {
            "arm": arm.arm,
            "simulated": arm.simulated,
            "n": arm.intervals.n,
            **{
                key: value
                for name, one in zip(names, arm.intervals.below, strict=True)
                for key, value in shared(name, one).items()
            },
        }
        for arm in evaluation.overall.arms
        if arm.intervals is not None
    )
    columns = (
        Column("Arm", arm_label, numeric=False),
        Column("Items", lambda r: str(r["n"])),
        *(Column(f"At or below {name}", _share_cell(name)) for name in names),
    )
    said = (
        "Share of truths at or below each stated quantile: 5, 25, 50, 75 and 95 % if they are right. With 95 % Wilson "
        "intervals, widened for clusters. "
    )
    said += drawn(evaluation, [arm.intervals.wis for arm in evaluation.overall.arms if arm.intervals is not None])
    return Table(captioned(evaluation, said), columns, records)


def _share_cell(name: str) -> Callable[[Record], str]:
    return lambda record: ended(record, name, whole_percent)


def _beside_null(record: Record) -> str:
    ece, null = number(record["ece"]), number(record["ece_null"])
    return ABSENT if ece is None or null is None else f"{ece:.3f} ({null:.3f})"


def ratios_table(evaluation: Evaluation) -> Table:
    """Return how even estimates were, as assessors judge them (IAAO)."""
    records: list[Record] = []
    for arm in evaluation.overall.arms:
        if arm.ratios is None:
            continue
        told, vei = arm.ratios, arm.ratios.vei
        record: dict[str, Value] = {"arm": arm.arm, "simulated": arm.simulated, "n": told.n}
        for name in ("median", "cod", "prd"):
            record |= measured(name, getattr(told, name))
        record |= measured("prb", None if isinstance(told.prb, Undefined) else told.prb)
        record |= {
            "vei": None if isinstance(vei, Undefined) else vei.value,
            "vei_significance": None if isinstance(vei, Undefined) else vei.significance,
            "vei_undefined": vei.reason if isinstance(vei, Undefined) else None,
            "kakwani": told.kakwani,
        }
        records.append(record)
    columns = (
        Column("Arm", arm_label, numeric=False),
        Column("Sales", lambda r: str(r["n"])),
        Column("Median ratio", lambda r: ended(r, "median", two_digits)),
        Column("COD", lambda r: ended(r, "cod", one_digit)),
        Column("PRD", lambda r: ended(r, "prd", two_digits)),
        Column("PRB", lambda r: ended(r, "prb", thousandths)),
        Column("VEI", lambda r: ABSENT if r["vei"] is None else one_digit(r["vei"])),
        Column("Kakwani", lambda r: thousandths(r["kakwani"])),
    )
    said = (
        "Ratios of estimate to price; nothing is trimmed. COD (percent): 5 to 15 is usual for homes; PRD: 0.98 to "
        "1.03; "
        "PRB: within 0.05 of 0; VEI (percent): within 10 of 0. Brackets: 95 % cluster bootstrap. "
    )
    told_of = [arm.ratios.cod for arm in evaluation.overall.arms if arm.ratios is not None]
    said += drawn(evaluation, told_of, most=RATIO_RESAMPLES)
    return Table(captioned(evaluation, said), columns, tuple(records))


def strata_table(evaluation: Evaluation) -> Table:
    """Return the median error of every arm by stratum."""
    records = tuple(
        {
            "stratum": one.stratum,
            "level": one.level,
            "arm": one.arm,
            "simulated": evaluation.simulated,
            "n_items": one.n_items,
            "n_answered": one.n_answered,
            **measured("mdape", one.mdape),
        }
        for one in evaluation.strata
    )
    columns = (
        Column("Stratum", lambda r: str(r["stratum"]).replace("_", " "), numeric=False),
        Column("Group", lambda r: str(r["level"]), numeric=False),
        Column("Arm", arm_label, numeric=False),
        Column("Answered", lambda r: f"{r['n_answered']} of {r['n_items']}"),
        Column("MdAPE", lambda r: ended(r, "mdape", percent)),
    )
    levels = drawn(evaluation, [one.mdape for one in evaluation.strata if one.mdape is not None])
    said = f"Exploration: many groups, no adjustment. 95 % cluster bootstrap. {levels}".strip()
    return Table(captioned(evaluation, said), columns, records)
