"""``consilience trace show|import``: everything behind one forecast, of ours or of the founding notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import Grid, show
from consilience.cli.place import Json
from consilience.errors import DataError, reason

if TYPE_CHECKING:
    from consilience.forecasting.founding import Imported

SHOW_EXAMPLE = "Example: consilience trace show results/runs/_F_independent-items-0123456789/traces/alder-01.json"
IMPORT_EXAMPLE = "Example: consilience trace import founding.json"
LONGEST_FILE = 200 * 1024**2

TraceFile = Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file.")]

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
