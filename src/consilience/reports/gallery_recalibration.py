"""The pictures of calibration before and after it was corrected, with data, alt text and caption of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from consilience.experiments.calibrations import ENDS, interval_name
from consilience.experiments.evaluation import Evaluation
from consilience.experiments.held_out import Change, Frequencies, Inside
from consilience.experiments.measures import IntervalScores
from consilience.reports.pictures.canvas import Picture, of_sample
from consilience.reports.pictures.recalibration import Corrected, Coverage, Mapped, Told, draw_corrected, draw_mapped
from consilience.reports.tables import Record, Value, percent

_WILSON: Final = "95 % Wilson, widened for clusters"
_NOMINAL: Final = {interval_name(alpha): 1 - alpha for alpha in ENDS}
_READING: Final = "Best is on the dashed line. Grey: as answered; blue: corrected"


def recalibrated(evaluation: Evaluation) -> list[Picture]:
    """Return calibration before and after: on held-out items of validation, and on the items of this evaluation."""
    made = [_held_out(evaluation.changes), _applied(evaluation), _maps(evaluation.changes)]
    return [one for one in made if one is not None]


def _held_out(changes: Sequence[Change]) -> Picture | None:
    rows: dict[float, list[Corrected]] = {}
    records: list[Record] = []
    told: list[Change] = []
    for one in changes:
        if not isinstance(one.before, Inside) or not isinstance(one.after, Inside):
            continue
        rows.setdefault(_NOMINAL[one.what], []).append(
            Corrected(one.arm, _inside(one.before), _inside(one.after), one.kept)
        )
        records.append(_change_record(one, one.before, one.after))
        told.append(one)
    if not told:
        return None
    refused = sorted({f"{one.arm} ({one.what})" for one in told if not one.kept})
    groups = max(one.before.n_clusters for one in told)
    return Picture(
        "recalibration-intervals",
        "Coverage before and after calibration, on held-out items of validation",
        _coverages(rows),
        f"{_READING} by margins learnt on the earlier items of validation (CQR, up to "
        f"{max(one.n_fitted for one in told):,}) and judged on its later ones, which are shown. Refused, since it does "
        f"not surely gain, and so not applied: {', '.join(refused) or 'none'}. "
        + of_sample(n=max(one.n_judged for one in told), groups=groups, interval=_WILSON),
        tuple(records),
        partial(draw_corrected, sorted(rows.items())),
    )


def _applied(evaluation: Evaluation) -> Picture | None:
    arms = [
        (arm.arm, arm.intervals, arm.calibrated)
        for arm in evaluation.overall.arms
        if arm.intervals is not None and arm.calibrated is not None
    ]
    if not arms:
        return None
    rows = {
        nominal: [Corrected(name, _share(before, nominal), _share(after, nominal)) for name, before, after in arms]
        for nominal in sorted(_NOMINAL.values())
    }
    return Picture(
        "recalibration-applied",
        "Coverage before and after calibration, on the items of this evaluation",
        _coverages(rows),
        f"{_READING} by the frozen margins, which were learnt on validation. An interval without margins of its own, "
        "since they were refused, is as answered. "
        + of_sample(
            n=max(before.n for _, before, _ in arms),
            groups=max(before.coverage90.n_clusters for _, before, _ in arms),
            interval=_WILSON,
        ),
        tuple(
            {
                "arm": one.arm,
                "interval": f"{nominal * 100:.0f} %",
                **{
                    f"{when}_{name}": getattr(told, name)
                    for when, told in (("before", one.before), ("after", one.after))
                    for name in ("share", "low", "high")
                },
            }
            for nominal, corrected in rows.items()
            for one in corrected
        ),
        partial(draw_corrected, sorted(rows.items())),
    )


def _maps(changes: Sequence[Change]) -> Picture | None:
    rows: list[Mapped] = []
    said: list[str] = []
    records: list[Record] = []
    told: list[Change] = []
    for one in changes:
        before, after = one.before, one.after
        if not isinstance(before, Frequencies) or not isinstance(after, Frequencies):
            continue
        rows.append(Mapped(one.arm, Told(before.stated, before.seen), Told(after.stated, after.seen), one.kept))
        said.append(
            f"{one.arm}: Brier {before.score:.3f} → {after.score:.3f}, miscalibration {before.mcb:.3f} → "
            f"{after.mcb:.3f}{'' if one.kept else ' (refused)'}"
        )
        for when, made in (("before", before), ("after", after)):
            places = zip(made.stated, made.count, made.seen, strict=True)
            fields: dict[str, Value] = {"arm": one.arm, "when": when, "kept": one.kept}
            records += [{**fields, "stated": p, "count": n, "seen": share} for p, n, share in places]
        told.append(one)
    if not rows:
        return None
    return Picture(
        "recalibration-probabilities",
        "Probabilities before and after recalibration, on held-out questions of validation",
        "; ".join(said),
        "Share that came true by stated probability (isotonic regression); best is on the dashed line. Grey: as "
        "answered; blue: mapped by Platt's map, learnt on the earlier questions of validation (up to "
        f"{max(one.n_fitted for one in told):,}) and judged on its later ones, which are shown; orange: the map was "
        f"refused, since it does not surely gain. {'; '.join(said)}. "
        + of_sample(
            n=max(one.n_judged for one in told), groups=max(one.before.n_clusters for one in told), interval="none"
        ),
        tuple(records),
        partial(draw_mapped, rows),
    )


def _inside(told: Inside) -> Coverage:
    return Coverage(told.share, told.low, told.high)


def _share(told: IntervalScores, nominal: float) -> Coverage:
    share = told.coverage90 if nominal > 0.7 else told.coverage50
    return Coverage(share.value, share.low, share.high)


def _coverages(rows: dict[float, list[Corrected]]) -> str:
    return "; ".join(
        f"{one.arm}, {percent(nominal, 0)}: {percent(one.before.share, 0)} → {percent(one.after.share, 0)}"
        f"{'' if one.kept else ' (refused)'}"
        for nominal, corrected in sorted(rows.items())
        for one in corrected
    )


def _change_record(one: Change, before: Inside, after: Inside) -> Record:
    return {
        "arm": one.arm,
        "interval": one.what.removesuffix(" interval"),
        "kept": one.kept,
        "n_fitted": one.n_fitted,
        "n_judged": one.n_judged,
        "gain": one.gain,
        "gain_low": one.low,
        "gain_high": one.high,
        "before_share": before.share,
        "before_low": before.low,
        "before_high": before.high,
        "before_width": before.width,
        "after_share": after.share,
        "after_low": after.low,
        "after_high": after.high,
        "after_width": after.width,
    }
