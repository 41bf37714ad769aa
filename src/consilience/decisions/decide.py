"""A decision from start to end: is a panel justified, who votes, by which rules; then the run that holds the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

from consilience.core.packet import Item
from consilience.core.panel import diversity_problems, seating_of
from consilience.decisions.case import Case
from consilience.decisions.necessity import Necessity, necessity
from consilience.decisions.panel import DECISIONS
from consilience.errors import PlanError
from consilience.experiments.casting import cast
from consilience.experiments.orders import Job, Orders, checked_run_id
from consilience.experiments.plan import Choices, Plan, make_plan
from consilience.experiments.predictions import ASK_PREFIX, SIMULATED_PREFIX
from consilience.experiments.protocol import protocol_of
from consilience.models.prices import Catalogue
from consilience.protocols.escalation import MODERATOR

ARM: Final = "decide"
ALONE: Final = "E_single"
RUN_PREFIX: Final = f"{ASK_PREFIX}decide-"
RUN_ID_HASH: Final = 10


@dataclass(frozen=True)
class DecisionTerms:
    """Who votes, and at what cost.

    Attributes:
        committee: How models are given to roles, or one model id for all.
        tier: Price tier of the models.
        live: Real models speak.
        seed: Decides shuffling, assignment, lots and simulated answers.
        catalogue: Known models.
        environ: Where keys and base URLs are read.
        max_spend_nano: Spend cap in nano-dollars; None for none.
        retry_failed: Ask turns again that have no answer.
        results: The results folder.
        today: The day of asking.
        anyway: A panel votes although the stakes do not justify one.
        allow: Shortcomings of the panel that are allowed by name: ``copies``, ``axes``, ``few``, ``even``.
        run_id: Id of the run, marked where no real model speaks; None derives it from everything that decides.
    """

    committee: str
    tier: str
    live: bool
    seed: int
    catalogue: Catalogue
    environ: Mapping[str, str]
    max_spend_nano: int | None
    retry_failed: bool
    results: Path
    today: date
    anyway: bool = False
    allow: frozenset[str] = frozenset()
    run_id: str | None = None


Earned = Callable[[Sequence[str]], Mapping[str, float]]
"""Given the voters' role ids, the weight that each earned."""


@dataclass(frozen=True)
class Prepared:
    """A decision that can be carried out.

    Attributes:
        case: As brought.
        need: Whether a panel is justified.
        job: The run.
        orders: How it is carried out.
    """

    case: Case
    need: Necessity
    job: Job
    orders: Orders


def prepare(case: Case, terms: DecisionTerms, *, earned: Earned) -> Prepared:
    """Return the run that decides; nothing is written or called.

    Where the stakes do not justify a panel one agent answers, unless a panel is wanted anyway. Everything that decides
    is part of the run's plan, so that changing it afterwards makes another run.

    Args:
        case: What is to be decided, and by which rules.
        terms: Who votes.
        earned: What voters earned on decisions whose outcome is known, for a case that asks for it.

    Raises:
        ConfigError: A name is unknown, or a live model has no key.
        PlanError: The rules contradict each other, or the panel is none and that was not allowed by name.
    """
    need = necessity(case.stakes)
    item = case.item(today=terms.today)
    alone = need.justified is False and not terms.anyway
    plan = _plan_alone(item, terms) if alone else _plan_panel(case, item, terms, earned)
    reader = DECISIONS.reader
    models = cast(plan.models, catalogue=terms.catalogue, environ=terms.environ, reader=reader, seed=plan.seed)
    digest = protocol_of(plan, models, catalogue=terms.catalogue, run_secret="").sha256
    mark = SIMULATED_PREFIX if plan.simulated else ""
    run_id = f"{RUN_PREFIX}{digest[:RUN_ID_HASH]}" if terms.run_id is None else checked_run_id(terms.run_id)
    run_id = f"{mark}{run_id.removeprefix(mark)}"
    job = Job(plan, [item], run_id, terms.results / "runs" / run_id, models, terms.catalogue)
    return Prepared(case, need, job, Orders(max_spend_nano=terms.max_spend_nano, retry_failed=terms.retry_failed))


def _choices(terms: DecisionTerms, arm: str) -> Choices:
    return Choices(
        arm=arm,
        rounds=(),
        committee=terms.committee,
        tier=terms.tier,
        split=None,
        seed=terms.seed,
        live=terms.live,
    )


def _plan_alone(item: Item, terms: DecisionTerms) -> Plan:
    return make_plan(DECISIONS, [item], _choices(terms, ALONE), catalogue=terms.catalogue)


def _plan_panel(case: Case, item: Item, terms: DecisionTerms, earned: Earned) -> Plan:
    roles = DECISIONS.roles_for(case.panel, terms.seed)
    members = tuple(role.id for role in roles if role.id != MODERATOR)
    weights = earned(members) if case.weights == "earned" else case.weights
    ladder = case.protocol(members, weights=weights, seed=terms.seed)
    choices = replace(_choices(terms, ARM), panel=case.panel, protocol={ladder.name: dict(vars(ladder))})
    plan = make_plan(DECISIONS, [item], choices, catalogue=terms.catalogue)
    _check_panel(plan, case, terms.allow)
    ladder.seated(seating_of(plan.seats(item.question.id)), item.question)
    return plan


def _check_panel(plan: Plan, case: Case, allow: frozenset[str]) -> None:
    """Raise where those who vote are no panel and nobody allowed it by name.

    Raises:
        PlanError: With every shortcoming.
    """
    seats = [seat for seat in plan.seats(next(iter(plan.items))) if seat.part is None]
    problems = [
        (code, text)
        for code, text in diversity_problems(seats, voters=True, critical=case.critical)
        if code not in allow
    ]
    if problems:
        told = "; ".join(f"{text} ({code})" for code, text in problems)
        names = ", ".join(dict.fromkeys(code for code, _ in problems))
        raise PlanError(f"this is no panel: {told}", hint=f"Change the panel, or allow it by name: {names}.")
