"""What the runner needs of an engine, and what an engine is given of a run; and the engine of one process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from consilience.core.packet import Item
from consilience.journal.budget import Budget, Envelope
from consilience.journal.reader import RunState
from consilience.journal.workers import Takings
from consilience.journal.writer import JournalWriter
from consilience.models.pool import ModelPool
from consilience.protocols.base import Protocol as Course

if TYPE_CHECKING:
    from consilience.experiments.orders import Job, Orders, Shell
    from consilience.experiments.protocol import Frozen


@dataclass(frozen=True)
class Site:
    """A run as an engine sees it; everything is the coordinator's own.

    Attributes:
        job: What is run.
        shell: The outside world.
        orders: How it is carried out.
        frozen: The protocol in force.
        journal: The run's one journal.
        takings: What it took over from workers.
        state: Its fold.
        budget: The one cap.
        pool: Its throttles are the run's rates; it counts calls and payments.
    """

    job: Job
    shell: Shell
    orders: Orders
    frozen: Frozen
    journal: JournalWriter
    takings: Takings
    state: RunState
    budget: Budget
    pool: ModelPool


class Hands(Protocol):
    """Whoever takes the turns of items."""

    async def take(self, item: Item, course: Course, envelope: Envelope | None) -> None:
        """Take what can be taken elsewhere of an item's turns; when it returns they are in the run's journal.

        Raises:
            ConsilienceError: As the item's own turns would.
        """
        ...


class Engine(Protocol):
    """Where turns are taken."""

    @property
    def here(self) -> bool:
        """Whether the coordinator itself takes turns that are not on record."""
        ...

    def hands(self, site: Site) -> AbstractAsyncContextManager[Hands]:
        """Give the hands of a run; they are dismissed at the end."""
        ...


@dataclass(frozen=True)
class Local:
    """Every turn is taken in this process: the right choice while a vendor's rate limit binds.

    Example:
        >>> Local().here
        True
    """

    @property
    def here(self) -> bool:
        """Whether the coordinator itself takes turns that are not on record."""
        return True

    @asynccontextmanager
    async def hands(self, site: Site) -> AsyncIterator[Hands]:  # noqa: ARG002 - nothing of it is needed here
        """Give hands that leave everything to this process."""
        yield _NoHands()


class _NoHands:
    async def take(self, item: Item, course: Course, envelope: Envelope | None) -> None:
        """Leave it to this process."""
