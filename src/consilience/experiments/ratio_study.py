"""Ratio studies of any table of estimates and prices: how even the estimates were, as assessors judge (IAAO)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from consilience.core.undefined import Undefined
from consilience.errors import ConfigError, DataError
from consilience.experiments.arm_scores import Draws, bounded, measured
from consilience.experiments.forecast_table import ROW, read_table
from consilience.experiments.measures import Measure, Recorded
from consilience.registry import nearest
from consilience.scoring.equity import Grouping, VerticalEquity, vertical_equity
from consilience.scoring.point import FloatArray
from consilience.scoring.ratio import PriceRelatedBias, ratio_draws
from consilience.scoring.summaries import RatioSummary, summarise_ratios

NAMES: Final = ("estimate", "price", "cluster", "by")
_ANALYSIS: Final = "ratios"
_Of = Callable[[float, FloatArray], Measure]


@dataclass(frozen=True)
class RatioStudy(Recorded):
    """One group of sales.

    Attributes:
        group: Its name; empty where the table is one group.
        n_rows: Rows of it.
        summary: The statistics over the sales that have a ratio, with the counts of the others.
        median: Median ratio with its interval.
        cod: Coefficient of dispersion with its interval, percent.
        prd: Price-related differential with its interval.
        prb: Price-related bias; its interval is in closed form where every sale is its own cluster, else bootstrapped.
        vei: Vertical equity indicator with the rank intervals of its groups.
    """

    group: str
    n_rows: int
    summary: RatioSummary
    median: Measure
    cod: Measure
    prd: Measure
    prb: Measure | Undefined
    vei: VerticalEquity | Undefined


def ratio_studies(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    grouping: Grouping = "percentile",
    draws: Draws | None = None,
) -> tuple[RatioStudy, ...]:
    """Return the ratio study of every group of a table, sorted by group.

    Sales without a positive estimate and price have no ratio; they are left out and counted. Nothing is trimmed.

    Args:
        path: CSV, JSONL or Parquet.
        columns: Columns by name: ``estimate`` and ``price``, and where wanted ``cluster`` (sales that share errors, as
            a parcel's do) and ``by`` (one study per value).
        grouping: How the groups of the vertical equity indicator are cut.
        draws: Of the intervals; None draws 1,000 with seed 0.

    Raises:
        ConfigError: A name or column is unknown.
        DataError: The table cannot be read, a cell is no number, or a group has no sale with a ratio.
    """
    frame = _named(read_table(path), {name: name for name in NAMES[:2]} | dict(columns or {}), path)
    draws = draws or Draws(_ANALYSIS, n_resamples=1_000, seed=0)
    parts = frame.sort("by", ROW).partition_by("by", as_dict=True, maintain_order=True)
    return tuple(_study(str(group[0]), rows, grouping, draws, path) for group, rows in parts.items())


def _study(group: str, rows: pl.DataFrame, grouping: Grouping, draws: Draws, path: Path) -> RatioStudy:
    said, paid = rows["estimate"].to_numpy(), rows["price"].to_numpy()
    try:
        summary = summarise_ratios(estimate=said, price=paid)
    except DataError as error:
        where = f" (group {group})" if group else ""
        raise DataError(f"{path.name}{where}: {error.message}", hint=error.hint) from error
    fine = np.isfinite(said) & np.isfinite(paid) & (said > 0) & (paid > 0)
    said, paid, clusters = said[fine], paid[fine], rows["cluster"].to_numpy()[fine]
    drawn = ratio_draws(estimate=said, price=paid, clusters=clusters, weights=draws.weights(clusters))

    def of(value: float, each: FloatArray) -> Measure:
        return measured(value, each, clusters)

    own = np.unique(clusters).size == clusters.size
    vei = vertical_equity(estimate=said, price=paid, grouping=grouping)
    return RatioStudy(
        group=group,
        n_rows=rows.height,
        summary=replace(summary, vei=vei),
        median=bounded(of(summary.median, drawn.median)),
        cod=bounded(of(summary.cod, drawn.cod)),
        prd=bounded(of(summary.prd, drawn.prd)),
        prb=_bias(summary.prb, drawn.prb, of, alone=own),
        vei=vei,
    )


def _bias(
    found: PriceRelatedBias | Undefined, drawn: FloatArray | Undefined, of: _Of, *, alone: bool
) -> Measure | Undefined:
    if isinstance(found, Undefined):
        return found
    if isinstance(drawn, Undefined):
        return drawn
    made = of(found.value, drawn)
    return replace(made, low=found.low, high=found.high, rule=None) if alone else made


def _named(frame: pl.DataFrame, columns: Mapping[str, str], path: Path) -> pl.DataFrame:
    for name in columns:
        if name not in NAMES:
            raise ConfigError(f'--columns: unknown name "{name}"', hint=nearest(name, NAMES))
    there = [name for name in frame.columns if name != ROW]
    for name, column in columns.items():
        if column not in there:
            known = f"{nearest(column, there)} Name it: --columns {name}=COLUMN."
            raise DataError(f'{path.name} has no column "{column}" for {name}', hint=known)
    numbers = [_number(frame, columns[name], path).alias(name) for name in NAMES[:2]]
    own = pl.format("row {}", ROW) if "cluster" not in columns else pl.col(columns["cluster"]).cast(pl.String)
    group = pl.lit("") if "by" not in columns else pl.col(columns["by"]).cast(pl.String).fill_null("")
    return frame.select(ROW, *numbers, cluster=pl.coalesce(own, pl.format("row {}", ROW)), by=group)


def _number(frame: pl.DataFrame, column: str, path: Path) -> pl.Series:
    """Return a column of numbers; an empty cell is NaN, which has no ratio."""
    kind = frame.schema[column]
    if not (kind.is_numeric() or kind == pl.String()):
        raise DataError(f'{path.name}, column "{column}": it holds {kind}', hint="Give one number per cell.")
    read = frame[column].cast(pl.Float64, strict=False)
    bad = (frame[column].is_not_null() & read.is_null()).arg_true()
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f'{path.name}, row {frame[ROW][row]}, column "{column}": {frame[column][row]!r:.40} is no number',
            hint="Leave the cell empty where there is none.",
        )
    return read.fill_null(float("nan"))
