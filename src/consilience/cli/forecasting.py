"""``consilience forecast``: one question, researched as of its cutoff, and what it came to."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli import researching
from consilience.cli.console import Grid, counted, note, show
from consilience.cli.place import Json, Place, place_of
from consilience.errors import ConfigError, QuorumError, reason
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.forecasting.questions import ForecastQuestion
    from consilience.forecasting.traces import AgentTrace, FinalForecast, RunTrace

EXAMPLE = 'Example: consilience forecast "Will the bridge open by 2031-06-30?" --cutoff 2031-05-01 --corpus news.jsonl'
KINDS = ("binary", "multiple_choice", "numeric")
SIMULATED = "simulated: no real model spoke, so the forecast says nothing about the world"
ADVICE = "A forecast is no professional, legal or investment advice."
_HELD = ("coverage", "freshness", "consistency", "support")


def forecast(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in quotes.")],
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
    """Forecast one question: agents search what was knowable before the cutoff, and each stage is recorded.

    Exit codes: 4 where the spend cap ended it, 5 where too few agents forecast.
    """
    from consilience.forecasting.traces import read_trace  # noqa: PLC0415 - heavy

    place = place_of(context)
    asked = _question(
        question,
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
    done = researching.forecasted(
        place,
        [asked],
        researching.Asking(
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
        researching.Sources(search, corpus, mcp_server),
        researching.research_of(
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
    trace = read_trace(done.traces[0])
    simulated = done.job.plan.simulated
    for warning in done.job.plan.warnings():
        note(f"panel: {warning}")
    show(
        {
            "simulated": simulated,
            "run_id": done.report.run_id,
            "trace": str(done.traces[0]),
            "final": None if trace.final is None else trace.final.model_dump(mode="json"),
            "stages": [stage.model_dump(mode="json") for stage in trace.stages],
            "agents": [agent.model_dump(mode="json", exclude={"documents", "tool_log"}) for agent in trace.agents],
            "calls": done.report.calls,
            "spent_usd": done.report.manifest["spent_usd"],
        },
        *told(trace, simulated=simulated),
        f"{counted(done.report.calls, 'call')}; ${done.report.manifest['spent_usd']:.4f} at list price",
        *_where(place, done.report.run_id, done.traces[0]),
        as_json=as_json,
    )
    if trace.final is None or not _has_forecast(trace.final):
        raise QuorumError("too few agents forecast", hint="See the trace; ask again with --retry-failed.")


def _question(  # noqa: PLR0913 - what was typed
    text: str,
    *,
    kind: str,
    options: list[str],
    criteria: str,
    description: str,
    cutoff: str | None,
    resolution_date: datetime | None,
    bounds: tuple[float | None, float | None],
    unit: str | None,
    market_price: float | None,
) -> ForecastQuestion:
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    from consilience.api.running import now  # noqa: PLC0415 - the same
    from consilience.core.question import Option, option_label  # noqa: PLC0415 - the same
    from consilience.forecasting.questions import ForecastQuestion, MarketPrice  # noqa: PLC0415 - the same

    if kind not in KINDS:
        raise ConfigError(f'--kind: unknown "{kind}"', hint=f"{nearest(kind, KINDS)} Others come by backtest.")
    lower, upper = bounds
    try:
        return ForecastQuestion.model_validate(
            {
                "text": text,
                "kind": kind,
                "options": tuple(Option(id=option_label(at), label=label) for at, label in enumerate(options)),
                "description": description,
                "resolution_criteria": criteria,
                "cutoff": cutoff,
                "resolution_date": None if resolution_date is None else resolution_date.date(),
                "lower": lower,
                "upper": upper,
                "unit": unit,
                "market": None
                if market_price is None
                else MarketPrice(price=market_price, source="given by the user", as_of=None if cutoff else now()),
            }
        )
    except ValidationError as error:
        raise ConfigError(
            f"the question does not fit: {reason(error)}", hint="See consilience forecast --help."
        ) from error


def told(trace: RunTrace, *, simulated: bool) -> list[str | Grid]:
    """Return a forecast as texts and tables; whoever prints them strips terminal escapes."""
    parts: list[str | Grid] = [SIMULATED] if simulated else []
    parts.append(headline(trace.final))
    rows = tuple(_agent(agent) for agent in trace.agents)
    parts.append(
        Grid(("seat", "framing", "status", "forecast", "kept", "before", "undated", "after", "gates"), rows, words=4)
    )
    parts += [
        f"{stage.name}: {stage.status.replace('_', ' ')}{_stage(stage.record)}"
        for stage in trace.stages
        if stage.name in {"debate", "judge", "supervisor"}
    ]
    return [*parts, ADVICE]


def headline(final: FinalForecast | None) -> str:
    """Return a forecast in one line.

    Example:
        >>> headline(None)
        'no forecast'
    """
    if final is None or not _has_forecast(final):
        return "no forecast"
    by = f"({final.rule.replace('_', ' ')}{'; ' if final.flags else ''}{', '.join(final.flags)})"
    if final.probability is not None:
        return f"probability of yes: {final.probability:.1%} {by}"
    if final.distribution is not None:
        shares = ", ".join(f"{name} {p:.1%}" for name, p in final.distribution.items())
        return f"probabilities: {shares} {by}"
    q05, _, q50, _, q95 = final.quantiles or (float("nan"),) * 5
    return f"median {q50:,.6g}, 90 % interval {q05:,.6g} to {q95:,.6g} {by}"


def _has_forecast(final: FinalForecast) -> bool:
    return any(part is not None for part in (final.probability, final.distribution, final.quantiles))


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
