"""Answers that take longer than patience lasts: live models are those of the vendors' double, which takes its time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event

import anyio
import pytest

from consilience.fakes.calls import Call
from consilience.fakes.server import FakeServer, running_fake
from consilience.fakes.settings import Settings
from consilience.journal.events import AttemptReserved
from consilience.journal.reader import read_events
from mcp_cases import CAPPED, Assistant, keys_of, over_stdio
from vendor_clients import CANARY

LIVE = {**CAPPED, "live": True}
LATENCY_S = 0.8
PATIENCE_S = 0.2
SEATS = 5


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeServer]:
    with running_fake() as server:
        yield server


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slow")


@pytest.fixture(scope="module")
def assistant(project: Path, fake: FakeServer) -> Iterator[Assistant]:
    with over_stdio(project, patience_s=PATIENCE_S, environment=keys_of(fake)) as found:
        fetched(found, **LIVE, seed=99)  # what live models import is imported before anybody looks at the clock
        yield found


@pytest.fixture
def gate(fake: FakeServer) -> Iterator[Event]:
    """Nobody is answered before it is set."""
    event = Event()

    def held(_: Call) -> None:
        assert event.wait(timeout=30)

    fake.reset(responder=held)
    yield event
    event.set()


def attempts(project: Path, run_id: str) -> int:
    records = read_events(project / "results" / "runs" / run_id)
    return sum(isinstance(record.event, AttemptReserved) for record in records)


def fetched(assistant: Assistant, **asked: object) -> tuple[list[str], dict[str, object]]:
    """Ask the same until it is answered; return the ids of the run on the way, and the answer."""
    seen: list[str] = []
    while True:
        told = assistant.answer("ask_panel", **asked)
        seen.append(told["run_id"])
        if told["status"] != "running":
            return seen, told


@pytest.mark.slow
def test_a_slow_answer_returns_its_run_and_asking_again_attaches_to_it(
    assistant: Assistant, fake: FakeServer, gate: Event, project: Path
) -> None:
    first = assistant.answer("ask_panel", **LIVE)
    assert first["status"] == "running"
    assert first["simulated"] is False
    assert "same arguments" in first["next"]
    (listed,) = [run for run in assistant.answer("list_runs")["runs"] if run["run_id"] == first["run_id"]]
    assert listed["state"] == "running"
    gate.set()
    seen, told = fetched(assistant, **LIVE)
    assert set(seen) == {first["run_id"]}
    assert (told["status"], told["simulated"]) == ("answered", False)
    assert len(fake.calls()) == attempts(project, seen[0]) == SEATS
    assert fetched(assistant, **LIVE)[1]["calls"] == 0
    assert len(fake.calls()) == attempts(project, seen[0]) == SEATS


def test_another_cap_attaches_to_the_same_run(assistant: Assistant, fake: FakeServer, gate: Event) -> None:
    asked = {**LIVE, "seed": 1}
    first = assistant.answer("ask_panel", **asked)
    assert first["status"] == "running"
    assert assistant.answer("ask_panel", **{**asked, "max_spend_usd": "0.60"})["status"] == "running"
    gate.set()
    _, told = fetched(assistant, **{**asked, "max_spend_usd": "0.60"})
    assert told["run_id"] == first["run_id"]
    assert told["max_spend_usd"] == 0.5
    assert len(fake.calls()) == SEATS


def test_a_call_that_is_given_up_stops_the_run_and_asking_again_repeats_no_call(
    assistant: Assistant, fake: FakeServer, gate: Event
) -> None:
    asked = {**LIVE, "seed": 2}

    async def give_up() -> None:
        with anyio.move_on_after(PATIENCE_S / 2):
            await assistant.client.call_tool("ask_panel", asked)

    assistant.portal.call(give_up)
    gate.set()
    _, told = fetched(assistant, **asked)
    assert told["status"] == "answered"
    assert len(fake.calls()) == SEATS


def test_two_that_ask_the_same_at_once_share_a_run(assistant: Assistant, fake: FakeServer, gate: Event) -> None:
    asked = {**LIVE, "seed": 3}
    found: list[str] = []

    async def ask() -> None:
        result = await assistant.client.call_tool("ask_panel", asked)
        assert isinstance(result.structured_content, dict)
        found.append(result.structured_content["run_id"])

    async def together() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)

    assistant.portal.call(together)
    assert len(set(found)) == 1
    gate.set()
    assert fetched(assistant, **asked)[1]["status"] == "answered"
    assert len(fake.calls()) == SEATS


@pytest.mark.slow
def test_a_server_that_ends_finishes_what_is_in_flight_and_another_goes_on(fake: FakeServer, tmp_path: Path) -> None:
    fake.reset(settings=Settings(latency_s=LATENCY_S))
    begin = partial(over_stdio, tmp_path, patience_s=PATIENCE_S, environment=keys_of(fake))
    with begin() as assistant:
        first = assistant.answer("ask_panel", **LIVE)
        assert first["status"] == "running"
        assert fake.wait_for_calls(SEATS)
    with begin() as assistant:
        _, told = fetched(assistant, **LIVE)
    assert told["run_id"] == first["run_id"]
    assert len(fake.calls()) == attempts(tmp_path, first["run_id"]) == SEATS
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path


@pytest.mark.slow
def test_a_run_of_another_process_is_said_to_be_running(fake: FakeServer, gate: Event, tmp_path: Path) -> None:
    begin = partial(over_stdio, tmp_path, patience_s=PATIENCE_S, environment=keys_of(fake))
    with begin() as one, begin() as another:
        first = one.answer("ask_panel", **LIVE)
        assert another.answer("ask_panel", **LIVE)["status"] == "running"
        gate.set()
        assert fetched(another, **LIVE)[1]["run_id"] == first["run_id"]
    assert len(fake.calls()) == SEATS
