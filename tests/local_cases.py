"""Requests as a panel makes them, for the tests of the embedded model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from consilience.config import package_text
from consilience.core.canonical import canonical_json, tagged_hash
from consilience.core.contracts import Expected
from consilience.core.packet import Packet
from consilience.core.question import Option, Question
from consilience.core.role import ALL_SECTIONS, Role
from consilience.core.schema import wire_schema
from consilience.evidence.rendering import fill, render_system, render_turn_block, render_view_block
from consilience.evidence.views import view
from consilience.models.request import Block, Contract, Message, Request
from evidence_cases import make_packet, make_question

TAG = "0123456789abcdef"
OPTIONS = (Option(id="A", label="Buy"), Option(id="B", label="Wait"), Option(id="C", label="Rent"))
QUESTIONS = {
    "estimate": make_question(),
    "probability": Question(id="q", text="Will the house sell above 400000 USD?", kind="probability"),
    "distribution": Question(id="q", text="What will the buyer do?", kind="distribution", options=OPTIONS),
    "choice": Question(id="q", text="What should the buyer do?", kind="choice", options=OPTIONS),
}
SEATS = tuple(f"analyst_{number:02d}" for number in range(1, 6))
MANDATES = (
    "Weigh the best case.",
    "Weigh the worst case.",
    "Doubt the newest item.",
    "Doubt the oldest item.",
    "Say how much is unknown.",
)
STATE = {"round": 1, "others": [{"seat": "analyst_02", "point": 410000, "reasoning": "Like C01."}]}


def make_request(
    question: Question,
    *,
    seat: int = 0,
    task: str = "estimate",
    state: Mapping[str, Any] | None = None,
    corrections: Sequence[str] = (),
    packet: Packet | None = None,
) -> Request:
    role = Role(id="r", text=f"Mandate: {MANDATES[seat]}\n\nMethod: think.", view=(ALL_SECTIONS,))
    schema = wire_schema(question.kind, tuple(option.id for option in question.options))
    system = render_system(
        preamble=package_text("prompts/general/preamble.md"),
        seat_label=SEATS[seat],
        role_text=role.text,
        output_rules=package_text("prompts/output_rules.md"),
    )
    line = fill(package_text(f"prompts/tasks/{task}.md").strip(), {"round": "1", "seat": SEATS[seat]})
    texts = (
        render_view_block(question=question, view=view(packet or make_packet(), role), tag=TAG),
        render_turn_block(tag=TAG, task_line=line, state=state),
        *corrections,
    )
    return Request(
        model="local",
        system=(Block(system, cache=True),),
        messages=(Message("user", tuple(Block(text, cache=False) for text in texts)),),
        tools=(),
        contract=Contract(question.kind, schema, tagged_hash("schema", schema), len(canonical_json(schema))),
        max_output_tokens=2_000,
        effort="medium",
        sampling=None,
        replicate=0,
    )


def expected(question: Question, *, seat: int = 0, task: str = "estimate") -> Expected:
    others = tuple(label for label in SEATS if label != SEATS[seat])
    return Expected(question, "critiques" if task == "critique" else "answer", others)
