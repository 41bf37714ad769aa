"""The Murphy diagrams that an evaluation has, with data, alt text and caption of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from consilience.reports.pictures.canvas import Picture, of_sample
from consilience.reports.pictures.murphy import Curve, draw_murphy
from consilience.reports.stated import Stated
from consilience.reports.tables import percent
from consilience.scoring.elementary import elementary_probability, elementary_quantile
from consilience.scoring.point import FloatArray

_THRESHOLDS: Final = 199
_MEDIAN: Final = 0.5
_TIE: Final = 1e-12


def murphy_of_probabilities(said: Stated, *, baseline: str) -> Picture | None:
    """Return the Murphy diagram of arms that state probabilities; None where there is only one.

    Args:
        said: Probabilities and outcomes.
        baseline: Arm that others are compared with.
    """
    at = np.arange(1, _THRESHOLDS + 1) / (_THRESHOLDS + 1)
    curves = _curves(said, at, _probability_at)
    brier = ((said.values - said.truth[:, None]) ** 2).mean(axis=0)
    return _picture(
        "murphy-probabilities",
        "Murphy diagram of the probabilities",
        said,
        curves,
        at,
        baseline=baseline,
        means=[f"Brier {value:.3f}" for value in brier],
        reading="Loss of whoever acts as soon as an arm says yes is more likely than the threshold, when acting costs "
        "the threshold and pays 1. Twice the area under a curve is the Brier score; other weights of the thresholds "
        "give every other proper score.",
        unit=None,
    )


def murphy_of_medians(said: Stated, *, baseline: str, unit: str) -> Picture | None:
    """Return the Murphy diagram of arms that state numbers, each read as a median; None where there is only one.

    Args:
        said: Points and prices, all positive.
        baseline: Arm that others are compared with.
        unit: Of the answers.
    """
    every = np.concatenate([said.values.ravel(), said.truth])
    at = np.geomspace(float(every.min()), float(every.max()) * (1 + 1e-9), _THRESHOLDS)
    curves = _curves(said, at, _median_at)
    off = np.abs(np.log(said.values) - np.log(said.truth)[:, None]).mean(axis=0)
    return _picture(
        "murphy-medians",
        "Murphy diagram of the estimates",
        said,
        curves,
        at,
        baseline=baseline,
        means=[f"mean absolute log error {value:.3f}" for value in off],
        reading="Half the share of items on which estimate and truth lie on different sides of the threshold. Each "
        "estimate is read as a median. Twice the area under a curve, along the logarithm, is the mean absolute log "
        "error; other weights of the thresholds give every other score that a median is best under.",
        unit=unit,
    )


def _probability_at(values: FloatArray, truth: FloatArray, threshold: float) -> FloatArray:
    return elementary_probability(p=values, y=truth, threshold=threshold)


def _median_at(values: FloatArray, truth: FloatArray, threshold: float) -> FloatArray:
    return elementary_quantile(quantile=values, outcome=truth, level=_MEDIAN, threshold=threshold)


def _curves(
    said: Stated, thresholds: FloatArray, score: Callable[[FloatArray, FloatArray, float], FloatArray]
) -> list[Curve]:
    return [
        Curve(
            arm,
            np.array([float(score(said.values[:, k], said.truth, t).mean()) for t in thresholds.tolist()]),
        )
        for k, arm in enumerate(said.arms)
    ]


def _picture(  # noqa: PLR0913 - all that a picture says
    name: str,
    title: str,
    said: Stated,
    curves: Sequence[Curve],
    thresholds: FloatArray,
    *,
    baseline: str,
    means: Sequence[str],
    reading: str,
    unit: str | None,
) -> Picture | None:
    if len(curves) < 2:
        return None
    scores = np.array([curve.score for curve in curves])
    lowest = scores <= scores.min(axis=0) + _TIE
    ahead = [curve.label for curve, mine in zip(curves, lowest, strict=True) if mine.all()]
    verdict = (
        f"{' and '.join(ahead)} lose{'s' if len(ahead) == 1 else ''} least at every threshold, so no proper score "
        "orders the best otherwise."
        if ahead
        else "No arm loses least at every threshold: curves cross, and which arm is best depends on the score."
    )
    reference = next((curve for curve in curves if curve.label == baseline), None)
    black = "" if reference is None else f"; black: {baseline}"
    shown = [curve for curve in curves if curve is not reference]
    return Picture(
        name,
        title,
        "; ".join(
            f"{curve.label}: {mean}, lowest (ties counted) at {percent(float(mine.mean()), 0)} of the thresholds"
            for curve, mean, mine in zip(curves, means, lowest, strict=True)
        )
        + f". {verdict}",
        f"Blue: the arm; grey: all others{black}. Less is better. {reading} {verdict} On the items that all of these "
        "arms answered. " + of_sample(n=said.truth.size, groups=int(np.unique(said.clusters).size), interval="none"),
        tuple(
            {"arm": curve.label, "threshold": float(t), "score": float(value)}
            for curve in curves
            for t, value in zip(thresholds, curve.score, strict=True)
        ),
        partial(draw_murphy, shown, thresholds=thresholds, reference=reference, unit=unit),
    )
