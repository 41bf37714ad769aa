"""A table of sales in pictures: where, how dear, when and what is missing; each has a text that says what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.errors import ConfigError
from consilience.experiments.storage import write_whole
from consilience.valuation.schema import ANALYTIC, IDENTITY, Manifest

FORMATS = ("png", "svg")
DPI = 150
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "consilience",
    "svg.fonttype": "path",
    "font.size": 9.0,
    "figure.constrained_layout.use": True,
}
COLOUR = "#2f6690"
MUTED = "#9aa5b1"
HUES = "viridis"
"""Seen alike by most eyes, and still ordered in grey."""
PLATE = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
FEWEST_BINS, MOST_BINS = 5, 200
MOST_TICKS = 9
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Picture:
    """One picture, stored as PNG and as SVG.

    Attributes:
        name: File name without its ending.
        title: What stands above it.
        alt: What it shows, for those who do not see it; stored in the files too.
        files: Where it lies.
    """

    name: str
    title: str
    alt: str
    files: tuple[Path, ...]


def draw(sales: pl.DataFrame, manifest: Manifest, folder: Path) -> tuple[Picture, ...]:
    """Draw a checked analytic table and return its pictures: a map of prices, their histogram, months, and gaps.

    A map needs coordinates and a month at least one sale; what cannot be drawn is left out. The same table gives the
    same files.

    Args:
        sales: The table, with at least one sale.
        manifest: What stands beside it.
        folder: Where the files go.

    Raises:
        ConfigError: matplotlib is not installed.
        DataError: The folder cannot be written.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - heavy, and an extra
        from matplotlib.figure import Figure  # noqa: PLC0415 - the same
    except ImportError as error:
        raise ConfigError(
            f"pictures need {error.name}", hint='Install it with: pip install "consilience[report]".'
        ) from error
    drawn = []
    painters: tuple[Callable[[Any, pl.DataFrame, Manifest], tuple[str, str, str] | None], ...]
    painters = (_map, _histogram, _months, _gaps)
    with mpl.rc_context(STYLE):
        for paint in painters:
            figure = Figure(figsize=(7.0, 4.6))
            told = paint(figure, sales, manifest)
            if told is None:
                continue
            name, title, alt = told
            files = tuple(_store(figure, folder / f"{name}.{ending}", title, alt) for ending in FORMATS)
            drawn.append(Picture(name, title, alt, files))
    return tuple(drawn)


def _store(figure: Any, path: Path, title: str, alt: str) -> Path:
    if path.suffix == ".png":
        metadata = {"Title": title, "Description": alt}
        write_whole(path, lambda target: figure.savefig(target, format="png", dpi=DPI, metadata=metadata))
        return path
    drawn = StringIO()
    # A time of drawing would make every file another one.
    figure.savefig(drawn, format="svg", dpi=DPI, metadata={"Title": title, "Description": alt, "Date": None})
    spoken = f'<svg role="img" aria-label={quoteattr(alt)} '
    text = drawn.getvalue().replace("<svg ", spoken, 1)
    write_whole(path, lambda target: target.write_text(text, encoding="utf-8"))
    return path


def _map(figure: Any, sales: pl.DataFrame, manifest: Manifest) -> tuple[str, str, str] | None:
    placed = sales.filter(pl.col("lat").is_not_null() & pl.col("lng").is_not_null())
    if placed.is_empty():
        return None
    per_m2 = placed.filter(pl.col("floor_area_m2").is_not_null())
    by_area = per_m2.height * 2 > placed.height
    shown = per_m2 if by_area else placed
    value = pl.col("price") / pl.col("floor_area_m2") if by_area else pl.col("price")
    # The dearest are drawn last, so that they are not hidden; equal values keep the table's order.
    shown = shown.with_columns(value=value).sort("value", maintain_order=True)
    values = _floats(shown["value"])
    low, high = (float(x) for x in np.quantile(values, (0.02, 0.98)))
    unit = f"{manifest.currency} per m²" if by_area else manifest.currency
    axes = figure.subplots()
    from matplotlib.colors import LogNorm  # noqa: PLC0415 - heavy, and an extra

    dots = axes.scatter(
        shown["lng"],
        shown["lat"],
        c=values,
        s=max(1.0, min(14.0, 20_000 / shown.height)),
        cmap=HUES,
        norm=LogNorm(low, max(high, low * 1.01)),
        linewidths=0,
        rasterized=True,
    )
    middle = float(np.mean(axes.get_xlim()))
    for centre in manifest.region.centres:
        axes.plot(centre.lng, centre.lat, marker="+", color="black", markersize=11, markeredgewidth=1.6)
        axes.annotate(centre.name, (centre.lng, centre.lat), bbox=PLATE, **_beside(right=centre.lng <= middle, up=7))
    axes.locator_params(axis="x", nbins=5)
    # A degree of longitude is shorter than one of latitude: one kilometre is as long either way.
    axes.set_aspect(1 / math.cos(math.radians(float(np.mean(_floats(placed["lat"]))))))
    bar = figure.colorbar(dots, ax=axes, extend="both", format="%d", ticks=_ticks(low, high))
    bar.minorticks_off()
    bar.set_label(f"price ({unit}), log scale")
    title = f"Where the sales lie: {shown.height:,} of {sales.height:,}"
    axes.set(title=title, xlabel="longitude (degrees)", ylabel="latitude (degrees)")
    alt = (
        f"Map of {shown.height:,} sales by longitude and latitude, each dot coloured by its price in {unit}; "
        f"the middle 96 % lie between {low:,.0f} and {high:,.0f}. {sales.height - shown.height:,} sales are not drawn."
    )
    return "map", title, alt


