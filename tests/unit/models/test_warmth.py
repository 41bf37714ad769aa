"""One call fills a prefix, the others wait for it and read it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.models.base import cacheable_prefixes
from consilience.models.request import Block, Contract, Message, Request
from consilience.models.warmth import WARM_S, Warmth


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def steps(count: int) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


class Kitchen:
    """Calls under way, and which of them found their prefix cold."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.warmth = Warmth(self.clock)
        self.written: set[str] = set()
        self.cold: list[str] = []
        self.under_way = self.most = 0

    async def call(self, prefixes: Sequence[str], *, takes: int = 3, fails: bool = False) -> None:
        async with self.warmth.around(prefixes) as filled:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.cold += [prefix for prefix in prefixes if prefix not in self.written]
            await steps(takes)
            self.under_way -= 1
            if not fails:
                self.written |= set(prefixes)
                filled()

    async def all_at_once(self, *calls: Sequence[str]) -> None:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for prefixes in calls:
                    group.start_soon(self.call, prefixes)


@pytest.mark.parametrize("count", [1, 2, 12])
def test_of_many_equal_calls_one_fills_and_the_rest_read_together(count: int) -> None:
    kitchen = Kitchen()
    anyio.run(kitchen.all_at_once, *[["system", "view"]] * count)
    assert kitchen.cold == ["system", "view"]
    assert kitchen.most == max(1, count - 1)


def test_calls_without_a_prefix_never_wait() -> None:
    kitchen = Kitchen()
    anyio.run(kitchen.all_at_once, *[[]] * 8)
    assert kitchen.most == 8


def test_different_prefixes_are_filled_together() -> None:
    kitchen = Kitchen()
    anyio.run(kitchen.all_at_once, *([f"seat {number}"] for number in range(8)))
    assert kitchen.most == 8


def test_a_shared_system_is_filled_once_and_then_every_view_at_once() -> None:
    kitchen = Kitchen()
    anyio.run(kitchen.all_at_once, *(["system", f"view {number}"] for number in range(6)))
    assert kitchen.cold.count("system") == 1
    assert kitchen.most == 5


def test_a_call_that_failed_has_filled_nothing_and_the_next_tries() -> None:
    kitchen = Kitchen()

    async def run() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(kitchen.call, ["system"], fails=True))
            for _ in range(3):
                group.start_soon(kitchen.call, ["system"])

    anyio.run(run)
    assert kitchen.cold == ["system", "system"]  # the one that failed, and the next


def test_a_warmer_that_is_called_off_keeps_nobody_waiting() -> None:
    kitchen = Kitchen()

    async def run() -> None:
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:
                group.start_soon(partial(kitchen.call, ["system"], takes=1))
                await anyio.lowlevel.checkpoint()
                scope.cancel()
                await kitchen.call(["system"])
        with anyio.fail_after(5):
            await kitchen.call(["system"])

    anyio.run(run)
    assert kitchen.written == {"system"}


def test_a_prefix_grows_cold_and_every_use_keeps_it_warm() -> None:
    clock = Clock()
    kitchen = Kitchen(clock)

    async def at(now: float) -> int:
        clock.now = now
        kitchen.most = 0
        await kitchen.all_at_once(["system"], ["system"])
        return kitchen.most

    async def run() -> list[int]:
        times = (0.0, WARM_S - 1, 2 * WARM_S - 2, 3 * WARM_S - 2)
        return [await at(now) for now in times]

    assert anyio.run(run) == [1, 2, 2, 1]


@settings(max_examples=60)
@given(
    calls=st.lists(
        st.tuples(st.lists(st.sampled_from("abcd"), unique=True, max_size=3), st.integers(0, 4), st.booleans()),
        max_size=20,
    )
)
def test_nobody_waits_for_ever_and_no_prefix_is_filled_by_two_at_once(calls: list[tuple[list[str], int, bool]]) -> None:
    warmth = Warmth(Clock())
    filling: list[str] = []
    done: list[int] = []
    warm: set[str] = set()

    async def one(number: int, prefixes: list[str], takes: int, fails: bool) -> None:
        async with warmth.around(prefixes) as filled:
            mine = [prefix for prefix in prefixes if prefix not in warm]
            assert not set(mine) & set(filling)
            filling.extend(mine)
            await steps(takes)
            for prefix in mine:
                filling.remove(prefix)
            if not fails:
                warm.update(prefixes)
                filled()
        done.append(number)

    async def run() -> None:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for number, call in enumerate(calls):
                    group.start_soon(one, number, *call)

    anyio.run(run)
    assert sorted(done) == list(range(len(calls)))


CONTRACT = Contract("c", {}, "0", 400)


def asked(system: str, view: str, *, model: str = "m", cached: tuple[bool, bool] = (True, True)) -> Request:
    return Request(
        model=model,
        system=(Block(system, cache=cached[0]),),
        messages=(Message("user", (Block(view, cache=cached[1]), Block("TASK", cache=False))),),
        tools=(),
        contract=CONTRACT,
        max_output_tokens=1,
        effort="medium",
        sampling=None,
        replicate=0,
    )


def test_prefixes_end_at_breakpoints_that_are_long_enough() -> None:
    system, view = "s" * 4_000, "v" * 4_000
    assert cacheable_prefixes(asked(system, view), None) == ()
    assert len(cacheable_prefixes(asked(system, view), 1_024)) == 2
    assert len(cacheable_prefixes(asked(system, view), 1_101)) == 1
    assert cacheable_prefixes(asked(system, view), 3_000) == ()
    assert len(cacheable_prefixes(asked(system, view, cached=(True, False)), 1_024)) == 1
    assert cacheable_prefixes(asked(system, view, cached=(False, False)), 1_024) == ()


def test_prefixes_are_shared_exactly_where_the_bytes_are() -> None:
    def found(*texts: str, **changes: str) -> tuple[str, ...]:
        return cacheable_prefixes(asked(*texts, **changes), 1)  # type: ignore[arg-type]

    first, second = found("s" * 40, "v" * 40), found("s" * 40, "w" * 40)
    assert (first[0] == second[0], first[1] == second[1]) == (True, False)
    assert not set(first) & set(found("s" * 40, "v" * 40, model="n"))
    assert not set(first) & set(found("t" + "s" * 39, "v" * 40))
