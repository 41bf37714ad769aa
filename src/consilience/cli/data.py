"""``consilience data``: from a source of sales to a table, its splits and its subsamples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import Grid, counted, note, show
from consilience.cli.described import description_lines
from consilience.cli.outputs import check_output
from consilience.cli.place import Json, place_of
from consilience.errors import ConfigError, DataError

if TYPE_CHECKING:
    from datetime import date

TOWN_SALES = 2_000
TOWN_SEED = 2026

app = typer.Typer(no_args_is_help=True)


@app.command(epilog="Example: consilience data build --adapter king_county --input kc_house_data.csv")
def build(
    context: typer.Context,
    adapter: Annotated[
        str, typer.Option(help="Source: synthetic, king_county, seattle, lucas, ames or csv.", show_default=False)
    ],
    source: Annotated[Path, typer.Option("--input", help="The source file.", show_default=False)],
    mapping: Annotated[Path | None, typer.Option(help="For csv: YAML file that maps its columns.")] = None,
    exclusions: Annotated[
        str, typer.Option(help="Which flagged sales to leave out: keep_all, market, or a YAML file with rules.")
    ] = "keep_all",
    as_json: Json = False,
) -> None:
    """Bring a source of sales to the analytic table."""
    from consilience.valuation.pipeline import build_table  # noqa: PLC0415 - heavy

    project = place_of(context).project
    made = build_table(project, adapter=adapter, source=source, mapping=mapping, exclusions=exclusions)
    later = made.later_snapshots()
    read = f"{counted(made.rows, 'sale')} in {made.currency} from {made.source_file} ({made.adapter})"
    lines = [f"{read} in {project.analytic}"]
    lines += [f"flagged {name}: {count:,}" for name, count in made.flag_counts.items() if count]
    lines += [f"excluded by {made.exclusion_set}, {name}: {count:,}" for name, count in made.exclusions.items()]
    if later:
        lines.append(f"one snapshot later than the sales, as every report will say: {', '.join(later)}")
    lines.append("next: consilience data describe, consilience data splits")
    show({**made.model_dump(mode="json"), "table": str(project.analytic)}, *lines, as_json=as_json)


@app.command(epilog="Example: consilience data splits --boundaries 2015-01-01,2015-03-01,2015-05-01")
def splits(
    context: typer.Context,
    boundaries: Annotated[
        str | None,
        typer.Option(help="First days of validation, test, holdout, such as D1,D2,D3; by default at 60, 75 and 90 %."),
    ] = None,
    group_parcels: Annotated[
        bool, typer.Option("--group-parcels", help="Take sales out of train whose parcel sells again in test.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Split the table by time."""
    from consilience.valuation.pipeline import split_table  # noqa: PLC0415 - heavy
    from consilience.valuation.splits import SPLITS  # noqa: PLC0415 - the same

    days = None if boundaries is None else [_day(text) for text in boundaries.split(",")]
    project = place_of(context).project
    made = split_table(project, boundaries=days, group_parcels=group_parcels)
    document = {
        "counts": made.counts(),
        "boundaries": [day.isoformat() for day in made.boundaries],
        "moved": made.moved,
        "moves": made.moves.to_dicts(),
        "empty": list(made.empty()),
        "splits": str(project.splits),
    }
    counts = {**made.counts(), **dict.fromkeys(made.empty(), 0)}
    order = sorted(counts, key=SPLITS.index)
    grid = Grid(("split", "sales"), tuple((name, f"{counts[name]:,}") for name in order))
    first = ", ".join(
        f"{name} {day}" for name, day in zip(("validation", "test", "holdout"), made.boundaries, strict=True)
    )
    lines = [f"first days: {first}"]
    if made.empty():
        note(f"warning: no sale falls into {', '.join(made.empty())}, so nothing can be asked there")
    if group_parcels:
        again = dict(made.moves["sold_again_in"].value_counts().iter_rows())
        where = ", ".join(f"{again[name]:,} in {name}" for name in SPLITS if name in again)
        why = f" because the parcel sells again later: {where}" if where else ": no parcel of theirs sells again later"
        lines.append(f"{counted(made.moved, 'sale')} left train{why}")
    show(document, grid, *lines, "next: consilience run-arm --arm E_single --split validation", as_json=as_json)


