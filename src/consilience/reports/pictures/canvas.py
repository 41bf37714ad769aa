"""How every figure looks and how it becomes bytes: the same numbers give the same SVG, PDF and PNG."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from consilience.errors import ConfigError
from consilience.reports.tables import Record, plain

WIDTH: Final = 4.9
"""Inches: so narrow that letters stay readable when the picture fills a telephone's screen."""
BLUE, VERMILION, GREEN, AMBER, PURPLE, SKY = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9"
HUES: Final = (BLUE, VERMILION, GREEN, PURPLE, AMBER, SKY)
"""Okabe and Ito's colours, told apart by colour-blind readers."""
INK, SOFT, LINE, BAND = "#1c2228", "#56616b", "#c9ced3", "#e3eaf0"
FORMATS: Final = ("svg", "pdf", "png")
Figure: TypeAlias = Any
"""A figure of matplotlib, which is loaded only where a picture is drawn."""

_STYLE: Final = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica", "sans-serif"],
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "text.color": INK,
    "text.usetex": False,
    "text.parse_math": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "consilience",
    "pdf.fonttype": 42,
    "path.simplify": False,
}
_METADATA: Final[dict[str, dict[str, Any]]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
_LONGEST: Final = 28
_NAMES_AT: Final = 1.1
"""Where a column of names stands, in widths of the axes."""


@dataclass(frozen=True)
class Picture:
    """One figure of a report.

    Attributes:
        name: Stem of its files, such as ``forest``.
        title: What it shows, in a few words.
        alt: What a reader sees in it, with its numbers.
        caption: How to read it, and n, G, B, seed and the type of interval.
        records: Its data, unrounded.
        draw: Returns the figure; called inside the style.
    """

    name: str
    title: str
    alt: str
    caption: str
    records: tuple[Record, ...]
    draw: Callable[[], Figure]


def rendered(picture: Picture) -> dict[str, bytes]:
    """Return a picture as ``svg``, ``pdf`` and ``png``; neither clock nor version of a library is in the bytes.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - heavy
    except ImportError as error:
        raise ConfigError(
            "figures need matplotlib, which is not installed", hint="pip install 'consilience[report]'"
        ) from error
    made: dict[str, bytes] = {}
    style: Any = {**mpl.rcParamsDefault, **_STYLE}
    with mpl.rc_context(style), warnings.catch_warnings():
        # A letter the font lacks is a box in PNG and PDF; it is no reason to have no report.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = picture.draw()
        for kind in FORMATS:
            target = io.BytesIO()
            figure.savefig(target, format=kind, dpi=200, metadata=_METADATA[kind])
            made[kind] = target.getvalue()
    return made


def inline(svg: bytes, *, name: str, alt: str) -> str:
    """Return an SVG for a page: without prologue, addresses and style of its own, ids its own, told in words.

    Args:
        svg: From `rendered`.
        name: Told apart by it; no other picture of the page has the same.
        alt: Text for readers who do not see it; escaped here.
    """
    from html import escape  # noqa: PLC0415 - beside its one use

    text = svg.decode("utf-8")
    text = text[text.index("<svg") :]
    for junk in (r"<metadata>.*?</metadata>\s*", r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>\s*", r"<!--.*?-->\s*"):
        text = re.sub(junk, "", text, flags=re.DOTALL)
    text = re.sub(r'\s(?:xmlns(?::\w+)?|version)="[^"]*"', "", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    head = f'<svg role="img" aria-label="{escape(plain(alt))}"'
    return re.sub(r'<svg width="[^"]*" height="[^"]*"', lambda _: head, text, count=1).strip()


def canvas(height: float, *, rows: int = 1, columns: int = 1, **grid: Any) -> tuple[Figure, Any]:
    """Return an empty figure of the common width, and its axes as an array."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - heavy
    from matplotlib.figure import Figure as Made  # noqa: PLC0415 - the same

    figure = Made(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **grid)


def short(label: str, longest: int = _LONGEST) -> str:
    """Return a label that fits beside an axis; control characters are spelled out.

    Example:
        >>> short("G_debate_r2"), short("x" * 40, 5)
        ('G_debate_r2', 'xxxx…')
    """
    told = plain(label)
    return told if len(told) <= longest else f"{told[: longest - 1]}…"


def in_percent(axis: Any, *, digits: int = 0, signed: bool = False) -> None:
    """Write an axis of fractions in percent."""
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415 - heavy

    def text(value: float, _: int) -> str:
        said = f"{value * 100:{'+' if signed and abs(value) > 1e-12 else ''}.{digits}f}"
        return f"{said} %".replace("-", "−")

    axis.set_major_formatter(FuncFormatter(text))


def in_points(axis: Any) -> None:
    """Write an axis of differences of fractions in percentage points."""
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415 - heavy

    def text(value: float, _: int) -> str:
        return "0" if abs(value) < 1e-12 else f"{value * 100:+.3g}".replace("-", "−")

    axis.set_major_formatter(FuncFormatter(text))


def name_at_right(axes: Any, labels: Sequence[str], at: Sequence[tuple[float, float]], hues: Sequence[str]) -> None:
    """Name points of a plot in a column to its right, each joined to its point by a thin line, none over another.

    Args:
        axes: Their limits are set already.
        labels: Of the points.
        at: Where these are, in units of the data.
        hues: Colour of each name.
    """
    if not labels:
        return
    spots = axes.transAxes.inverted().transform(axes.transData.transform(at))
    step = min(0.08, 1.04 / len(labels))
    rising = sorted(range(len(labels)), key=lambda k: (float(spots[k][1]), labels[k]))
    heights = _apart([float(spots[k][1]) for k in rising], step)
    heights_of = dict(zip(rising, heights, strict=True))
    _untangle(heights_of, [(float(x), float(y)) for x, y in spots])
    for k, height in heights_of.items():
        axes.annotate(
            short(labels[k]),
            xy=at[k],
            xytext=(_NAMES_AT, height),
            textcoords="axes fraction",
            va="center",
            ha="left",
            fontsize=7.2,
            color=hues[k],
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": LINE, "lw": 0.6, "shrinkA": 1, "shrinkB": 3},
        )


def _apart(rising: Sequence[float], step: float) -> list[float]:
    """Return rising places at least a step apart, near the wanted ones and within the axes where they fit."""
    placed: list[float] = []
    for wanted in rising:
        placed.append(max(wanted, placed[-1] + step) if placed else max(wanted, 0.0))
    high = 1.0
    for k in range(len(placed) - 1, -1, -1):
        placed[k] = min(placed[k], high)
        high = placed[k] - step
    return placed


def _untangle(heights: dict[int, float], spots: Sequence[tuple[float, float]]) -> None:
    """Swap names while that shortens their lines, which leaves no two crossing."""

    def length(k: int, height: float) -> float:
        return math.hypot(_NAMES_AT - spots[k][0], height - spots[k][1])

    names = sorted(heights)
    better = True
    while better:
        better = False
        for i in names:
            for j in names:
                now = length(i, heights[i]) + length(j, heights[j])
                if i < j and length(i, heights[j]) + length(j, heights[i]) < now - 1e-9:
                    heights[i], heights[j] = heights[j], heights[i]
                    better = True


def of_sample(
    *, n: int, groups: int | None = None, resamples: int | None = None, seed: int | None = None, interval: str
) -> str:
    """Return n, G, B, seed and the type of interval as one sentence of a caption.

    Example:
        >>> of_sample(n=24, groups=12, resamples=1000, seed=0, interval="95 % percentile")
        'n = 24 items, G = 12 clusters, B = 1,000, seed 0; intervals: 95 % percentile.'
    """
    parts = [f"n = {n:,} item{'' if n == 1 else 's'}"]
    parts += [] if groups is None else [f"G = {groups:,} cluster{'' if groups == 1 else 's'}"]
    parts += [] if resamples is None else [f"B = {resamples:,}"]
    parts += [] if seed is None else [f"seed {seed}"]
    return f"{', '.join(parts)}; intervals: {interval}."
