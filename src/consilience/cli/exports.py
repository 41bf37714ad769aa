"""``consilience export-avm``: the evidence of one run for a review of quality controls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import Grid, counted, note, show
from consilience.cli.outputs import check_folder
from consilience.cli.place import Json, Place, place_of
from consilience.errors import ConfigError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.valuation.exports import AvmExport

EXAMPLE = "Example: consilience export-avm _A_hedonic-test-0123456789 --synthetic"
RUN_HELP = "A run id under results/baselines or results/runs."


def export_avm(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)],
    arm: Annotated[str | None, typer.Option(help="Which arm, of a run with several.")] = None,
    aggregation: Annotated[str | None, typer.Option(help="Which rule of aggregation, of a run with several.")] = None,
    index: Annotated[str | None, typer.Option(help="A run of D_index over the same sales, to compare with.")] = None,
    retest: Annotated[int, typer.Option(min=1, help="Sales drawn at random to be tested again.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Decides which sales are drawn.")] = 2026,
    synthetic: Annotated[bool, typer.Option("--synthetic", help="The run is about the synthetic town.")] = False,
    output: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder to write; by default results/exports/RUN.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Export the evidence about one run as JSON, CSV and Markdown. It is not legal advice."""
    from consilience.valuation.export_files import read_subject, write_export  # noqa: PLC0415 - heavy
    from consilience.valuation.exports import make_export  # noqa: PLC0415 - the same
    from consilience.valuation.schema import read_analytic, read_manifest  # noqa: PLC0415 - the same

    place = place_of(context)
    if output is not None:
        check_folder(output, option="--output", root=place.root)
    subject = read_subject(_folder(place, run), arm=arm, aggregation=aggregation)
    against = None if index is None else read_subject(_folder(place, index))
    table = (place.town if synthetic else place.project).analytic
    made = make_export(subject, read_analytic(table), read_manifest(table), seed=seed, retest=retest, index=against)
    folder = output or place.root / "results" / "exports" / subject.run_id
    hashes = write_export(made, folder)
    note(made.summary["disclaimer"])
    show(
        {**made.summary, "subgroups": list(made.subgroups), "folder": str(folder), "files": hashes},
        _overview(made),
        f"{counted(len(hashes), 'file')} in {folder}",
        as_json=as_json,
    )


def _overview(made: AvmExport) -> Grid:
    from consilience.reports.tables import percent  # noqa: PLC0415 - heavy

    rows = tuple(
        (
            name,
            f"{told['sales']:,}",
            *(percent(told[key]) for key in ("hit_rate", "mdape", "ppe10", "coverage_90")),
        )
        for name, told in (
            ("all", made.summary["accuracy"]),
            *((f"income {record['income_tercile']}", dict(record)) for record in made.subgroups),
        )
    )
    return Grid(("sales", "n", "hit rate", "median error", "within 10 %", "90 % coverage"), rows)


def _folder(place: Place, run: str) -> Path:
    """Return the folder of a baseline's or a panel's run.

    Raises:
        ConfigError: There is no such run; the nearest is named.
    """
    shelves = [place.root / "results" / name for name in ("baselines", "runs")]
    known = {path.name: path for shelf in shelves if shelf.is_dir() for path in shelf.iterdir() if path.is_dir()}
    if run not in known:
        raise ConfigError(
            f'there is no run "{run}" in results/baselines or results/runs',
            hint=nearest(run, known) if known else "Make one with consilience baselines predict.",
        )
    return known[run]
