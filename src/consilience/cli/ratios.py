"""``consilience ratios``: how even estimates were over cheap and dear homes, from any table of estimates and prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from consilience.cli.console import Grid, counted, show
from consilience.cli.place import Json
from consilience.cli.scoring import mapping, shortened, unsigned
from consilience.core.undefined import Undefined
from consilience.errors import ConfigError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.experiments.measures import Measure
    from consilience.experiments.ratio_study import RatioStudy

EXAMPLE = "Example: consilience ratios sales.csv --columns estimate=assessed_value --columns price=sale_price"


def ratios(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="CSV, JSONL or Parquet: a row per sale.")],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN", help="Columns for estimate, price, cluster (shared errors), by (a study each)."
        ),
    ] = None,
    vei: Annotated[str, typer.Option(help="How VEI cuts its groups: percentile or rank.")] = "percentile",
    resamples: Annotated[int, typer.Option(min=2, help="Resamples of the intervals.")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    as_json: Json = False,
) -> None:
    """Tell the ratio statistics of assessors (COD, PRD, PRB, VEI) with 95 % intervals; nothing is trimmed or run."""
    from consilience.experiments.arm_scores import Draws  # noqa: PLC0415 - heavy
    from consilience.experiments.measures import plain  # noqa: PLC0415 - the same
    from consilience.experiments.ratio_study import ratio_studies  # noqa: PLC0415 - the same
    from consilience.scoring.equity import Grouping  # noqa: PLC0415 - the same

    known = get_args(Grouping)
    grouping: Any = vei
    if grouping not in known:
        raise ConfigError(f'--vei: unknown "{vei}"', hint=nearest(vei, known))
    draws = Draws("ratios", n_resamples=resamples, seed=seed)
    found = ratio_studies(table, columns=mapping(columns or ()), grouping=grouping, draws=draws)
    document = {"studies": plain(found), "resamples": resamples, "seed": seed, "vei": vei, "calls": 0}
    left = sum(one.summary.unscorable for one in found)
    lines = [
        f"B = {resamples:,}, seed {seed}; brackets: 95 %, of PRB in closed form where every sale is its own cluster",
        "usual: COD 5 to 15, PRD 0.98 to 1.03, PRB within 0.05 of 0, VEI within 10 of 0; nothing is trimmed",
    ]
    lines += [f"left out, as they have no positive estimate and price: {counted(left, 'sale')}"] if left else []
    lines += sorted(
        {f"{_name(one)}: PRB undefined, {one.prb.reason}" for one in found if isinstance(one.prb, Undefined)}
    )
    lines += sorted(
        {f"{_name(one)}: VEI undefined, {one.vei.reason}" for one in found if isinstance(one.vei, Undefined)}
    )
    show(document, _grid(found), *lines, as_json=as_json)


def _name(one: RatioStudy) -> str:
    return shortened(one.group or "all")


def _grid(found: tuple[RatioStudy, ...]) -> Grid:
    rows = tuple(
        (
            _name(one),
            f"{one.summary.n:,}",
            f"{one.median.n_clusters:,}",
            _cell(one.median, 3),
            _cell(one.cod, 2),
            _cell(one.prd, 3),
            _cell(one.prb, 4),
            "–" if isinstance(one.vei, Undefined) else unsigned(f"{one.vei.value:.2f}"),
            "–" if isinstance(one.vei, Undefined) else "yes" if one.vei.separate else "no",
        )
        for one in found
    )
    headings = ("group", "sales", "clusters", "median ratio", "COD", "PRD", "PRB", "VEI", "groups apart")
    return Grid(headings, rows)


def _cell(one: Measure | Undefined, digits: int) -> str:
    if isinstance(one, Undefined):
        return "–"
    value, low, high = (
        "" if each is None else unsigned(f"{each:.{digits}f}") for each in (one.value, one.low, one.high)
    )
    few = " (few)" if one.flags else ""
    return f"{value} [{low}, {high}]{few}" if low and high else f"{value} (no interval: one cluster)"
