"""A run's plan: everything that decides what will be asked, in one frozen, hashed value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from consilience.aggregation.answers import FittedPanel
from consilience.core.canonical import tagged_hash
from consilience.core.packet import Item
from consilience.core.panel import Labels, Seat, diversity_warnings, mixed_models, seating_of, seats_of
from consilience.core.question import Question
from consilience.core.role import Role
from consilience.core.turn import TurnKind
from consilience.errors import ConfigError, PlanError
from consilience.experiments.arms import Treatment, arm_label, load_budgets, treatment
from consilience.experiments.exposed import EvidenceFields, treat
from consilience.experiments.feasible import check_items, check_members, check_parts, check_views, narrow_roles
from consilience.experiments.matching import Match, check_match
from consilience.experiments.panels import Panel, panel_labels, panel_name, panel_tag
from consilience.experiments.weights import Weights, refuse_in_sample, seat_weights, weights_source
from consilience.models.prices import ORACLE_PREFIX, SIMULATED_PREFIX, Catalogue, ModelSpec, is_local
from consilience.models.request import Effort
from consilience.models.simulated import Reader
from consilience.protocols import Protocol
from consilience.registry import nearest
from consilience.runtime.answerer import Answerer
from consilience.runtime.briefing import Prompts, Settings

COMMITTEES = ("all_anthropic", "all_openai", "mixed_random")
RUN_ID_HASH = 10
SEALED = ("test", "holdout")
"""Splits whose truths no run uses for anything."""
INDEPENDENT_ARM = "F_independent"


@dataclass(frozen=True)
class Application:
    """What an application brings to an experiment.

    Attributes:
        name: Such as ``valuation``; also the folder of its preamble.
        roles_for: Roles of a panel by name or file, given the seed.
        reader: How its simulated analysts read evidence.
        fields: What its evidence says, for arms that withhold or perturb it.
        answerer: Makes of a plan's ``answering`` what takes turns in steps of its own, for a run that is replayed: it
            reaches nothing outside. None where every turn is one call.
    """

    name: str
    roles_for: Callable[[str, int], tuple[Role, ...]]
    reader: Reader
    fields: EvidenceFields = field(default_factory=EvidenceFields)
    answerer: Callable[[Mapping[str, Any]], Answerer] | None = None


class Plan(BaseModel):
    """What is going to be asked. Its hash names the run, so the same command resumes the same run.

    Attributes:
        application: Whose roles and simulated analysts.
        arm: Label in tables, rounds spelled out.
        treatment: The declared arm.
        protocol: Name and parameters in force.
        committee: How models are assigned to roles.
        tier: Price tier of the models.
        models: Model ids the committee draws on.
        split: The split the items belong to; None for a plain set of questions.
        seed: Decides shuffling, assignment and simulated answers.
        replicate: 0 for the run itself; above, how often it is repeated to measure variation from run to run.
        match: What each item of a single agent may cost, where it is matched to a panel; None for none.
        labels: What members know each other by.
        levels: Arms whose results are wanted of one course with the rounds of each, shortest first; mostly one.
        caches: Simulated analysts count their tokens as if the vendor kept prefixes.
        answering: What decides how turns are taken in steps, as the application says it; None where none are.
        weights: What validation taught about this panel; None gives fitted rules equal weights.
        weights_source: Where the weights come from, in words.
        max_output_tokens: Output limit per ask.
        effort: Reasoning effort.
        roles: The panel, with texts and views in force.
        narrow: Roles whose view shows no more than one section of any item's evidence.
        dropped: Roles left out for that reason.
        preamble: Shared text of the application's roles.
        output_rules: Shared text on how to reply.
        tasks: Task template by turn kind.
        items: Digest of question and packet by item.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    application: str
    arm: str
    treatment: Treatment
    protocol: dict[str, dict[str, Any]]
    committee: str
    tier: str
    models: tuple[str, ...]
    split: str | None
    seed: int
    replicate: int
    match: Match | None
    labels: Labels
    levels: dict[str, int]
    caches: bool
    answering: dict[str, Any] | None
    weights: Weights | None
    weights_source: str
    max_output_tokens: int
    effort: Effort
    roles: tuple[Role, ...]
    narrow: tuple[str, ...]
    dropped: tuple[str, ...]
    preamble: str
    output_rules: str
    tasks: dict[TurnKind, str]
    items: dict[str, str]

    @property
    def simulated(self) -> bool:
        """Whether no real model speaks."""
        return all(model.startswith(SIMULATED_PREFIX) for model in self.models)

    @property
    def run_id(self) -> str:
        """The id of the run: ``_`` when simulated, arm, split, and a hash of the plan."""
        digest = tagged_hash("plan", self.model_dump(mode="json"))[:RUN_ID_HASH]
        return f"{'_' if self.simulated else ''}{self.arm}-{self.split or 'items'}-{digest}"

    @property
    def prompts(self) -> Prompts:
        """The fixed texts."""
        return Prompts(preamble=self.preamble, output_rules=self.output_rules, tasks=self.tasks)

    def make_protocol(self) -> Protocol:
        """Return the protocol in force."""
        return self.treatment.model_copy(update={"protocol": self.protocol}).make_protocol()

    def settings(self, *, run_secret: str) -> Settings:
        """Return how every call is made."""
        seating = seating_of(self.seats(next(iter(self.items))))
        turns = Counter(planned.seat for planned in self.make_protocol().plan(seating))
        several = frozenset(seat for seat, count in turns.items() if count > 1)
        return Settings(
            seed=self.seed,
            replicate=self.replicate,
            run_secret=run_secret,
            max_output_tokens=self.max_output_tokens,
            assumed_output_tokens=load_budgets().assumed_output_tokens,
            effort=self.effort,
            reuse_system=bool(several) or len(self.items) > 1,
            reuse_view=several,
        )

    def seats(self, item_id: str) -> tuple[Seat, ...]:
        """Return the committee of one item: each role with its model."""
        assigned = mixed_models(self.models, len(self.roles), seed=self.seed, item_id=item_id)
        return seats_of(self.roles, assigned, labels=self.labels, parts=self.treatment.parts)

    def fitted(self, question: Question, seats: Sequence[Seat], *, arm: str) -> FittedPanel | None:
        """Return what validation taught about the seats of one item; None where nothing was fitted."""
        if self.weights is None:
            return None
        return seat_weights(
            self.weights,
            arm=arm,
            committee=self.committee,
            models=self.models,
            question=question,
            seats={seat.label: seat.role for seat in seats},
        )

    def warnings(self) -> tuple[str, ...]:
        """Return what makes the panel less than one; recorded, not refused."""
        narrow = tuple(f"{role} sees no more than one section of the evidence" for role in self.narrow)
        return (*diversity_warnings(self.seats(next(iter(self.items)))), *narrow) if len(self.roles) > 1 else narrow


