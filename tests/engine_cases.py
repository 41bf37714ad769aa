"""A small study that tests drive through the real engine: made-up items, a few roles, models under control."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import anyio

from consilience.core.packet import EvidenceItem, Item, Packet, Section
from consilience.core.panel import seating_of, seats_of
from consilience.core.question import Option, Question
from consilience.core.role import Role
from consilience.evidence.reading import ParsedPrompt, parse_prompt
from consilience.experiments.arms import Treatment
from consilience.experiments.manifest import RunFacts
from consilience.experiments.orders import Job, Orders, RunReport, Shell
from consilience.experiments.plan import Plan
from consilience.experiments.runner import run_arm
from consilience.journal.events import AttemptError, AttemptLost, AttemptReserved, AttemptResponse, Record
from consilience.journal.reader import read_events
from consilience.models.base import Model
from consilience.models.calls import Limits
from consilience.models.prices import Catalogue, ModelSpec, Price, listed_name
from consilience.models.request import Request
from consilience.models.scripted import Reply, Scripted, prompt_text
from consilience.protocols import PROTOCOLS

MODEL = "m"
ROLES = (
    Role(id="comparables", view=("P", "C"), text="Adjust comparables."),
    Role(id="market", view=("P", "M"), text="Read the market."),
    Role(id="condition", view=("P",), text="Judge the building."),
    Role(id="place", view=("P", "G", "M"), text="Judge the place."),
    Role(id="auditor", view=("all",), text="Doubt the data."),
)
LIST_PRICE = Price.model_validate(
    {"input": "2", "cached_input": "0.20", "cache_write": "2.50", "cache_write_1h": "4", "output": "10"}
)
PENNY = Price.model_validate(
    dict.fromkeys(("input", "cached_input", "cache_write", "cache_write_1h"), "0") | {"output": "5"}
)
"""With the output limit of 2,000 tokens every reservation is exactly one cent."""
CENT = 10_000_000
QUICK = Limits(concurrency=6, attempts=3, attempt_s=20.0, total_s=60.0, backoff_s=0.0, backoff_cap_s=0.0)
DEBATE: dict[str, dict[str, Any]] = {"debate": {"rounds": 1, "settled_change": 0.0}}
INDEPENDENT: dict[str, dict[str, Any]] = {"independent": {}}
OPTIONS = tuple(Option(id=f"o{number}", label=f"Option {number}") for number in range(3))


def question(kind: Any = "estimate", *, name: str = "item-01", **changes: Any) -> Question:
    values: dict[str, Any] = {"id": name, "text": "What is it worth, or what will be?", "kind": kind}
    if kind == "estimate":
        values |= {"scale": "log", "unit": "USD"}
    if kind in {"distribution", "choice"}:
        values["options"] = OPTIONS
    return Question(**(values | changes))


def make_item(number: int = 1, *, kind: Any = "estimate", truth: float | str | None = None, **changes: Any) -> Item:
    base = 300_000 + 10_000 * number
    contents: dict[str, list[dict[str, Any]]] = {
        "P": [{"floor_area_m2": 100 + number, "assessment_total": base - 7_000}],
        "C": [{"price": base + step, "floor_area_m2": 100 + number} for step in (-9_000, 1_000, 14_000)],
        "M": [{"municipality_12m": {"median_price_per_m2": 3_000}}],
        "G": [{"flood": "outside"}],
    }
    sections = {
        code: Section(
            code=code,
            title=f"Section {code}",
            items=tuple(
                EvidenceItem(id=code if code == "P" else f"{code}{index:02d}", content=content)
                for index, content in enumerate(rows, start=1)
            ),
        )
        for code, rows in contents.items()
    }
    name = f"item-{number:02d}"
    packet: dict[str, Any] = {
        "item_id": name,
        "valuation_date": date(2015, 3, 2),
        "cutoff": date(2015, 3, 1),
        "cutoff_rule": "last_admissible",
        "sections": sections,
    }
    return Item(question=question(kind, name=name), packet=Packet(**(packet | changes)), truth=truth)


def make_items(count: int) -> list[Item]:
    return [make_item(number) for number in range(1, count + 1)]


def make_plan(
    items: Sequence[Item],
    *,
    protocol: dict[str, dict[str, Any]] | None = None,
    roles: Sequence[Role] = ROLES,
    models: Sequence[str] = (MODEL,),
    parts: Mapping[str, str] | None = None,
    **changes: Any,
) -> Plan:
    chosen = DEBATE if protocol is None else protocol
    treatment = Treatment(protocol=chosen, panel="default12", parts=dict(parts or {}))
    asking = treatment.make_protocol()
    seating = seating_of(seats_of(roles, [""] * len(roles), parts=treatment.parts))
    nested: tuple[int, ...] = getattr(asking, "nested", ())
    values: dict[str, Any] = {
        "application": "valuation",
        "arm": "test",
        "treatment": treatment,
        "protocol": chosen,
        "committee": "none",
        "tier": "mid",
        "models": tuple(models),
        "split": None,
        "seed": 7,
        "replicate": 0,
        "match": None,
        "labels": "neutral",
        "levels": {f"test_r{number}": number for number in (0, *nested)}
        if nested
        else {"test": getattr(asking, "rounds", 0)},
        "caches": False,
        "answering": None,
        "weights": None,
        "weights_source": "equal weights",
        "max_output_tokens": 2_000,
        "effort": "medium",
        "roles": tuple(roles),
        "preamble": "Judge from evidence.",
        "output_rules": "Reply with one JSON object.",
        "tasks": {
            planned.turn.kind: f"{planned.turn.kind} (round ${{round}}). You are ${{seat}}."
            for planned in asking.plan(seating)
        },
        "items": {item.question.id: item.digest for item in items},
        "narrow": (),
        "dropped": (),
    }
    return Plan(**(values | changes))


def cast_for(protocol: str, roles: Sequence[Role]) -> tuple[tuple[Role, ...], dict[str, str]]:
    """Return as many of the roles as a protocol seats, and who of the last of them plays each of its parts."""
    declared = PROTOCOLS[protocol]
    seats = len(roles) if declared.most_members is None else declared.most_members + len(declared.parts)
    seated = tuple(roles[-seats:])
    playing = seated[len(seated) - len(declared.parts) :]
    return seated, {part: role.id for part, role in zip(declared.parts, playing, strict=True)}


def make_catalogue(models: Iterable[str] = (MODEL,), *, price: Any = LIST_PRICE) -> Catalogue:
    return Catalogue(models={listed_name(name): ModelSpec(provider="local", price=price) for name in models}, tiers={})


def answer_json(kind: str = "estimate", *, point: float = 300_000, **changes: Any) -> dict[str, Any]:
    shared: dict[str, Any] = {
        "evidence_ids": [],
        "reasoning_summary": "So.",
        "counterarguments": [],
        "missing_data": [],
    }
    own: dict[str, dict[str, Any]] = {
        "estimate": {
            "point": point,
            **{f"q{level:02d}": point * (0.5 + level / 100) for level in (5, 25, 50, 75, 95)},
            "adjustments": [],
            "key_assumptions": [],
            "confidence_rationale": "None.",
        },
        "probability": {"p_yes": 0.3, "rationale": "So."},
        "distribution": {
            "probabilities": [{"option_id": o.id, "p": p} for o, p in zip(OPTIONS, (0.5, 0.25, 0.25), strict=True)],
            "rationale": "So.",
        },
        "choice": {"choice": "o1", "confidence": 0.5, "rationale": "So."},
    }
    return shared | own[kind] | changes


def reply(*, answer: Any = None, critiques: Any = None, abstention: Any = None) -> str:
    return json.dumps({"answer": answer, "critiques": critiques, "abstention": abstention})


def read(request: Request) -> ParsedPrompt:
    """Read a request as its model does."""
    return parse_prompt(prompt_text(request))


def seat_number(request: Request) -> int:
    return int(str(read(request).seat).removeprefix("analyst_"))


def speak(request: Request) -> str:
    """Answer any turn of any kind as a member that differs from the others and moves in revisions."""
    return say_to(read(request))


def say_to(prompt: ParsedPrompt) -> str:
    """Answer a prompt as `speak` does."""
    seat = int(str(prompt.seat).removeprefix("analyst_"))
    if prompt.task.startswith("self_critique"):
        return reply(critiques=[_critique(str(prompt.seat), seat)])
    if prompt.task.startswith("critique"):
        others = [row["seat"] for row in (prompt.committee or {})["others"]]
        return reply(critiques=[_critique(others[seat % len(others)], seat)] if others else [])
    round_ = int((prompt.committee or {}).get("round", 0))
    if prompt.kind == "probability":
        return reply(answer=answer_json("probability", p_yes=round(0.1 * seat / (1 + round_), 4)))
    if prompt.kind == "choice":
        return reply(answer=answer_json("choice", choice=f"o{seat % 3 if round_ else seat % 2}"))
    if prompt.kind == "distribution":
        return reply(answer=answer_json("distribution"))
    point = round(300_000 * (1 + 0.05 * seat / (1 + round_)))
    return reply(answer=answer_json(point=point, evidence_ids=["P"]))


def _critique(target: str, seat: int) -> dict[str, Any]:
    return {
        "target_role": target,
        "agrees": False,
        "points": [f"Point {seat}."],
        "evidence_ids": ["P"],
        "suggested_value": 1_000 + seat,
    }


def panel(say: Callable[[Request], Reply] = speak, *, name: str = MODEL) -> Scripted:
    return Scripted(name, say)


def make_shell(**changes: Any) -> Shell:
    shell = Shell(
        clock=lambda: datetime(2026, 11, 1, 12, 0, tzinfo=UTC),
        run_secret="a secret",  # noqa: S106 - decides fence tags of made-up items
        facts=RunFacts("0", None, "0"),
    )
    return replace(shell, **changes)


def carry_out(
    folder: Path,
    plan: Plan,
    items: Sequence[Item],
    models: Model | Mapping[str, Model],
    *,
    orders: Orders | None = None,
    shell: Shell | None = None,
    price: Any = LIST_PRICE,
) -> RunReport:
    """Run or resume an arm in ``folder``."""
    named: Mapping[str, Model] = models if isinstance(models, Mapping) else {models.id: models}
    job = Job(plan, items, "_test", folder, named, make_catalogue(plan.models, price=price))
    return anyio.run(run_arm, job, shell or make_shell(), orders or Orders(limits=QUICK))


def money_by_record(records: Iterable[Record]) -> list[tuple[int, int]]:
    """Return (spent, reserved) in nano-dollars after every record, from the journal alone."""
    reserved: dict[Any, int] = {}
    spent = 0
    found = []
    for record in records:
        event = record.event
        if isinstance(event, AttemptReserved):
            reserved[record.where, event.ask, event.attempt] = event.reserved_nano or 0
        elif isinstance(event, AttemptResponse | AttemptError | AttemptLost):
            del reserved[record.where, event.ask, event.attempt]
            spent += (event.cost_nano if isinstance(event, AttemptResponse) else event.charged_nano) or 0
        found.append((spent, sum(reserved.values())))
    return found


def events_of(folder: Path, *types: type) -> list[Record]:
    return [record for record in read_events(folder) if not types or isinstance(record.event, types)]
