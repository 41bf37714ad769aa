"""The embedded model: start, speed, and panels of five, with a model too small to claim anything for."""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Any

import anyio

from consilience.core.contracts import Expected, read_reply
from consilience.core.outcomes import Answered
from consilience.core.packet import EvidenceItem, Item, Packet, Section
from consilience.core.panel import seats_of
from consilience.core.question import Option, Question
from consilience.core.turn import Turn
from consilience.errors import ConfigError, ContractError
from consilience.experiments.general import SHELF
from consilience.models.local import Local
from consilience.models.request import Completion, Request
from consilience.runtime.briefing import Briefing, Prompts, Settings

STARTS = 5
PROMPTS = 3
HOUSES = {"estimate": 3, "probability": 1, "distribution": 1, "choice": 1}
SETTINGS = Settings(
    seed=1,
    replicate=0,
    run_secret="0" * 32,
    max_output_tokens=2000,
    assumed_output_tokens=700,
    effort="medium",
    reuse_system=True,
    reuse_view=frozenset(f"analyst_{number:02d}" for number in range(1, 6)),
)
OPTIONS = tuple(Option(id=f"o{number}", label=label) for number, label in enumerate(("Buy", "Wait", "Rent"), start=1))
KINDS: dict[str, dict[str, Any]] = {
    "estimate": {"text": "What is the price of the house?", "scale": "log", "unit": "USD"},
    "probability": {"text": "Will the house sell above 400000 USD?"},
    "distribution": {"text": "What will the buyer do?", "options": OPTIONS},
    "choice": {"text": "What should the buyer do?", "options": OPTIONS},
}


def house(number: int, kind: str) -> tuple[Item, float]:
    """Return a question about a made-up house with 12 sales in view, and their median price."""
    rng = random.Random(number)
    level = rng.uniform(2e5, 6e5)
    day = date(2024, 5, 1)
    sales = tuple(
        EvidenceItem(
            id=f"C{index:02d}",
            as_of=day - timedelta(days=rng.randrange(10, 400)),
            content={
                "price": round(level * rng.lognormvariate(0, 0.15)),
                "floor_area_m2": round(rng.uniform(60, 160), 1),
                "land_area_m2": round(rng.uniform(200, 600)),
                "year_built": rng.randrange(1920, 2020),
                "storeys": rng.randrange(1, 4),
                "distance_km": round(rng.uniform(0.1, 2), 2),
                "price_to_assessment": round(rng.uniform(0.9, 1.3), 3),
                "new_construction": False,
            },
        )
        for index in range(1, 13)
    )
    subject = EvidenceItem(id="P", content={"floor_area_m2": 101.5, "land_area_m2": 330, "year_built": 1971})
    packet = Packet(
        item_id=f"house-{number}",
        valuation_date=day,
        cutoff=day - timedelta(days=1),
        cutoff_rule="last_admissible",
        notes=(),
        sections={
            "C": Section(code="C", title="Comparable sales", items=sales),
            "P": Section(code="P", title="Subject", items=(subject,)),
        },
    )
    question = Question.model_validate({"id": f"house-{number}", "kind": kind, **KINDS[kind]})
    prices = [price for item in sales if isinstance(price := item.content["price"], int)]
    return Item(question=question, packet=packet), statistics.median(prices)


def requests(item: Item) -> list[Request]:
    """Return what the generic five are asked about an item."""
    roles = SHELF.roles_for("default", 0)
    seats = seats_of(roles, ["local"] * len(roles))
    briefing = Briefing(item, seats=seats, prompts=Prompts.packaged("general", ["estimate"]), settings=SETTINGS)
    return [briefing.request(seat.label, Turn(kind="estimate", round=0), None) for seat in seats]


