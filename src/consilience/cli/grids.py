"""``consilience grid``: several arms with one factor changed at a time, and one cost table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consilience.cli.place import Json, place_of

EXAMPLE = "Example: consilience grid examples/grid.yaml --dry-run"


def grid(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A YAML file: a base arm, and what is varied one factor at a time.")],
    live: Annotated[bool, typer.Option("--live", help="Let real models speak; needs their keys.")] = False,
    max_spend_usd: Annotated[
        str | None, typer.Option(help="Cap over all runs of the grid (default: the file's own).")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Items in flight (default 4).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the bounds of every arm; spend nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Run the arms of a grid one after the other; the same command again goes on where it stopped."""
    from consilience.cli.grid_run import GridRun, Overrides  # noqa: PLC0415 - heavy
    from consilience.config import load_yaml  # noqa: PLC0415 - the same
    from consilience.experiments.grid import GridSpec  # noqa: PLC0415 - the same

    overrides = Overrides(live=live, max_spend_usd=max_spend_usd, concurrency=concurrency)
    run = GridRun(place_of(context), file, load_yaml(file, GridSpec), overrides)
    if dry_run:
        run.preview(as_json=as_json)
    else:
        run.carry_out(as_json=as_json)