def _ticks(low: float, high: float) -> list[float]:
    """Return 4 to 6 values spread evenly in ratio and rounded to two digits."""
    spread = np.geomspace(low, max(high, low * 1.01), 5)
    return sorted({float(f"{value:.2g}") for value in spread if low <= float(f"{value:.2g}") <= high}) or [low]


def _histogram(figure: Any, sales: pl.DataFrame, manifest: Manifest) -> tuple[str, str, str]:
    prices = _floats(sales["price"])
    least, most, median = float(prices.min()), float(prices.max()), float(np.median(prices))
    # Freedman and Diaconis: the width follows the bulk, so that a few nominal prices do not coarsen it.
    n_bins = np.histogram_bin_edges(np.log(prices), "fd").size - 1
    bins = np.geomspace(least, max(most, least * 1.01), max(FEWEST_BINS, min(MOST_BINS, n_bins)) + 1)
    axes = figure.subplots()
    axes.hist(prices, bins=bins, color=COLOUR, edgecolor="white", linewidth=0.3)
    axes.set_xscale("log")
    axes.axvline(median, color="black", linestyle="--", linewidth=1)
    axes.annotate(
        f"median {median:,.0f}",
        (median, 1),
        xycoords=("data", "axes fraction"),
        **_beside(right=median**2 <= least * most, up=-10),
    )
    axes.set_xticks(_round_prices(least, most))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    title = f"Prices of {sales.height:,} sales"
    axes.set(title=title, xlabel=f"price ({manifest.currency}), log scale", ylabel="sales per bin (count)")
    alt = (
        f"Histogram of {sales.height:,} prices on a logarithmic axis from {least:,.0f} to {most:,.0f} "
        f"{manifest.currency}; the median is {median:,.0f}."
    )
    return "prices", title, alt


def _round_prices(least: float, most: float) -> list[float]:
    """Return the powers of ten between two prices, with their doubles and fives where these leave room to read."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    inside = [
        (step, step * 10.0**power) for power in powers for step in (1, 2, 5) if least <= step * 10.0**power <= most
    ]
    return [price for step, price in inside if step == 1 or len(inside) <= MOST_TICKS]


def _beside(*, right: bool, up: int) -> dict[str, Any]:
    """Return where a label stands: on the side with room for it."""
    return {"xytext": (7 if right else -7, up), "textcoords": "offset points", "ha": "left" if right else "right"}


def _months(figure: Any, sales: pl.DataFrame, manifest: Manifest) -> tuple[str, str, str]:
    months = (
        sales.group_by(month=pl.col("sale_date").dt.truncate("1mo"))
        .agg(count=pl.len(), median=pl.col("price").median())
        .sort("month")
    )
    upper, lower = figure.subplots(2, 1, sharex=True)
    middle = [day.replace(day=15) for day in months["month"]]
    upper.bar(middle, months["count"], width=24, color=MUTED)
    upper.set_ylabel("sales (count)")
    lower.plot(middle, months["median"], color=COLOUR, marker=".", linewidth=1.2)
    lower.set_ylabel(f"median price ({manifest.currency})")
    lower.yaxis.set_major_formatter("{x:,.0f}")
    lower.set_xlabel("month of sale")
    title = f"Sales and median price by month, {months['month'][0]:%Y-%m} to {months['month'][-1]:%Y-%m}"
    upper.set_title(title)
    busiest, dearest = months.sort("count")["month"][-1], months.sort("median")["month"][-1]
    alt = (
        f"Two panels over {months.height:,} months: the number of sales, most in {busiest:%Y-%m}, and their median "
        f"price, {months['median'][0]:,.0f} {manifest.currency} in the first month, {months['median'][-1]:,.0f} in the "
        f"last, highest in {dearest:%Y-%m}. Levels are not adjusted for what was sold."
    )
    return "months", title, alt


def _gaps(figure: Any, sales: pl.DataFrame, manifest: Manifest) -> tuple[str, str, str] | None:
    seen = [name for name in ANALYTIC.names() if name not in IDENTITY and manifest.observations[name].rule != "absent"]
    shares = [100 * sales[name].null_count() / sales.height for name in seen]
    axes = figure.subplots()
    axes.barh(seen, shares, color=COLOUR)
    axes.invert_yaxis()
    for place, share in enumerate(shares):
        axes.annotate("0" if not share else f"{share:.2g} %", (share, place), va="center", **_after())
    axes.set_xlim(0, max(5.0, 1.15 * max(shares)))
    absent = len(ANALYTIC) - len(IDENTITY) - len(seen)
    title = f"Unknown values by column; {absent} columns are not in the source at all"
    axes.set(title=title, xlabel=f"sales without a value (% of {sales.height:,})")
    axes.tick_params(axis="y", labelsize=7.5)
    gaps = [f"{name} {share:.2g} %" for name, share in zip(seen, shares, strict=True) if share]
    alt = (
        f"Bars for {len(seen)} columns with the share of sales that lack a value: "
        f"{', '.join(gaps) if gaps else 'none lacks any'}. {absent} columns are not in the source and not drawn."
    )
    return "unknown", title, alt


def _after() -> dict[str, Any]:
    return {"xytext": (3, 0), "textcoords": "offset points", "fontsize": 7.5}


def _floats(column: pl.Series) -> Floats:
    return column.cast(pl.Float64).to_numpy().astype(np.float64)
