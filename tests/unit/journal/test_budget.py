from __future__ import annotations

from functools import partial

import anyio
import anyio.lowlevel
import pytest

from consilience.errors import BudgetError
from consilience.journal.budget import Budget, Envelope, usd

CENT = 10_000_000


def test_48_ready_turns_under_five_cents_are_exactly_five_calls() -> None:
    budget = Budget(5 * CENT)
    calls: list[int] = []
    refused: list[BudgetError] = []

    async def item(index: int) -> None:
        try:
            envelope = await budget.admit(CENT)
            reservation = await budget.acquire(CENT, envelope)
        except BudgetError as error:
            refused.append(error)
            return
        calls.append(index)
        for _ in range(index % 4):
            await anyio.lowlevel.checkpoint()
        budget.settle(reservation, CENT)
        budget.end(envelope)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for index in range(48):
                group.start_soon(item, index)

    anyio.run(run)
    assert (len(calls), budget.spent_nano, budget.reserved_nano, budget.held_nano) == (5, 5 * CENT, 0, 0)
    assert len(refused) == 43
    assert refused[0].exit_code == 4
    assert "$0.05 of $0.05 spent, the next item may need up to $0.01" in str(refused[0])


def test_zero_means_zero_and_none_means_no_cap() -> None:
    assert Budget(0).reserve(1) is None
    assert Budget(0).reserve(0) is not None
    assert Budget(None).reserve(10**18) is not None
    with pytest.raises(BudgetError, match="the next call needs"):
        anyio.run(Budget(0).acquire, 1)


def test_what_a_resumed_run_spent_counts() -> None:
    budget = Budget(100, spent_nano=90)
    assert budget.reserve(11) is None
    assert budget.reserve(10) is not None
    assert Budget(100, spent_nano=150).reserve(1) is None


def test_a_charge_above_the_bound_is_recorded_as_it_is() -> None:
    budget = Budget(100)
    reservation = budget.reserve(60)
    assert reservation is not None
    budget.settle(reservation, 130)
    assert (budget.spent_nano, budget.overrun_nano, budget.reserved_nano) == (130, 70, 0)
    assert budget.reserve(1) is None


def test_nothing_is_settled_twice_or_negative() -> None:
    budget = Budget(100)
    reservation = budget.reserve(60)
    assert reservation is not None
    budget.release(reservation)
    assert budget.spent_nano == 0
    with pytest.raises(ValueError, match="settled already"):
        budget.settle(reservation, 1)
    with pytest.raises(ValueError, match="negative"):
        budget.reserve(-1)
    with pytest.raises(ValueError, match="negative"):
        Budget(-1)


def test_a_smaller_settlement_lets_those_who_wait_in_first_come_first() -> None:
    budget = Budget(100)
    served: list[str] = []

    async def wait(name: str, nano: int) -> None:
        await budget.acquire(nano)
        served.append(name)

    async def run() -> None:
        first = budget.reserve(100)
        assert first is not None
        async with anyio.create_task_group() as group:
            for name, nano in (("a", 40), ("b", 60), ("c", 1)):
                group.start_soon(wait, name, nano)
                await anyio.lowlevel.checkpoint()
            assert served == []
            budget.settle(first, 50)  # 50 are free: "a" first, "b" does not fit, "c" does
            await anyio.lowlevel.checkpoint()
            assert served == ["a", "c"]
            group.cancel_scope.cancel()

    anyio.run(run)
    assert budget.reserved_nano == 41


def test_a_cancelled_waiter_leaves_nothing_behind() -> None:
    budget = Budget(100)

    async def run(*, served: bool) -> None:
        first = budget.reserve(100)
        assert first is not None
        async with anyio.create_task_group() as group:
            group.start_soon(budget.acquire, 10)
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
            if served:
                budget.release(first)
                assert budget.reserved_nano == 10  # served while its cancellation is on the way
        if not served:
            budget.release(first)

    for served in (True, False):
        anyio.run(partial(run, served=served))
        assert (budget.reserved_nano, budget.in_flight, budget._attempts) == (0, 0, [])


def test_items_are_admitted_whole() -> None:
    budget = Budget(100)
    admitted: list[Envelope] = []

    async def item(bound: int) -> None:
        admitted.append(await budget.admit(bound))

    async def run() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(item, 60)
            group.start_soon(item, 50)
            await anyio.lowlevel.checkpoint()
            assert [envelope.bound_nano for envelope in admitted] == [60]
            attempt = budget.reserve(20, admitted[0])
            assert attempt is not None
            assert budget.held_nano == 40
            budget.settle(attempt, 10)
            assert budget.held_nano == 50
            budget.end(admitted[0])
            await anyio.lowlevel.checkpoint()
            assert [envelope.bound_nano for envelope in admitted] == [60, 50]

    anyio.run(run)
    assert (budget.spent_nano, budget.held_nano) == (10, 50)


def test_an_item_may_draw_beyond_its_envelope_on_what_nobody_holds() -> None:
    budget = Budget(100)
    mine, other = budget._admit(30), budget._admit(50)
    assert mine is not None
    assert other is not None
    flying = budget.reserve(30, mine)
    assert flying is not None
    assert budget.reserve(21, mine) is None  # 20 are free; the rest is held for the other item
    assert budget.reserve(20, mine) is not None
    assert budget.reserve(50, other) is not None
    assert (budget.reserved_nano, budget.held_nano) == (100, 0)


def test_when_waiting_cannot_help_an_item_may_draw_on_what_another_holds() -> None:
    budget = Budget(100)
    mine, other = budget._admit(30), budget._admit(50)
    assert mine is not None
    assert other is not None
    assert budget.reserve(60, mine) is not None
    assert budget.reserve(50, other) is None
    assert budget.spent_nano + budget.reserved_nano <= 100


def test_an_item_larger_than_the_cap_is_refused_at_once() -> None:
    with pytest.raises(BudgetError, match=r"the next item may need up to \$0\.02"):
        anyio.run(Budget(CENT).admit, 2 * CENT)


def test_a_cap_below_what_is_spent_is_said_to_be_so() -> None:
    with pytest.raises(BudgetError, match=r"cap of \$0\.01 lies below the \$0\.03 .* spent already.* above \$0\.05"):
        anyio.run(Budget(CENT, spent_nano=3 * CENT).admit, 2 * CENT)


def test_dollars() -> None:
    assert [usd(nano) for nano in (0, 1, 10**9, -1_500_000_000, 1_234_000_000_000)] == [
        "$0.00",
        "$0.000000001",
        "$1.00",
        "-$1.50",
        "$1,234.00",
    ]


def test_an_attempt_left_open_is_reserved_again_and_never_counted_twice() -> None:
    budget = Budget(50, spent_nano=30)
    adopted = budget.adopt(30)
    assert (budget.spent_nano, budget.reserved_nano, budget.in_flight) == (0, 30, 1)
    assert budget.reserve(21) is None
    budget.settle(adopted, 5)
    assert (budget.spent_nano, budget.reserved_nano, budget.in_flight) == (5, 0, 0)
    assert budget.reserve(45) is not None
    with pytest.raises(ValueError, match="settled already"):
        budget.settle(adopted, 5)


def test_who_waits_for_money_waits_for_adopted_attempts_too() -> None:
    async def run() -> list[int]:
        budget, found = Budget(50, spent_nano=50), list[int]()

        async def wait() -> None:
            found.append((await budget.acquire(20)).nano)

        adopted = budget.adopt(50)
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert found == []
            budget.settle(adopted, 10)
        return found

    assert anyio.run(run) == [20]
