"""What the forecasting verbs share: the options of research, the search client, and the run of questions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import typer

from consilience.cli.place import Place
from consilience.errors import BudgetError, ConfigError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.experiments.orders import Job, RunReport
    from consilience.forecasting.pipeline import Research
    from consilience.forecasting.questions import ForecastQuestion
    from consilience.forecasting.search.base import SearchClient

CLIENTS: Final = ("corpus", "tavily", "mcp", "none", "simulated")
"""Clients that a command can open; ``replay`` is what `consilience replay` uses."""

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


@dataclass(frozen=True)
class Sources:
    """Where agents search.

    Attributes:
        search: Name of the client; None for the corpus where one is given.
        corpus: Dated documents.
        mcp_server: Address or command.
    """

    search: str | None
    corpus: Path | None
    mcp_server: str | None


def client_of(sources: Sources, environ: Mapping[str, str], *, live: bool, seed: int) -> SearchClient:
    """Return the search client; nothing is searched.

    Raises:
        ConfigError: The client is unknown, what it needs is missing, or nothing says where to search.
        DataError: The corpus cannot be read.
    """
    from consilience.api.running import now  # noqa: PLC0415 - heavy below
    from consilience.forecasting.search.clients import SEARCH_CLIENTS  # noqa: PLC0415 - the same
    from consilience.forecasting.search.tavily import BASE_URL, KEY_VARIABLE  # noqa: PLC0415 - the same

    name = sources.search or ("corpus" if sources.corpus is not None else None if live else "simulated")
    if name is None:
        raise ConfigError("nothing says where to search", hint="Give --corpus PATH, or --search tavily, mcp or none.")
    if name not in CLIENTS:
        raise ConfigError(f'--search: unknown "{name}"', hint=nearest(name, CLIENTS))
    make = SEARCH_CLIENTS[name].make
    match name:
        case "corpus":
            if sources.corpus is None:
                raise ConfigError("--search corpus needs documents", hint="Give --corpus PATH.")
            return make(sources.corpus, retrieved_at=now())
        case "tavily":
            return make(environ.get(KEY_VARIABLE, ""), base_url=environ.get("TAVILY_BASE_URL") or BASE_URL)
        case "mcp":
            if sources.mcp_server is None:
                raise ConfigError("--search mcp needs a server", hint="Give --mcp-server ADDRESS or COMMAND.")
            words = sources.mcp_server.split()
            return make(sources.mcp_server if sources.mcp_server.startswith("http") else words)
        case "simulated":
            return make(seed=seed, retrieved_at=now())
    return make()


def research_of(  # noqa: PLR0913 - what was typed
    *,
    steps: int,
    results: int,
    undated: str,
    injection: str,
    gates: str,
    show_market: bool,
    block: Sequence[str] | None,
    only: Sequence[str] | None,
    allow: Sequence[str] = (),
) -> Research:
    """Return how agents research, as typed.

    Raises:
        ConfigError: A word is none of those allowed, or a host is none.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    from consilience.errors import reason  # noqa: PLC0415 - beside its use
    from consilience.forecasting.pipeline import Research  # noqa: PLC0415 - heavy
    from consilience.forecasting.search.policy import SourcePolicy  # noqa: PLC0415 - the same

    for option, said, known in (
        ("--undated", undated, ("reject", "flag")),
        ("--on-injection", injection, ("drop", "keep")),
        ("--gates", gates, ("report", "enforce")),
    ):
        if said not in known:
            raise ConfigError(f'{option}: unknown "{said}"', hint=nearest(said, known))
    try:
        policy = SourcePolicy(blocked=tuple(block or ()), allowed=tuple(only or ()))
    except ValidationError as error:
        raise ConfigError(f"--block or --only: {reason(error)}", hint="Give hosts, such as example.org.") from error
    return Research(
        policy=policy,
        max_steps=steps,
        max_search_results=results,
        undated=cast("Literal['reject', 'flag']", undated),
        on_injection=cast("Literal['drop', 'keep']", injection),
        gates=cast("Literal['report', 'enforce']", gates),
        show_market=show_market,
        allow=frozenset(allow),
    )


