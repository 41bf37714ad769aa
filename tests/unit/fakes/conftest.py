"""One running fake for the room's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consilience.fakes.server import FakeServer, running_fake
from vendor_clients import clients_of


@pytest.fixture(scope="session")
def running() -> Iterator[FakeServer]:
    with running_fake() as server, clients_of(server):
        yield server


@pytest.fixture
def fake(running: FakeServer) -> FakeServer:
    running.reset()
    return running
