"""``consilience trace show|import``: everything behind one forecast, of ours or of the founding notebooks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import Grid, show
from consilience.cli.place import Json, place_of
from consilience.errors import DataError, reason

if TYPE_CHECKING:
    from consilience.forecasting.founding import Imported

SHOW_EXAMPLE = "Example: consilience trace show results/runs/_F_independent-items-0123456789/traces/alder-01.json"
IMPORT_EXAMPLE = "Example: consilience trace import founding.json"
EXPORT_EXAMPLE = "Example: consilience trace export TRACE --output metaculus.json --question 38880"
SUBMIT_EXAMPLE = "Example: consilience trace submit TRACE"
LONGEST_FILE = 200 * 1024**2

TraceFile = Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file.")]

Number = Annotated[int | None, typer.Option(min=1, help="The number of the question at Metaculus.")]

app = typer.Typer(no_args_is_help=True)


@app.command("show", epilog=SHOW_EXAMPLE)
def trace_show(file: TraceFile, as_json: Json = False) -> None:
    """Print a trace step by step: queries, documents with date and address, the forecast with its whole rationale."""
    from consilience.forecasting.timeline import lines, timeline  # noqa: PLC0415 - heavy
    from consilience.forecasting.traces import read_trace  # noqa: PLC0415 - the same

    shown = timeline(read_trace(file))
    show(shown.model_dump(mode="json"), *lines(shown), as_json=as_json)


@app.command("import", epilog=IMPORT_EXAMPLE)
def trace_import(file: TraceFile, as_json: Json = False) -> None:
    """Read a founding notebook's trace: what it knows, what of it is computed anew, and what it cannot prove."""
    from consilience.forecasting.founding import import_founding  # noqa: PLC0415 - heavy
    from consilience.forecasting.timeline import founding_timeline, lines  # noqa: PLC0415 - the same

    try:
        size = file.stat().st_size
        if size > LONGEST_FILE:
            raise DataError(f"{file} has {size:,} bytes", hint=f"At most {LONGEST_FILE:,} are read.")
        content = file.read_bytes()
    except OSError as error:
        raise DataError(
            f"{file} cannot be read: {reason(error)}", hint="Check the path and its permissions."
        ) from error
    read = import_founding(content)
    rows = tuple(
        (
            agent.agent_id,
            agent.status,
            "–" if agent.p_yes is None else f"{agent.p_yes:.4f}",
            "–" if agent.reason is None else agent.reason,
        )
        for agent in read.agents
    )
    show(
        read.model_dump(mode="json"),
        *lines(founding_timeline(read)),
        "",
        Grid(("agent", "status", "probability", "why"), rows, words=2),
        *_beside(read),
        as_json=as_json,
    )


@app.command("export", epilog=EXPORT_EXAMPLE)
def trace_export(
    file: TraceFile,
    output: Annotated[Path, typer.Option(help="The file to write.")],
    question: Number = None,
    as_json: Json = False,
) -> None:
    """Write a trace's forecast as Metaculus takes it, checked by its rules; nothing is sent."""
    from consilience.forecasting.export import write_export  # noqa: PLC0415 - heavy
    from consilience.forecasting.submission import submission_of  # noqa: PLC0415 - the same
    from consilience.forecasting.traces import read_trace  # noqa: PLC0415 - the same

    if output.exists():
        raise DataError(f"{output} is there already", hint="Write elsewhere; an export is not written over.")
    made = submission_of(read_trace(file), number=question)
    sha256 = write_export([made], output)
    adjusted = [] if made.cdf is None else [one.model_dump(mode="json") for one in made.cdf.adjustments]
    record = {"output": str(output), "sha256": sha256, "question": made.question, "adjustments": adjusted}
    told = [f"adjusted for the server: {one['rule']}" for one in adjusted]
    show(record, f"question {made.question}: written to {output}", *told, as_json=as_json)


@app.command("submit", epilog=SUBMIT_EXAMPLE)
def trace_submit(
    context: typer.Context,
    file: TraceFile,
    question: Number = None,
    base_url: Annotated[str | None, typer.Option(help="Another server of the same interface.")] = None,
    as_json: Json = False,
) -> None:
    """Send a trace's forecast to Metaculus, in the name of the account whose key is in METACULUS_TOKEN."""
    from consilience.experiments.settings import keys_and_urls  # noqa: PLC0415 - heavy
    from consilience.forecasting.feeds.metaculus import (  # noqa: PLC0415 - the same
        BASE_URL,
        KEY_VARIABLE,
        MetaculusClient,
        MetaculusForecast,
        submit_forecasts,
    )
    from consilience.forecasting.submission import submission_of  # noqa: PLC0415 - the same
    from consilience.forecasting.traces import read_trace  # noqa: PLC0415 - the same
    from consilience.models.prices import SIMULATED_PREFIX  # noqa: PLC0415 - the same

    trace = read_trace(file)
    if str(trace.settings.get("models", "")).find(SIMULATED_PREFIX) >= 0:
        raise DataError(
            "the forecast is simulated, and no real model spoke", hint="Only a forecast made --live is sent."
        )
    made = submission_of(trace, number=question)
    problems = made.problems()
    if problems:
        raise DataError(
            f"the forecast breaks a rule of the server: {'; '.join(problem.message for problem in problems)}",
            hint="See trace export; a probability is never moved into range for you.",
        )
    environ = keys_and_urls(place_of(context).root, os.environ)
    client = MetaculusClient(environ.get(KEY_VARIABLE, ""), base_url=base_url or BASE_URL)
    said = {name: value for name, value in made.payload().items() if name != "source"}
    submit_forecasts(client, [MetaculusForecast.model_validate(said, strict=False)])
    show({"question": made.question, "submitted": True}, f"question {made.question}: submitted", as_json=as_json)


def _beside(read: Imported) -> list[str | Grid]:
    """Return founding values with ours beside them, and what was recorded."""
    told: list[str | Grid] = []
    found = read.aggregate
    if found is not None:
        told.append(
            f"aggregate ({found.method}): founding {_number(found.founding)}, replayed {_number(found.replayed)}"
        )
        told.append(Grid(("our rule", "value"), tuple((rule, f"{p:.4f}") for rule, p in found.rules.items())))
    replayed = ", ".join(f"{rule} {p:.4f}" for rule, p in read.final.replayed.items())
    told.append(f"final: founding {_number(read.final.founding)}; the presets on its stages: {replayed or 'none'}")
    told.append(f"{read.calls} calls, {read.results} results, {read.supervisor_results} of the supervisor")
    return told


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"