def committee_models(committee: str, *, tier: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the model ids a committee draws on.

    Args:
        committee: ``all_anthropic``, ``all_openai``, ``mixed_random``, or a model id for all seats.
        tier: Price tier.
        catalogue: Known models.

    Raises:
        ConfigError: Neither a committee nor a known model.
        PlanError: The tier has no model of that vendor.

    Example:
        >>> from consilience.models.prices import load_catalogue
        >>> committee_models("all_openai", tier="small", catalogue=load_catalogue())
        ('gpt-6-luna',)
    """
    pair = catalogue.tier(tier)
    if committee == "mixed_random":
        return pair
    if committee in COMMITTEES:
        vendor = committee.removeprefix("all_")
        found = tuple(model for model in pair if catalogue.spec(model).provider == vendor)
        if not found:
            raise PlanError(f"tier {tier} has no model of {vendor}", hint="Choose another tier or committee.")
        return found
    if committee not in catalogue.models and not is_local(committee):
        raise ConfigError(f'unknown committee "{committee}"', hint=nearest(committee, [*COMMITTEES, *catalogue.models]))
    return (committee,)


@dataclass(frozen=True)
class Choices:
    """What a user chooses for a run.

    Attributes:
        arm: Name of a treatment.
        rounds: Rounds of deliberation, or several whose results are wanted of one course; empty keeps the arm's own.
        committee: How models are assigned; see `committee_models`.
        tier: Price tier.
        split: The split the items belong to; None for a plain set of questions.
        seed: Decides shuffling, assignment and simulated answers.
        panel: Who answers, by name or file or given here, instead of the treatment's own panel; None keeps that.
        labels: What members know each other by; None takes the panel's own.
        replicate: 0 for the run itself; above, a repetition of it.
        match: What each item of a single agent may cost; None for none.
        weights: What validation taught about panels; None gives fitted rules equal weights.
        drop_empty_seats: Leave out seats whose view shows no more than one section of any item's evidence.
        live: Real models speak; otherwise simulated analysts stand in for them at their price (local models always
            speak for themselves).
        caches: Simulated analysts count their tokens as if the vendor kept prefixes.
        answering: What decides how turns are taken in steps; None where every turn is one call.
        protocol: ``{name: {parameter: value}}`` instead of the treatment's own; None keeps that.
        oracle: Simulated analysts have a private signal about the truth, so that the evaluation can be checked; for
            synthetic items only.
    """

    arm: str
    rounds: tuple[int, ...]
    committee: str
    tier: str
    split: str | None
    seed: int
    panel: str | Panel | None = None
    labels: Labels | None = None
    replicate: int = 0
    match: Match | None = None
    weights: Weights | None = None
    drop_empty_seats: bool = False
    live: bool = False
    caches: bool = False
    answering: Mapping[str, Any] | None = None
    protocol: Mapping[str, Mapping[str, Any]] | None = None
    oracle: bool = False


def make_plan(application: Application, items: Sequence[Item], choices: Choices, *, catalogue: Catalogue) -> Plan:
    """Return the plan of one arm over some items, which are already as the arm shows them (`shown_items`).

    Raises:
        ConfigError: The arm, panel, tier or committee is unknown.
        PlanError: What was chosen cannot work together, or there are no items.
    """
    declared = treatment(choices.arm)
    panel = choices.panel or declared.panel
    told = {} if choices.protocol is None else {"protocol": {key: dict(made) for key, made in choices.protocol.items()}}
    declared = declared.model_copy(update={"panel": panel_name(panel), **told})
    protocol = declared.make_protocol(rounds=choices.rounds)
    check_items(items, protocol)
    labels = choices.labels or panel_labels(panel, application=application.name)
    seated = panel.roles if isinstance(panel, Panel) else application.roles_for(panel, choices.seed)
    roles = declared.views(seated)
    narrow = narrow_roles(roles, items)
    kept = tuple(role for role in roles if role.id not in narrow) if choices.drop_empty_seats else roles
    if not kept:
        raise PlanError("every seat would be dropped", hint="Leave --drop-empty-seats out.")
    check_parts(declared.parts, kept, protocol)
    check_views(kept, items, protocol)
    if choices.match is not None:
        check_match(choices.match, protocol, [item.question.id for item in items])
    budgets = load_budgets()
    named = committee_models(choices.committee, tier=choices.tier, catalogue=catalogue)
    prefix = ORACLE_PREFIX if choices.oracle else SIMULATED_PREFIX
    models = tuple(name if choices.live or is_local(name) else f"{prefix}{name}" for name in named)
    seating = seating_of(seats_of(kept, [""] * len(kept), labels=labels, parts=declared.parts))
    check_members(seating, protocol)
    tag = "" if panel_name(panel) == treatment(choices.arm).panel else f".{panel_tag(panel)}"
    arm = arm_label(f"{choices.arm}{tag}", protocol)
    if choices.match is not None:
        arm = f"{arm}.{choices.match.label}"
    levels = _levels(arm, f"{choices.arm}{tag}", _independent(declared, tag), protocol)
    weights, source = _weights(choices, levels, models=models, items=items)
    prompts = Prompts.packaged(application.name, dict.fromkeys(planned.turn.kind for planned in protocol.plan(seating)))
    plan = Plan(
        application=application.name,
        arm=arm,
        treatment=declared,
        protocol={protocol.name: dict(vars(protocol))},
        committee=choices.committee,
        tier=choices.tier,
        models=models,
        split=choices.split,
        seed=choices.seed,
        replicate=choices.replicate,
        match=choices.match,
        labels=labels,
        levels=levels,
        caches=choices.caches and not choices.live,
        answering=None if choices.answering is None else dict(choices.answering),
        weights=weights,
        weights_source=source,
        max_output_tokens=budgets.max_output_tokens,
        effort=budgets.effort,
        roles=kept,
        narrow=tuple(role.id for role in kept if role.id in narrow),
        dropped=tuple(role.id for role in roles if role not in kept),
        preamble=prompts.preamble,
        output_rules=prompts.output_rules,
        tasks=dict(prompts.tasks),
        items={item.question.id: item.digest for item in sorted(items, key=lambda item: item.question.id)},
    )
    for item in items:  # weights of another panel are found out now, not when the first answers are in
        for level in levels:
            plan.fitted(item.question, plan.seats(item.question.id), arm=level)
    return plan


def _levels(label: str, arm: str, independent: str | None, protocol: Protocol) -> dict[str, int]:
    """Return the arms of one course with their rounds: nested rounds each, and the independent answers before them.

    Args:
        label: Of the whole course.
        arm: Label without rounds.
        independent: Label of the arm whose answers round 0 is; None where it is none that is declared.
        protocol: What is run.
    """
    nested: tuple[int, ...] = getattr(protocol, "nested", ())
    if not nested:
        return {label: getattr(protocol, "rounds", 0)}
    return {independent or f"{arm}_r0": 0, **{f"{arm}_r{number}": number for number in nested}}


def _independent(declared: Treatment, tag: str) -> str | None:
    """Return the arm whose answers are the first ones of this course: F, or F with the same panel of the user's."""
    alone = treatment(INDEPENDENT_ARM)
    shown = ("full_view", "evidence", "packets") if tag else ("panel", "full_view", "evidence", "packets")
    same = all(getattr(declared, name) == getattr(alone, name) for name in shown)
    return f"{INDEPENDENT_ARM}{tag}" if same else None


def _weights(
    choices: Choices, levels: Mapping[str, int], *, models: tuple[str, ...], items: Sequence[Item]
) -> tuple[Weights | None, str]:
    """Return the weights of this panel and where they come from.

    Raises:
        PlanError: They were fitted on these very items.
    """
    source = weights_source(choices.weights, arm=[*levels][-1], committee=choices.committee, models=models)
    if choices.weights is None:
        return None, source
    refuse_in_sample(choices.weights, items={item.question.id: item.digest for item in items}, split=choices.split)
    own = tuple(
        panel
        for panel in choices.weights.panels
        if panel.arm in levels and (panel.committee, panel.models) == (choices.committee, models)
    )
    return choices.weights.model_copy(update={"panels": own, "sources": ()}), source


def shown_items(application: Application, items: Sequence[Item], *, arm: str, seed: int) -> list[Item]:
    """Return the items as an arm shows them: most show the evidence as given, controls withhold or perturb it.

    Raises:
        ConfigError: Unknown arm.
        PlanError: The evidence cannot be treated so.
    """
    evidence = treatment(arm).evidence
    return [treat(item, evidence, fields=application.fields, seed=seed) for item in items]


Exposure = Literal["before", "after", "unknown"]


def exposure(item: Item, models: Sequence[str], specs: Mapping[str, ModelSpec]) -> Exposure:
    """Return whether the item is dated before or after what its models were trained on.

    ``before`` when any model may have seen the answer, ``unknown`` when a training cutoff or the date is unknown.
    """
    day = item.packet.valuation_date
    cutoffs = [specs[model].training_cutoff for model in models]
    if day is None:
        return "unknown"
    if any(cutoff is not None and day <= cutoff for cutoff in cutoffs):
        return "before"
    return "unknown" if None in cutoffs else "after"
