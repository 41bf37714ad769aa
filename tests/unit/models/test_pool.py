from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from consilience.errors import (
    BudgetError,
    ConsilienceError,
    FinalModelError,
    StoppedError,
    TransientModelError,
    UnreachedModelError,
)
from consilience.journal.budget import Budget
from consilience.journal.events import AttemptError, AttemptReserved, AttemptResponse, RunStarted, Where
from consilience.journal.writer import JournalWriter
from consilience.models.base import Identity
from consilience.models.calls import Asked, Call, Limits, Stop
from consilience.models.pool import SCHEMA_OVERHEAD_TOKENS, ModelPool
from consilience.models.prices import bound_nano, cost_nano
from consilience.models.request import Block, Completion, Contract, Message, Request, Usage
from consilience.models.scripted import IDENTITY, Reply, Scripted, completion
from engine_cases import LIST_PRICE, MODEL, events_of

LIMITS = Limits(concurrency=2, attempts=4, attempt_s=20.0, total_s=60.0, backoff_s=0.5, backoff_cap_s=3.0)
USED = Usage(10, 0, 0, 0, 20, 0)
CONTRACT = Contract(name="c", schema={}, sha256="0", size=2)
REQUEST = Request(
    model=MODEL,
    system=(Block("Judge.", cache=True),),
    messages=(Message("user", (Block("What is it wörth?", cache=False),)),),
    tools=(),
    contract=CONTRACT,
    max_output_tokens=100,
    effort="medium",
    sampling=None,
    replicate=0,
)
BOUND = bound_nano(
    input_tokens=len("Judge.") + len("What is it wörth?".encode()) + CONTRACT.size + SCHEMA_OVERHEAD_TOKENS,
    output_tokens=100,
    price=LIST_PRICE,
)


@dataclass
class Bench:
    """A pool over one model, with its money and record."""

    pool: ModelPool
    budget: Budget
    stop: Stop
    waits: list[float] = field(default_factory=list)

    async def ask(self, number: int = 0, request: Request = REQUEST, **changes: Any) -> Call:
        asked = Asked(Where(f"item-{number}", 0, "analyst_01", "estimate", 0), "skeptic", 0, 0, None)
        return await self.pool.call(request, replace(asked, **changes))


