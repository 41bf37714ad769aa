"""CPU per turn with everything on, against the least any orchestration must do, and the wall time of a committee."""

from __future__ import annotations

import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from consilience.core.contracts import ENVELOPES
from consilience.core.packet import EvidenceItem, Item, Packet, Section
from consilience.core.panel import seating_of, seats_of
from consilience.core.question import Question
from consilience.core.role import Role
from consilience.core.turn import TurnKind
from consilience.journal.budget import Budget
from consilience.journal.events import RunStarted
from consilience.journal.reader import RunState, Texts
from consilience.journal.writer import JournalWriter
from consilience.models.calls import Limits, Stop
from consilience.models.pool import ModelPool
from consilience.models.prices import Price
from consilience.models.request import Completion, Request, Usage
from consilience.models.scripted import Scripted, completion
from consilience.protocols import Debate, Independent, Protocol
from consilience.runtime.briefing import Briefing, Prompts, Settings
from consilience.runtime.collector import seldom
from consilience.runtime.gather import gather
from consilience.runtime.session import ItemSession, TurnRecord
from consilience.runtime.turn import TurnTaker

SEATS = 12
ITEMS = 80
REPEATS = 5
PRICE = Price.model_validate(
    {"input": "2", "cached_input": "0.2", "cache_write": "2.5", "cache_write_1h": "4", "output": "10"}
)
SETTINGS = Settings(
    seed=1,
    replicate=0,
    run_secret="0" * 32,
    max_output_tokens=2000,
    assumed_output_tokens=700,
    effort="medium",
    reuse_system=True,
    reuse_view=frozenset(f"analyst_{number:02d}" for number in range(1, SEATS + 1)),
)
USAGE = Usage(900, 0, 0, 0, 180, 0)


def reply_of(characters: int) -> str:
    """Return a valid reply of about this length."""
    answer: dict[str, Any] = {
        "point": 450000,
        "q05": 380000,
        "q25": 430000,
        "q50": 450000,
        "q75": 470000,
        "q95": 520000,
        "evidence_ids": ["P"],
        "reasoning_summary": "",
        "counterarguments": [],
        "missing_data": [],
        "adjustments": [],
        "key_assumptions": [],
        "confidence_rationale": "",
        "quotes": [],
    }
    whole = {"answer": answer, "critiques": None, "abstention": None}
    answer["reasoning_summary"] = ("because of size and place " * 40)[: max(0, characters - len(json.dumps(whole)))]
    return json.dumps(whole)


