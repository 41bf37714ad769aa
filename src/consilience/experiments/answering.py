"""Who answers in one process of a run: its pool, what models learn before they are asked, and what oracles know."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from consilience.experiments.arms import load_budgets
from consilience.experiments.plan import Plan
from consilience.journal.budget import Budget
from consilience.journal.events import Where
from consilience.journal.writer import JournalWriter
from consilience.models.base import Model, ProbedModel
from consilience.models.calls import Limits, Stop
from consilience.models.pool import ModelPool
from consilience.models.prices import Catalogue
from consilience.models.simulated import Simulated
from consilience.runtime.briefing import Briefing
from consilience.runtime.turn import TurnTaker


def pool_of(
    plan: Plan,
    models: Mapping[str, Model],
    *,
    catalogue: Catalogue,
    budget: Budget,
    journal: JournalWriter,
    limits: Limits | None,
    stop: Stop,
) -> ModelPool:
    """Return the pool of a plan's models; ``limits`` None takes ``configs/budgets.yaml``."""
    specs = {name: catalogue.spec(name) for name in plan.models}
    return ModelPool(
        models,
        prices={name: spec.price for name, spec in specs.items()},
        budget=budget,
        journal=journal,
        limits=limits or load_budgets().limits,
        jitter=random.Random(plan.seed).random,  # noqa: S311 - spreads retries, guards nothing
        stop=stop,
        rates={name: spec.rates for name, spec in specs.items()},
    )


async def probe(names: Sequence[str], models: Mapping[str, Model], taker: TurnTaker) -> None:
    """Learn how models that differ by server are to be asked; the answer is recorded like any other."""
    for sample, name in enumerate(names):
        model = models[name]
        if isinstance(model, ProbedModel):
            where = Where(kind="probe", sample=sample)
            model.learn((await taker.call(model.probe_request(), where=where, role="probe")).completion)


def reveal(models: Iterable[Model], briefings: Sequence[Briefing]) -> None:
    """Tell oracles their signals, which no prompt holds."""
    for model in models:
        if isinstance(model, Simulated):
            for briefing in briefings:
                if isinstance(briefing.item.truth, float):
                    model.reveal(briefing.tag, briefing.item.question.id, briefing.item.truth)
