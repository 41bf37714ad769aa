"""Forecast questions made into a run: what is asked of whom, with which sources, under which rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from consilience.core.packet import Item
from consilience.errors import PlanError
from consilience.experiments.arms import treatment
from consilience.experiments.casting import cast
from consilience.experiments.orders import Job, Orders
from consilience.experiments.plan import Choices, Plan, make_plan
from consilience.experiments.predictions import ASK_PREFIX, SIMULATED_PREFIX
from consilience.experiments.protocol import protocol_of
from consilience.forecasting.items import items_of
from consilience.forecasting.panel import FORECASTING
from consilience.forecasting.questions import ForecastQuestion, check_askable
from consilience.forecasting.research.agent import ResearchAgents
from consilience.forecasting.research.conduct import Conduct, packaged_prompts
from consilience.forecasting.search.base import SearchClient
from consilience.forecasting.search.none import NoSearch
from consilience.forecasting.search.policy import SourcePolicy
from consilience.models.prices import Catalogue

RUN_ID_HASH: Final = 10


@dataclass(frozen=True)
class Research:
    """How agents research, as a user chooses it.

    Attributes:
        policy: Which sources may be shown.
        max_steps: Steps of an agent, the forecast included.
        max_search_results: Documents kept of one search.
        undated: Under a cutoff, documents without a date are rejected, or kept with a flag.
        on_injection: Documents with injection patterns are dropped, or kept and recorded.
        gates: Failed gates are reported, or enforced.
        show_market: The market's price is shown to agents, as a labelled input.
        allow: Refusals of questions that are waived, by name.
    """

    policy: SourcePolicy = field(default_factory=SourcePolicy)
    max_steps: int = 5
    max_search_results: int = 5
    undated: Literal["reject", "flag"] = "reject"
    on_injection: Literal["drop", "keep"] = "drop"
    gates: Literal["report", "enforce"] = "report"
    show_market: bool = False
    allow: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ForecastTerms:
    """Who is asked, and at what cost.

    Attributes:
        arm: Name of a treatment; ``F_independent`` is the panel, ``E_single`` one agent, ``staged`` all stages.
        panel: A panel of the application by name, or a YAML file; None takes the arm's own.
        committee: How models are given to roles, or one model id for all.
        tier: Price tier of the models.
        live: Real models speak.
        seed: Decides shuffling, assignment and simulated answers.
        catalogue: Known models.
        environ: Where keys and base URLs are read.
        max_spend_nano: Spend cap in nano-dollars; None for none.
        concurrency: Questions in flight.
        retry_failed: Ask turns again that have no answer.
        results: The results folder.
    """

    arm: str
    panel: str | None
    committee: str
    tier: str
    live: bool
    seed: int
    catalogue: Catalogue
    environ: Mapping[str, str]
    max_spend_nano: int | None
    concurrency: int
    retry_failed: bool
    results: Path


def forecast_items(
    questions: Sequence[ForecastQuestion], research: Research
) -> dict[str, tuple[Item, ForecastQuestion]]:
    """Return the engine's items of questions by id, each with the question behind it.

    Raises:
        PlanError: A question is no forecast any more, or two are called the same.
        LeakError: A price is to be shown that is undated or not from before the cutoff.
    """
    found: dict[str, tuple[Item, ForecastQuestion]] = {}
    for question in questions:
        check_askable(question, allow=research.allow)
        for item in items_of(question, show_market=research.show_market):
            if item.question.id in found:
                raise PlanError(f"two questions are called {item.question.id}", hint="Give each an id of its own.")
            found[item.question.id] = (item, question)
    return found


def conduct_of(asked: Mapping[str, tuple[Item, ForecastQuestion]], research: Research, client: SearchClient) -> Conduct:
    """Return what decides how agents research these questions; outcomes and prices stay outside."""
    bare = {"resolution": None, "market": None, "targets": ()}
    return Conduct(
        search=client.name,
        client=client.identity,
        policy=research.policy,
        max_steps=research.max_steps,
        max_search_results=research.max_search_results,
        undated=research.undated,
        on_injection=research.on_injection,
        gates=research.gates,
        prompts=packaged_prompts(),
        questions={name: question.model_copy(update=bare) for name, (_, question) in asked.items()},
    )


def forecast_job(
    questions: Sequence[ForecastQuestion],
    terms: ForecastTerms,
    research: Research,
    client: SearchClient,
    *,
    rounds: tuple[int, ...] = (),
    single: bool = False,
    split: str | None = None,
) -> tuple[Job, Orders]:
    """Return the run that forecasts these questions; nothing is written, searched or called.

    Args:
        questions: What is asked.
        terms: Who is asked.
        research: How agents research.
        client: Where they search; an arm without tools searches nothing whatever it is.
        rounds: Rounds of the arm; empty keeps its own.
        single: A question of its own, no arm of a study: ``evaluate`` passes over the run.
        split: The split that the questions belong to: ``validation`` may be learnt from; None for none.

    Raises:
        ConfigError: Arm, panel, committee, tier or model is unknown, or a live model has no key.
        PlanError: They cannot work together, or a question is no forecast any more.
    """
    asked = forecast_items(questions, research)
    used = NoSearch() if treatment(terms.arm).tools == "none" else client
    conduct = conduct_of(asked, research, used)
    items = [item for item, _ in asked.values()]
    choices = Choices(
        arm=terms.arm,
        rounds=rounds,
        committee=terms.committee,
        tier=terms.tier,
        split=split,
        seed=terms.seed,
        panel=terms.panel,
        live=terms.live,
        answering=conduct.recorded(),
    )
    plan = make_plan(FORECASTING, items, choices, catalogue=terms.catalogue)
    models = cast(
        plan.models, catalogue=terms.catalogue, environ=terms.environ, reader=FORECASTING.reader, seed=plan.seed
    )
    run_id = _run_id(plan, models, terms.catalogue, single=single)
    agents = ResearchAgents(conduct, used)
    job = Job(plan, items, run_id, terms.results / "runs" / run_id, models, terms.catalogue, answerer=agents)
    orders = Orders(max_spend_nano=terms.max_spend_nano, concurrency=terms.concurrency, retry_failed=terms.retry_failed)
    return job, orders


def _run_id(plan: Plan, models: Mapping[str, Any], catalogue: Catalogue, *, single: bool) -> str:
    if not single:
        return plan.run_id
    digest = protocol_of(plan, models, catalogue=catalogue, run_secret="").sha256[:RUN_ID_HASH]
    mark = SIMULATED_PREFIX if plan.simulated else ""
    return f"{mark}{ASK_PREFIX}forecast-{digest}"
