"""``consilience view``: the recorded runs as pages in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import note
from consilience.cli.place import Place, place_of
from consilience.errors import ConfigError, DataError

if TYPE_CHECKING:
    from consilience.viewer.study import Compared

EXAMPLE = "Example: consilience view results/demo"
PORT = 8770
TOKEN = "CONSILIENCE_VIEW_TOKEN"  # noqa: S105 - the name of a variable


def view(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="A project folder (default: --project).")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = PORT,
    host: Annotated[
        str, typer.Option(help=f"Address to listen at; other than loopback needs the variable {TOKEN}.")
    ] = "127.0.0.1",
    known_as: Annotated[
        list[str] | None, typer.Option("--known-as", help="A name by which other machines reach it; repeat it.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser.")] = False,
) -> None:
    """Look at runs, items, turns, forecasts and decisions in a browser; nothing can be started or changed there."""
    try:
        from consilience.viewer.guard import Access  # noqa: PLC0415 - an extra
        from consilience.viewer.serve import listen, serve  # noqa: PLC0415 - the same
    except ImportError as error:
        raise ConfigError(
            f"the viewer needs {error.name}", hint='Install it with: pip install "consilience[viewer]".'
        ) from error
    from consilience.api.binding import Binding, token_of  # noqa: PLC0415 - heavy
    from consilience.experiments.settings import keys_and_urls  # noqa: PLC0415 - the same
    from consilience.viewer.study import Study  # noqa: PLC0415 - the same

    place = place_of(context) if folder is None else Place(folder, place_of(context).arguments)
    if not (place.root / "results").is_dir():
        raise DataError(
            f"there are no results in {place.root.resolve()}", hint="Name a project folder; consilience demo makes one."
        )
    study = Study(place.root, partial(truths, place), partial(compare, place))
    binding = Binding(host, port, tuple(known_as or ()))
    token = token_of(binding, keys_and_urls(place.root, os.environ), TOKEN)
    with listen(binding) as listener:
        bound = listener.getsockname()[1]
        address = f"http://{binding.in_address}:{bound}/"
        note(address if token is None else f"{address} (open it with ?token=… once)")
        note("read only; Ctrl-C ends it")
        if not no_open and token is None and sys.stderr.isatty():
            webbrowser.open(address)
        serve(study, listener, Access(frozenset(binding.hosts(bound)), token))


def truths(place: Place, asked: set[str]) -> Mapping[str, float | str]:
    """Return what items turned out to be, as far as the project's tables say; none is no error here."""
    from consilience.cli.gathering import truths_by_item  # noqa: PLC0415 - heavy
    from consilience.cli.truths import truths_of  # noqa: PLC0415 - the same

    try:
        return truths_by_item(truths_of(place, None, asked)[0])
    except DataError:
        return {}


def compare(place: Place, runs: Sequence[str]) -> Compared:
    """Return the comparison of runs as a report shows it.

    Raises:
        ConsilienceError: They cannot be compared; the message says why.
    """
    import anyio  # noqa: PLC0415 - heavy

    from consilience.cli.gathering import SINGLE, evaluated  # noqa: PLC0415 - heavy
    from consilience.experiments.predictions import read_predictions  # noqa: PLC0415 - the same
    from consilience.reports.exhibits import exhibits  # noqa: PLC0415 - the same
    from consilience.reports.scope import Scope, read_asked  # noqa: PLC0415 - the same
    from consilience.viewer.study import Compared  # noqa: PLC0415 - the same

    arms = {str(arm) for run in runs for arm in read_predictions(place.run_folder(run) / "predictions.parquet")["arm"]}
    found = evaluated(place, runs, include_simulated=True, baseline=SINGLE if SINGLE in arms else min(arms))
    scope = Scope(tuple(read_asked(place.run_folder(run_id)) for run_id in found.heads), found.sources)
    made = anyio.run(
        partial(
            exhibits,
            found.evaluation,
            folder_of=place.run_folder,
            predictions=found.predictions,
            truth=found.truth,
            scope=scope,
            labels=found.labels,
        )
    )
    return Compared(made, (*found.evaluation.warnings, *found.said))
