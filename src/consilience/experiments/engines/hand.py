"""A worker: takes the turns of items with the same runtime, and writes its own segment.

It asks its coordinator before a call leaves, for money and for a slot of the model's rates. A reservation is durable in
its segment before the call leaves and the outcome before it is used; only then does the coordinator hear what it cost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio
from anyio.abc import TaskGroup

from consilience.errors import ConsilienceError, JournalError
from consilience.experiments.answering import pool_of, probe, reveal
from consilience.experiments.engines.asks import (
    Ask,
    Brief,
    Dismissed,
    Do,
    Ended,
    Enter,
    Granted,
    Left,
    Over,
    Problem,
    Refused,
    Reserve,
    Settled,
    Word,
    problem_of,
    restored,
)
from consilience.experiments.matching import PROBES
from consilience.journal.budget import Budget, Envelope, Reservation
from consilience.journal.events import RunStarted
from consilience.journal.lock import RunLock
from consilience.journal.reader import RunState, Texts, read_events
from consilience.journal.workers import worker_folder
from consilience.journal.writer import JournalWriter
from consilience.models.base import HeldModel
from consilience.models.calls import Stop
from consilience.models.throttle import Slot, Throttle
from consilience.runtime.briefing import Briefing
from consilience.runtime.session import ItemSession
from consilience.runtime.turn import TurnTaker


class Hand:
    """One worker of a run.

    Args:
        brief: What it is made of.
    """

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._out: list[Ask] = []
        self._news = anyio.Event()
        self._dismissed = anyio.Event()
        self._over = False
        self._waiting: dict[int, _Waiting] = {}
        self._to_do: list[Do] = []
        self._group: TaskGroup | None = None
        self._asked = 0

    async def work(self) -> Problem | None:
        """Take turns until dismissed; return what went wrong with the worker itself."""
        folder = worker_folder(self._brief.run, self._brief.worker)
        try:
            with RunLock(folder):
                await self._work()
        except ConsilienceError as error:
            return problem_of(error)
        finally:
            self._over = True
            self.say(Over())
        return None

    async def hear(self) -> list[Ask]:
        """Return what is to be asked of the coordinator, waiting for it."""
        while not self._out:
            await self._news.wait()
            self._news = anyio.Event()
        out, self._out = self._out, []
        return out

    async def tell(self, words: list[Word]) -> None:
        """Take answers and work in."""
        for word in words:
            match word:
                case Do():
                    self._to_do.append(word)
                    self._begin()
                case Granted(number):
                    self._waiting.pop(number).answer()
                case Refused(number, problem):
                    self._waiting.pop(number).answer(problem)
                case Dismissed():
                    self._dismissed.set()

    def say(self, ask: Ask) -> None:
        """Put an ask where the coordinator hears it."""
        self._out.append(ask)
        self._news.set()

    async def ask(self, ask: Callable[[int], Ask]) -> int:
        """Ask the coordinator and return the number of the ask it granted.

        Raises:
            ConsilienceError: It refused.
        """
        self._asked += 1
        number = self._asked
        waiting = self._waiting[number] = _Waiting()
        self.say(ask(number))
        await waiting.answered.wait()
        if waiting.problem is not None:
            raise restored(waiting.problem)
        return number

    def settle_soon(self, number: int, nano: int) -> None:
        """Tell the coordinator what a reservation came to, once the record of it is durable."""
        if self._group is not None:
            self._group.start_soon(self._settle, number, nano, self.journal.count)

    async def _settle(self, number: int, nano: int, through: int) -> None:
        try:
            await self.journal.durable(through)
        except JournalError:
            return  # the turn that waits for the same record tells of it; until then the money stays reserved
        self.say(Settled(number, nano, through))

    async def _work(self) -> None:
        brief = self._brief
        plan = brief.plan
        models = brief.models()
        self._models = models
        state = RunState(Texts(brief.run))
        for record in read_events(brief.run):
            state.add(record)
        self.journal = JournalWriter(worker_folder(brief.run, brief.worker), clock=brief.clock)
        self.journal.append(
            RunStarted(
                run_id=f"{brief.run_id}/{brief.worker}",
                protocol_sha256=brief.protocol_sha256,
                package_version=brief.package_version,
            )
        )
        self.purse = LentBudget(self)
        pool = pool_of(
            plan,
            models,
            catalogue=brief.catalogue,
            budget=self.purse,
            journal=self.journal,
            limits=brief.limits,
            stop=Stop(),
        )
        pool.throttles = {name: LentThrottle(self, name) for name in plan.models}
        self._taker = TurnTaker(
            pool,
            self.journal,
            state,
            retry_failed=brief.retry_failed,
            probes=0 if plan.match is None else PROBES,
        )
        try:
            await probe(plan.models, models, self._taker)
            async with anyio.create_task_group() as group:
                self._group = group
                self._begin()
                await self._dismissed.wait()
        finally:
            self._group = None
            await self.journal.close()
            for model in models.values():
                if isinstance(model, HeldModel):
                    await model.close()

    def _begin(self) -> None:
        if self._group is not None:
            to_do, self._to_do = self._to_do, []
            for one in to_do:
                self._group.start_soon(self._carry, one)

    async def _carry(self, do: Do) -> None:
        item_id = do.item.question.id
        problem, through = None, 0
        try:
            seats = self._brief.plan.seats(item_id)
            briefing = Briefing(do.item, seats=seats, prompts=self._brief.plan.prompts, settings=self._brief.settings)
            reveal(self._models.values(), [briefing])
            session = ItemSession(briefing, self._taker)
            session.envelope = self.purse.envelope(item_id)
            await do.course.run(session)
            ended = self.journal.count
            await self.journal.durable(ended)
            through = ended
        except ConsilienceError as error:
            problem = problem_of(error)
        self.say(Ended(item_id, through, problem))


class _Waiting:
    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.problem: Problem | None = None

    def answer(self, problem: Problem | None = None) -> None:
        self.problem = problem
        self.answered.set()


class LentBudget(Budget):
    """The coordinator's one cap, as a worker reserves from it.

    Args:
        hand: Whose.
    """

    def __init__(self, hand: Hand) -> None:
        super().__init__(None)
        self._hand = hand
        self._items: dict[Envelope, str] = {}
        self._numbers: dict[Reservation, int] = {}

    def envelope(self, item: str) -> Envelope:
        """Return what stands for an item's envelope, which the coordinator holds."""
        envelope = Envelope(0)
        self._items[envelope] = item
        return envelope

    async def acquire(self, nano: int, envelope: Envelope | None = None) -> Reservation:
        """Return a reservation, once the coordinator grants it.

        Raises:
            BudgetError: The cap does not bear it.
            StoppedError: The run is to stop.
        """
        item = "" if envelope is None else self._items[envelope]
        number = await self._hand.ask(partial(Reserve, item=item, nano=nano))
        reservation = Reservation(nano)
        self._numbers[reservation] = number
        return reservation

    def settle(self, reservation: Reservation, nano: int) -> None:
        """Note what a reservation came to; the coordinator hears of it when it is durable."""
        reservation.open = False
        self._hand.settle_soon(self._numbers.pop(reservation), nano)


