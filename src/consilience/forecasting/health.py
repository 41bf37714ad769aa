"""The health gate over what several agents left: of one question's panel, or of a whole back-test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from consilience.forecasting.research.gates import HealthLimits, Vitals, health
from consilience.forecasting.research.state import GateResult


def panel_health(
    logs: Iterable[tuple[str, Mapping[str, Any]]], limits: HealthLimits | None = None
) -> GateResult | None:
    """Return what the health gate finds in the artefacts of several agents; None for fewer than two artefacts.

    An agent asked one question for several days leaves one artefact with as many horizons: it is accepted where
    it answered any of them, else it failed or abstained as it did last.

    Args:
        logs: Each artefact as a transcript keeps it, with the id of its question.
        limits: The largest healthy shares; None for those of the gate.

    Example:
        >>> half = {"agent_id": "a", "status": "accepted", "answer": {"p_yes": 0.5}, "steps": [{"rejected": None}]}
        >>> panel_health([("q", half), ("q", half | {"agent_id": "b"})]).status, panel_health([("q", half)])
        ('fail', None)
    """
    artefacts: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for question, log in logs:
        artefacts.setdefault((question, log["agent_id"]), []).append(log)
    if len(artefacts) < 2:
        return None
    return health([_vitals(parts) for parts in artefacts.values()], limits)


def _vitals(parts: list[Mapping[str, Any]]) -> Vitals:
    accepted = [part for part in parts if part["status"] == "accepted"]
    said = [(part["answer"] or {}).get("p_yes") for part in accepted]
    steps = [step for part in parts for step in part["steps"]]
    return Vitals(
        status="accepted" if accepted else parts[-1]["status"],
        probabilities=tuple(p for p in said if p is not None),
        replies=len(steps),
        rejected=sum(step["rejected"] is not None for step in steps),
        horizons=len(parts),
        answered=len(accepted),
    )
