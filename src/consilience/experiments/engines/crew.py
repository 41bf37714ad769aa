"""The coordinator of a run's workers: the one cap, the rates, and the one journal that takes their segments in.

It is the process that holds the run's lock. What a worker wrote is durable in the journal before the coordinator frees
the money it was reserved at, so that the record too never shows more than the cap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from consilience.core.packet import Item
from consilience.errors import BudgetError, ConsilienceError, StoppedError
from consilience.experiments.engines.asks import (
    Ask,
    Brief,
    Dismissed,
    Do,
    Ended,
    Enter,
    Granted,
    Hire,
    Left,
    Line,
    LostHandError,
    Over,
    Refused,
    Reserve,
    Settled,
    problem_of,
    restored,
)
from consilience.experiments.engines.base import Site
from consilience.journal.budget import Envelope, Reservation
from consilience.journal.events import AttemptError, AttemptLost, AttemptReserved, AttemptResponse, Record, Where
from consilience.journal.reader import AttemptKey
from consilience.journal.workers import Segment, Takings, locked_segment, worker_folder, workers_of
from consilience.journal.writer import JournalWriter
from consilience.protocols.base import Protocol as Course

MOST_LOST = 3
"""So many workers in a row may be lost in one place before any ends an item."""


@dataclass
class _Slot:
    heard: bool = False
    status: int | None = None
    left: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class _Task:
    """One item given to the hands.

    Attributes:
        refusal: What the coordinator itself told the item, which need not be rebuilt from what came back.
    """

    item: Item
    course: Course
    envelope: Envelope | None
    refusal: ConsilienceError | None = None
    error: ConsilienceError | None = None
    done: anyio.Event = field(default_factory=anyio.Event)


@dataclass(eq=False)
class _Member:
    """One worker that lives.

    Attributes:
        open: Attempts of its segment without outcome.
        due: What the outcomes taken from its segment cost, less what was settled.
        gone: It is lost, and nothing more is granted.
    """

    name: str
    line: Line
    segment: Segment
    reservations: dict[int, Reservation] = field(default_factory=dict)
    slots: dict[int, _Slot] = field(default_factory=dict)
    scopes: set[anyio.CancelScope] = field(default_factory=set)
    open: dict[AttemptKey, AttemptReserved] = field(default_factory=dict)
    due: int = 0
    gone: bool = False


@dataclass
class _Place:
    """Where one worker after another works; an item stays in its place."""

    tasks: dict[str, _Task] = field(default_factory=dict)
    member: _Member | None = None
    lost: int = 0


class Crew:
    """All workers of a run, hired when there is work.

    Args:
        site: The run.
        hire: Where workers come from.
        brief: What every worker is made of, but its name.
        group: Runs what attends to workers.
    """

    def __init__(self, site: Site, hire: Hire, brief: Brief, group: TaskGroup) -> None:
        self._site = site
        self._hire = hire
        self._brief = brief
        self._group = group
        self._places: list[_Place] = []
        self._place_of: dict[str, _Place] = {}
        self._opening = anyio.Lock()
        self._failure: ConsilienceError | None = None
        self._dismissed = False

    async def take(self, item: Item, course: Course, envelope: Envelope | None) -> None:
        """Let a worker take an item's turns; when it returns they are in the run's journal.

        Raises:
            ConsilienceError: As the item's own turns would.
        """
        await self._open()
        if self._failure is not None:
            raise self._failure
        item_id = item.question.id
        place = self._place_of.setdefault(item_id, min(self._places, key=lambda one: len(one.tasks)))
        task = place.tasks[item_id] = _Task(item, course, envelope)
        if place.member is not None:
            await self._tell(place.member, Do(item, course))
        await task.done.wait()
        if task.error is not None:
            raise task.error

    async def dismiss(self) -> None:
        """Let every worker end; its place ends with it."""
        self._dismissed = True
        for place in self._places:
            if place.member is not None:
                await self._tell(place.member, Dismissed())

    async def _open(self) -> None:
        async with self._opening:
            if not self._places and self._failure is None:
                self._places = [_Place() for _ in range(await self._hire.open())]
                for number, place in enumerate(self._places):
                    self._group.start_soon(self._attend, place, number)

    async def _tell(self, member: _Member, word: Do | Granted | Refused | Dismissed) -> None:
        try:
            await member.line.tell([word])
        except LostHandError:
            return  # whoever attends to the worker hears of it too, and gives its items to the next

    async def _attend(self, place: _Place, number: int) -> None:
        try:
            while await self._serve(place, number):
                place.lost += 1
                if place.lost > MOST_LOST:
                    raise StoppedError(
                        f"{place.lost} workers in a row were lost before they ended an item",
                        hint="Look at Ray's own logs; the same command goes on where the run stopped.",
                    )
        except ConsilienceError as error:
            self._failure = self._failure or error
            place.member = None
            for task in place.tasks.values():
                task.error = error
                task.done.set()

    async def _serve(self, place: _Place, number: int) -> bool:
        """Attend to one worker to its end; return whether it was lost and another must follow."""
        member = await self._begin(number)
        place.member = member
        try:
            words = [Do(task.item, task.course) for task in place.tasks.values()]
            await member.line.tell([*words, Dismissed()] if self._dismissed else [*words])
            while True:
                asks = await member.line.hear()
                await self._heed(place, member, asks)
                if any(isinstance(ask, Over) for ask in asks):
                    break
            problem = await member.line.result()
            self._note(member, member.segment.take(*self._books, state=self._site.state))
        except LostHandError:
            place.member = None
            await self._bury(member)
            return not self._dismissed or bool(place.tasks)
        place.member = None
        if problem is not None:
            raise restored(problem)
        return False

    async def _begin(self, number: int) -> _Member:
        """Hire a worker whose view of the record holds all that was taken in before."""
        site, run = self._site, self._site.job.folder
        await site.journal.durable(site.journal.count)
        name = f"{max([int(one) for one in workers_of(run) if one.isdecimal()], default=0) + 1:05d}"
        worker_folder(run, name).mkdir(parents=True)
        site.shell.files.fsync_dir(run)
        line = await self._hire.hire(Brief(**{**vars(self._brief), "worker": name}), number)
        return _Member(name, line, Segment(run, name))

    async def _heed(self, place: _Place, member: _Member, asks: list[Ask]) -> None:
        """Take in what a worker tells; money is freed when the record of it is durable here too."""
        for ask in asks:
            match ask:
                case Reserve():
                    self._group.start_soon(self._reserve, place, member, ask)
                case Enter():
                    slot = member.slots[ask.number] = _Slot()
                    self._group.start_soon(self._enter, member, ask, slot)
                case Left(number, heard, status):
                    slot = member.slots.pop(number)
                    slot.heard, slot.status = heard, status
                    slot.left.set()
                case _:
                    pass
        through = max((ask.through for ask in asks if isinstance(ask, Settled | Ended)), default=0)
        if through > member.segment.count:
            self._note(member, member.segment.take(*self._books, state=self._site.state, last=through))
            await self._site.journal.durable(self._site.journal.count)
        for ask in asks:
            if isinstance(ask, Settled):
                self._site.budget.settle(member.reservations.pop(ask.number), ask.nano)
                member.due -= ask.nano
            elif isinstance(ask, Ended):
                place.lost = 0
                task = place.tasks.pop(ask.item)
                if ask.problem is not None:
                    told = task.refusal
                    same = told is not None and type(told).__name__ == ask.problem.name
                    task.error = told if same else restored(ask.problem)
                task.done.set()

    @property
    def _books(self) -> tuple[JournalWriter, Takings]:
        return self._site.journal, self._site.takings

    def _note(self, member: _Member, records: list[Record]) -> None:
        """Count what was taken in, as the pool counts its own calls."""
        pool = self._site.pool
        for record in records:
            match record.event:
                case AttemptReserved() as event:
                    pool.live_calls += 1
                    member.open[AttemptKey(record.where, event.ask, event.attempt)] = event
                case AttemptResponse() | AttemptError() | AttemptLost() as event:
                    member.open.pop(AttemptKey(record.where, event.ask, event.attempt))
                    charged = event.cost_nano if isinstance(event, AttemptResponse) else event.charged_nano
                    pool.paid_nano[record.where.item or ""] += charged or 0
                    member.due += charged or 0
                case _:
                    pass

    async def _reserve(self, place: _Place, member: _Member, ask: Reserve) -> None:
        if member.gone:
            return
        task = place.tasks.get(ask.item)
        budget, stop = self._site.budget, self._site.shell.stop
        with anyio.CancelScope() as scope:
            member.scopes.add(scope)
            try:
                self._go_on()
                reservation = await budget.acquire(ask.nano, None if task is None else task.envelope)
                if stop.requested:
                    budget.release(reservation)
                self._go_on()
                member.reservations[ask.number] = reservation
                await self._tell(member, Granted(ask.number))
            except (BudgetError, StoppedError) as error:
                if task is not None:
                    task.refusal = error
                await self._tell(member, Refused(ask.number, problem_of(error)))
            finally:
                member.scopes.discard(scope)

    def _go_on(self) -> None:
        if self._site.shell.stop.requested:
            raise StoppedError("the run was asked to stop", hint="Run the same command again to resume it.")

    async def _enter(self, member: _Member, ask: Enter, slot: _Slot) -> None:
        if member.gone:
            return
        with anyio.CancelScope() as scope:
            member.scopes.add(scope)
            try:
                async with self._site.pool.throttles[ask.model].slot(ask.tokens) as heard:
                    await self._tell(member, Granted(ask.number))
                    await slot.left.wait()
                    if slot.heard:
                        heard(slot.status)
            finally:
                member.scopes.discard(scope)

    async def _bury(self, member: _Member) -> None:
        """Take in all a lost worker wrote, and charge what it had in flight at its reservation."""
        member.gone = True
        while member.scopes:
            for scope in member.scopes:
                scope.cancel()
            await anyio.lowlevel.checkpoint()
        site = self._site
        async with locked_segment(site.job.folder, member.name) as segment:
            self._note(member, segment.take(*self._books, state=site.state))
        for at, event in [*member.open.items()]:
            lost = AttemptLost(key=event.key, ask=at.ask, attempt=at.attempt, charged_nano=event.reserved_nano)
            self._note(member, [self._append(lost, at.where)])
        await site.journal.durable(site.journal.count)
        for number, reservation in [*member.reservations.items()]:
            part = member.due if number == max(member.reservations) else min(member.due, reservation.nano)
            site.budget.settle(reservation, part)
            member.due -= part
        member.reservations.clear()

    def _append(self, event: AttemptLost, where: Where) -> Record:
        seq = self._site.journal.append(event, where)
        record = Record(seq, "", where, event, "", 0, 0)
        self._site.state.add(record)
        return record


@asynccontextmanager
async def crew(site: Site, hire: Hire, brief: Brief) -> AsyncIterator[Crew]:
    """Give the workers of a run, hired when there is work, and dismiss them at the end."""
    failure: ConsilienceError | None = None
    try:
        async with anyio.create_task_group() as group:
            hands = Crew(site, hire, brief, group)
            try:
                yield hands
            except ConsilienceError as error:
                failure = error  # raised bare behind the group, which would wrap it
            await hands.dismiss()
    finally:
        with anyio.CancelScope(shield=True):
            await hire.close()
    if failure is not None:
        raise failure
