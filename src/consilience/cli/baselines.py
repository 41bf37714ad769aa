"""``consilience baselines``: statistical baselines over the table, with 0 calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from consilience.cli.console import Grid, counted, note, show
from consilience.cli.data import TOWN_SEED
from consilience.cli.place import Json, Place, place_of
from consilience.errors import ConfigError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.valuation.baseline_runs import BaselineRun, Bench
    from consilience.valuation.baselines import Baseline
    from consilience.valuation.pipeline import Project

app = typer.Typer(no_args_is_help=True)

Arms = Annotated[
    list[str] | None, typer.Option("--arm", help="Baseline, such as A_hedonic; may be repeated. By default all.")
]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Use the synthetic town, made where it is absent.")]
Imported = Annotated[
    Path | None, typer.Option("--import", help="For X_import: CSV or Parquet file with id, point and maybe q05 … q95.")
]
Known = Annotated[
    str | None, typer.Option("--information-date", help="For X_import: the latest day its maker knew, as 2015-02-14.")
]


@app.command(epilog="Example: consilience baselines fit --arm A_hedonic --synthetic")
def fit(
    context: typer.Context,
    arms: Arms = None,
    synthetic: Synthetic = False,
    imported: Imported = None,
    information_date: Known = None,
    as_json: Json = False,
) -> None:
    """Fit baselines on train and validation and keep their models and cards."""
    from consilience.valuation.baseline_runs import fit_baselines, open_bench  # noqa: PLC0415 - heavy

    place = place_of(context)
    chosen = _chosen(arms or (), imported, information_date)
    bench = open_bench(_project(place, synthetic=synthetic))
    runs = fit_baselines(bench, place.root / "results", chosen)
    _tell(bench, runs, {}, as_json=as_json)


@app.command(epilog="Example: consilience baselines predict --split test --synthetic")
def predict(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    arms: Arms = None,
    split: Annotated[str, typer.Option(help="validation, test, holdout or prospective.")] = "validation",
    as_of: Annotated[
        str, typer.Option("--as-of", help="frozen: parameters of train and validation; rolling: refitted as time goes.")
    ] = "frozen",
    n: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first N sales of the stored subsample that agents are asked about."),
    ] = None,
    synthetic: Synthetic = False,
    imported: Imported = None,
    information_date: Known = None,
    as_json: Json = False,
) -> None:
    """Fit baselines and write what they predict for a split in the common frame."""
    from consilience.valuation.baseline_runs import open_bench, predict_baselines, stored_items  # noqa: PLC0415 - heavy
    from consilience.valuation.features import AsOf  # noqa: PLC0415 - the same

    mode: Any = as_of
    if mode not in get_args(AsOf):
        raise ConfigError(f'--as-of: unknown "{mode}"', hint=nearest(mode, get_args(AsOf)))
    place = place_of(context)
    chosen = _chosen(arms or (), imported, information_date)
    project = _project(place, synthetic=synthetic)
    bench = open_bench(project, as_of=mode)
    items = None if n is None else stored_items(project, split=split, n=n)
    runs = predict_baselines(bench, place.root / "results", chosen, split=split, items=items)
    _tell(bench, runs, {"split": split}, as_json=as_json)


def _project(place: Place, *, synthetic: bool) -> Project:
    from consilience.valuation.pipeline import synthetic_project  # noqa: PLC0415 - heavy

    if not synthetic:
        return place.project
    synthetic_project(place.town, seed=TOWN_SEED)
    return place.town


def _chosen(arms: Sequence[str], imported: Path | None, information_date: str | None) -> list[Baseline]:
    from datetime import date  # noqa: PLC0415 - used here alone

    from consilience.valuation.baseline_runs import chosen_baselines  # noqa: PLC0415 - heavy
    from consilience.valuation.baselines.imported import ImportedPredictions  # noqa: PLC0415 - the same

    if (imported is None) != (information_date is None):
        raise ConfigError(
            "--import and --information-date belong together",
            hint="Give both: only the maker knows what the table knew.",
        )
    if imported is None or information_date is None:
        return chosen_baselines(arms)
    try:
        day = date.fromisoformat(information_date.strip())
    except ValueError:
        raise ConfigError(
            f'--information-date: "{information_date.strip()}" is no day', hint="Write a day such as 2015-02-14."
        ) from None
    return chosen_baselines(arms, imported=ImportedPredictions(imported, day))


def _tell(bench: Bench, runs: Sequence[BaselineRun], document: dict[str, Any], *, as_json: bool) -> None:
    for run in runs:
        for said in run.notes:
            note(f"{run.arm}: {said}")
    rows = tuple(
        (
            run.arm,
            f"{run.answered:,} of {run.subjects:,}" if run.subjects else "–",
            f"{run.information_date}",
            run.run_id,
        )
        for run in runs
    )
    later = bench.manifest.later_snapshots()
    lines = [f"{counted(len(runs), 'baseline')} with models and cards in results/baselines, 0 calls"]
    if later:
        lines.append(f"one snapshot later than the sales: {', '.join(later)}")
    document = {
        **document,
        "as_of": bench.matrix.as_of,
        "calls": 0,
        "runs": [
            {
                "run_id": run.run_id,
                "arm": run.arm,
                "folder": str(run.folder),
                "information_date": run.information_date.isoformat(),
                "subjects": run.subjects,
                "answered": run.answered,
                "notes": list(run.notes),
            }
            for run in runs
        ],
        "later_snapshots": list(later),
    }
    show(document, Grid(("arm", "predicted", "knows until", "run"), rows, words=4), *lines, as_json=as_json)
