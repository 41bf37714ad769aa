"""Small plots of one kind side by side, one per arm, so that many arms can be read apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from consilience.reports.pictures.canvas import SOFT, Figure, canvas, short

_COLUMNS: Final = 3


def small_multiples(
    arms: Sequence[Any],
    one: Callable[[Any, Any], None],
    labels: Sequence[str],
    *,
    x: str,
    y: str,
    height: float = 1.25,
) -> Figure:
    """Return a small plot per arm on the same axes, at most three beside each other.

    Args:
        arms: What each plot shows; at least one.
        one: Draws one of them on its axes.
        labels: Title of each.
        x: What the common x axis says.
        y: What the common y axis says.
        height: Of a row, in inches.
    """
    columns = min(_COLUMNS, len(arms))
    rows = math.ceil(len(arms) / columns)
    figure, grid = canvas(0.5 + height * rows, rows=rows, columns=columns, sharex=True, sharey=True)
    places = list(grid.flat)
    for axes, arm, label in zip(places, arms, labels, strict=False):
        one(axes, arm)
        axes.set_title(_broken(label), fontsize=7.2)
    for spare in range(len(arms), len(places)):
        places[spare].set_axis_off()
        places[spare - columns].tick_params(labelbottom=True)
    figure.supxlabel(x, fontsize=8.5, color=SOFT)
    figure.supylabel(y, fontsize=8.5, color=SOFT)
    return figure


def _broken(label: str) -> str:
    """Return a title of a small plot: a long one stands on two lines."""
    head, point, tail = label.partition(".")
    return short(label, 21) if len(label) <= 21 or not point else f"{short(head, 21)}\n.{short(tail, 20)}"