@dataclass(frozen=True)
class Asking:
    """Who is asked, as typed.

    Attributes:
        arm: Name of a treatment.
        panel: A panel or a YAML file; None for the arm's own.
        model: One model for all seats; None for a committee.
        tier: Price tier.
        max_spend_usd: Spend cap.
        seed: Decides shuffling, assignment and simulated answers.
        live: Real models speak.
        concurrency: Questions in flight.
        retry_failed: Ask turns again that have no answer.
        final: Name of the final rule.
        single: A question of its own, no arm of a study.
        split: The split that the questions belong to; None for none.
        calibration: A frozen recalibration; None for none.
    """

    arm: str
    panel: str | None
    model: str | None
    tier: str | None
    max_spend_usd: str | None
    seed: int | None
    live: bool
    concurrency: int | None
    retry_failed: bool
    final: str
    single: bool
    split: str | None = None
    calibration: Path | None = None


def plainly(arm: str) -> Asking:
    """Return an arm's own way of being asked one question: its panel, simulated, without a cap."""
    return Asking(
        arm=arm,
        panel=None,
        model=None,
        tier=None,
        max_spend_usd=None,
        seed=None,
        live=False,
        concurrency=None,
        retry_failed=False,
        final="panel_only",
        single=True,
    )


@dataclass(frozen=True)
class Forecasted:
    """A run of forecasts, ended or stopped.

    Attributes:
        job: What was asked.
        report: What the run left.
        traces: The run traces, in order of items.
        questions: The question behind each item.
    """

    job: Job
    report: RunReport
    traces: list[Path]
    questions: dict[str, ForecastQuestion]


def forecasted(
    place: Place, questions: Sequence[ForecastQuestion], asking: Asking, sources: Sources, research: Research
) -> Forecasted:
    """Run or resume the forecasts of some questions, and write their traces.

    Raises:
        BudgetError: The spend cap ended it.
        StoppedError: The user did.
    """
    from consilience.cli.running import carry_out  # noqa: PLC0415 - heavy
    from consilience.experiments.artefact import load_artefact  # noqa: PLC0415 - the same
    from consilience.experiments.calibrations import Calibration  # noqa: PLC0415 - the same
    from consilience.experiments.settings import Flags, keys_and_urls, settle  # noqa: PLC0415 - the same
    from consilience.forecasting.pipeline import ForecastTerms, forecast_items, forecast_job  # noqa: PLC0415 - the same
    from consilience.forecasting.recorded import check_calibration, final_row, write_traces  # noqa: PLC0415 - the same

    final_row(asking.final, "probability", 1)  # a mistyped rule is told before anything is asked
    flags = Flags(
        max_spend_usd=asking.max_spend_usd,
        tier=asking.tier,
        committee=asking.model,
        concurrency=asking.concurrency,
        seed=asking.seed,
    )
    settings = settle(place.root, flags, os.environ)
    environ = keys_and_urls(place.root, os.environ)
    if asking.model is not None:
        settings.catalogue.spec(asking.model)
    terms = ForecastTerms(
        arm=asking.arm,
        panel=asking.panel,
        committee=settings.committee,
        tier=settings.tier,
        live=asking.live,
        seed=settings.seed,
        catalogue=settings.catalogue,
        environ=environ,
        max_spend_nano=settings.max_spend_nano,
        concurrency=settings.concurrency,
        retry_failed=asking.retry_failed,
        results=place.root / "results",
    )
    learnt = None if asking.calibration is None else load_artefact(Calibration, asking.calibration)
    client = client_of(sources, environ, live=asking.live, seed=settings.seed)
    job, orders = forecast_job(questions, terms, research, client, single=asking.single, split=asking.split)
    if learnt is not None:
        check_calibration(learnt, job.items)
    report = carry_out(job, orders)
    if report.stopped_by is not None:
        from consilience.cli.console import note  # noqa: PLC0415 - beside its use

        if not isinstance(report.stopped_by, BudgetError):  # the same command would meet the same cap
            note(f"to go on: {place.command}")
        raise report.stopped_by
    behind = {name: question for name, (_, question) in forecast_items(questions, research).items()}
    return Forecasted(job, report, write_traces(job, report, behind, final=asking.final, calibration=learnt), behind)
