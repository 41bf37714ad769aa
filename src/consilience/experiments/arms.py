"""Arms: the treatments that a study compares, declared in ``configs/treatments.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from consilience.config import load_packaged
from consilience.core.role import ALL_SECTIONS, Role
from consilience.errors import ConfigError, PlanError
from consilience.experiments.exposed import Evidence
from consilience.models.calls import Limits
from consilience.models.request import Effort
from consilience.protocols import PROTOCOLS, Protocol
from consilience.registry import nearest

PLAIN = "plain"
"""The form of packets that every application builds."""


class Treatment(BaseModel):
    """One arm.

    Attributes:
        protocol: ``{name: {parameter: value}}``.
        panel: Name of a panel of the application.
        full_view: Every role sees the whole packet.
        parts: The role that has each part beside the members' rounds, such as ``{"skeptic": "skeptic"}``.
        evidence: Whether the evidence is shown as given, withheld, or perturbed.
        packets: Which form of packets the application builds for it; ``plain`` in pre-registered arms.
        tools: Whether members that work in steps have their tools, or none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: dict[str, dict[str, Any]] = Field(min_length=1, max_length=1)
    panel: str
    full_view: bool = False
    parts: dict[str, str] = Field(default_factory=dict)
    evidence: Evidence = "given"
    packets: str = PLAIN
    tools: Literal["given", "none"] = "given"

    def make_protocol(self, *, rounds: Sequence[int] = ()) -> Protocol:
        """Return the protocol, with another number of rounds where that is asked for.

        Args:
            rounds: One number of rounds, or several whose results are wanted of one course; empty keeps the arm's own.

        Raises:
            ConfigError: Unknown protocol or parameter.
            PlanError: The protocol has no rounds or no nested ones, or a number is out of range.

        Example:
            >>> treatment("G_debate").make_protocol(rounds=[4]).rounds
            4
        """
        ((name, parameters),) = self.protocol.items()
        cls = PROTOCOLS[name]
        known = {field.name for field in fields(cls)}
        for parameter in parameters:
            if parameter not in known:
                raise ConfigError(f'protocol {name}: unknown parameter "{parameter}"', hint=nearest(parameter, known))
        parameters = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
        if rounds:
            if "rounds" not in known:
                raise PlanError(f"protocol {name} has no rounds", hint="Leave the number of rounds out.")
            parameters |= {"rounds": rounds[-1]}
        if len(rounds) > 1:
            if "nested" not in known:
                raise PlanError(f"protocol {name} has no nested rounds", hint="Give one number of rounds.")
            if sorted(set(rounds)) != [*rounds]:
                raise PlanError(
                    f"the nested rounds {', '.join(map(str, rounds))} do not increase",
                    hint="Give them in increasing order from 1 up, such as 1, 2, 4.",
                )
            parameters |= {"nested": tuple(rounds)}
        return cls(**parameters)

    def views(self, roles: tuple[Role, ...]) -> tuple[Role, ...]:
        """Return the roles with the views of this arm."""
        if not self.full_view:
            return roles
        return tuple(role.model_copy(update={"view": (ALL_SECTIONS,)}) for role in roles)


class Treatments(BaseModel):
    """All declared arms."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    treatments: dict[str, Treatment]


class Budgets(BaseModel):
    """Limits of every call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_output_tokens: int = Field(gt=0)
    assumed_output_tokens: int = Field(gt=0)
    effort: Effort
    limits: Limits


def treatment(arm: str) -> Treatment:
    """Return the treatment of an arm.

    Raises:
        ConfigError: No such arm; the nearest one is named.
    """
    declared = load_packaged("configs/treatments.yaml", Treatments).treatments
    if arm not in declared:
        raise ConfigError(f'unknown arm "{arm}"', hint=nearest(arm, declared))
    return declared[arm]


def arm_label(arm: str, protocol: Protocol) -> str:
    """Return the label of an arm in tables: planned rounds are spelled out, and nested ones each.

    Example:
        >>> from consilience.protocols import Debate
        >>> arm_label("G_debate", Debate(rounds=2)), arm_label("G_debate", Debate(rounds=4, nested=(1, 4)))
        ('G_debate_r2', 'G_debate_r1_r4')
    """
    rounds = getattr(protocol, "nested", ()) or tuple(filter(None, [getattr(protocol, "rounds", None)]))
    return "_".join([arm, *(f"r{number}" for number in rounds)])


def load_budgets() -> Budgets:
    """Return the limits that ship with the package."""
    return load_packaged("configs/budgets.yaml", Budgets)
