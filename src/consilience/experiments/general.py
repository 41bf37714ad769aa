"""The application for any question: generic roles and simulated analysts that read numbers in view."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from consilience.core.kinds import compact
from consilience.experiments.exposed import EvidenceFields
from consilience.experiments.panels import Shelf
from consilience.experiments.plan import Application
from consilience.models.simulated import Mind

SHELF = Shelf(
    application="general",
    known=(
        *("outside_view", "inside_view", "evidence_auditor", "devils_advocate", "calibrator"),
        *("skeptic", "generalist", "advocate_yes", "advocate_no", "judge"),
        *("placebo_1", "placebo_2", "placebo_3", "placebo_4", "placebo_5"),
    ),
)
NUMBER_FIELDS = frozenset({"value", "price", "estimate", "amount", "level"})
RATE_FIELDS = frozenset({"p", "probability", "rate", "base_rate"})
TEXT_FIELD = "text"
FIGURE = re.compile(r"(?<![\w.,:/-])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?![\w%:/-])")
PERCENTAGE = re.compile(r"(?<![\w.,:/-])([0-9]+(?:\.[0-9]+)?) ?%")
LONGEST_FIGURE = 24
STATED_SD = 0.15
LEVELS = {"q05": -1.645, "q25": -0.674, "q50": 0.0, "q75": 0.674, "q95": 1.645}


def read_anything(mind: Mind) -> dict[str, Any]:
    """Return the envelope of a simulated reply to a question of any kind.

    Numbers are taken from fields called value, price, estimate, amount or level, rates from p, probability, rate or
    base_rate; where there are none, from the figures and percentages written in documents, then from the question's own
    bounds. A choice follows random preferences of the analyst. A revision moves the share λ towards the others.
    """
    if mind.prompt.task.startswith(("critique", "self_critique")):
        return {"critiques": []}
    kind = mind.prompt.kind
    answer = {"estimate": _estimate, "probability": _probability, "distribution": _distribution, "choice": _choice}[
        kind
    ](mind)
    if answer is None:
        return {"abstention": "Nothing in my view gives a number to start from."}
    common = {
        "evidence_ids": [str(item["id"]) for items in mind.prompt.view.values() for item in items][:5],
        "reasoning_summary": "[simulated] Read from the numbers in view, with the known errors of this analyst.",
        "counterarguments": [],
        "missing_data": [],
        "quotes": [],
    }
    return {"answer": common | answer}


def _found(mind: Mind, names: frozenset[str]) -> list[float]:
    return [value for items in mind.prompt.view.values() for item in items for value in _numbers(item, names)]


def _numbers(value: Any, names: frozenset[str]) -> Iterator[float]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name.lower() in names and isinstance(part, int | float) and not isinstance(part, bool):
                yield float(part)
            else:
                yield from _numbers(part, names)
    elif isinstance(value, list):
        for part in value:
            yield from _numbers(part, names)


def _written(mind: Mind, pattern: re.Pattern[str]) -> list[float]:
    """Return the figures that a pattern finds in the texts of documents in view."""
    texts = [item.get(TEXT_FIELD) for items in mind.prompt.view.values() for item in items]
    found = [match for text in texts if isinstance(text, str) for match in pattern.findall(text)]
    return [float(figure.replace(",", "")) for figure in found if len(figure) <= LONGEST_FIGURE]


def _between_bounds(question: Mapping[str, Any], *, log: bool) -> list[float]:
    low, high = question.get("lower"), question.get("upper")
    if low is None or high is None:
        return []
    return [math.sqrt(low * high)] if log and low > 0 else [(low + high) / 2]


def _others(mind: Mind, field: str) -> list[float]:
    return [float(row[field]) for row in (mind.prompt.committee or {}).get("others", ())]


def _estimate(mind: Mind) -> dict[str, Any] | None:
    log = mind.prompt.question.get("scale") == "log"
    own = (mind.prompt.own_answer or {}).get("point")
    others = _others(mind, "point")
    if own is not None:
        point = float(own) + mind.persona.anchoring * (statistics.median(others) - float(own)) if others else float(own)
    else:
        seen = _found(mind, NUMBER_FIELDS) or _written(mind, FIGURE) or _between_bounds(mind.prompt.question, log=log)
        found = [value for value in seen if value > 0 or not log]
        if not found:
            return None
        anchor = statistics.median(found) if mind.signal is None else mind.signal
        error = mind.persona.bias + mind.persona.noise * mind.draws.normal("error")
        point = anchor * math.exp(error) if log else anchor + abs(anchor) * error
    spread = abs(point) * STATED_SD
    quantiles = {name: point * math.exp(z * STATED_SD) if log else point + z * spread for name, z in LEVELS.items()}
    low, high = mind.prompt.question.get("lower"), mind.prompt.question.get("upper")
    fit = {name: compact(_bounded(value, low, high)) for name, value in {"point": point, **quantiles}.items()}
    return {**fit, "adjustments": [], "key_assumptions": [], "confidence_rationale": f"Stated spread {STATED_SD:.0%}."}


def _bounded(value: float, low: float | None, high: float | None) -> float:
    """Keep an analyst's own number inside the question's bounds, as a careful member would before answering."""
    return min(max(value, -math.inf if low is None else low), math.inf if high is None else high)


def _probability(mind: Mind) -> dict[str, Any]:
    own = (mind.prompt.own_answer or {}).get("p_yes")
    others = _others(mind, "p_yes")
    if own is not None:
        p = float(own) + mind.persona.anchoring * (statistics.median(others) - float(own)) if others else float(own)
    else:
        seen = _found(mind, RATE_FIELDS) or [value / 100 for value in _written(mind, PERCENTAGE)]
        rates = [value for value in seen if 0 < value < 1]
        base = statistics.median(rates) if rates else 0.5
        error = 5 * (mind.persona.bias + mind.persona.noise * mind.draws.normal("error"))
        p = 1 / (1 + math.exp(-(math.log(base / (1 - base)) + error)))
    return {"p_yes": round(p, 3), "confidence": 0.6, "rationale": "[simulated] A rate found in view, else one half."}


def _preferences(mind: Mind) -> dict[str, float]:
    options = [str(option["id"]) for option in mind.prompt.question["options"]]
    weights = {option: math.exp(mind.draws.normal(f"option/{option}")) for option in options}
    total = math.fsum(weights.values())
    return {option: weight / total for option, weight in weights.items()}


def _distribution(mind: Mind) -> dict[str, Any]:
    rows = [{"option_id": option, "p": p} for option, p in _preferences(mind).items()]
    return {"probabilities": rows, "rationale": "[simulated] Random preferences of this analyst."}


def _choice(mind: Mind) -> dict[str, Any]:
    shares = _preferences(mind)
    ranking = sorted(shares, key=lambda option: (-shares[option], option))
    own = (mind.prompt.own_answer or {}).get("choice")
    if own is not None:
        ranking = [str(own), *(option for option in ranking if option != own)]
    return {
        "choice": ranking[0],
        "confidence": round(shares[ranking[0]], 2),
        "rationale": "[simulated] Random preferences of this analyst.",
        "risks": [],
        "ranking": ranking,
        "approvals": ranking[: max(1, len(ranking) // 2)],
    }


GENERAL = Application(
    name="general", roles_for=SHELF.roles_for, reader=read_anything, fields=EvidenceFields(amounts=NUMBER_FIELDS)
)