def bench(
    folder: Path,
    model: Any,
    use: Callable[[Bench], Awaitable[Any]],
    *,
    cap_nano: int | None = None,
    limits: Limits = LIMITS,
    price: Any = LIST_PRICE,
) -> Any:
    """Let ``use`` work with a pool, and return what it returns."""

    async def run() -> Any:
        journal = JournalWriter(folder, clock=lambda: datetime(2026, 11, 1, tzinfo=UTC))
        journal.append(RunStarted(run_id="r", protocol_sha256="0" * 64, package_version="0"))
        budget, stop = Budget(cap_nano), Stop()
        pool = ModelPool(
            {MODEL: model},
            prices={MODEL: price},
            budget=budget,
            journal=journal,
            limits=limits,
            jitter=lambda: 0.5,
            stop=stop,
        )
        try:
            return await use(Bench(pool, budget, stop))
        finally:
            await journal.close()
            assert (budget.in_flight, budget.reserved_nano) == (0, 0)

    return anyio.run(run)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every wait between tries; none is really waited."""
    found: list[float] = []

    async def note(seconds: float) -> None:
        found.append(seconds)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("consilience.models.pool.anyio.sleep", note)
    return found


def answer(request: Request = REQUEST, **changes: Any) -> Completion:
    return replace(completion(request, "{}", usage=USED), **changes)


def overloaded(retry_after_s: float | None = None, status: int | None = 429) -> TransientModelError:
    return TransientModelError("overloaded", hint="Wait.", status=status, retry_after_s=retry_after_s)


def ask_one(bench: Bench) -> Awaitable[Call]:
    return bench.ask()


async def fails(bench: Bench) -> ConsilienceError:
    with pytest.raises(ConsilienceError) as caught:
        await bench.ask()
    return caught.value


def test_an_answer_is_paid_at_list_price_and_recorded(tmp_path: Path) -> None:
    model = Scripted(MODEL, [answer()])
    call = bench(tmp_path, model, ask_one)
    cost = cost_nano(USED, LIST_PRICE)
    assert (call.completion, call.cost_nano, call.estimated, call.retries) == (answer(), cost, False, 0)
    reserved, response = (record.event for record in events_of(tmp_path, AttemptReserved, AttemptResponse))
    assert isinstance(reserved, AttemptReserved)
    assert isinstance(response, AttemptResponse)
    assert (reserved.reserved_nano, reserved.key, reserved.role) == (BOUND, response.key, "skeptic")
    assert (response.cost_nano, response.estimated, response.completion["text"]) == (cost, False, "{}")
    assert reserved.body["system"] == [{"cache": True, "text": "Judge."}]


def test_missing_usage_is_charged_as_reserved_and_said(tmp_path: Path) -> None:
    call = bench(tmp_path, Scripted(MODEL, [answer(usage=None)]), ask_one)
    assert (call.cost_nano, call.estimated) == (BOUND, True)
    (response,) = events_of(tmp_path, AttemptResponse)
    assert isinstance(response.event, AttemptResponse)
    assert (response.event.cost_nano, response.event.estimated) == (BOUND, True)
    assert response.event.completion["usage"] is None


def test_without_a_price_the_cost_is_unknown(tmp_path: Path) -> None:
    call = bench(tmp_path, Scripted(MODEL, [answer(usage=None)]), ask_one, price=None)
    assert (call.cost_nano, call.estimated) == (None, True)


def test_a_free_model_costs_nothing_not_something_unknown(tmp_path: Path) -> None:
    call = bench(tmp_path, Scripted(MODEL, [answer(usage=None)]), ask_one, price="free")
    assert (call.cost_nano, call.estimated) == (0, True)


def test_what_can_heal_is_tried_again_with_growing_jittered_waits(tmp_path: Path, waits: list[float]) -> None:
    errors = [overloaded(status=status) for status in (500, 529, 408)]
    call = bench(tmp_path, Scripted(MODEL, [*errors, answer()]), ask_one)
    assert call.retries == 3
    assert waits == [0.25, 0.5, 1.0]  # half of .5, 1, 2
    attempts = [record.event.attempt for record in events_of(tmp_path, AttemptReserved, AttemptError)]  # type: ignore[union-attr]
    assert attempts == [0, 0, 1, 1, 2, 2, 3]
    assert {record.event.charged_nano for record in events_of(tmp_path, AttemptError)} == {0}  # type: ignore[union-attr]


def test_waits_grow_no_longer_than_their_cap(tmp_path: Path, waits: list[float]) -> None:
    limits = replace(LIMITS, attempts=7)
    error = bench(tmp_path, Scripted(MODEL, [overloaded() for _ in range(7)]), fails, limits=limits)
    assert isinstance(error, TransientModelError)
    assert waits == [0.25, 0.5, 1.0, 1.5, 1.5, 1.5]
    assert len(events_of(tmp_path, AttemptReserved)) == 7


def test_retry_after_is_obeyed_when_it_fits(tmp_path: Path, waits: list[float]) -> None:
    bench(tmp_path, Scripted(MODEL, [overloaded(2.0), overloaded(0.0), answer()]), ask_one)
    assert waits == [2.0, 0.0]


def test_a_retry_after_that_does_not_fit_fails_and_says_so(tmp_path: Path, waits: list[float]) -> None:
    error = bench(tmp_path, Scripted(MODEL, [overloaded(300.0)]), fails)
    assert isinstance(error, TransientModelError)
    assert "waiting 300 s more would pass the limit of 60 s" in str(error)
    assert (error.status, waits) == (429, [])
    assert len(events_of(tmp_path, AttemptReserved)) == 1


def test_waits_add_up_to_the_total(tmp_path: Path, waits: list[float]) -> None:
    error = bench(tmp_path, Scripted(MODEL, [overloaded(25.0) for _ in range(4)]), fails)
    assert "would pass the limit of 60 s" in str(error)
    assert waits == [25.0, 25.0]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
def test_what_cannot_heal_is_tried_once(tmp_path: Path, waits: list[float], status: int) -> None:
    final = FinalModelError("refused", hint="Mend the key.", status=status)
    error = bench(tmp_path, Scripted(MODEL, [final]), fails)
    assert (error, waits) == (final, [])
    (record,) = events_of(tmp_path, AttemptError)
    assert isinstance(record.event, AttemptError)
    assert record.event.error == {
        "type": "FinalModelError",
        "message": "refused",
        "hint": "Mend the key.",
        "status": status,
        "retry_after_s": None,
    }
    assert record.event.charged_nano == 0


def test_a_connection_never_made_costs_nothing_and_is_tried_again(tmp_path: Path, waits: list[float]) -> None:
    unreached = UnreachedModelError("nobody there", hint="Check the network.")
    model = Scripted(MODEL, [unreached, unreached, answer()])
    call = bench(tmp_path, model, ask_one)
    assert (call.retries, len(waits)) == (2, 2)
    errors = [record.event for record in events_of(tmp_path, AttemptError)]
    assert [error.charged_nano for error in errors if isinstance(error, AttemptError)] == [0, 0]


@dataclass
class Hanging:
    """A model that answers from its second call on, or never."""

    heals: bool
    id: str = MODEL
    identity: Identity = IDENTITY
    min_cacheable_tokens: int | None = None
    calls: int = 0

    def wire_body(self, request: Request) -> dict[str, Any]:
        return {"text": request.messages[0].blocks[0].text}

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        if self.calls == 1 or not self.heals:
            await anyio.sleep_forever()
        return answer(request)


def test_a_try_that_hangs_is_cut_off_charged_as_reserved_and_tried_again(tmp_path: Path, waits: list[float]) -> None:
    paid: list[int] = []

    async def use(bench: Bench) -> Call:
        call = await bench.ask()
        paid.append(bench.pool.paid_nano["item-0"])
        return call

    call = bench(tmp_path, Hanging(heals=True), use, limits=replace(LIMITS, attempt_s=0.01))
    assert (call.retries, len(waits)) == (1, 1)
    (record,) = events_of(tmp_path, AttemptError)
    assert isinstance(record.event, AttemptError)
    assert (record.event.charged_nano, record.event.error["status"]) == (BOUND, None)
    assert "did not answer within" in record.event.error["message"]
    assert paid == [(BOUND or 0) + (call.cost_nano or 0)]


def test_all_tries_together_keep_the_total_time(tmp_path: Path) -> None:
    limits = Limits(concurrency=1, attempts=50, attempt_s=0.4, total_s=0.6, backoff_s=0.0, backoff_cap_s=0.0)
    model = Hanging(heals=False)
    error = bench(tmp_path, model, fails, limits=limits)
    assert isinstance(error, TransientModelError)
    assert model.calls == 2  # 400 ms, then the 200 ms that are left


@dataclass
class Counting:
    """A model that notes how many calls it has at once."""

    id: str = MODEL
    identity: Identity = IDENTITY
    min_cacheable_tokens: int | None = None
    now: int = 0
    most: int = 0

    def wire_body(self, request: Request) -> dict[str, Any]:
        return {"text": request.messages[0].blocks[0].text}

    async def complete(self, request: Request) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        self.now -= 1
        return answer(request)


async def ask_many(bench: Bench) -> int:
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(partial(bench.ask, number))
    return bench.pool.live_calls


@pytest.mark.parametrize("concurrency", [1, 2, 6])
def test_no_more_calls_are_in_flight_than_allowed(tmp_path: Path, concurrency: int) -> None:
    model = Counting()
    assert bench(tmp_path, model, ask_many, limits=replace(LIMITS, concurrency=concurrency)) == 20
    assert model.most == concurrency


def test_the_cap_stops_before_the_call(tmp_path: Path) -> None:
    model = Scripted(MODEL, [answer()])
    error = bench(tmp_path, model, fails, cap_nano=(BOUND or 0) - 1)
    assert isinstance(error, BudgetError)
    assert (model.requests, events_of(tmp_path, AttemptReserved)) == ([], [])


def test_a_failed_try_counts_against_the_cap(tmp_path: Path, waits: list[float]) -> None:
    lost = TransientModelError("connection lost", hint="Wait.")
    model = Scripted(MODEL, [lost, answer()])
    error = bench(tmp_path, model, fails, cap_nano=2 * (BOUND or 0) - 1)
    assert isinstance(error, BudgetError)
    assert (len(model.requests), len(waits)) == (1, 1)


def test_waiting_for_money_takes_nothing_from_the_time_of_a_call(
    tmp_path: Path, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call waits 50 s until the first gives its reservation back, and then has its whole minute."""
    now = 0.0
    monkeypatch.setattr("consilience.models.pool.anyio.current_time", lambda: now)
    said: list[Reply] = [answer(), overloaded(20.0), answer()]

    @dataclass
    class Slow(Counting):
        async def complete(self, request: Request) -> Completion:
            nonlocal now
            assert request == REQUEST
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            now += 50.0 if self.most == 0 else 0.0
            self.most += 1
            reply = said.pop(0)
            if isinstance(reply, Exception):
                raise reply
            assert isinstance(reply, Completion)
            return reply

    async def use(bench: Bench) -> int:
        async with anyio.create_task_group() as group:
            group.start_soon(bench.ask, 1)
            group.start_soon(bench.ask, 2)
        return bench.pool.live_calls

    assert bench(tmp_path, Slow(), use, cap_nano=2 * (BOUND or 0) - 1) == 3
    assert waits == [20.0]


