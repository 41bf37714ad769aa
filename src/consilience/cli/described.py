"""How a description of a table of sales is laid out for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilience.cli.console import Grid, counted

if TYPE_CHECKING:
    from consilience.valuation.describe import Description


def description_lines(told: Description) -> list[str | Grid]:
    """Return the lines and tables of a description, in the order in which a reader needs them."""
    absent = [name for name, rule in told.observations.items() if rule == "not in the source"]
    seen = [name for name in told.observations if name not in absent]
    prices = ", ".join(f"{name} {value:,.0f}" for name, value in told.prices.items())
    classes = ", ".join(f"{name} {count:,}" for name, count in told.classes.items())
    held = f"{counted(told.sales, 'sale')} of {counted(told.parcels, 'parcel')} ({told.resales:,} resales)"
    parts: list[str | Grid] = [
        f"{held}, {told.first} to {told.last}, from {told.source_file} ({told.adapter})",
        f"price in {told.currency}: {prices}",
        f"class: {classes}",
        "",
        Grid(
            ("column", "observed", "unknown", "%"),
            tuple(
                (
                    name,
                    told.observations[name],
                    f"{told.unknown[name]:,}",
                    f"{100 * told.unknown[name] / told.sales:.1f}",
                )
                for name in seen
            ),
            words=2,
        ),
        f"not in the source: {', '.join(absent) or 'nothing is missing'}",
    ]
    if told.flags:
        parts += ["", Grid(("flag", "sales"), tuple((name, f"{count:,}") for name, count in told.flags.items()))]
    parts += ["", _exclusions(told)]
    if told.periods:
        rows = tuple((p.split, p.first, p.last, f"{p.sales:,}", f"{p.median_price:,.0f}") for p in told.periods)
        parts += ["", Grid(("split", "first", "last", "sales", "median price"), rows, words=3)]
    else:
        parts += ["", "no splits yet; next: consilience data splits"]
    return parts


def _exclusions(told: Description) -> Grid:
    """Return what was left out and what the built-in set would leave out of the rest, rule by rule."""
    done = [(f"{told.exclusion_set}: {rule}", "left out", f"{count:,}") for rule, count in told.excluded.items()]
    if told.exclusion_set == "market":
        return Grid(("exclusion", "", "sales"), tuple(done), words=2)
    would = [(f"market: {rule}", "would leave out", f"{count:,}") for rule, count in told.market_would_exclude.items()]
    return Grid(("exclusion", "", "sales"), tuple(done + would), words=2)
