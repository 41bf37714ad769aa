"""Simulated research agents: they search, note and forecast from their prompt alone, with known errors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from consilience.evidence.reading import ParsedPrompt
from consilience.experiments.general import PERCENTAGE, read_anything
from consilience.models.simulated import Mind

SEARCHES: Final = 2
NOTES: Final = ("base_rate", "evidence_for", "context")
LONGEST_QUERY: Final = 12
"""Words of a question that a first query holds."""
CLIP: Final = 0.02
_WORD = re.compile(r"\w+")
_SMALL = frozenset(
    ("will", "the", "a", "an", "in", "of", "on", "at", "by", "to", "be", "is", "than", "more", "for", "or", "and")
)
_CITED: Final = 3
_SAID: Final[Mapping[str, list[str]]] = {
    "counterarguments": [],
    "missing_data": [],
    "quotes": [],
}


def read_forecast(mind: Mind) -> dict[str, Any]:
    """Return what a simulated member of a forecasting panel replies: an action of research, or an envelope.

    In steps it searches for the words of the question, notes what it found, and forecasts from the percentages (or, for
    quantities, the figures) written there, moved by the known errors of the analyst. Where nothing was found it
    abstains.
    """
    if not mind.prompt.task.startswith("research"):
        return read_anything(mind)
    action = _next_action(mind)
    return {name: action.get(name) for name in ("action", "query", "evidence_id", "type", "answer", "reason")} | {
        name: action[name] for name in ("confidence", "disagreements", "resolved", "unresolved") if name in action
    }


def _documents(mind: Mind) -> list[dict[str, Any]]:
    found = [document for step in mind.prompt.steps for document in (step.get("result") or {}).get("documents", ())]
    return [dict(document) for document in (*found, *mind.prompt.gathered)]  # a supervisor cites what it found itself


def _done(mind: Mind, action: str) -> list[Mapping[str, Any]]:
    return [step["action"] for step in mind.prompt.steps if (step.get("action") or {}).get("action") == action]


def _next_action(mind: Mind) -> dict[str, Any]:
    task, documents = mind.prompt.task, _documents(mind)
    supervisor = "Oversee" in task
    noted = {action["evidence_id"] for action in _done(mind, "note")}
    searched = len(_done(mind, "search"))
    fresh = [document for document in documents if document["id"] not in noted]
    if "You can search" in task:
        if searched == 0 or (not documents and searched < SEARCHES):
            return {"action": "search", "query": _query(mind, searched)}
        if len(noted) < len(NOTES) and fresh and not supervisor:
            chosen = max(fresh, key=lambda document: bool(PERCENTAGE.search(_text(document))))
            return {"action": "note", "evidence_id": chosen["id"], "type": NOTES[len(noted)]}
    if not documents and "nothing to search" not in task:
        return {"action": "abstain", "reason": "[simulated] Nothing that was found bears on the question."}
    answer = _answer(mind, documents)
    if answer is None:
        return {"action": "abstain", "reason": "[simulated] Nothing that was found gives a number to start from."}
    if supervisor:
        parted = ["[simulated] They weigh the base rate differently."]
        told = {"disagreements": parted, "resolved": [], "unresolved": parted}
        return {"action": "update", "answer": answer, "confidence": "medium", **told}
    return {"action": "forecast", "answer": answer}


def _query(mind: Mind, number: int) -> str:
    words = [word for word in _WORD.findall(str(mind.prompt.question["text"])) if word.casefold() not in _SMALL]
    start = int(mind.draws.uniform("query") * 3) if number == 0 else 0
    return " ".join(words[start : start + LONGEST_QUERY]) if number == 0 else " ".join(sorted(words, key=len)[-4:])


def _text(document: Mapping[str, Any]) -> str:
    return str(document.get("text", ""))


def _answer(mind: Mind, documents: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return an answer from what stands in the documents, or from the question alone in a closed book."""
    common = {
        "evidence_ids": [document["id"] for document in documents][:_CITED],
        "reasoning_summary": "[simulated] Read from the percentages and figures in what was found.",
        **_SAID,
    }
    if mind.prompt.kind == "probability":
        rates = [float(share) / 100 for document in documents for share in PERCENTAGE.findall(_text(document))]
        odds = [math.log(p / (1 - p)) for p in (min(max(rate, CLIP), 1 - CLIP) for rate in rates)]
        centre = math.fsum(odds) / len(odds) if odds else 0.0
        moved = centre + 10 * mind.persona.bias + 5 * mind.persona.noise * mind.draws.normal("noise")
        return common | {
            "p_yes": round(1 / (1 + math.exp(-moved)), 3),
            "confidence": 0.6,
            "rationale": "[simulated] The mean of the rates that were found, on log-odds.",
        }
    section = {"D": documents} if documents else mind.prompt.view
    read = read_anything(Mind(_seen(mind, section), mind.persona, mind.draws, mind.signal)).get("answer")
    return None if read is None else {**read, **common}


def _seen(mind: Mind, view: Mapping[str, list[dict[str, Any]]]) -> ParsedPrompt:
    """Return the prompt as if the documents were its view."""
    return replace(mind.prompt, view=dict(view), task="estimate (round 0).")
