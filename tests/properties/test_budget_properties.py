from __future__ import annotations

import anyio
import anyio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from consilience.errors import BudgetError
from consilience.journal.budget import Budget, Envelope, Reservation

AMOUNT = st.integers(0, 40)


class BudgetMachine(RuleBasedStateMachine):
    """Any order of reservations, settlements, admissions and ends."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(100)
        self.flying: list[Reservation] = []
        self.items: list[Envelope] = []

    @rule(nano=AMOUNT, data=st.data())
    def reserve(self, nano: int, data: st.DataObject) -> None:
        envelope = data.draw(st.sampled_from([None, *self.items]))
        free = 100 - self.budget.spent_nano - self.budget.reserved_nano
        own = envelope.remainder_nano if envelope is not None else 0
        reservation = self.budget.reserve(nano, envelope)
        if reservation is not None:
            assert nano <= free
            self.flying.append(reservation)
        else:
            assert nano > free or (self.flying and nano > own)

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), part=st.fractions(0, 1), overrun=st.sampled_from([0, 0, 0, 0, 7]))
    def settle(self, data: st.DataObject, part: float, overrun: int) -> None:
        reservation = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        self.budget.settle(reservation, int(reservation.nano * part) + overrun)

    @rule(nano=AMOUNT)
    def admit(self, nano: int) -> None:
        before = self.budget.spent_nano + self.budget.reserved_nano + self.budget.held_nano
        envelope = self.budget._admit(nano)
        assert (envelope is not None) == (before + nano <= 100)
        if envelope is not None:
            self.items.append(envelope)

    @precondition(lambda self: self.items)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.budget.end(self.items.pop(data.draw(st.integers(0, len(self.items) - 1))))

    @invariant()
    def the_cap_holds(self) -> None:
        assert self.budget.spent_nano + self.budget.reserved_nano <= 100 + self.budget.overrun_nano
        assert self.budget.reserved_nano == sum(reservation.nano for reservation in self.flying)
        assert self.budget.in_flight == len(self.flying)
        assert self.budget.held_nano == sum(envelope.remainder_nano for envelope in self.items)


BudgetMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestBudgetMachine = BudgetMachine.TestCase


@settings(max_examples=60, deadline=None)
@given(
    cap=st.integers(0, 60),
    items=st.lists(
        st.tuples(
            st.integers(0, 30),  # bound of the item
            st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 5)), max_size=4),
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_under_any_interleaving_the_cap_holds_and_everybody_is_served_or_refused(
    cap: int, items: list[tuple[int, list[tuple[int, int, int]]]]
) -> None:
    budget = Budget(cap)
    ended: list[bool] = []

    def check() -> None:
        assert budget.spent_nano + budget.reserved_nano <= cap

    async def item(bound: int, calls: list[tuple[int, int, int]]) -> None:
        try:
            envelope = await budget.admit(bound)
        except BudgetError:
            ended.append(False)
            return
        nano = 0
        try:
            for nano, cost, steps in calls:
                reservation = await budget.acquire(nano, envelope)
                check()
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                budget.settle(reservation, min(nano, cost))
                check()
            ended.append(True)
        except BudgetError:
            assert budget.spent_nano + nano > cap
            ended.append(False)
        finally:
            budget.end(envelope)

    async def run() -> None:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for bound, calls in items:
                    group.start_soon(item, bound, calls)

    anyio.run(run)
    assert len(ended) == len(items)
    assert (budget.reserved_nano, budget.in_flight, budget.held_nano) == (0, 0, 0)
    assert budget.spent_nano <= cap