def item_of(number: int, view_bytes: int) -> Item:
    """Return an item whose evidence takes about ``view_bytes``."""
    item_id = f"item-{number:05d}"
    rows = max(1, view_bytes // 100)
    items = tuple(
        EvidenceItem(
            id=f"C{row:02d}", content={"price": 400_000 + 17 * row + number, "note": "semi-detached, quiet street " * 2}
        )
        for row in range(rows)
    )
    packet = Packet(
        item_id=item_id,
        cutoff=date(2026, 1, 1),
        cutoff_rule="last_admissible",
        sections={"C": Section(code="C", title="Sales", items=items)},
    )
    question = Question(id=item_id, text="What is it worth?", kind="estimate", scale="log", unit="USD")
    return Item(question=question, packet=packet, truth=512_345.0)


def prompts_of(characters: int) -> Prompts:
    """Return fixed texts whose system prompt has about ``characters``."""
    tasks: dict[TurnKind, str] = {
        "estimate": "estimate ${round} as ${seat}",
        "critique": "critique ${round} as ${seat}",
        "revision": "revision ${round} as ${seat}",
    }
    return Prompts(preamble="Judge the evidence. " * (characters // 20), output_rules="Reply in JSON.", tasks=tasks)


async def engine(
    folder: Path,
    items: Iterable[Item],
    prompts: Prompts,
    answer: Callable[[Request], Completion],
    heard: Callable[[TurnRecord], None] = lambda _: None,
    *,
    at_once: int = ITEMS,
) -> None:
    """Ask every seat about every item with everything on, so many items at once."""
    state = RunState(Texts(folder))
    journal = JournalWriter(folder, clock=lambda: datetime.now(UTC))
    journal.append(RunStarted(run_id="bench", protocol_sha256="0" * 64, package_version="0"))
    pool = ModelPool(
        {"scripted": Scripted("scripted", answer)},
        prices={"scripted": PRICE},
        budget=Budget(10**15),
        journal=journal,
        limits=Limits(concurrency=10_000),
        jitter=random.Random(0).random,
        stop=Stop(),
    )
    taker = TurnTaker(pool, journal, state)
    seats = seats_of([Role(id=f"role_{n}", view=("all",), text="Judge.") for n in range(SEATS)], ["scripted"] * SEATS)

    async def one(item: Item) -> None:
        session = ItemSession(Briefing(item, seats=seats, prompts=prompts, settings=SETTINGS), taker)
        await Independent().run(session)
        for record in session.records:
            heard(record)

    left = iter(items)
    while some := list(itertools.islice(left, at_once)):
        await gather([partial(one, item) for item in some])
    await journal.close()


async def floor(replies: int, reply: str) -> None:
    """Do the least that any orchestration must: gather the calls and validate what they return."""
    model = ENVELOPES["estimate"]

    async def call() -> Any:
        return model.model_validate_json(await _said(reply))

    await gather([call] * replies)


async def _said(reply: str) -> str:
    return reply


def cpu(run: Callable[[], Awaitable[Any]]) -> float:
    """Return the CPU seconds of one run."""
    with seldom():
        begun = time.process_time()
        anyio.run(run)
        return time.process_time() - begun


def load(name: str, *, system: int, view: int, reply: int, goal_us: float) -> list[dict[str, Any]]:
    """Measure one load against the floor in the same run."""
    items = [item_of(number, view) for number in range(ITEMS)]
    prompts, text = prompts_of(system), reply_of(reply)
    ours, floors, walls = [], [], []

    def answer(request: Request) -> Completion:
        return completion(request, text, usage=USAGE)

    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as scratch:
            begun = time.perf_counter()
            ours.append(cpu(partial(engine, Path(scratch), items, prompts, answer)) / (ITEMS * SEATS))
            walls.append((time.perf_counter() - begun) / (ITEMS * SEATS))
        floors.append(cpu(partial(floor, ITEMS * SEATS, text)) / (ITEMS * SEATS))
    best, least = statistics.median(ours), statistics.median(floors)
    return [
        {
            "name": f"CPU per turn, {name}",
            "value": best * 1e6,
            "unit": "µs",
            "peer": "gather + model_validate_json",
            "ratio": best / least,
            "note": f"floor {least * 1e6:.1f} µs; goal {goal_us:.0f} µs; {ITEMS * SEATS} turns, {SEATS} seats",
        },
        {"name": f"turns per second, {name}", "value": 1 / statistics.median(walls), "unit": "turns/s"},
    ]


def critical_path() -> list[dict[str, Any]]:
    """Measure the wall time of a 12-role, 2-round committee against its critical path under simulated latencies."""
    protocol: Protocol = Debate(rounds=2, settled_change=0.0)
    seats = seats_of([Role(id=f"role_{n}", view=("all",), text="Judge.") for n in range(SEATS)], ["slow"] * SEATS)
    seating = seating_of(seats)
    stages: dict[str, float] = {}
    chance = random.Random(7)
    text = reply_of(700)
    critique = json.dumps({"answer": None, "critiques": [], "abstention": None})
    latencies = {
        f"{planned.turn.kind} {planned.turn.round} {planned.seat}": chance.uniform(0.2, 0.8)
        for planned in protocol.plan(seating)
    }

    class Slow(Scripted):
        async def complete(self, request: Request) -> Completion:
            task = request.messages[0].blocks[-1].text.rsplit("TASK: ", 1)[1].split()
            kind, round_, seat = task[0], task[1], task[3]
            await anyio.sleep(latencies[f"{kind} {round_} {seat}"])
            return completion(request, critique if kind == "critique" else text, usage=USAGE)

    for turn, latency in latencies.items():
        stage = turn.rsplit(" ", 1)[0]
        stages[stage] = max(stages.get(stage, 0.0), latency)

    async def run() -> float:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            journal = JournalWriter(folder, clock=lambda: datetime.now(UTC))
            journal.append(RunStarted(run_id="bench", protocol_sha256="0" * 64, package_version="0"))
            pool = ModelPool(
                {"slow": Slow("slow", ())},
                prices={"slow": PRICE},
                budget=Budget(10**15),
                journal=journal,
                limits=Limits(concurrency=SEATS),
                jitter=chance.random,
                stop=Stop(),
            )
            briefing = Briefing(item_of(1, 5_000), seats=seats, prompts=prompts_of(400), settings=SETTINGS)
            session = ItemSession(briefing, TurnTaker(pool, journal, RunState(Texts(folder))))
            begun = time.perf_counter()
            await protocol.run(session)
            took = time.perf_counter() - begun
            await journal.close()
            return took

    wall = statistics.median(anyio.run(run) for _ in range(REPEATS))
    path = sum(stages.values())
    return [
        {
            "name": "wall time of a 12-role, 2-round committee",
            "value": wall,
            "unit": "s",
            "peer": "critical path of the simulated latencies",
            "ratio": wall / path,
            "note": f"critical path {path:.3f} s; goal: within 2 %",
        }
    ]


def run() -> list[dict[str, Any]]:
    """Return all rows."""
    return [
        *load("peers' load (870-character prompt, 330-character reply)", system=200, view=100, reply=330, goal_us=150),
        *load("working load (5 kB view, 700-character reply)", system=3_000, view=5_000, reply=700, goal_us=300),
        *critical_path(),
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
