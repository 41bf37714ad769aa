"""``consilience backtest``: resolved questions forecast as of their cutoffs, and what the forecasts were worth."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli import researching
from consilience.cli.console import Grid, counted, note, show
from consilience.cli.forecast_files import ADVICE, SIMULATED, told_of, withheld
from consilience.cli.lost import lost_of
from consilience.cli.place import Json, place_of
from consilience.cli.scoring import entrants_grid, legend, plain, signs
from consilience.errors import ConfigError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.forecasting.backtest import BackTest, Skill, Work

NONE_RESOLVED = "none of these questions is resolved, so nothing is scored; what was forecast:"
EXAMPLE = "Example: consilience backtest --demo"


def backtest(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    demo: Annotated[bool, typer.Option("--demo", help="The synthetic questions and documents of the package.")] = False,
    questions: Annotated[Path | None, typer.Option(help="Resolved questions with cutoffs.")] = None,
    feed: Annotated[
        str, typer.Option(help="Format of the questions: files, forecastbench, polymarket, manifold …")
    ] = "files",
    n: Annotated[int | None, typer.Option(min=1, help="Only the first n questions, in the order of their ids.")] = None,
    corpus: researching.Corpus = None,
    search: researching.Search = None,
    mcp_server: researching.McpServer = None,
    arm: researching.Arm = "F_independent",
    panel: researching.Panel = None,
    final: researching.Final_ = "panel_only",
    calibration: researching.Recalibrated = None,
    split: Annotated[
        str | None, typer.Option(help="The split the questions belong to; validation may be learnt from by calibrate.")
    ] = None,
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
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Ask in spite of: cutoff_after_resolution, outcome_known, outcome_undated; repeat it."),
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Questions in flight.")] = None,
    seed: Annotated[int | None, typer.Option(help="Shuffling, assignment, simulated answers (default 0).")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Let real models speak; needs their keys. Otherwise all is simulated.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask turns again that have no answer.")] = False,
    as_json: Json = False,
) -> None:
    """Forecast resolved questions point in time, and score the panel, its rules and its members.

    Questions without an outcome (not resolved yet, void, resolved to a share) are asked and not scored. Where none has
    one, the forecasts themselves are told.
    """
    from consilience.api.forecasting import Asking  # noqa: PLC0415 - heavy
    from consilience.api.sources import Sources, research_of  # noqa: PLC0415 - the same
    from consilience.experiments.questions import write_items  # noqa: PLC0415 - the same
    from consilience.forecasting import demo as demonstration  # noqa: PLC0415 - the same
    from consilience.forecasting.backtest import judge  # noqa: PLC0415 - the same
    from consilience.forecasting.feeds import FEEDS  # noqa: PLC0415 - the same

    if demo == (questions is not None):
        raise ConfigError("backtest needs --demo or --questions, one of them", hint="Start with: backtest --demo")
    if demo and (corpus is not None or search not in {None, "none"}):
        raise ConfigError("--demo brings its own documents", hint="Leave --corpus and --search out.")
    place = place_of(context)
    with ExitStack() as stack:
        if demo:
            questions = stack.enter_context(demonstration.on_disk(demonstration.QUESTIONS))
            corpus = stack.enter_context(demonstration.on_disk(demonstration.DOCUMENTS))
        if feed not in FEEDS:
            raise ConfigError(f'--feed: unknown "{feed}"', hint=nearest(feed, FEEDS.names()))
        asked = sorted(FEEDS[feed].read(questions or Path()), key=lambda question: question.id)
        done = researching.forecasted(
            place,
            asked if n is None else asked[:n],
            Asking(
                arm=arm,
                panel=panel,
                model=model,
                tier=tier,
                max_spend_usd=max_spend_usd,
                seed=seed,
                live=live,
                concurrency=concurrency,
                retry_failed=retry_failed,
                final=final,
                single=False,
                split=split,
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
                allow=allow or (),
            ),
        )
    found = judge(done.report.predictions, done.job.items, done.questions, done.job.folder / "transcripts")
    plan = done.job.plan
    items = place.root / "results" / "backtests" / f"{done.report.run_id}.jsonl"
    write_items(done.job.items, items)
    for warning in plan.warnings():
        note(f"panel: {warning}")
    told = told_of(done.traces) if found.excluded == len(plan.items) else []
    lost = lost_of(done.report)
    document = {
        "simulated": plan.simulated,
        "run_id": done.report.run_id,
        "traces": str(done.job.folder / "traces"),
        "items": str(items),
        "calls": done.report.calls,
        "spent_usd": done.report.manifest["spent_usd"],
        "lost": asdict(lost),
        "scores": None if found.scores is None else plain(found.scores),
        "skill": None if found.skill is None else asdict(found.skill),
        "distributions": found.distributions,
        "estimates": found.estimates,
        "forecasts": [one.document for one in told],
        "late_prices": found.late_prices,
        "undated_prices": found.undated_prices,
        "excluded": found.excluded,
        "unanswered": found.unanswered,
        "work": asdict(found.work),
    }
    show(
        document,
        *([SIMULATED] if plan.simulated else []),
        *(["The questions and documents are synthetic, too."] if demo else []),
        f"{plan.arm}, {counted(len(plan.items), 'target')}, search: {(plan.answering or {})['search']}",
        *(_skill(found.skill) if found.scores is not None else []),
        *([] if found.scores is None else ["", entrants_grid(found.scores.entrants), legend(), *signs(found.scores)]),
        *_others(found),
        *(["", NONE_RESOLVED, *(line for one in told for line in one.lines)] if told else []),
        "",
        *_work(found.work, str((plan.answering or {})["search"])),
        f"{counted(done.report.calls, 'call')}; ${done.report.manifest['spent_usd']:.4f} at list price{lost.told}",
        f"run {done.report.run_id}; traces in {done.job.folder / 'traces'}",
        f"its questions with outcomes, for evaluate, calibrate and report: --questions {items}",
        ADVICE,
        as_json=as_json,
    )


def _skill(skill: Skill | None) -> list[str]:
    if skill is None:
        return [
            "skill against the base rate of the other questions: undefined, as there are none or all came out alike"
        ]
    interval = (
        "too few questions for an interval" if skill.low is None else f"95 % {skill.low:+.1%} to {skill.high:+.1%}"
    )
    told = f"Brier {skill.brier:.4f} against {skill.reference:.4f} of the base rate of the other questions: skill "
    told += f"{skill.skill:+.1%} ({interval}, clustered by {counted(skill.n_questions, 'question')}, n = {skill.n})"
    return [told]


def _others(found: BackTest) -> list[str]:
    told = []
    if found.distributions is not None:
        score, n = found.distributions
        told.append(f"questions with options: Brier over the options {score:.4f} (n = {n})")
    if found.estimates is not None:
        half, ninety, n = found.estimates
        told.append(f"quantities: {half} of {n} inside the 50 % interval, {ninety} of {n} inside the 90 % interval")
    if found.late_prices:
        told.append(f"market prices of the cutoff or later, which nothing is compared with: {found.late_prices}")
    if found.undated_prices:
        told.append(f"market prices without a date, which may be later than the cutoff: {found.undated_prices}")
    if found.excluded:
        told.append(f"not scored, as they have no outcome: {found.excluded}")
    if found.unanswered:
        told.append(f"resolved, but without a forecast of the panel: {found.unanswered}")
    return ["", *told] if told else []


def _work(work: Work, search: str) -> list[str | Grid]:
    agents = ", ".join(f"{count} {status}" for status, count in sorted(work.agents.items()))
    rows = tuple(
        (name, *(str(found.get(status, 0)) for status in ("pass", "fail", "not_answerable", "nothing_to_enforce")))
        for name, found in work.gates.items()
    )
    filtered = ", ".join(f"{reason} {count}" for reason, count in work.filtered.items()) or "none"
    rejected = ", ".join(f"{reason} {count}" for reason, count in work.rejected.items()) or "none"
    return [
        f"agents: {agents}",
        f"found: {work.before} before the cutoff, {work.undated} undated, {work.after} after; {work.kept} kept",
        *withheld(search),
        f"not shown: {filtered}",
        f"documents with injection patterns: {work.injections}; replies refused: {rejected}",
        f"searches: {work.searches}, of these {work.shared} another agent had made",
        Grid(("gate", "pass", "fail", "not answerable", "nothing to enforce"), rows),
        *(
            []
            if work.health is None
            else [f"health of all together: {work.health['status']}; {work.health['message']}"]
        ),
    ]
