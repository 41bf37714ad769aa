"""Figures of a panel: what rounds did to it, whose errors go together, what each member was worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from consilience.inference.effective import FloatArray
from consilience.reports.pictures.canvas import BLUE, HUES, INK, SOFT, VERMILION, Figure, canvas, in_percent, short

_SCALE: Final = 1_000


@dataclass(frozen=True)
class Course:
    """One arm from round to round.

    Attributes:
        label: The arm.
        error: Root mean square log error of the members' mean after each round, the first answers first.
        spread: Mean standard deviation of the members' log answers.
        control: The others are not shown to its members: what second thoughts do alone.
    """

    label: str
    error: tuple[float, ...]
    spread: tuple[float, ...]
    control: bool = False


def draw_rounds(arms: Sequence[Course]) -> Figure:
    """Return error and spread by round, controls dashed.

    Args:
        arms: At least one.
    """
    figure, grid = canvas(4.2 + 0.17 * ((len(arms) + 1) // 2), rows=2, sharex=True)
    shown, controls = [arm for arm in arms if not arm.control], [arm for arm in arms if arm.control]
    looks: dict[str, tuple[str, Any, str]] = {
        arm.label: (HUES[k % len(HUES)], "-", "os^Dv"[k // len(HUES) % 5]) for k, arm in enumerate(shown)
    }
    looks |= {arm.label: (INK, (0, (4, 2)) if k == 0 else (0, (1, 1.5)), "x") for k, arm in enumerate(controls)}
    for axes, name, label in (
        (grid[0, 0], "error", "RMSE of their mean (log)"),
        (grid[1, 0], "spread", "spread of members (SD of log)"),
    ):
        for arm in arms:
            hue, dash, mark = looks[arm.label]
            values = getattr(arm, name)
            axes.plot(range(len(values)), values, color=hue, ls=dash, marker=mark, ms=4, lw=1.4, label=short(arm.label))
        axes.set_ylim(bottom=0)
        axes.set_ylabel(label)
        in_percent(axes.yaxis, digits=1 if axes.get_ylim()[1] < 0.1 else 0)
    last = max(len(arm.error) for arm in arms)
    grid[1, 0].set_xticks(range(last), ["first\nanswers", *(f"round {k}" for k in range(1, last))])
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=2.6, columnspacing=1.4)
    return figure


def clustered_order(matrix: FloatArray) -> tuple[int, ...]:
    """Return an order in which members with correlated errors stand together: average linkage of ``1 − correlation``.

    Args:
        matrix: Correlations, shape (m, m).

    Example:
        >>> clustered_order(np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.1], [0.9, 0.1, 1.0]]))
        (0, 2, 1)
    """
    groups: list[tuple[int, ...]] = [(k,) for k in range(len(matrix))]
    while len(groups) > 1:
        pairs = [
            (1 - float(matrix[np.ix_(a, b)].mean()), i, j)
            for i, a in enumerate(groups)
            for j, b in enumerate(groups)
            if i < j
        ]
        _, i, j = min(pairs)
        joined = groups[i] + groups[j]
        groups = [*groups[:i], joined, *groups[i + 1 : j], *groups[j + 1 :]]
    return groups[0]


def draw_correlations(matrix: FloatArray, *, members: Sequence[str], title: str) -> Figure:
    """Return the map of error correlations, like members together, each cell with its number in hundredths.

    Args:
        matrix: Correlations, shape (m, m).
        members: Their names.
        title: With the effective number of members.
    """
    order = clustered_order(matrix)
    ordered = matrix[np.ix_(order, order)]
    names = [short(members[k], 22) for k in order]
    figure, ((axes,),) = canvas(1.9 + 0.24 * len(names))
    drawn = axes.imshow(ordered, vmin=-1, vmax=1, cmap="RdBu_r", aspect="auto")
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0, labelsize=7.5, labelcolor=INK)
    for side in axes.spines.values():
        side.set_visible(False)
    if len(names) <= 16:
        for row, values in enumerate(ordered):
            for column, value in enumerate(values):
                hue = "white" if abs(value) > 0.65 else INK
                text = f"{value * 100:.0f}".replace("-", "−")
                axes.text(column, row, text, ha="center", va="center", fontsize=6.5, color=hue)
    bar = figure.colorbar(drawn, ax=axes, shrink=0.6, pad=0.02, ticks=[-1, 0, 1])
    bar.ax.set_yticklabels(["−1", "0", "1"])
    bar.outline.set_visible(False)
    axes.set_title(title, fontsize=8)
    return figure


@dataclass(frozen=True)
class Worth:
    """What one member adds to the panel.

    Attributes:
        member: Its role.
        share: Its Shapley value, squared log error taken off the panel's; below 0 it makes the panel worse.
        low: Lower end of its interval.
        high: Upper end.
        without: What the panel loses without it.
    """

    member: str
    share: float
    low: float
    high: float
    without: float


def draw_influence(members: Sequence[Worth]) -> Figure:
    """Return bars of what each member adds, the best on top, with intervals; crosses tell the panel without it.

    Args:
        members: At least one.
    """
    ordered = sorted(members, key=lambda one: (-one.share, one.member))
    figure, ((axes,),) = canvas(1.1 + 0.22 * len(ordered))
    places = -np.arange(len(ordered), dtype=np.float64)
    values = np.array([one.share for one in ordered]) * _SCALE
    reach = np.array([[one.share - one.low for one in ordered], [one.high - one.share for one in ordered]]) * _SCALE
    axes.axvline(0, color=SOFT, lw=0.8)
    axes.barh(places, values, height=0.62, color=[BLUE if v >= 0 else VERMILION for v in values], alpha=0.85)
    axes.errorbar(values, places, xerr=reach, fmt="none", ecolor=INK, elinewidth=0.9, capsize=2)
    lone = [one.without * _SCALE for one in ordered]
    axes.plot(lone, places, "x", ms=5, color=INK, mew=1.2, label="loss of the panel without the member")
    axes.set_yticks(places, [short(one.member) for one in ordered])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_xlabel("squared log error taken off × 1,000 (more is better)")
    figure.legend(loc="outside upper right", handlelength=1.0)
    return figure
