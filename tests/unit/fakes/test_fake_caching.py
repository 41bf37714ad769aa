"""What prompts cost at the fake: which tokens are read from the cache, written to it, or neither."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from consilience.fakes.caching import Charge, PrefixStore, charge_explicit, charge_implicit
from consilience.fakes.calls import Call, Segment, Ttl
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import Settings
from vendor_clients import SYSTEM, TASK, Clients, messages, responses, with_clients
from vendor_clients import ask as ask_fake

LONG = "x" * 8_000  # 2,000 tokens


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def call(*parts: tuple[str, Ttl | None], head: str = "", domain: str = "", implicit: Ttl | None = None) -> Call:
    return Call(
        endpoint="messages",
        model="m",
        segments=tuple(Segment("user", text, ttl) for text, ttl in parts),
        head=head,
        schema=None,
        max_tokens=None,
        thinks=False,
        cache_domain=domain,
        implicit_ttl=implicit,
    )


def explicit(store: PrefixStore, asked: Call, *, minimum: int = 1_024) -> tuple[int, int, dict[Ttl, int]]:
    charge = charge_explicit(asked, store, minimum=minimum)
    assert charge.plain + charge.read + sum(charge.written.values()) == asked.total_tokens
    charge.commit(store)
    return charge.plain, charge.read, charge.written


def implicit(store: PrefixStore, asked: Call) -> Charge:
    charge = charge_implicit(asked, store)
    assert charge.plain + charge.read + sum(charge.written.values()) == asked.total_tokens
    charge.commit(store)
    return charge


def test_a_prefix_is_written_once_and_then_read() -> None:
    store = PrefixStore(Clock())
    first = call((LONG, "5m"), ("abcd", None))
    assert explicit(store, first) == (1, 0, {"5m": 2_000})
    assert explicit(store, first) == (1, 2_000, {})
    assert explicit(store, call((LONG, "5m"), ("abcdefgh", None))) == (2, 2_000, {})


def test_the_second_breakpoint_extends_the_first() -> None:
    store = PrefixStore(Clock())
    explicit(store, call((LONG, "1h")))
    assert explicit(store, call((LONG, "1h"), (LONG, "5m"), ("abcd", None))) == (1, 2_000, {"5m": 2_000})
    assert explicit(store, call((LONG, "1h"), (LONG, "5m"))) == (0, 4_000, {})
    assert explicit(store, call((LONG, "1h"), (LONG[1:] + "y", "5m"))) == (0, 2_000, {"5m": 2_000})


@pytest.mark.parametrize("changed", [{"head": "s"}, {"domain": "effort=high"}])
def test_whatever_stands_before_is_part_of_the_prefix(changed: dict[str, Any]) -> None:
    store = PrefixStore(Clock())
    explicit(store, call((LONG, "5m")))
    assert explicit(store, call((LONG, "5m"), **changed))[1] == 0


def test_short_prefixes_and_unmarked_ones_are_not_cached() -> None:
    store = PrefixStore(Clock())
    for _ in range(2):
        assert explicit(store, call((LONG, "5m")), minimum=4_096) == (2_000, 0, {})
        assert explicit(store, call((LONG, None))) == (2_000, 0, {})


def test_entries_are_found_up_to_twenty_blocks_back() -> None:
    store = PrefixStore(Clock())
    explicit(store, call((LONG, "5m")))
    near = call((LONG, None), *[("abcd", None)] * 19, ("abcd", "5m"))
    assert explicit(store, near)[1] == 2_000
    store = PrefixStore(Clock())
    explicit(store, call((LONG, "5m")))
    far = call((LONG, None), *[("abcd", None)] * 20, ("abcd", "5m"))
    assert explicit(store, far)[1] == 0


def test_entries_expire_unless_they_are_read() -> None:
    clock = Clock()
    store = PrefixStore(clock)
    asked = call((LONG, "5m"))
    explicit(store, asked)
    clock.now = 299
    assert explicit(store, asked)[1] == 2_000
    clock.now = 598
    assert explicit(store, asked)[1] == 2_000, "reading renewed it"
    clock.now = 898
    assert explicit(store, asked)[1] == 0


def test_automatic_caching_goes_in_steps_of_128_from_1024() -> None:
    store = PrefixStore(Clock())
    shorter = call(("x" * 4_000, None), implicit="30m")
    assert implicit(store, shorter) == Charge(plain=1_000)
    longer = call((LONG, None), ("abcd" * 10, None), implicit="30m")
    assert implicit(store, longer).written == {"30m": 1_920}
    other = implicit(store, call((LONG[:6_000], None), ("y" * 4_000, None), implicit="30m"))
    assert (other.read, other.written) == (1_408, {"30m": 2_432 - 1_408})


def test_explicit_breakpoints_are_exact_and_may_stand_alone() -> None:
    store = PrefixStore(Clock())
    marked = call((LONG[:7_700], "12h"), ("y" * 4_000, None))
    assert implicit(store, marked).written == {"12h": 1_925}
    assert implicit(store, marked).read == 1_925
    assert implicit(store, call((LONG, None), (LONG, None))).written == {}


def test_messages_report_disjoint_buckets(fake: FakeServer) -> None:
    first, second = (ask_fake(fake, "messages").usage for _ in range(2))
    assert first.cache_read_input_tokens == 0
    assert first.cache_creation_input_tokens == first.cache_creation.ephemeral_5m_input_tokens > len(SYSTEM) // 4
    assert first.cache_creation.ephemeral_1h_input_tokens == 0
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0
    assert first.input_tokens == second.input_tokens == pytest.approx(len(TASK) / 4, abs=1)
    assert first.output_tokens_details.thinking_tokens == 32


def test_responses_include_cached_tokens_in_the_input(fake: FakeServer) -> None:
    first, second = (ask_fake(fake, "responses").usage for _ in range(2))
    other = ask_fake(fake, "responses", responses(prompt_cache_key="other")).usage
    assert first.input_tokens == second.input_tokens == other.input_tokens
    assert first.input_tokens_details.cached_tokens == other.input_tokens_details.cached_tokens == 0
    assert first.input_tokens_details.cache_write_tokens == second.input_tokens_details.cached_tokens
    assert second.input_tokens_details.cached_tokens % 128 == 0
    assert second.input_tokens_details.cache_write_tokens == 0
    assert first.total_tokens == first.input_tokens + first.output_tokens
    assert first.output_tokens_details.reasoning_tokens == 32


def test_a_schema_that_changes_breaks_the_prefix(fake: FakeServer) -> None:
    ask_fake(fake, "messages")
    plain = messages()
    del plain["output_config"]["format"]
    assert ask_fake(fake, "messages", plain).usage.cache_read_input_tokens == 0


def test_calls_under_way_together_all_miss(fake: FakeServer) -> None:
    fake.reset(settings=Settings(latency_s=0.02))

    async def use(clients: Clients) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(clients.ask, "messages", messages())
        await clients.ask("messages", messages())

    with_clients(fake, use)
    usages = [hit.usage for hit in fake.calls()]
    assert [bool(usage and usage["cache_read_input_tokens"]) for usage in usages] == [False, False, False, True]
