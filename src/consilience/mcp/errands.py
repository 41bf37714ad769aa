"""What an assistant asked, made into a run that can be carried out, and what is told of it afterwards.

Nothing here speaks the protocol: the same words give the same run, whoever brings them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from consilience.api.asking import Terms
from consilience.api.asking import prepare as prepared_question
from consilience.api.deciding import decision_terms, prepared_decision, written_decision
from consilience.api.forecasting import Asking, prepared_forecasts, question_of, written_forecasts
from consilience.api.result import result_of
from consilience.api.running import now
from consilience.api.sources import Sources, research_of
from consilience.decisions.case import Case
from consilience.errors import ConfigError, reason
from consilience.experiments.asked import Asked, item_of
from consilience.experiments.orders import Job, Orders, RunReport
from consilience.experiments.panels import is_panel_file
from consilience.experiments.settings import Flags, keys_and_urls, settle
from consilience.experiments.spending import amount_nano
from consilience.forecasting.traces import read_trace
from consilience.journal.budget import usd
from consilience.mcp.arguments import CAP, AskPanel, Decide, Forecast, Paid
from consilience.mcp.documents import answer_document, decision_document, forecast_told
from consilience.mcp.folders import inside

CASE_FIELDS: Final = (
    *("question", "options", "context", "method", "threshold", "safety_order", "ties", "quick", "quick_share"),
    *("full_share", "passes", "reveal", "quorum", "panel", "critical"),
)
"""What a case takes as it was said."""
STAKES: Final = ("irreversible", "uncertain", "perspectives", "checkable", "low_stakes")


@dataclass(frozen=True)
class Project:
    """Where assistants work.

    Attributes:
        root: The project folder.
        environment: Variables of the server's process.
    """

    root: Path
    environment: Mapping[str, str]

    @property
    def results(self) -> Path:
        """The results folder."""
        return self.root / "results"


@dataclass(frozen=True)
class Errand:
    """A paid question that can be carried out.

    Attributes:
        job: The run.
        orders: How it is carried out.
        told: What is told of it once it has ended.
    """

    job: Job
    orders: Orders
    told: Callable[[RunReport], dict[str, Any]]


def errand_of(said: Paid, project: Project) -> Errand:
    """Return the run that answers what an assistant asked; nothing is written or called.

    Raises:
        ConfigError: A name is unknown, a live model has no key, a path leads out of the project, or the cap is above
            the operator's.
        PlanError: Parts cannot work together.
        DataError: A document or corpus cannot be read.
    """
    ceiling = settle(project.root, Flags(), project.environment).max_spend_nano
    cap = amount_nano(str(said.max_spend_usd), where=CAP)
    if ceiling is not None and cap > ceiling:
        raise ConfigError(
            f"{CAP} is {usd(cap)}, and whoever runs this server allows {usd(ceiling)}",
            hint="Give a smaller cap, or ask the person who set CONSILIENCE_MAX_SPEND_USD or consilience.yaml.",
        )
    if isinstance(said, AskPanel):
        return _question(said, project)
    if isinstance(said, Decide):
        return _decision(said, project)
    if isinstance(said, Forecast):
        return _forecast(said, project)
    raise TypeError(f"nobody answers {type(said).__name__}")


def _question(said: AskPanel, project: Project) -> Errand:
    if said.model is not None and said.committee is not None:
        raise ConfigError("model and committee both say who answers", hint="Give one of them.")
    flags = Flags(str(said.max_spend_usd), said.tier, said.model or said.committee, seed=said.seed)
    settings = settle(project.root, flags, project.environment)
    if said.model is not None:
        settings.catalogue.spec(said.model)  # says "model" where it is unknown, not "committee"
    asked = Asked(
        text=said.question,
        kind=said.kind,
        options=said.options,
        context=said.context,
        unit=said.unit,
        scale=said.scale,
        lower=said.lower,
        upper=said.upper,
    )
    item = item_of(asked, today=now().date())
    terms = Terms(
        panel=_panel(said.panel, project),
        protocol=said.protocol,
        rounds=said.rounds,
        committee=settings.committee,
        tier=settings.tier,
        live=said.live,
        seed=settings.seed,
        max_spend_nano=settings.max_spend_nano,
        retry_failed=said.retry_failed,
        results=project.results,
        environ=keys_and_urls(project.root, project.environment),
        catalogue=settings.catalogue,
    )
    job, orders = prepared_question(item, terms)
    return Errand(
        job, orders, lambda report: answer_document(result_of(report, item.question), report, project.results)
    )


def _decision(said: Decide, project: Project) -> Errand:
    told = {name: getattr(said, name) for name in CASE_FIELDS if getattr(said, name) is not None}
    told["stakes"] = {name: getattr(said, name) for name in STAKES}
    if said.panel is not None:
        told["panel"] = _panel(said.panel, project)
    try:
        case = Case.model_validate(told)
    except ValidationError as error:
        raise ConfigError(f"the decision does not fit: {reason(error)}", hint="Mend the argument named.") from error
    terms = decision_terms(
        project.root,
        project.environment,
        model=said.model,
        tier=said.tier,
        max_spend_usd=str(said.max_spend_usd),
        seed=said.seed,
        live=said.live,
        retry_failed=said.retry_failed,
        anyway=said.panel_anyway,
        allow=said.allow,
    )
    prepared = prepared_decision(case, terms)

    def tell(report: RunReport) -> dict[str, Any]:
        result, files = written_decision(prepared, report, project.results)
        return decision_document(result, report, files[0], project.results)

    return Errand(prepared.job, prepared.orders, tell)


def _forecast(said: Forecast, project: Project) -> Errand:
    question = question_of(
        said.question,
        kind=said.kind,
        options=said.options,
        criteria=said.criteria,
        description=said.description,
        cutoff=said.cutoff,
        resolution_date=_day(said.resolution_date),
        bounds=(said.lower, said.upper),
        unit=said.unit,
        market_price=None,
    )
    if said.live and said.search is None and said.corpus is None:
        raise ConfigError("nothing says where to search", hint="Give corpus, or search: tavily or none.")
    if said.search == "tavily" and not said.live:
        raise ConfigError("a simulated forecast searches no real web", hint="Give live: true, or search: simulated.")
    if said.search == "corpus" and said.corpus is None:
        raise ConfigError("search: corpus needs documents", hint="Give corpus, a path inside the project folder.")
    corpus = None if said.corpus is None else inside(project.root, said.corpus, what="corpus")
    asking = Asking(
        arm=said.arm,
        panel=None if said.panel is None else _panel(said.panel, project),
        model=said.model,
        tier=said.tier,
        max_spend_usd=str(said.max_spend_usd),
        seed=said.seed,
        live=said.live,
        concurrency=None,
        retry_failed=said.retry_failed,
        final=said.final,
        single=True,
    )
    research = research_of(
        steps=said.max_steps,
        results=said.max_search_results,
        undated=said.undated,
        injection=said.on_injection,
        gates=said.gates,
        show_market=False,
        block=said.block,
        only=said.only,
    )
    prepared = prepared_forecasts(
        project.root, project.environment, [question], asking, Sources(said.search, corpus, None), research
    )

    def tell(report: RunReport) -> dict[str, Any]:
        done = written_forecasts(prepared, report)
        (item,) = prepared.job.items
        panel = result_of(report, item.question)
        return forecast_told(done, read_trace(done.traces[0]), panel, project.results)

    return Errand(prepared.job, prepared.orders, tell)


def _day(said: str | None) -> datetime | None:
    if said is None:
        return None
    try:
        return datetime.fromisoformat(said)
    except ValueError as error:
        raise ConfigError(f"resolution_date: {reason(error)}", hint="Give a day such as 2031-06-30.") from error


def _panel(said: str, project: Project) -> str:
    """Return a panel's name, or the path of its file, which must lie in the project."""
    return str(inside(project.root, said, what="panel")) if is_panel_file(said) else said
