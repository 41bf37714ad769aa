"""``consilience fit-weights``: from finished validation runs to weights that are applied unchanged afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from consilience.cli.console import Grid, counted, number, show
from consilience.cli.place import Json, place_of, titled
from consilience.cli.truths import numbers_of
from consilience.errors import ConfigError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.experiments.weights import PanelWeights

EXAMPLE = "Example: consilience fit-weights _F_independent-validation-0123456789"


def fit_weights(
    context: typer.Context,
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Finished runs on the validation split.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to freeze them; by default results/aggregation_weights.json.")
    ] = None,
    questions: Annotated[Path | None, typer.Option(help="JSONL file that holds the truths of question sets.")] = None,
    recalibration: Annotated[
        str | None, typer.Option(help="Also fit a map for probabilities: platt, isotonic or beta.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit the weights of the fitted rules on validation runs and freeze them, with 0 calls."""
    import anyio  # noqa: PLC0415 - heavy

    import consilience  # noqa: PLC0415 - reads the installed distribution
    from consilience.aggregation.recalibration import Method  # noqa: PLC0415 - heavy
    from consilience.experiments.artefact import write_artefact  # noqa: PLC0415 - heavy
    from consilience.experiments.fitting import fit_weights as fitted  # noqa: PLC0415 - heavy
    from consilience.experiments.weights import FILE  # noqa: PLC0415 - the same

    method: Any = recalibration
    if method not in {None, *get_args(Method)}:
        raise ConfigError(f'--recalibration: unknown "{method}"', hint=nearest(method, get_args(Method)))
    place = place_of(context)
    folders = [place.recorded_run(run) for run in dict.fromkeys(runs)]
    truths = numbers_of(place, questions, _asked(folders))
    version = consilience.__version__
    weights = anyio.run(partial(fitted, folders, truths=truths, package_version=version, recalibration=method))
    path = out or place.root / "results" / FILE
    write_artefact(weights, path)
    rows = [row for panel in weights.panels for row in _rows(panel)]
    show(
        {**weights.model_dump(mode="json"), "file": str(path), "calls": 0},
        Grid(
            ("arm", "role", "answers", "variance", "t scale", "stacking", "stacking_nnls"),
            tuple(rows),
            words=2,
        ),
        *(line for panel in weights.panels for line in _remarks(panel)),
        f"fitted on {', '.join(titled(folder) for folder in folders)}, 0 calls",
        f"weights {weights.sha256[:12]} in {path}; they are applied to other splits only",
        as_json=as_json,
    )


def _asked(folders: Sequence[Path]) -> set[str]:
    from consilience.experiments.protocol import read_frozen  # noqa: PLC0415 - heavy

    return {item for folder in folders for item in read_frozen(folder).plan.items}


def _rows(panel: PanelWeights) -> list[tuple[str, ...]]:
    shares = {} if panel.probabilities is None else panel.probabilities.stacking or {}
    found: list[tuple[str, ...]] = []
    for role in panel.roles:
        one = None if panel.numbers is None else panel.numbers.roles.get(role)
        cells = (
            ("–", "–", "–", number(shares.get(role)), "–")
            if one is None
            else (str(one.rows), *map(number, (one.variance, one.scale, one.stacking, one.stacking_nnls)))
        )
        found.append((panel.arm, role, *cells))
    return found


def _remarks(panel: PanelWeights) -> list[str]:
    numbers, probabilities = panel.numbers, panel.probabilities
    if numbers is not None:
        items, complete, flags = numbers.items, numbers.complete_rows, numbers.flags
        lines = [
            f"{rule} errs with variance {number(value)} in sample" for rule, value in numbers.error_variance.items()
        ]
        if numbers.nnls_sum is not None:
            lines.append(f"stacking_nnls weights had the sum {numbers.nnls_sum:.4f} before they were divided")
    elif probabilities is not None:
        items, complete, flags = probabilities.n_items, probabilities.complete_rows, probabilities.flags
        lines = [f"correlation of errors {number(probabilities.rho)}, base rate {number(probabilities.base_rate)}"]
        if probabilities.recalibration is not None:
            lines.append(f"recalibration {probabilities.recalibration.version} of {probabilities.recalibration.pool}")
    else:
        return []
    told = [f"stacks rest on {counted(complete, 'item')} of {items:,} that every role answered", *lines]
    return [f"{panel.arm}: {line}" for line in (*told, *(flag.replace("_", " ") for flag in flags))]
