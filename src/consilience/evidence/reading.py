"""A prompt read back as a model reads it: from its text alone. Simulated analysts know nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from consilience.errors import DataError

STEP = "step_"
"""Begins the label of the fence of one step; a letter for its number follows."""
_SEAT = re.compile(r"^ROLE_ID: (.+)$", re.MULTILINE)
_TAG = re.compile(r"^Fence tag: ([0-9a-f]{16})$", re.MULTILINE)
_TASK = re.compile(r"^TASK: (.+)$", re.MULTILINE)
_HEADER = re.compile(
    r"^Kind of answer: (?P<kind>\w+)\nValuation date: (?P<valuation_date>[\w-]+)\n"
    r"Information cutoff: (?P<cutoff>[\d-]+) \((?P<rule>[a-z ]+)\)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class ParsedPrompt:
    """What a prompt says.

    Attributes:
        seat: The label of the member spoken to; None where the system prompt was not part of the text.
        tag: The fence tag.
        kind: The kind of answer asked for.
        valuation_date: The day the answer is for, or None.
        cutoff: The information cutoff.
        cutoff_rule: In words, as in the prompt: last admissible day, or first inadmissible day.
        question: Text and, where they exist, unit, scale, lower, upper, options.
        sections: Title by code of the visible sections.
        notes: How the evidence was assembled.
        view: The visible evidence: items by section code.
        packet: The whole packet likewise, where a member is shown more than its own sections; else None.
        committee: Committee state, or None; the others as one mapping each.
        critiques: Critiques addressed to this member.
        flags: Verification flags on this member's answer.
        own_answer: This member's own latest answer, or None.
        arguments: What advocates said.
        gathered: Evidence that was gathered for this member.
        steps: What a member that works in steps did so far, in order.
        task: The task, without its head.
    """

    seat: str | None
    tag: str
    kind: str
    valuation_date: date | None
    cutoff: date
    cutoff_rule: str
    question: dict[str, Any]
    sections: dict[str, str]
    notes: tuple[str, ...]
    view: dict[str, list[dict[str, Any]]]
    packet: dict[str, list[dict[str, Any]]] | None
    committee: dict[str, Any] | None
    critiques: tuple[dict[str, Any], ...]
    flags: tuple[dict[str, Any], ...]
    own_answer: dict[str, Any] | None
    arguments: tuple[dict[str, Any], ...]
    gathered: tuple[dict[str, Any], ...]
    steps: tuple[dict[str, Any], ...]
    task: str


def parse_prompt(text: str) -> ParsedPrompt:
    """Return what a prompt says; ``text`` is the view block and the turn block, with or without the system prompt.

    What stands in fences cannot be mistaken for anything else, whatever it claims.

    Raises:
        DataError: The text is not a prompt of this package.
    """
    tag, header = _TAG.search(text), _HEADER.search(text)
    tasks = _TASK.findall(text)
    if tag is None or header is None or len(tasks) != 1:
        raise DataError(
            f"the text is not a prompt of this package (tag: {tag is not None}, header: {header is not None}, "
            f"tasks: {len(tasks)})",
            hint="Give the text that render_view_block and render_turn_block made, unchanged.",
        )
    blocks = fenced(text, tag[1])
    if not blocks.keys() >= {"context", "view"}:
        raise DataError("the prompt has no context or no view", hint="Give the view block too.")
    seat = _SEAT.search(text, 0, tag.start())
    context = blocks["context"]
    day = header["valuation_date"]
    return ParsedPrompt(
        seat=seat[1] if seat else None,
        tag=tag[1],
        kind=header["kind"],
        valuation_date=None if day == "none" else date.fromisoformat(day),
        cutoff=date.fromisoformat(header["cutoff"]),
        cutoff_rule=header["rule"],
        question=context["question"],
        sections=context["sections"],
        notes=tuple(context["notes"]),
        view=blocks["view"],
        packet=blocks.get("packet"),
        committee=_untabled(blocks.get("committee")),
        critiques=tuple(blocks.get("critiques", ())),
        flags=tuple(blocks.get("flags", ())),
        own_answer=blocks.get("own_answer"),
        arguments=tuple(blocks.get("arguments", ())),
        gathered=tuple(blocks.get("gathered", ())),
        steps=tuple(value for label, value in blocks.items() if label.startswith(STEP)),
        task=tasks[0],
    )


def _untabled(state: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a committee state with the others as one mapping each."""
    others = None if state is None else state.get("others")
    if state is None or not isinstance(others, dict):
        return state
    return {**state, "others": [dict(zip(others["columns"], row, strict=True)) for row in others["rows"]]}


def fenced(text: str, tag: str) -> dict[str, Any]:
    r"""Return the values that stand in the fences of this tag, by label.

    Raises:
        DataError: A fence is not closed, or a label occurs twice.

    Example:
        >>> fenced('<data-0123456789abcdef view>\n{"P":[]}\n</data-0123456789abcdef>', "0123456789abcdef")
        {'view': {'P': []}}
    """
    blocks: dict[str, Any] = {}
    found = re.findall(rf"^<data-{tag} ([a-z_]+)>\n(.*)\n</data-{tag}>$", text, re.MULTILINE)
    for label, line in found:
        if label in blocks:
            raise DataError(f'two fences are labelled "{label}"', hint="A prompt shows each thing once.")
        blocks[label] = json.loads(line)
    if text.count(f"<data-{tag}") != len(found) or text.count(f"</data-{tag}>") != len(found):
        raise DataError("a fence is opened or closed out of place", hint="Give the prompt unchanged.")
    return blocks
