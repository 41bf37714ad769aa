"""One running fake for the suite."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import anyio.lowlevel
import pytest

from consilience.fakes.server import FakeServer, running_fake


@pytest.fixture(scope="session")
def running() -> Iterator[FakeServer]:
    with running_fake() as server:
        yield server


@pytest.fixture
def fake(running: FakeServer) -> FakeServer:
    running.reset()
    return running


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every wait between tries; none is really waited."""
    found: list[float] = []

    async def note(seconds: float) -> None:
        found.append(seconds)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("consilience.models.pool.anyio.sleep", note)
    return found