def _day(text: str) -> date:
    from datetime import date  # noqa: PLC0415 - the name serves as a type above

    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f'--boundaries: "{text.strip()}" is no day', hint="Write days such as 2015-03-01.") from None


@app.command(epilog="Example: consilience data describe --pictures results/pictures")
def describe(
    context: typer.Context,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder for a map and charts, each as PNG and SVG.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell what the table holds: prices, dates, gaps, flags, exclusions, splits and how each column was observed."""
    from consilience.valuation.describe import describe as told_in_numbers  # noqa: PLC0415 - heavy
    from consilience.valuation.pictures import draw  # noqa: PLC0415 - the same
    from consilience.valuation.schema import read_analytic, read_manifest  # noqa: PLC0415 - the same
    from consilience.valuation.splits import read_splits  # noqa: PLC0415 - the same

    project = place_of(context).project
    sales, manifest = read_analytic(project.analytic), read_manifest(project.analytic)
    parts = None
    if project.splits.exists():
        try:
            parts = read_splits(project.splits, sales=sales)
        except DataError as error:  # the table was built anew since
            note(f"warning: {error}")
    told = told_in_numbers(sales, manifest, splits=parts)
    drawn = () if pictures is None else draw(sales, manifest, pictures)
    for warning in told.warnings:
        note(f"warning: {warning}")
    shown = [
        {"name": each.name, "title": each.title, "alt": each.alt, "files": [str(file) for file in each.files]}
        for each in drawn
    ]
    show(
        {**told.document(), "pictures": shown},
        *description_lines(told),
        *(f"drawn: {file}" for each in drawn for file in each.files),
        as_json=as_json,
    )


@app.command(epilog="Example: consilience data subsample")
def subsample(
    context: typer.Context,
    seed: Annotated[int, typer.Option(help="Seed of the one draw; what is stored is never drawn again.")] = TOWN_SEED,
    as_json: Json = False,
) -> None:
    """Draw and store the stratified subsamples that models are asked about, or show those stored."""
    from consilience.valuation.pipeline import subsample as stored_or_drawn  # noqa: PLC0415 - heavy

    project = place_of(context).project
    drawn_before = project.subsamples.exists()
    counts = stored_or_drawn(project, seed=seed).group_by("split", "tier").len().sort("split", "len").rows()
    show(
        {
            "counts": [{"split": split, "tier": tier, "sales": count} for split, tier, count in counts],
            "drawn_before": drawn_before,
            "subsamples": str(project.subsamples),
        },
        Grid(("split", "tier", "sales added by the tier"), tuple((s, t, f"{n:,}") for s, t, n in counts), words=2),
        f"{'stored before, not drawn again' if drawn_before else 'drawn and stored'}: {project.subsamples}",
        as_json=as_json,
    )


@app.command(epilog="Example: consilience data synth --sales 2000 --seed 2026")
def synth(
    context: typer.Context,
    sales: Annotated[int, typer.Option(min=1, help="How many sales.")] = TOWN_SALES,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the town.")] = TOWN_SEED,
    output: Annotated[Path | None, typer.Option(help="The file; by default under data/raw.")] = None,
    as_json: Json = False,
) -> None:
    """Make up a town whose true values are known."""
    from consilience.valuation.synthetic import generate, write_town  # noqa: PLC0415 - heavy

    place = place_of(context)
    if output is not None:
        check_output(output, option="--output", root=place.root, data=True)
    path = output or place.project.raw / f"town-{sales}-{seed}.parquet"
    write_town(generate(sales=sales, seed=seed), path)
    show(
        {"sales": sales, "seed": seed, "synthetic": True, "file": str(path)},
        f"{sales:,} synthetic sales (seed {seed}) in {path}",
        f"next: consilience data build --adapter synthetic --input {path}",
        as_json=as_json,
    )
