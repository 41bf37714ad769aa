"""What the forecasting verbs share: the options of research, and the run of questions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.place import Place
from consilience.errors import BudgetError

if TYPE_CHECKING:
    from consilience.api.forecasting import Asking, Forecasted
    from consilience.api.sources import Sources
    from consilience.forecasting.pipeline import Research
    from consilience.forecasting.questions import ForecastQuestion

Corpus = Annotated[
    Path | None, typer.Option(help="Dated documents to search: a JSONL or Parquet file, or a folder of Markdown.")
]
Search = Annotated[
    str | None,
    typer.Option(help="corpus (the default with --corpus), tavily, mcp, none (closed book), simulated."),
]
McpServer = Annotated[str | None, typer.Option(help="Address or command of an MCP search server.")]
Arm = Annotated[
    str,
    typer.Option(
        help="F_independent (a panel), E_single (one agent), G_debate, staged (panel, debate, supervisor), "
        "control_no_search, or another arm."
    ),
]
Panel = Annotated[str | None, typer.Option(help="Another panel of the application, or a YAML file of your own.")]
Steps = Annotated[int, typer.Option(min=1, max=20, help="Steps of an agent, the forecast included.")]
Results = Annotated[int, typer.Option(min=1, max=20, help="Documents kept of one search.")]
Undated = Annotated[str, typer.Option(help="Documents without a date under a cutoff: reject, or flag (keep, warn).")]
Injection = Annotated[str, typer.Option(help="Documents that speak to the model: drop, or keep; both are recorded.")]
Gates = Annotated[str, typer.Option(help="Failed gates: report, or enforce (gather more once, then abstain).")]
Market = Annotated[bool, typer.Option("--show-market", help="Show agents the market's price, as a labelled input.")]
Block = Annotated[list[str] | None, typer.Option(help="A host that is no source; repeat it.")]
Only = Annotated[list[str] | None, typer.Option(help="Search these hosts alone; repeat it.")]
Recalibrated = Annotated[
    Path | None,
    typer.Option("--calibration", help="File of consilience calibrate; the forecast is recalibrated by it."),
]
Final_ = Annotated[str, typer.Option("--final", help="What makes the forecast: panel_only, blend, strict.")]


def forecasted(
    place: Place, questions: Sequence[ForecastQuestion], asking: Asking, sources: Sources, research: Research
) -> Forecasted:
    """Run or resume the forecasts of some questions, and write their traces.

    Raises:
        BudgetError: The spend cap ended it.
        StoppedError: The user did.
    """
    from consilience.api.forecasting import prepared_forecasts, written_forecasts  # noqa: PLC0415 - heavy
    from consilience.cli.console import note  # noqa: PLC0415 - beside its use
    from consilience.cli.running import carry_out  # noqa: PLC0415 - heavy

    prepared = prepared_forecasts(place.root, os.environ, questions, asking, sources, research)
    report = carry_out(prepared.job, prepared.orders)
    if report.stopped_by is not None:
        if not isinstance(report.stopped_by, BudgetError):  # the same command would meet the same cap
            note(f"to go on: {place.command}")
        raise report.stopped_by
    return written_forecasts(prepared, report)
