"""What a run was told to do otherwise than the freeze declares of its arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from consilience.experiments.arms import Treatment
from consilience.experiments.frozen import CHOICES, Freeze
from consilience.experiments.frozen_data import WEIGHTS
from consilience.experiments.plan import Plan
from consilience.protocols import PROTOCOLS


def overrides(plan: Plan, freeze: Freeze) -> tuple[str, ...]:
    """Return one sentence per thing that a plan has otherwise than the freeze declares, such as its rounds.

    Committee, tier and seed count where ``consilience.yaml`` chose them for every run at the freeze; the split, the
    items, what is simulated and what a single agent may cost are each run's own.

    Args:
        plan: Of the run.
        freeze: The study's freeze.
    """
    arm = _arm(plan.arm, freeze.treatments)
    if arm is None:
        return (f"override: {plan.arm} is no arm of the freeze",)
    declared, asked = _declared(freeze, arm, plan), _asked(plan)
    return tuple(
        f"override: {name} {_said(asked[name])} instead of {_said(value)}"
        for name, value in sorted(declared.items())
        if name in asked and _plain(asked[name]) != _plain(value)
    )


def _arm(label: str, arms: Mapping[str, object]) -> str | None:
    """Return the arm of a label that spells out rounds, a panel or a match."""
    found = [arm for arm in arms if label == arm or label.startswith((f"{arm}_r", f"{arm}."))]
    return max(found, key=len, default=None)


def _declared(freeze: Freeze, arm: str, plan: Plan) -> dict[str, Any]:
    treatment = freeze.treatments[arm]
    ((protocol, parameters),) = treatment["protocol"].items()
    shown = {
        name: treatment.get(name, field.get_default(call_default_factory=True))
        for name, field in Treatment.model_fields.items()
        if name != "protocol"
    }
    panel = freeze.panels.get(plan.application, {}).get(treatment["panel"])
    found = {**shown, "protocol": protocol, "dropped seats": (), **freeze.choices}
    found |= {} if panel is None else {"labels": panel.labels}
    if plan.weights is not None:
        weights = freeze.data[WEIGHTS]
        found["weights"] = None if weights is None else weights.sha256
    return found | (_parameters(protocol, parameters) if protocol in plan.protocol else {})


def _asked(plan: Plan) -> dict[str, Any]:
    ((protocol, parameters),) = plan.protocol.items()
    return {
        **plan.treatment.model_dump(exclude={"protocol"}),
        "protocol": protocol,
        "dropped seats": plan.dropped,
        "labels": plan.labels,
        "weights": None if plan.weights is None else plan.weights.sha256,
        **{name: getattr(plan, name) for name in CHOICES},
        **_parameters(protocol, parameters),
    }


def _parameters(protocol: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a protocol, those that were not given by default."""
    return {**{field.name: field.default for field in fields(PROTOCOLS[protocol])}, **given}


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _said(value: Any) -> str:
    if value is None or value in ((), [], {}):
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