async def panel(model: Local, number: int, kind: str) -> dict[str, Any]:
    """Ask a panel one after another; return its seconds, its valid answers and how many points are plausible."""
    item, median = house(number, kind)
    asked = requests(item)
    begun = time.perf_counter()
    completions: list[Completion] = [await model.complete(request) for request in asked]
    seconds = time.perf_counter() - begun
    valid = near = 0
    for completion in completions:
        try:
            outcome = read_reply(completion.text, Expected(item.question, "answer"))
        except ContractError:
            continue
        valid += 1
        said = outcome.said if isinstance(outcome, Answered) else None
        near += abs(getattr(said, "point", 0.0) / median - 1) <= 0.5
    usages = [completion.usage for completion in completions if completion.usage is not None]
    return {
        "seconds": seconds,
        "valid": valid,
        "near": near,
        "fresh": [usage.input for usage in usages],
        "output": sum(usage.output_visible for usage in usages),
    }


async def timed(model: Local, request: Request) -> tuple[Completion, float]:
    """Return an answer and the seconds it took."""
    begun = time.perf_counter()
    completion = await model.complete(request)
    return completion, time.perf_counter() - begun


async def speeds(model: Local) -> tuple[list[float], list[float], int]:
    """Return tokens per second of prompts that are all fresh, of replies to cached ones, and a prompt's length."""
    prompt: list[float] = []
    output: list[float] = []
    length = 0
    for number in range(PROMPTS):
        asked = requests(house(100 + number, "estimate")[0])
        first, took = await timed(model, replace(asked[0], max_output_tokens=1))
        again, wrote = await timed(model, asked[0])
        if first.usage is not None and again.usage is not None:
            length = first.usage.input + first.usage.cache_read
            prompt.append(first.usage.input / took)
            output.append(again.usage.output_visible / wrote)
    return prompt, output, length


async def measured(model: Local) -> list[dict[str, Any]]:
    """Return all rows."""
    starts = []
    for _ in range(STARTS):
        begun = time.perf_counter()
        await model.start()
        starts.append(time.perf_counter() - begun)
        await model.close()
    prompt, output, length = await speeds(model)
    rows: list[dict[str, Any]] = [
        row("start of the engine", statistics.median(starts), "s", f"{model.describe()}; best {min(starts):.2f} s"),
        row("prompt", statistics.median(prompt), "tokens/s", f"{len(prompt)} prompts of about {length} tokens"),
        row("output", statistics.median(output), "tokens/s", f"{len(output)} replies to prompts held in the cache"),
    ]
    valid = asked = near = 0
    for kind in KINDS:
        found = [await panel(model, number, kind) for number in range(HOUSES[kind])]
        seconds = statistics.median(each["seconds"] for each in found)
        fresh = found[0]["fresh"]
        note = (
            f"panels asked: {len(found)}; the first role's prompt took {fresh[0]} fresh tokens, the others' "
            f"{max(fresh[1:])} at most; {found[0]['output']} tokens were written"
        )
        rows.append(row(f"panel of 5, {kind}", seconds, "s", note))
        valid += sum(each["valid"] for each in found)
        asked += len(found) * len(fresh)
        near += sum(each["near"] for each in found) if kind == "estimate" else 0
    rows.append(row("valid under the contract", valid, f"of {asked}", "no corrective retry"))
    share = "the median of the sales in view is the plain rule to beat"
    rows.append(row("points within 50 % of the median sale", near, f"of {5 * HOUSES['estimate']}", share))
    await model.close()
    return rows


def row(name: str, value: float, unit: str, note: str) -> dict[str, Any]:
    """Return a row."""
    return {"name": name, "value": value, "unit": unit, "note": note}


def run() -> Sequence[dict[str, Any]]:
    """Return the rows, or none where engine or weights are not installed."""
    try:
        model = Local.found()
    except ConfigError as error:
        print(f"the embedded model is not measured: {error}", file=sys.stderr)
        return []
    return anyio.run(partial(measured, model))


if __name__ == "__main__":
    for each in run():
        print(each)