class LentThrottle(Throttle):
    """The coordinator's slots of one model, as a worker waits for them.

    Args:
        hand: Whose.
        model: Id of the model.
    """

    def __init__(self, hand: Hand, model: str) -> None:
        super().__init__(1)
        self._hand = hand
        self._model = model

    def slot(self, tokens: int) -> Slot:
        """Return the right to one call of about so many tokens, to be held with ``async with``."""
        return LentSlot(self, tokens)

    async def entered(self, tokens: int) -> int:
        """Return the number of a slot, once the coordinator has one free."""
        return await self._hand.ask(partial(Enter, model=self._model, tokens=tokens))

    def left(self, number: int, *, heard: bool, status: int | None) -> None:
        """Give a slot back."""
        self._hand.say(Left(number, heard, status))


class LentSlot(Slot):
    """One slot of the coordinator's."""

    __slots__ = ("_heard_it", "_lent", "_number", "_status", "_wanted")

    def __init__(self, throttle: LentThrottle, tokens: int) -> None:
        super().__init__(throttle, tokens)
        self._lent = throttle
        self._wanted = tokens
        self._number = 0
        self._heard_it = False
        self._status: int | None = None

    async def __aenter__(self) -> Callable[[int | None], None]:
        self._number = await self._lent.entered(self._wanted)
        return self._note

    async def __aexit__(self, *_: object) -> None:
        self._lent.left(self._number, heard=self._heard_it, status=self._status)

    def _note(self, status: int | None) -> None:
        self._heard_it, self._status = True, status
