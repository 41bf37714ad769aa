"""``consilience power``: the least difference a study can see, before it is run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import Grid, counted, note, number, show
from consilience.cli.place import Json, Place, place_of, titled
from consilience.cli.truths import truths_of
from consilience.errors import ConfigError

if TYPE_CHECKING:
    from consilience.experiments.planning import Pilot, Sight

LEAST_SD, MOST_SD = 1e-100, 1e100
"""Beyond these a square is no number any more."""
EXAMPLE = "Example: consilience power --n 1140 --clusters 52 --sd 0.12 --rho 0.05"


def power(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Finished validation runs of two arms, and repetitions of them."),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", min=2, help="Items of the study to come.")] = None,
    clusters: Annotated[
        int | None, typer.Option(min=2, help="Its clusters; by default as many per item as in the runs, or one each.")
    ] = None,
    sd: Annotated[
        float | None, typer.Option(help="Standard deviation over items of the difference in loss; without runs.")
    ] = None,
    rho: Annotated[float, typer.Option(help="Correlation of differences in one cluster; without runs.")] = 0.0,
    run_sd: Annotated[
        float, typer.Option(help="Standard deviation of an arm's loss from run to run; without runs.")
    ] = 0.0,
    replicates: Annotated[int, typer.Option(min=1, help="Runs of each arm that are averaged.")] = 1,
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    wanted: Annotated[float, typer.Option("--power", help="Probability of seeing the difference.")] = 0.8,
    effect: Annotated[float | None, typer.Option(help="A difference of which the power is wanted, too.")] = None,
    questions: Annotated[Path | None, typer.Option(help="JSONL file that holds the truths of question sets.")] = None,
    as_json: Json = False,
) -> None:
    """Tell the minimum detectable effect of a study before it is run, from numbers or from validation runs.

    Of a finished study it tells nothing: read its intervals instead.
    """
    from consilience.experiments.planning import foreseen  # noqa: PLC0415 - heavy

    place = place_of(context)
    if runs:
        if sd is not None or rho or run_sd:
            raise ConfigError("runs tell --sd, --rho and --run-sd themselves", hint="Give either runs or numbers.")
        made = _pilot(place, runs, questions)
        per_cluster = len(made.clusters) / made.n_clusters
        if n is None and clusters is None:
            raise ConfigError("how large will the study be?", hint="Give --n, --clusters or both.")
        if n is not None and clusters is not None and not math.isclose(n / clusters, per_cluster, rel_tol=0.05):
            note(f"note: the runs have {per_cluster:.3g} items per cluster; the study is taken to be like them")
        groups = clusters if clusters is not None else max(round((n or 0) / per_cluster), 2)
        items = round(groups * per_cluster)
        sights: Sequence[Sight] = foreseen(
            made, n_clusters=groups, runs=replicates, alpha=alpha, power=wanted, effect=effect
        )
        source = f"from {made.arms[0]} and {made.arms[1]} on {counted(len(made.clusters), 'item')}"
        source += (
            f" in {counted(made.n_clusters, 'cluster')}: {', '.join(titled(place.run_folder(run)) for run in runs)}"
        )
    else:
        if n is None or sd is None:
            raise ConfigError("nothing to plan from", hint="Give --n and --sd, or two finished validation runs.")
        items, groups = n, n if clusters is None else clusters
        sights = [_told(items, groups, sd, rho, run_sd, replicates, alpha, wanted, effect)]
        source = f"from a standard deviation of {number(sd)} over items"
    _show(sights, source, items, groups, alpha=alpha, wanted=wanted, effect=effect, as_json=as_json)


def _told(  # noqa: PLR0913, PLR0917 - the numbers that take the place of runs
    items: int,
    groups: int,
    sd: float,
    rho: float,
    run_sd: float,
    replicates: int,
    alpha: float,
    wanted: float,
    effect: float | None,
) -> Sight:
    from consilience.experiments.planning import sight  # noqa: PLC0415 - heavy
    from consilience.inference.power import design_effect, difference_sd  # noqa: PLC0415 - the same

    if groups > items:
        raise ConfigError(f"{groups} clusters of {items} items", hint="Give at most as many clusters as items.")
    _check_numbers(items / groups, sd=sd, rho=rho, run_sd=run_sd)
    lasting = sd**2 - 2 * run_sd**2
    if lasting < 0:
        raise ConfigError(
            f"--sd {sd} of a difference is less than what two runs of --run-sd {run_sd} make",
            hint="--sd is of one run against one run, so it holds their variation.",
        )
    averaged = difference_sd(
        lasting=math.sqrt(lasting), run_a=run_sd, run_b=run_sd, runs_a=replicates, runs_b=replicates
    )
    inflation = design_effect(mean_size=items / groups, rho=rho)
    se = averaged * math.sqrt(inflation / items)
    return sight(measure="mean loss", se=se, n_clusters=groups, alpha=alpha, power=wanted, effect=effect)


def _check_numbers(per_cluster: float, *, sd: float, rho: float, run_sd: float) -> None:
    """Raise where a number is none that differences could have.

    Raises:
        ConfigError: It is named.
    """
    if not LEAST_SD <= sd <= MOST_SD:
        raise ConfigError(
            f"--sd {sd:g} is no standard deviation of differences to plan with",
            hint="Give a finite number above 0, in the unit of the loss, such as 0.12 for errors in shares.",
        )
    if not (run_sd == 0 or LEAST_SD <= run_sd <= MOST_SD):
        raise ConfigError(
            f"--run-sd {run_sd:g} is no standard deviation from run to run",
            hint="Give 0 where runs do not vary, else a finite number above 0.",
        )
    if per_cluster == 1 and rho:
        raise ConfigError(
            f"--rho {rho:g} correlates items of one cluster, and every item is its own cluster",
            hint="Give --clusters, fewer than --n, or leave --rho out.",
        )
    least = -1.0 if per_cluster == 1 else -1 / (per_cluster - 1)
    if not max(least, -1.0) < rho <= 1:
        raise ConfigError(
            f"--rho {rho:g} is no correlation that {per_cluster:.3g} items of a cluster can all have with each other",
            hint=f"It lies above {max(least, -1.0):.3g} and at most at 1.",
        )


def _show(
    sights: Sequence[Sight],
    source: str,
    items: int,
    groups: int,
    *,
    alpha: float,
    wanted: float,
    effect: float | None,
    as_json: bool,
) -> None:
    document = {
        "n": items,
        "clusters": groups,
        "alpha": alpha,
        "power": wanted,
        "effect": effect,
        "measures": [vars(one) for one in sights],
        "source": source,
    }
    headings = ["difference in", "standard error", "least difference seen"]
    rows = [[one.measure, number(one.se), number(one.least)] for one in sights]
    if effect is not None:
        headings.append(f"power at {number(effect)}")
        rows = [[*row, "–" if one.power is None else f"{one.power:.1%}"] for row, one in zip(rows, sights, strict=True)]
    about = f"{counted(items, 'item')} in {counted(groups, 'cluster')}, {source}"
    seen = f"seen with probability {wanted:.0%} by a two-sided test at {alpha:.0%}, t({groups - 1})"
    if groups < 20:
        note(f"note: only {groups} clusters: tests will be approximate")
    show(document, Grid(tuple(headings), tuple(map(tuple, rows))), about, seen, as_json=as_json)


def _pilot(place: Place, runs: Sequence[str], questions: Path | None) -> Pilot:
    import polars as pl  # noqa: PLC0415 - heavy

    from consilience.experiments.evaluable import with_truth  # noqa: PLC0415 - the same
    from consilience.experiments.planning import pilot  # noqa: PLC0415 - the same
    from consilience.experiments.predictions import read_predictions  # noqa: PLC0415 - the same

    folders = [place.recorded_run(run) for run in dict.fromkeys(runs)]
    frames = [read_predictions(folder / "predictions.parquet") for folder in folders]
    predictions = pl.concat(frames, how="diagonal")
    truth, _, _ = truths_of(place, questions, set(predictions["item_id"]))
    return pilot(with_truth(predictions, truth.drop_nulls("truth")))
