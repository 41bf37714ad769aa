"""A run's plan: everything that decides what will be asked, in one frozen, hashed value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from consilience.core.canonical import tagged_hash
from consilience.core.packet import Item
from consilience.core.panel import Seat, diversity_warnings, mixed_models, seats_of
from consilience.core.role import Role
from consilience.core.turn import TurnKind
from consilience.errors import ConfigError, PlanError
from consilience.experiments.arms import Treatment, arm_label, load_budgets, treatment
from consilience.experiments.panels import panel_name
from consilience.models.prices import ORACLE_PREFIX, SIMULATED_PREFIX, Catalogue, ModelSpec, is_local
from consilience.models.request import Effort
from consilience.models.simulated import Reader
from consilience.protocols import Protocol
from consilience.registry import nearest
from consilience.runtime.briefing import Prompts, Settings

COMMITTEES = ("all_anthropic", "all_openai", "mixed_random")
RUN_ID_HASH = 10


@dataclass(frozen=True)
class Application:
    """What an application brings to an experiment.

    Attributes:
        name: Such as ``valuation``; also the folder of its preamble.
        roles_for: Roster by name, given the seed.
        reader: How its simulated analysts read evidence.
    """

    name: str
    roles_for: Callable[[str, int], tuple[Role, ...]]
    reader: Reader


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
        return Treatment(protocol=self.protocol, panel=self.treatment.panel).make_protocol()

    def settings(self, *, run_secret: str) -> Settings:
        """Return how every call is made."""
        later_turns = len(self.make_protocol().plan()) > 1
        return Settings(
            seed=self.seed,
            run_secret=run_secret,
            max_output_tokens=self.max_output_tokens,
            assumed_output_tokens=load_budgets().assumed_output_tokens,
            effort=self.effort,
            reuse_system=later_turns or len(self.items) > 1,
            reuse_view=later_turns,
        )

    def seats(self, item_id: str) -> tuple[Seat, ...]:
        """Return the committee of one item: each role with its model."""
        assigned = mixed_models(self.models, len(self.roles), seed=self.seed, item_id=item_id)
        return seats_of(self.roles, assigned)

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
        rounds: Rounds of deliberation; None keeps the treatment's own.
        committee: How models are assigned; see `committee_models`.
        tier: Price tier.
        split: The split the items belong to; None for a plain set of questions.
        seed: Decides shuffling, assignment and simulated answers.
        panel: Who answers, by name or file, instead of the treatment's own panel; None keeps that.
        drop_empty_seats: Leave out seats whose view shows no more than one section of any item's evidence.
        live: Real models speak; otherwise simulated analysts stand in for them at their price (local models always
            speak for themselves).
        oracle: Simulated analysts have a private signal about the truth, so that the evaluation can be checked; for
            synthetic items only.
    """

    arm: str
    rounds: int | None
    committee: str
    tier: str
    split: str | None
    seed: int
    panel: str | None = None
    drop_empty_seats: bool = False
    live: bool = False
    oracle: bool = False


def make_plan(application: Application, items: Sequence[Item], choices: Choices, *, catalogue: Catalogue) -> Plan:
    """Return the plan of one arm over some items.

    Raises:
        ConfigError: The arm, tier or committee is unknown.
        PlanError: There are no items, two share an id, or the protocol does not serve their kind.
    """
    declared = treatment(choices.arm)
    panel = choices.panel or declared.panel
    declared = declared.model_copy(update={"panel": panel_name(panel)})
    protocol = declared.make_protocol(rounds=choices.rounds)
    _check_items(items, protocol)
    roles = declared.views(application.roles_for(panel, choices.seed))
    narrow = _narrow(roles, items)
    kept = tuple(role for role in roles if role.id not in narrow) if choices.drop_empty_seats else roles
    if not kept:
        raise PlanError("every seat would be dropped", hint="Leave --drop-empty-seats out.")
    budgets = load_budgets()
    prompts = Prompts.packaged(application.name)
    named = committee_models(choices.committee, tier=choices.tier, catalogue=catalogue)
    prefix = ORACLE_PREFIX if choices.oracle else SIMULATED_PREFIX
    models = tuple(name if choices.live or is_local(name) else f"{prefix}{name}" for name in named)
    return Plan(
        application=application.name,
        arm=arm_label(choices.arm, protocol),
        treatment=declared,
        protocol={protocol.name: dict(vars(protocol))},
        committee=choices.committee,
        tier=choices.tier,
        models=models,
        split=choices.split,
        seed=choices.seed,
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


def _narrow(roles: Sequence[Role], items: Sequence[Item]) -> frozenset[str]:
    """Return the roles that no item shows more than one section with anything in it."""
    filled = {section.code for item in items for section in item.packet.sections.values() if section.items}
    if len(filled) < 2:
        return frozenset()
    return frozenset(role.id for role in roles if sum(role.sees(code) for code in filled) < 2)


def _check_items(items: Sequence[Item], protocol: Protocol) -> None:
    if not items:
        raise PlanError("there is nothing to ask: no items", hint="Check --split, --n and the subsample.")
    ids = [item.question.id for item in items]
    if len(set(ids)) != len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise PlanError(f"two items are called {twice}", hint="Give every question its own id.")
    alike = {name.casefold(): name for name in ids}
    for name in ids:
        other = alike[name.casefold()]
        if other != name:
            raise PlanError(
                f"the items {name} and {other} differ only in case, so their files would be one on some systems",
                hint="Give every question its own id.",
            )
    for kind in sorted({item.question.kind for item in items}):
        if kind not in protocol.kinds:
            raise PlanError(f"protocol {protocol.name} does not serve {kind} questions", hint="Choose another arm.")


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
