"""Ours, with everything on: views, hashing, leak guard, durable journal, ledger, cap, validation, verification."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_orchestration import USAGE, engine, item_of, prompts_of
from consilience.core.outcomes import Answered
from consilience.models.request import Completion, Request
from consilience.models.scripted import completion
from consilience.runtime.collector import seldom
from consilience.runtime.session import TurnRecord
from load import REPLY, SEATS, measured

CONCURRENCY = 4
"""Items in flight, as the runner has them."""


def _answer(request: Request) -> Completion:
    return completion(request, REPLY, usage=USAGE)


def _said(record: TurnRecord) -> Any:
    outcome = record.taken.outcome
    if not isinstance(outcome, Answered):
        raise SystemExit(f"no answer: {outcome!r}")
    return outcome.said


async def _panel(items: int) -> Sequence[Any]:
    """Ask about all items at once, as the peers are asked."""
    heard: list[Any] = []
    with tempfile.TemporaryDirectory() as scratch, seldom():
        every = [item_of(number, 100) for number in range(items)]
        await engine(Path(scratch), every, prompts_of(200), _answer, lambda record: heard.append(_said(record)))
    return heard


async def _long(items: int) -> Sequence[Any]:
    """Ask about one item after another, four in flight, and keep nothing: what a long run holds in memory."""
    heard: list[Any] = []

    def one(record: TurnRecord) -> None:
        heard.append(_said(record) if not heard else heard[0])

    with tempfile.TemporaryDirectory() as scratch, seldom():
        every = (item_of(number, 100) for number in range(items))
        await engine(Path(scratch), every, prompts_of(200), _answer, one, at_once=CONCURRENCY)
    if len(heard) != items * SEATS:
        raise SystemExit(f"{len(heard)} turns of {items * SEATS}")
    return heard


if __name__ == "__main__":
    measured({"panel": _panel, "long run": _long}, packages=["consilience", "pydantic", "anyio"])
