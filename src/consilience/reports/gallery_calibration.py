"""The pictures of calibration that an evaluation has, with data, alt text and caption of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from consilience.core.answers import LEVELS
from consilience.experiments.evaluation import ArmResult, Evaluation
from consilience.inference.bootstrap import analysis_rng
from consilience.reports.pictures import calibration as of_calibration
from consilience.reports.pictures.canvas import Picture, of_sample
from consilience.reports.tables import percent
from consilience.scoring.pit import pit_histogram

_COVERED: Final = 0.9


def scored(evaluation: Evaluation) -> list[ArmResult]:
    """Return the arms that state quantiles."""
    return [arm for arm in evaluation.overall.arms if arm.intervals is not None]


def left_out(evaluation: Evaluation) -> str:
    """Return a sentence that names the arms without quantiles; empty where there are none."""
    lacking = [arm.arm for arm in evaluation.overall.arms if arm.intervals is None]
    return f" Without quantiles and so left out: {', '.join(lacking)}." if lacking else ""


def n_items(arms: Sequence[ArmResult]) -> int:
    """Return the most items that one of these arms stated quantiles of."""
    return max(arm.intervals.n for arm in arms if arm.intervals is not None)


def n_groups(arms: Sequence[ArmResult]) -> int:
    """Return the most clusters of such items."""
    return max(arm.intervals.wis.n_clusters for arm in arms if arm.intervals is not None)


def coverage(evaluation: Evaluation) -> Picture | None:
    """Return coverage against width; None where no arm states quantiles."""
    arms = scored(evaluation)
    if not arms:
        return None
    rows = [
        of_calibration.Covered(arm.arm, arm.intervals.width90, arm.intervals.coverage90)
        for arm in arms
        if arm.intervals is not None
    ]
    return Picture(
        "coverage",
        "Coverage against width of the 90 % intervals",
        "; ".join(f"{row.label}: {percent(row.share.value, 0)} inside, width {percent(row.width, 0)}" for row in rows),
        "Best is near the dashed line and far to the left. Red squares: the interval of the coverage does not hold "
        f"90 %.{left_out(evaluation)} "
        + of_sample(n=n_items(arms), groups=n_groups(arms), interval="95 % Wilson, widened for clusters"),
        tuple(
            {
                "arm": row.label,
                "width90": row.width,
                "coverage90": row.share.value,
                "low": row.share.low,
                "high": row.share.high,
                "n": row.share.n,
            }
            for row in rows
        ),
        partial(of_calibration.draw_coverage, rows, nominal=_COVERED),
    )


def quantiles(evaluation: Evaluation) -> Picture | None:
    """Return the calibration of the quantiles; None where no arm states any."""
    arms = scored(evaluation)
    if not arms:
        return None
    rows = [of_calibration.Observed(arm.arm, arm.intervals.below) for arm in arms if arm.intervals is not None]
    return Picture(
        "quantiles",
        "Calibration of the quantiles",
        "; ".join(f"{row.label}: {', '.join(percent(share.value, 0) for share in row.shares)}" for row in rows)
        + f", at the levels {', '.join(percent(level, 0) for level in LEVELS)}.",
        "On the dashed line, truths fall below each quantile as often as it says. Steeper than the line: intervals too "
        f"wide; flatter: too narrow.{left_out(evaluation)} "
        + of_sample(n=n_items(arms), groups=n_groups(arms), interval="95 % Wilson, widened for clusters"),
        tuple(
            {"arm": row.label, "level": level, "observed": share.value, "low": share.low, "high": share.high}
            for row in rows
            for level, share in zip(LEVELS, row.shares, strict=True)
        ),
        partial(of_calibration.draw_quantiles, rows),
    )


def pit(evaluation: Evaluation, *, seed: int) -> Picture | None:
    """Return where truths fall in the stated laws; None where no arm states quantiles.

    Args:
        evaluation: The evaluation.
        seed: Of the draws of the band.
    """
    arms = scored(evaluation)
    if not arms:
        return None
    rows = []
    for arm in arms:
        if arm.intervals is None:
            continue
        bins = np.repeat(np.arange(len(LEVELS) + 1), arm.intervals.pit_bins)
        rng = analysis_rng(seed=seed, analysis=f"report/pit/{arm.arm}")
        rows.append((arm.arm, pit_histogram(bins=bins, rng=rng)))
    out = [label for label, made in rows if not _inside(made.density, made.low, made.high)]
    return Picture(
        "pit",
        "Where the truth falls in the stated laws",
        "; ".join(f"{label}: {', '.join(f'{height:.2f}' for height in made.density)}" for label, made in rows)
        + ", in the six bins between quantiles.",
        "Even bars at 1 are best; high outer bars: intervals too narrow. Bins end at the five levels. "
        "Between the black lines: the 90 % simultaneous band of right quantiles and independent items "
        "(10,000 draws). Outside it (orange): "
        f"{', '.join(out) or 'none'}."
        f"{left_out(evaluation)} " + of_sample(n=n_items(arms), seed=seed, interval="none, the band aside"),
        tuple(
            {
                "arm": label,
                "bin": k,
                "count": made.counts[k],
                "density": made.density[k],
                "low": made.low[k],
                "high": made.high[k],
            }
            for label, made in rows
            for k in range(len(made.counts))
        ),
        partial(of_calibration.draw_pit, rows),
    )


def _inside(values: Sequence[float], low: Sequence[float], high: Sequence[float]) -> bool:
    return all(a - 1e-9 <= x <= b + 1e-9 for x, a, b in zip(values, low, high, strict=True))


def reliabilities(evaluation: Evaluation) -> list[Picture]:
    """Return a reliability diagram of every arm that states probabilities, under its primary rule."""
    if evaluation.probabilities is None:
        return []
    made: list[Picture] = []
    for one in evaluation.probabilities.results:
        curve, corp = one.reliability, one.corp
        if not one.primary or curve is None or corp is None or one.brier is None:
            continue
        parts = (
            f"Brier {one.brier.value:.3f} = miscalibration {corp.mcb:.3f} − discrimination "
            f"{corp.dsc:.3f} + uncertainty {corp.unc:.3f}"
        )
        places = zip(curve.stated, curve.count, curve.seen, curve.low, curve.high, strict=True)
        made.append(
            Picture(
                f"reliability-{len(made) + 1}",
                f"Reliability of the probabilities of {one.arm}",
                f"{parts}; {curve.stated.size} distinct probabilities.",
                "Share that came true by stated probability (isotonic regression). Shaded: the "
                f"{percent(curve.level, 0)} "
                "consistency band, where the line of a perfect forecaster lies; it is no confidence band. "
                + of_sample(
                    n=one.n, groups=one.brier.n_clusters, resamples=curve.n_resamples, interval="pointwise band"
                ),
                tuple(
                    {"stated": float(p), "count": int(c), "seen": float(s), "low": float(a), "high": float(b)}
                    for p, c, s, a, b in places
                ),
                partial(of_calibration.draw_reliability, curve, label=one.arm, parts=parts),
            )
        )
    return made
