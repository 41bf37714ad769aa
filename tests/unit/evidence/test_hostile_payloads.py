"""Every payload, in every place an outsider can write to, with the true fence tag given away to its author."""

from __future__ import annotations

import json
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from consilience.core.packet import EvidenceItem, Packet, Section
from consilience.core.question import Option, Question
from consilience.errors import ConfigError
from consilience.evidence.reading import parse_prompt
from consilience.evidence.rendering import render_system, render_turn_block, render_view_block
from consilience.evidence.views import full_view

TAG = "0123456789abcdef"
PAYLOADS: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[2] / "golden" / "payloads.json").read_text(encoding="utf-8")
)
TEXTS = [p["text"].replace("{TAG}", TAG) * p.get("times", 1) for p in PAYLOADS]
NAMES = [f"{p['family']}-{number}" for number, p in enumerate(PAYLOADS)]
SYSTEM = render_system(preamble="p", seat_label="analyst_01", role_text="r", output_rules="o")


def prompt(text: str) -> str:
    """Return a prompt with the text in every place; a very long one as a document, and its beginning elsewhere."""
    part = text[:10_000]
    said = part.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # questions hold no lone surrogates
    items = (EvidenceItem(id="D01", as_of=date(2019, 1, 1), content={"text": text, "title": part, part: 1}),)
    packet = Packet(
        item_id="q",
        cutoff=date(2020, 1, 1),
        cutoff_rule="first_inadmissible",
        sections={"D": Section(code="D", title=said, items=items)},
        notes=(said,),
    )
    options = (Option(id="a", label=said, description=said), Option(id="b", label="No"))
    question = Question(id="q", text=said, kind="choice", options=options)
    return (
        SYSTEM
        + render_view_block(question=question, view=full_view(packet), tag=TAG)
        + render_turn_block(
            tag=TAG,
            task_line="Vote.",
            state={"round": 1, "others": [{"seat": "analyst_02", "reasoning_summary": part}]},
            critiques=[{"points": [part]}],
            flags=[{"code": "quote_not_found", "evidence_id": part}],
            own_answer={"choice": "a", "rationale": part},
        )
    )


def structure(text: str) -> dict[str, int]:
    lines = text.splitlines()
    heads = ("TASK:", "ROLE_ID:", "Fence tag:", f"<data-{TAG} ", f"</data-{TAG}>", "Kind of answer:")
    return {head: sum(line.startswith(head) for line in lines) for head in heads} | {"lines": len(lines)}


PLAIN = structure(prompt("A plain sentence."))


def test_there_are_payloads_of_every_family() -> None:
    assert len(PAYLOADS) >= 40
    assert len({p["family"] for p in PAYLOADS}) >= 15


@pytest.mark.parametrize("text", TEXTS, ids=NAMES)
def test_payloads_stay_data(text: str) -> None:
    start = time.process_time()
    shown = prompt(text)
    assert structure(shown) == PLAIN
    assert shown.count(f"data-{TAG} ") >= 6
    read = parse_prompt(shown)
    assert (read.seat, read.tag, read.task, read.kind) == ("analyst_01", TAG, "Vote.", "choice")
    assert [item["id"] for item in read.view["D"]] == ["D01"]
    assert read.view["D"][0]["text"] == text
    assert [option["id"] for option in read.question["options"]] == ["a", "b"]
    assert read.critiques == ({"points": [text[:10_000]]},)
    assert read.own_answer is not None
    assert read.own_answer["choice"] == "a"
    assert shown.encode().decode() == shown
    assert time.process_time() - start < 1


@pytest.mark.parametrize("text", TEXTS, ids=NAMES)
def test_payloads_in_role_files_are_refused_or_stay_prose(text: str) -> None:
    try:
        shown = render_system(preamble="p", seat_label="analyst_01", role_text=text, output_rules="o")
    except ConfigError:
        shown = SYSTEM
    heads = [line for line in shown.splitlines() if line.lstrip().upper().startswith(("ROLE_ID:", "TASK:"))]
    assert heads == ["ROLE_ID: analyst_01"]
    assert f"<data-{TAG}" not in shown
    assert "\x1b" not in shown
