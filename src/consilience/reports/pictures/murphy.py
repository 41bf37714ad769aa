"""The Murphy diagram: the mean elementary score of every arm by threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from consilience.reports.pictures.canvas import BLUE, INK, LINE, Figure
from consilience.reports.pictures.multiples import small_multiples
from consilience.reports.pictures.values import in_amounts
from consilience.scoring.point import FloatArray

_HALVES: Final = ("0", "50", "100 %")


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean elementary score of one arm.

    Attributes:
        label: The arm.
        score: By threshold, shape (thresholds,).
    """

    label: str
    score: FloatArray


def draw_murphy(
    curves: Sequence[Curve], *, thresholds: FloatArray, reference: Curve | None = None, unit: str | None = None
) -> Figure:
    """Return a small plot per arm: its curve over those of all others, and the reference in black.

    Args:
        curves: At least one; the reference has no plot of its own.
        thresholds: Rising, shape (thresholds,).
        reference: The arm that others are compared with; None for none.
        unit: Of the thresholds, which then stand on a log scale; None for probabilities.
    """
    low, high = float(thresholds[0]), float(thresholds[-1])

    def one(axes: Any, curve: Curve) -> None:
        for other in curves:
            axes.plot(thresholds, other.score, color=LINE, lw=0.6, zorder=1)
        if reference is not None:
            axes.plot(thresholds, reference.score, color=INK, lw=1.0, zorder=2)
        axes.plot(thresholds, curve.score, color=BLUE, lw=1.5, zorder=3)
        axes.set_ylim(bottom=0)
        if unit is None:
            axes.set_xlim(0, 1)
            axes.set_xticks([0, 0.5, 1], _HALVES)
        else:
            axes.set_xscale("log")
            axes.set_xlim(low, high)
            in_amounts(axes.xaxis, low=low, high=high, most=3)

    x = "threshold of the probability" if unit is None else f"threshold ({unit}, log scale)"
    labels = [curve.label for curve in curves]
    return small_multiples(curves, one, labels, x=x, y="mean elementary score", height=1.35)
