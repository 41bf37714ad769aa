"""How fast a model is called: slots in turn, minutes that are kept, limits that give way and creep back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.models.throttle import MINUTE, Aimd, Rates, Throttle, Window

ROUNDING = 1e-6


@dataclass
class Clock:
    """Time that passes only where somebody waits for it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    async def wait(self, seconds: float) -> None:
        until = self.now + seconds
        await anyio.lowlevel.checkpoint()
        self.now = max(self.now, until)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("consilience.models.throttle.anyio.sleep", found.wait)
    return found


async def steps(count: int) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


# Additive increase, multiplicative decrease


def test_one_429_is_an_accident_and_two_in_a_row_halve() -> None:
    aimd = Aimd(8)
    aimd.limited(since=0)
    assert aimd.limit == 8
    aimd.answered()
    aimd.limited(since=0)
    assert aimd.limit == 8
    aimd.limited(since=0)
    assert (aimd.limit, aimd.cuts) == (4, 1)


def test_one_burst_of_429s_halves_once_and_the_next_halves_again() -> None:
    aimd = Aimd(16)
    for _ in range(16):
        aimd.limited(since=0)
    assert aimd.limit == 8
    for _ in range(8):
        aimd.limited(since=1)
    assert aimd.limit == 4


def test_it_creeps_back_by_one_slot_per_round_and_never_passes_the_limit() -> None:
    aimd = Aimd(6)
    for cut in range(5):
        aimd.limited(since=cut)
        aimd.limited(since=cut)
    assert (aimd.limit, aimd.slots) == (1, 1)
    rounds = []
    while aimd.slots < 6:
        for _ in range(aimd.slots):
            aimd.answered()
        rounds.append(aimd.slots)
    assert rounds[0] == 2
    assert len(rounds) <= 8
    for _ in range(100):
        aimd.answered()
    assert aimd.limit == 6


@given(most=st.integers(1, 64), news=st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=200))
def test_whatever_is_heard_the_limit_stays_between_one_and_the_configured(
    most: int, news: list[tuple[bool, int]]
) -> None:
    aimd = Aimd(most)
    for limited, late in news:
        before = aimd.limit
        if limited:
            aimd.limited(since=max(0, aimd.cuts - late))
            assert before / 2 <= aimd.limit <= before
        else:
            aimd.answered()
            assert before <= aimd.limit <= before + 1
        assert 1 <= aimd.limit <= most
        assert 1 <= aimd.slots <= most


# Minutes


@settings(max_examples=150)
@given(
    limit=st.integers(1, 50),
    amounts=st.lists(st.integers(0, 60), max_size=40),
    gaps=st.lists(st.floats(0, 40), min_size=40, max_size=40),
)
def test_no_minute_holds_more_than_its_limit_but_for_one_amount_that_is_larger(
    limit: int, amounts: list[int], gaps: list[float]
) -> None:
    window, now = Window(limit), 0.0
    used: list[tuple[float, int]] = []
    for amount, gap in zip(amounts, gaps, strict=False):
        now += gap
        now += window.wait(amount, now=now)
        window.add(amount, now=now)
        used.append((now, amount))
        minute = [size for at, size in used if at > now - MINUTE + ROUNDING]
        assert sum(minute) <= limit or sum(minute) == amount


def test_without_a_limit_nothing_is_waited_for_or_kept() -> None:
    window = Window(None)
    window.add(10**9, now=0.0)
    assert (window.wait(10**9, now=0.0), len(window._entries)) == (0.0, 0)


def test_an_empty_minute_lets_any_amount_pass() -> None:
    window = Window(10)
    assert window.wait(1_000, now=0.0) == 0.0
    window.add(1_000, now=0.0)
    assert window.wait(1, now=1.0) == 59.0
    assert window.wait(1_000, now=60.0) == 0.0


def leaves(throttle: Throttle, clock: Clock, sizes: list[int]) -> list[float]:
    """When each of several calls that come at once may leave."""
    at: list[float] = []

    async def one(tokens: int) -> None:
        async with throttle.slot(tokens):
            at.append(clock.now)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for tokens in sizes:
                group.start_soon(one, tokens)

    anyio.run(run)
    return at


def test_requests_per_minute_are_kept(clock: Clock) -> None:
    throttle = Throttle(4, requests_per_minute=10, clock=clock)
    at = leaves(throttle, clock, [1] * 25)
    assert at == [0.0] * 10 + [60.0] * 10 + [120.0] * 5


def test_tokens_per_minute_are_kept(clock: Clock) -> None:
    throttle = Throttle(1, tokens_per_minute=1_000, clock=clock)
    assert leaves(throttle, clock, [400, 400, 400, 900, 5_000, 1]) == [0.0, 0.0, 60.0, 120.0, 180.0, 240.0]


