"""A small run written to a folder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from consilience.journal.events import (
    AttemptError,
    AttemptReserved,
    AttemptResponse,
    Event,
    ItemFinished,
    ItemStarted,
    RunStarted,
    TurnAccepted,
    Where,
)
from consilience.journal.writer import JournalWriter

Pairs = list[tuple[Event, Where]]
ITEM = Where(item="a")
TURN = Where(item="a", round=0, seat="analyst_01", kind="estimate", sample=0)


def reserved(key: str = "k1", *, ask: int = 0, attempt: int = 0, nano: int | None = 1_000) -> AttemptReserved:
    return AttemptReserved(
        key=key,
        key_version=1,
        ask=ask,
        attempt=attempt,
        role="skeptic",
        model="m",
        provider="simulated",
        tier="standard",
        body={"prompt": "Price?"},
        reserved_nano=nano,
    )


def response(key: str = "k1", *, ask: int = 0, attempt: int = 0, cost: int | None = 700) -> AttemptResponse:
    completion = {
        "text": "=42",
        "stop_reason": "end",
        "usage": {"input": 5, "cache_read": 2, "output_visible": 3},
        "request_id": "=evil",
        "latency_s": 0.5,
    }
    return AttemptResponse(key=key, ask=ask, attempt=attempt, completion=completion, cost_nano=cost, estimated=False)


def failure(key: str = "k1", *, attempt: int = 0, charged: int | None = 0) -> AttemptError:
    error = {"type": "TransientModelError", "message": "429", "status": 429, "retry_after_s": None}
    return AttemptError(key=key, ask=0, attempt=attempt, error=error, charged_nano=charged)


@pytest.fixture
def small_run() -> Pairs:
    """One item with one turn: a failed try, then an answer."""
    return [
        (RunStarted(run_id="r", protocol_sha256="0" * 64, package_version="0.1"), Where()),
        (ItemStarted(data={"packet_sha256": "ab"}), ITEM),
        (reserved(), TURN),
        (failure(), TURN),
        (reserved(attempt=1), TURN),
        (response(attempt=1), TURN),
        (TurnAccepted(key="k1", asks=1, outcome={"point": 42.0}), TURN),
        (ItemFinished(data={"point": 42.0}), ITEM),
    ]


@pytest.fixture
def write() -> Callable[..., JournalWriter]:
    """Write events to a folder, each durable by itself, and finish the run when asked."""

    def now() -> datetime:
        return datetime(2026, 11, 1, 12, 0, tzinfo=UTC)

    def run(folder: Path, events: Pairs, *, finish: bool = True, segment_bytes: int = 2**20) -> JournalWriter:
        async def go() -> JournalWriter:
            journal = JournalWriter(folder, clock=now, segment_bytes=segment_bytes)
            for event, where in events:
                await journal.durable(journal.append(event, where))
            if finish:
                journal.finish({"items": 1})
            await journal.close()
            return journal

        return anyio.run(go)

    return run
