"""The clients that need no corpus and no network, and the registry of all."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from pydantic import JsonValue

from consilience.errors import PlanError, SearchError
from consilience.forecasting import search as room
from consilience.forecasting.search.base import SearchClient
from consilience.forecasting.search.clients import SEARCH_CLIENTS
from consilience.forecasting.search.corpus import Corpus
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.executor import Executor
from consilience.forecasting.search.none import NoSearch
from consilience.forecasting.search.records import Fetched, Tool, ToolRecord
from consilience.forecasting.search.replay import Recorded, Replay, call_key, recorded_calls
from consilience.forecasting.search.simulated import SimulatedSearch
from consilience.forecasting.search.urls import canonical_url

CUTOFF = datetime(2025, 2, 20, tzinfo=UTC)
SEEN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Asked:
    url: str | None = None
    resolution_criteria: str = ""
    blocked_domains: tuple[str, ...] = ()


def found(client: SearchClient, query: str, cutoff: datetime | None = CUTOFF, max_results: int = 3) -> list[Hit]:
    async def ask() -> list[Hit]:
        return list(await client.search(query, max_results=max_results, cutoff=cutoff))

    return anyio.run(ask)


def read(client: SearchClient, url: str, cutoff: datetime | None = CUTOFF) -> Hit:
    async def ask() -> Hit:
        return await client.read(url, cutoff=cutoff)

    return anyio.run(ask)


def simulated(seed: int = 7) -> SimulatedSearch:
    return SimulatedSearch(seed=seed, retrieved_at=SEEN)


def test_every_client_of_the_room_is_registered_under_its_own_name() -> None:
    kinds = {
        value
        for info in pkgutil.iter_modules(room.__path__)
        for value in vars(importlib.import_module(f"{room.__name__}.{info.name}")).values()
        if isinstance(value, type) and value.__module__.startswith(room.__name__)
        if all(hasattr(value, name) for name in ("name", "identity", "search", "read"))
        if not getattr(value, "_is_protocol", False)
    }
    made = {entry.name: getattr(entry.make, "__self__", entry.make) for entry in SEARCH_CLIENTS}
    assert set(made.values()) == kinds
    assert list(made) == ["corpus", "tavily", "mcp", "none", "simulated", "replay"]
    for client in (NoSearch(), simulated(), Replay({})):
        assert made[client.name] is type(client)
    assert made["corpus"] is Corpus
    assert Corpus.name == "corpus"


def test_none_finds_nothing_and_the_executor_says_disabled() -> None:
    assert found(NoSearch(), "rates") == []
    with pytest.raises(SearchError) as caught:
        read(NoSearch(), "https://a.example/")
    assert caught.value.failure == "not_found"
    executor = Executor(client=NoSearch(), question=Asked(), cutoff=None)

    async def use() -> ToolRecord:
        return await executor.search("rates", step=1)

    assert anyio.run(use).status == "disabled"


def test_simulated_hits_say_so_and_lie_before_the_cutoff() -> None:
    hits = found(simulated(), "Herring quota: will it be cut? Größe 金利", max_results=30)
    assert len({hit.url for hit in hits}) == 30
    for hit in hits:
        assert "simulated" in hit.title.lower()
        assert "simulated" in hit.text
        assert hit.published is not None
        assert CUTOFF - timedelta(days=366) < hit.published < CUTOFF
        assert canonical_url(hit.url) == hit.url
        assert read(simulated(), hit.url) == hit.model_copy(update={"score": None})


def test_simulated_hits_follow_from_seed_query_and_cutoff() -> None:
    assert found(simulated(), "rates") == found(simulated(), "Rates?!")
    assert found(simulated(), "rates") != found(simulated(8), "rates")
    assert found(simulated(), "rates") != found(simulated(), "rate")
    assert found(simulated(), "rates", max_results=5)[:3] == found(simulated(), "rates")
    assert found(simulated(), "?!") == []
    assert all(hit.published is not None and hit.published < SEEN for hit in found(simulated(), "rates", None))


@pytest.mark.parametrize(
    "url", ["https://a.example/x/0123456789abcdef", "https://simulated.example/x", "https://simulated.example/x/g" * 2]
)
def test_what_was_not_simulated_cannot_be_read(url: str) -> None:
    with pytest.raises(SearchError) as caught:
        read(simulated(), url)
    assert caught.value.failure == "not_found"


def test_a_moment_of_retrieval_without_a_zone_is_refused() -> None:
    with pytest.raises(PlanError, match="no time zone"):
        SimulatedSearch(seed=1, retrieved_at=datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused


async def course(client: SearchClient, carry: Callable[..., Awaitable[Fetched]]) -> list[dict[str, Any]]:
    executor = Executor(client=client, question=Asked(), cutoff=CUTOFF, carry=carry, clock=lambda: 0.0)
    await executor.search("rates", step=1)
    await executor.read("D02", step=2)
    await executor.search("herring quota", step=3)
    return [record.model_dump(mode="json") for record in executor.log]


def test_a_recorded_course_is_replayed_without_the_client() -> None:
    calls: list[tuple[str, dict[str, JsonValue], Recorded]] = []

    async def recording(tool: Tool, arguments: dict[str, JsonValue], work: Callable[[], Awaitable[Fetched]]) -> Fetched:
        fetched = await work()
        calls.append((tool, arguments, Fetched.model_validate_json(fetched.model_dump_json())))
        return fetched

    async def plain(tool: Tool, arguments: dict[str, JsonValue], work: Callable[[], Awaitable[Fetched]]) -> Fetched:
        del tool, arguments
        return await work()

    first = anyio.run(course, simulated(), recording)
    assert [record["status"] for record in first] == ["success"] * 3
    again = anyio.run(course, Replay(recorded_calls(calls)), plain)
    assert again == first


def test_what_was_not_asked_then_is_not_found_now() -> None:
    asked: dict[str, JsonValue] = {"query": "rates", "max_results": 3, "cutoff": CUTOFF.isoformat()}
    hits = tuple(found(simulated(), "rates"))
    client = Replay({call_key("search", asked): Fetched(status="success", hits=hits, duration_s=1.0)})
    assert found(client, "rates") == list(hits)
    for query, cutoff, most in (("rate", CUTOFF, 3), ("rates", None, 3), ("rates", CUTOFF, 4)):
        with pytest.raises(SearchError, match="made no such search") as caught:
            found(client, query, cutoff, most)
        assert caught.value.failure == "not_found"
    with pytest.raises(SearchError, match="made no such read"):
        read(client, hits[0].url)


def test_a_recorded_failure_fails_again_in_the_same_class() -> None:
    asked: dict[str, JsonValue] = {"url": "https://a.example/", "cutoff": CUTOFF.isoformat()}
    key = call_key("read", asked)
    client = Replay({key: Fetched(status="error", failure="rate_limited", duration_s=1.0)})
    with pytest.raises(SearchError, match="failed in the recorded run") as caught:
        read(client, "https://a.example/")
    assert caught.value.failure == "rate_limited"
    with pytest.raises(SearchError, match="holds no page"):
        read(Replay({key: Fetched(status="success", duration_s=1.0)}), "https://a.example/")


def test_the_first_success_of_a_call_counts_else_its_first_failure() -> None:
    timeout = Fetched(status="error", failure="timeout", duration_s=1.0)
    refused = Fetched(status="error", failure="refused", duration_s=1.0)
    first = Fetched(status="success", duration_s=1.0)
    second = Fetched(status="success", hits=tuple(found(simulated(), "x")), duration_s=1.0)
    key = call_key("search", {})
    for results, kept in (((timeout, refused), timeout), ((timeout, first, second), first), ((first, timeout), first)):
        assert recorded_calls([("search", {}, result) for result in results])[key] is kept


def test_the_identity_of_a_replay_is_what_was_recorded() -> None:
    first, second = (
        Fetched(status="success", hits=tuple(found(simulated(), query)), duration_s=1.0) for query in ("x", "y")
    )
    slow = first.model_copy(update={"duration_s": 9.0})
    assert Replay({"a": first}).identity == Replay({"a": slow}).identity
    assert Replay({"a": first}).identity != Replay({"a": second}).identity
    assert Replay({"a": first}).identity != Replay({"b": first}).identity