@settings(max_examples=40)
@given(
    concurrency=st.integers(1, 8),
    requests=st.integers(1, 20),
    tokens=st.integers(1, 2_000),
    sizes=st.lists(st.integers(0, 1_500), max_size=30),
)
def test_both_limits_hold_in_every_minute_whoever_comes_at_once(
    concurrency: int, requests: int, tokens: int, sizes: list[int]
) -> None:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("consilience.models.throttle.anyio.sleep", clock.wait)
        throttle = Throttle(concurrency, requests_per_minute=requests, tokens_per_minute=tokens, clock=clock)
        left: list[tuple[float, int]] = []

        async def one(size: int) -> None:
            async with throttle.slot(size):
                left.append((clock.now, size))
                await steps(2)

        async def run() -> None:
            async with anyio.create_task_group() as group:
                for size in sizes:
                    group.start_soon(one, size)

        anyio.run(run)
    assert sorted(size for _, size in left) == sorted(sizes)
    for now, amount in left:
        minute = [size for at, size in left if now - MINUTE + ROUNDING < at <= now]
        assert len(minute) <= requests
        assert sum(minute) <= tokens or sum(minute) == max(minute, default=amount)
    assert throttle.in_flight == 0


# Slots


def run_many(throttle: Throttle, count: int, use: Callable[[int], Awaitable[None]]) -> int:
    """Let so many callers hold a slot for a while; return the most that held one at once."""
    most = 0

    async def one(number: int) -> None:
        nonlocal most
        async with throttle.slot(1):
            most = max(most, throttle.in_flight)
            await use(number)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for number in range(count):
                group.start_soon(one, number)

    anyio.run(run)
    return most


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_slots_are_given_in_the_order_of_coming(concurrency: int) -> None:
    served: list[int] = []

    async def use(number: int) -> None:
        served.append(number)
        await steps(number % 3)

    assert run_many(Throttle(concurrency), 40, use) == concurrency
    assert served == list(range(40))


def test_who_comes_late_does_not_pass_those_who_wait() -> None:
    served: list[str] = []

    async def run() -> None:
        throttle = Throttle(1)

        async def one(name: str) -> None:
            async with throttle.slot(1):
                served.append(name)
                await steps(1)

        async with anyio.create_task_group() as group:
            async with throttle.slot(1):
                group.start_soon(one, "early")
                await steps(3)
            await one("late")  # the slot is free by now, and promised

    anyio.run(run)
    assert served == ["early", "late"]


def test_a_halved_limit_holds_at_once_and_opens_again() -> None:
    async def run() -> tuple[int, int]:
        throttle = Throttle(4)

        async with AsyncExitStack() as held:
            heard = [await held.enter_async_context(throttle.slot(1)) for _ in range(4)]
            for tell in heard:
                tell(429)
        halved = throttle.aimd.slots
        for _ in range(8):
            async with throttle.slot(1) as tell:
                tell(None)
        return halved, throttle.aimd.slots

    assert anyio.run(run) == (2, 4)


def test_other_statuses_say_nothing_of_the_limit() -> None:
    async def run() -> float:
        throttle = Throttle(4)
        for status in (500, 529, 400, 503):
            async with throttle.slot(1) as tell:
                tell(status)
        return throttle.aimd.limit

    assert anyio.run(run) == 4.0


@dataclass
class Crowd:
    """Callers that come, hold and are called off at random."""

    throttle: Throttle
    done: list[int] = field(default_factory=list)
    most: int = 0

    async def one(self, number: int, hold: int, *, cancelled_after: int | None, told: int | None) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                if cancelled_after is not None:
                    group.start_soon(self.call_off, scope, cancelled_after)
                async with self.throttle.slot(1) as heard:
                    self.most = max(self.most, self.throttle.in_flight)
                    await steps(hold)
                    heard(told)
                group.cancel_scope.cancel()
        self.done.append(number)

    async def call_off(self, scope: anyio.CancelScope, after: int) -> None:
        await steps(after)
        scope.cancel()


@settings(max_examples=80)
@given(
    concurrency=st.integers(1, 5),
    callers=st.lists(
        st.tuples(st.integers(0, 5), st.none() | st.integers(0, 12), st.sampled_from([None, None, 429, 429, 429, 500])),
        max_size=24,
    ),
)
def test_no_slot_is_lost_and_none_is_given_twice_whoever_is_called_off(
    concurrency: int, callers: list[tuple[int, int | None, int | None]]
) -> None:
    crowd = Crowd(Throttle(concurrency))

    async def run() -> None:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for number, (hold, cancelled_after, told) in enumerate(callers):
                    group.start_soon(partial(crowd.one, number, hold, cancelled_after=cancelled_after, told=told))

    anyio.run(run)
    assert sorted(crowd.done) == list(range(len(callers)))
    assert crowd.most <= concurrency
    assert (crowd.throttle.in_flight, len(crowd.throttle._waiting)) == (0, 0)


def test_a_models_own_limit_goes_before_the_general_one() -> None:
    assert Rates().throttle(6).aimd.most == 6
    assert Rates(concurrency=2).throttle(6).aimd.most == 2
