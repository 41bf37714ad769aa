"""How simulated analysts read a property packet: from their prompt alone, as a model would, with known errors."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

from consilience.core.kinds import compact
from consilience.models.simulated import Mind

SIZE_ELASTICITY = 0.6
"""How the price of a comparable is adjusted to the subject's floor area: (area ratio) ** elasticity."""
SPREADS = {"q05": -1.645, "q25": -0.674, "q50": 0.0, "q75": 0.674, "q95": 1.645}
STATED_SD = 0.12
CRITIC_THRESHOLD = 0.15

View = Mapping[str, list[dict[str, Any]]]
"""Evidence items by section code."""


def read_property(mind: Mind) -> dict[str, Any]:
    """Return the envelope of a reply to any turn about a property.

    Independent answers, a skeptic's verdict among them, are anchor × exp(bias + noise). A revision moves the share λ of
    the way to the others' median and the share ζ towards what newly shown evidence says. A critique addresses the
    members farther than 15 % away. An analyst that criticises itself names the value its evidence gives without its own
    error, and its refined answer moves the share λ towards that. Without an anchor in the view, the analyst abstains.
    """
    task, own = mind.prompt.task, mind.prompt.own_answer
    if task.startswith("critique"):
        return {"critiques": _critiques(mind)}
    if task.startswith("self_critique") and own is not None:
        return {"critiques": _of_itself(mind, own)}
    if task.startswith("self_refine") and own is not None:
        return _refined(mind, own)
    if task.startswith("revision") and own is not None:
        return _revision(mind)
    return _independent(mind)


def _independent(mind: Mind) -> dict[str, Any]:
    anchor, adjustments, cited, reading = _anchor(mind.prompt.view)
    if mind.signal is not None:
        anchor = mind.signal
    if anchor is None:
        return {
            "abstention": "Nothing in my view tells a price level: no comparable, market level, roll or prior sale."
        }
    error = mind.persona.bias + mind.persona.noise * mind.draws.normal("error")
    point = anchor * math.exp(error)
    return {"answer": _answer(mind, point, adjustments, cited, reading)}


def _revision(mind: Mind) -> dict[str, Any]:
    own = float((mind.prompt.own_answer or {})["point"])
    others = [float(row["point"]) for row in (mind.prompt.committee or {}).get("others", ())]
    before, adjustments, cited, _ = _anchor(mind.prompt.view)
    pull = math.log(statistics.median(others) / own) if others else 0.0
    news = 0.0
    if mind.prompt.packet is not None:
        after, adjustments, cited, _ = _anchor(mind.prompt.packet)
        news = math.log(after / before) if before and after else 0.0
    point = own * math.exp(mind.persona.anchoring * pull + mind.persona.learning * news)
    said = (
        f"The others stand {pull:+.1%} from my value; I moved {mind.persona.anchoring:.0%} of the way."
        if others
        else ""
    )
    told = (
        f"Evidence new to me changes my level by {news:+.1%}; I took {mind.persona.learning:.0%} of it." if news else ""
    )
    reading = " ".join(filter(None, (said, told))) or "Nothing new was shown to me, so I keep my value."
    return {"answer": _answer(mind, point, adjustments, cited, reading)}


def _of_itself(mind: Mind, own: dict[str, Any]) -> list[dict[str, Any]]:
    anchor, _, cited, _ = _anchor(mind.prompt.view)
    gap = 0.0 if anchor is None else math.log(anchor / float(own["point"]))
    return [
        {
            "target_role": mind.prompt.seat,
            "agrees": abs(gap) < CRITIC_THRESHOLD,
            "points": [f"[simulated] My evidence taken plainly stands {gap:+.1%} from my value."],
            "evidence_ids": cited,
            "suggested_value": None if anchor is None else compact(round(anchor)),
        }
    ]


def _refined(mind: Mind, own: dict[str, Any]) -> dict[str, Any]:
    _, adjustments, cited, _ = _anchor(mind.prompt.view)
    suggested = [float(row["suggested_value"]) for row in mind.prompt.critiques if row.get("suggested_value")]
    gap = math.log(suggested[0] / float(own["point"])) if suggested else 0.0
    point = float(own["point"]) * math.exp(mind.persona.anchoring * gap)
    reading = f"My own critique stands {gap:+.1%} from my value; I moved {mind.persona.anchoring:.0%} of the way."
    return {"answer": _answer(mind, point, adjustments, cited, reading)}


def _answer(
    mind: Mind, point: float, adjustments: list[dict[str, Any]], cited: list[str], reading: str
) -> dict[str, Any]:
    subject = _subject(mind.prompt.view)
    return {
        "point": compact(round(point)),
        **{name: compact(round(point * math.exp(z * STATED_SD))) for name, z in SPREADS.items()},
        "adjustments": adjustments,
        "evidence_ids": cited,
        "quotes": [],
        "reasoning_summary": f"[simulated] {reading}",
        "counterarguments": ["The condition of the property is unobserved."],
        "missing_data": [str(name) for name in subject.get("missing_fields", [])][:5],
        "key_assumptions": [f"Price moves with floor area to the power {SIZE_ELASTICITY}."],
        "confidence_rationale": f"Stated spread of {STATED_SD:.0%} on the log scale, the same for every property.",
    }


def _subject(view: View) -> dict[str, Any]:
    items = view.get("P", [])
    return items[0] if items else {}


def _anchor(view: View) -> tuple[float | None, list[dict[str, Any]], list[str], str]:
    """Return the price level the view tells, the adjustments behind it, what was relied on, and how it was read."""
    subject = _subject(view)
    area = subject.get("floor_area_m2")
    adjustments = [_adjusted(item, area) for item in view.get("C", []) if item.get("price")]
    if adjustments:
        value = statistics.median(float(entry["adjusted_value"]) for entry in adjustments)
        cited = [str(entry["evidence_id"]) for entry in adjustments]
        return value, adjustments, cited, f"Median of {len(cited)} comparables adjusted for floor area."
    market = next(iter(view.get("M", [])), {})
    level = (market.get("municipality_12m") or {}).get("median_price_per_m2")
    if level and area:
        return float(level) * float(area), [], [str(market["id"])], "Municipal price per square metre times floor area."
    roll = subject.get("assessment_total")
    if roll:
        return float(roll), [], ["P"], "The roll in force, taken as it stands."
    prior = subject.get("prior_sale_price")
    if prior:
        return float(prior), [], ["P"], "The prior sale, taken as it stands."
    return None, [], [], ""


def _adjusted(item: dict[str, Any], area: float | None) -> dict[str, Any]:
    theirs = item.get("floor_area_m2")
    factor = (float(area) / float(theirs)) ** SIZE_ELASTICITY if area and theirs else 1.0
    factor = min(max(factor, 0.7), 1.35)
    return {
        "evidence_id": str(item["id"]),
        "adjusted_value": compact(round(float(item["price"]) * factor)),
        "reason": f"floor area, factor {factor:.2f}",
    }


def _critiques(mind: Mind) -> list[dict[str, Any]]:
    own = mind.prompt.own_answer
    if own is None:
        return []
    critiques = []
    for row in (mind.prompt.committee or {}).get("others", ()):
        gap = math.log(float(row["point"]) / float(own["point"]))
        if abs(gap) >= CRITIC_THRESHOLD:
            critiques.append(
                {
                    "target_role": row["seat"],
                    "agrees": False,
                    "points": [f"[simulated] Your value stands {gap:+.0%} from what my view supports."],
                    "evidence_ids": ["P"],
                    "suggested_value": own["point"],
                }
            )
    return critiques
