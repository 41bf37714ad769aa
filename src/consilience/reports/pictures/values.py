"""Figures of values: whether dear homes are estimated like cheap ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from consilience.reports.pictures.canvas import BLUE, SOFT, VERMILION, Figure, canvas, in_percent, short
from consilience.scoring.point import FloatArray

_LEAST_WINDOW: Final = 7
_SHARE: Final = 5


@dataclass(frozen=True, eq=False)
class Ratios:
    """The estimates of one arm relative to prices, against size.

    Attributes:
        label: The arm.
        proxy: Value of each home, ``(price + estimate / median ratio) / 2``.
        ratio: Estimate over price.
        text: COD, PRD, PRB and VEI in words, on at most two lines.
    """

    label: str
    proxy: FloatArray
    ratio: FloatArray
    text: str


def running_median(*, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the medians of y in windows of a fifth of the cases, at least seven, moved over rising x.

    Degenerate: with fewer cases than a window, one median of all.

    Args:
        x: Shape (n,).
        y: Shape (n,).

    Example:
        >>> at, middle = running_median(x=np.arange(8.0), y=np.arange(8.0))
        >>> at.tolist(), middle.tolist()
        ([3.0, 4.0], [3.0, 4.0])
    """
    order = np.lexsort((y, x))
    size = min(max(_LEAST_WINDOW, x.size // _SHARE), x.size)
    xs = np.lib.stride_tricks.sliding_window_view(x[order], size)
    ys = np.lib.stride_tricks.sliding_window_view(y[order], size)
    return np.median(xs, axis=1), np.median(ys, axis=1)


def draw_ratios(arms: Sequence[Ratios], *, unit: str) -> Figure:
    """Return estimate over price against the value of the home (both logarithmic), with a running median.

    Args:
        arms: At least one; a plot each.
        unit: Of the values.
    """
    from matplotlib.ticker import FixedLocator, NullLocator  # noqa: PLC0415 - heavy

    figure, grid = canvas(0.5 + 1.9 * len(arms), rows=len(arms), sharex=True, sharey=True)
    every = np.concatenate([arm.ratio for arm in arms])
    top = max(float(every.max()), 1 / float(every.min()), 1.25) * 1.08
    marks = [mark for mark in (0.25, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0) if 1 / top <= mark <= top]
    for axes, arm in zip(grid[:, 0], arms, strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.axhline(1, color=SOFT, lw=0.8, ls=(0, (3, 3)))
        axes.plot(arm.proxy, arm.ratio, "o", ms=3.2, color=BLUE, alpha=0.55, mew=0)
        at, middle = running_median(x=arm.proxy, y=arm.ratio)
        axes.plot(at, middle, color=VERMILION, lw=1.8)
        axes.set_ylim(1 / top, top)
        axes.yaxis.set_major_locator(FixedLocator(marks))
        axes.yaxis.set_minor_locator(NullLocator())
        in_percent(axes.yaxis)
        axes.set_title(f"{short(arm.label)}: {arm.text}", fontsize=7.5)
    last = grid[-1, 0]
    values = np.concatenate([arm.proxy for arm in arms])
    in_amounts(last.xaxis, low=float(values.min()), high=float(values.max()))
    last.set_xlabel(f"value of the home ({unit}, log scale)")
    figure.supylabel("estimate / price (log scale)", fontsize=8.5, color=SOFT)
    return figure


def in_amounts(axis: Any, *, low: float, high: float, most: int = 12) -> None:
    """Write a logarithmic axis of amounts with round numbers between its ends.

    Args:
        axis: On a log scale.
        low: Least amount shown, above 0.
        high: Greatest.
        most: So many numbers at most.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: PLC0415 - heavy

    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    steps = [k * 10.0**power for power in powers for k in (1, 2, 5)]
    steps = [step for step in steps if low * 0.8 <= step <= high * 1.2]
    axis.set_major_locator(FixedLocator(steps[:: math.ceil(len(steps) / most) or 1]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _amount(value)))


def _amount(value: float) -> str:
    for size, word in ((1e9, "bn"), (1e6, "m"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {word}"
    return f"{value:g}"
