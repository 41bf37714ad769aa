"""The verbs, the options before them, and the one place where a command ends."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from consilience.cli import (
    asking,
    assistants,
    backtesting,
    baselines,
    calibrating,
    data,
    deciding,
    decisions,
    demo,
    evaluating,
    exports,
    fitting,
    forecasting,
    freezing,
    grids,
    power,
    ratios,
    rosters,
    run_arm,
    runs,
    scoring,
    tracing,
    vendors,
    viewing,
)
from consilience.cli.console import note, outspoken
from consilience.cli.failures import report
from consilience.cli.place import Place
from consilience.cli.watch import INTERRUPTED

app = typer.Typer(
    name="consilience",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: consilience demo",
)
app.command("demo", epilog="Example: consilience demo")(demo.demo)
app.command("ask", epilog=asking.EXAMPLE)(asking.ask)
app.add_typer(data.app, name="data", help="Build a table of sales, split it, draw from it, or make up a town.")
app.add_typer(baselines.app, name="baselines", help="Statistical models over the table, which a panel has to beat.")
app.command("export-avm", epilog=exports.EXAMPLE)(exports.export_avm)
app.command("roles", epilog=rosters.EXAMPLE)(rosters.roles)
app.command("run-arm", epilog=run_arm.EXAMPLE)(run_arm.run_arm)
app.command("grid", epilog=grids.EXAMPLE)(grids.grid)
app.command("freeze", epilog=freezing.EXAMPLE)(freezing.freeze)
app.command("evaluate", epilog="Example: consilience evaluate --include-simulated")(evaluating.evaluate)
app.command("calibrate", epilog=calibrating.EXAMPLE)(calibrating.calibrate)
app.command("power", epilog=power.EXAMPLE)(power.power)
app.command("report", epilog="Example: consilience report --include-simulated --output results/report.html")(
    evaluating.report
)
app.command("score", epilog=scoring.EXAMPLE)(scoring.score)
app.command("ratios", epilog=ratios.EXAMPLE)(ratios.ratios)
app.command("forecast", epilog=forecasting.EXAMPLE)(forecasting.forecast)
app.command("decide", epilog=deciding.EXAMPLE)(deciding.decide)
app.add_typer(decisions.app, name="decisions", help="What was decided, what became of it, and who was right.")
app.command("backtest", epilog=backtesting.EXAMPLE)(backtesting.backtest)
app.add_typer(tracing.app, name="trace", help="Everything behind one forecast: show a trace, import a founding one.")
app.command("replay", epilog="Example: consilience replay _E_single-validation-0123456789")(runs.replay)
app.command("recompute", epilog="Example: consilience recompute _F_independent-test-0123456789 --aggregation mean")(
    runs.recompute
)
app.command("fit-weights", epilog=fitting.EXAMPLE)(fitting.fit_weights)
app.command("verify", epilog="Example: consilience verify _E_single-validation-0123456789")(runs.verify)
app.command("ledger", epilog="Example: consilience ledger _G_debate_r2-test-0123456789 --by role --export ledger.csv")(
    runs.ledger
)
app.command("mcp", epilog=assistants.EXAMPLE)(assistants.mcp)
app.command("providers-check", epilog="Example: consilience providers-check")(vendors.providers_check)
app.command("view", epilog=viewing.EXAMPLE)(viewing.view)
app.command("fake-server", epilog="Example: consilience fake-server --port 8765")(vendors.fake_server)
app.add_typer(vendors.models, name="models", help="Models that run on this machine.")
app.command("runs", epilog="Example: consilience runs --json")(runs.runs)


def _version(asked: bool) -> None:
    if asked:
        import consilience  # noqa: PLC0415 - reads the installed distribution

        sys.stdout.write(f"consilience {consilience.__version__}\n")
        raise typer.Exit


@app.callback()
def _begin(
    context: typer.Context,
    project: Annotated[
        Path, typer.Option(file_okay=False, exists=True, help="The project folder, in front of the verb or behind it.")
    ] = Path(),
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,  # noqa: ARG001 - read in `main`
    version: Annotated[  # noqa: ARG001 - handled when it is read
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Panels of language-model agents that keep everything needed to trust them, or not to."""
    context.obj = Place(project, tuple(context.obj or ()))


def hoisted(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with those that belong before the verb moved there, so that they may stand anywhere.

    Example:
        >>> hoisted(["verify", "RUN", "--project", "study", "--debug"])
        ['--project', 'study', '--debug', 'verify', 'RUN']
    """
    front: list[str] = []
    rest: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            rest += [argument, *left]
        elif argument == "--debug" or argument.startswith("--project="):
            front.append(argument)
        elif argument == "--project":
            front += [argument, *(value for value in [next(left, None)] if value is not None)]
        else:
            rest.append(argument)
    return front + rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 ok, 1 error, 2 usage, 3 a human, 4 budget, 5 quorum, 6 integrity.

    Args:
        arguments: What is typed after ``consilience``; None takes those of this process.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    outspoken(sys.stdout, sys.stderr)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
        try:
            code = app(args=hoisted(typed), prog_name="consilience", standalone_mode=False, obj=typed)
            sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place where every error ends
            return report(error, debug="--debug" in typed)
    if code == INTERRUPTED:
        return report(KeyboardInterrupt(), debug=False)
    return code if isinstance(code, int) else 0