def test_a_stopped_run_sends_nothing_and_finishes_what_is_in_flight(tmp_path: Path) -> None:
    model = Counting()

    async def use(bench: Bench) -> tuple[int, int]:
        stopped = 0

        async def one(number: int) -> None:
            nonlocal stopped
            try:
                await bench.ask(number)
            except StoppedError:
                stopped += 1

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(one, number)
            while model.now < 2:
                await anyio.lowlevel.checkpoint()
            bench.stop.requested = True
        return stopped, bench.pool.live_calls

    assert bench(tmp_path, model, use) == (3, 2)
    assert len(events_of(tmp_path, AttemptResponse)) == 2


def test_whoever_waits_for_money_when_the_run_stops_sends_nothing(tmp_path: Path) -> None:
    model = Counting()

    async def use(bench: Bench) -> int:
        async def one(number: int) -> None:
            try:
                await bench.ask(number)
            except StoppedError:
                return

        async with anyio.create_task_group() as group:
            group.start_soon(one, 1)
            group.start_soon(one, 2)
            while model.now < 1:
                await anyio.lowlevel.checkpoint()
            bench.stop.requested = True
        return bench.pool.live_calls

    assert bench(tmp_path, model, use, cap_nano=2 * (BOUND or 0) - 1) == 1


def test_a_mistake_in_a_model_gives_the_money_back_to_those_who_wait(tmp_path: Path) -> None:
    def wrong(_: Request) -> Reply:
        return IndexError("no more replies")

    async def use(bench: Bench) -> str:
        with pytest.raises(IndexError, match="no more replies"):
            await bench.ask()
        return f"{bench.budget.in_flight} {bench.budget.spent_nano}"

    assert bench(tmp_path, Scripted(MODEL, wrong), use) == f"0 {BOUND}"


def test_an_unknown_model_is_named_with_the_nearest(tmp_path: Path) -> None:
    async def use(bench: Bench) -> str:
        with pytest.raises(FinalModelError) as caught:
            await bench.ask(request=replace(REQUEST, model="mm"))
        return str(caught.value)

    assert 'no model "mm" in this run. Did you mean "m"' in bench(tmp_path, Scripted(MODEL, [answer()]), use)


def test_no_attempt_is_a_mistake_in_the_limits(tmp_path: Path) -> None:
    error = bench(tmp_path, Scripted(MODEL, []), fails, limits=replace(LIMITS, attempts=0))
    assert "Set limits.attempts to at least 1" in str(error)


def test_tries_of_earlier_processes_go_on_counting(tmp_path: Path) -> None:
    call = bench(tmp_path, Scripted(MODEL, [answer()]), lambda bench: bench.ask(tries_before=3))
    assert call.retries == 3
    (record,) = events_of(tmp_path, AttemptReserved)
    assert isinstance(record.event, AttemptReserved)
    assert record.event.attempt == 3
