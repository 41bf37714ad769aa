"""``consilience forecast``: one question, researched as of its cutoff, and what it came to."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli import researching
from consilience.cli.console import Grid, counted, note, show
from consilience.cli.forecast_files import ADVICE, SIMULATED, asked_of, show_forecasts, withheld
from consilience.cli.lost import lost_of
from consilience.cli.place import Json, Place, place_of

if TYPE_CHECKING:
    from consilience.forecasting.traces import AgentTrace, RunTrace

EXAMPLE = 'Example: consilience forecast "Will the bridge open by 2031-06-30?" --cutoff 2031-05-01 --corpus news.jsonl'
_HELD = ("coverage", "freshness", "consistency", "support")


def forecast(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question, in quotes; or else --questions.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="A file of questions of any kind, resolved or open, instead of QUESTION.")
    ] = None,
    feed: Annotated[
        str | None, typer.Option(help="Format of --questions: files (default), forecastbench, polymarket, manifold …")
    ] = None,
    kind: Annotated[str, typer.Option(help="binary, multiple_choice or numeric.")] = "binary",
    option: Annotated[
        list[str] | None, typer.Option(help="One option of a multiple-choice question; repeat it.")
    ] = None,
    criteria: Annotated[str, typer.Option(help="How it is resolved.")] = "",
    description: Annotated[str, typer.Option(help="Background.")] = "",
    cutoff: Annotated[
        str | None, typer.Option(help="First inadmissible instant; a date is 00:00 UTC. Without it: an open question.")
    ] = None,
    resolution_date: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="The day it is resolved.")
    ] = None,
    lower: Annotated[float | None, typer.Option(help="Numeric: smallest possible value.")] = None,
    upper: Annotated[float | None, typer.Option(help="Numeric: largest possible value.")] = None,
    unit: Annotated[str | None, typer.Option(help="Numeric: what the number counts.")] = None,
    market_price: Annotated[
        float | None, typer.Option(min=0, max=1, help="The market's price of yes; shown to agents with --show-market.")
    ] = None,
    corpus: researching.Corpus = None,
    search: researching.Search = None,
    mcp_server: researching.McpServer = None,
    arm: researching.Arm = "F_independent",
    panel: researching.Panel = None,
    final: researching.Final_ = "panel_only",
    calibration: researching.Recalibrated = None,
    model: Annotated[str | None, typer.Option(help="One model for all seats, instead of a committee.")] = None,
    tier: Annotated[str | None, typer.Option(help="Price tier of the models: mid (default) or small.")] = None,
    max_spend_usd: Annotated[str | None, typer.Option(help="Spend cap in dollars; 0 means zero.")] = None,
    max_steps: researching.Steps = 5,
    max_search_results: researching.Results = 5,
    undated: researching.Undated = "reject",
    on_injection: researching.Injection = "drop",
    gates: researching.Gates = "report",
    show_market: researching.Market = False,
    block: researching.Block = None,
    only: researching.Only = None,
    seed: Annotated[int | None, typer.Option(help="Shuffling, assignment, simulated answers (default 0).")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Let real models speak; needs their keys. Otherwise all is simulated.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask turns again that have no answer.")] = False,
    as_json: Json = False,
) -> None:
    """Forecast one question or a file of them: agents search what was knowable before the cutoff; all is recorded.

    Exit codes: 4 where the spend cap ended it, 5 where too few agents forecast.
    """
    from consilience.api.forecasting import (  # noqa: PLC0415 - heavy
        Asking,
        forecast_document,
        question_of,
        unforeseen,
    )
    from consilience.api.sources import Sources, research_of  # noqa: PLC0415 - the same
    from consilience.forecasting.traces import read_trace  # noqa: PLC0415 - the same

    place = place_of(context)
    of_the_question = (option, criteria, description, cutoff, resolution_date, lower, upper, unit, market_price)
    asked = asked_of(
        question, questions, feed, also=kind != "binary" or any(one not in (None, "") for one in of_the_question)
    ) or [
        question_of(
            question or "",
            kind=kind,
            options=option or [],
            criteria=criteria,
            description=description,
            cutoff=cutoff,
            resolution_date=resolution_date,
            bounds=(lower, upper),
            unit=unit,
            market_price=market_price,
        )
    ]
    done = researching.forecasted(
        place,
        asked,
        Asking(
            arm=arm,
            panel=panel,
            model=model,
            tier=tier,
            max_spend_usd=max_spend_usd,
            seed=seed,
            live=live,
            concurrency=None,
            retry_failed=retry_failed,
            final=final,
            single=True,
            calibration=calibration,
        ),
        Sources(search, corpus, mcp_server),
        research_of(
            steps=max_steps,
            results=max_search_results,
            undated=undated,
            injection=on_injection,
            gates=gates,
            show_market=show_market,
            block=block,
            only=only,
        ),
    )
    if questions is not None:
        show_forecasts(place, done, as_json=as_json)
        return
    trace = read_trace(done.traces[0])
    simulated = done.job.plan.simulated
    lost = lost_of(done.report)
    for warning in done.job.plan.warnings():
        note(f"panel: {warning}")
    show(
        {**forecast_document(done, trace), "lost": asdict(lost)},
        *told(trace, simulated=simulated),
        *withheld(str((done.job.plan.answering or {})["search"])),
        f"{counted(done.report.calls, 'call')}; ${done.report.manifest['spent_usd']:.4f} at list price{lost.told}",
        *_where(place, done.report.run_id, done.traces[0]),
        as_json=as_json,
    )
    error = unforeseen(trace)
    if error is not None:
        raise error


def told(trace: RunTrace, *, simulated: bool) -> list[str | Grid]:
    """Return a forecast as texts and tables; whoever prints them strips terminal escapes."""
    from consilience.api.forecasting import headline  # noqa: PLC0415 - heavy

    parts: list[str | Grid] = [SIMULATED] if simulated else []
    parts.append(headline(trace.final, trace.question))
    rows = tuple(_agent(agent) for agent in trace.agents)
    parts.append(
        Grid(("seat", "framing", "status", "forecast", "kept", "before", "undated", "after", "gates"), rows, words=4)
    )
    parts += [
        f"{stage.name}: {stage.status.replace('_', ' ')}{_stage(stage.record)}"
        for stage in trace.stages
        if stage.name in {"debate", "judge", "supervisor"}
    ]
    parts += [
        f"health of the panel: {found['status']}; {found['message']}".replace("not_answerable", "not answerable")
        for stage in trace.stages
        if stage.name == "panel" and isinstance(found := stage.record.get("health"), dict)
    ]
    return [*parts, ADVICE]


def _agent(agent: AgentTrace) -> tuple[str, ...]:
    answer: Any = agent.answer
    p = getattr(answer, "p_yes", None)
    said = (
        f"{p:.3f}"
        if p is not None
        else f"{answer.q50:,.6g}"
        if hasattr(answer, "q50")
        else "–"
        if answer is None
        else "given"
    )
    gates = [gate.name for gate in agent.gates if gate.status == "fail"]
    status = agent.status if agent.answer is not None else f"{agent.status}: {agent.reason}"
    counts = agent.counts
    return (
        agent.agent_id,
        agent.framing or "",
        status,
        said,
        str(len(agent.documents)),
        str(counts.before),
        str(counts.undated),
        str(counts.after),
        f"failed: {', '.join(dict.fromkeys(gates))}" if gates else "passed" if agent.gates else "–",
    )


def _stage(record: Any) -> str:
    if "opening_gap" in record:
        opening, closing = record["opening_gap"], record["closing_gap"]
        return "" if opening is None else f", gap of log-odds {opening:.2f} to {closing:.2f}"
    said = record.get("outcome", {}).get("said", {})
    p = said.get("p_yes")
    return "" if p is None else f", {p:.3f}"


def _where(place: Place, run_id: str, trace: Path) -> list[str]:
    at = "" if place.root == Path() else f" --project {place.root}"
    return [
        f"run {run_id}",
        f"  everything behind it      consilience{at} trace show {trace}",
        f"  the record, checked       consilience{at} verify {run_id}",
        f"  the same without a call   consilience{at} replay {run_id}",
    ]
