"""What a worker and its coordinator tell each other; plain values, so that they may cross to another machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias

from consilience import errors
from consilience.core.packet import Item
from consilience.errors import BudgetError, ConsilienceError, ModelError
from consilience.experiments.plan import Plan
from consilience.models.base import Model
from consilience.models.calls import Limits
from consilience.models.prices import Catalogue
from consilience.protocols.base import Protocol as Course
from consilience.runtime.briefing import Settings


class LostHandError(Exception):
    """A worker is gone; never leaves the engine."""


@dataclass(frozen=True)
class Brief:
    """What a worker is made of.

    Attributes:
        run_id: The run.
        run: The run's folder, which every node sees.
        worker: The worker's name; its segment is its own.
        plan: What is asked.
        settings: How every call is made.
        catalogue: Prices and limits.
        limits: How models are called.
        protocol_sha256: The frozen protocol.
        package_version: Of the coordinator.
        retry_failed: Ask turns again that have no answer.
        models: Makes who speaks, by model id, where the worker is; a client crosses to no other process.
        clock: The time of day.
    """

    run_id: str
    run: Path
    worker: str
    plan: Plan
    settings: Settings
    catalogue: Catalogue
    limits: Limits | None
    protocol_sha256: str
    package_version: str
    retry_failed: bool
    models: Callable[[], Mapping[str, Model]]
    clock: Callable[[], datetime]


@dataclass(frozen=True)
class Problem:
    """An error of ours as it crosses to another process."""

    name: str
    message: str
    hint: str
    status: int | None = None
    needed_nano: int | None = None


def problem_of(error: ConsilienceError) -> Problem:
    """Return an error as a plain value.

    Example:
        >>> problem_of(errors.DataError("no row", hint="Add one.")).name
        'DataError'
    """
    status = error.status if isinstance(error, ModelError) else None
    needed = error.needed_nano if isinstance(error, BudgetError) else None
    return Problem(type(error).__name__, error.message, error.hint, status, needed)


def restored(problem: Problem) -> ConsilienceError:
    """Return the error that a problem stands for.

    Example:
        >>> restored(Problem("DataError", "no row", "Add one."))
        DataError('no row. Add one.')
    """
    kind: type[ConsilienceError] = getattr(errors, problem.name, ConsilienceError)
    if issubclass(kind, BudgetError):
        return BudgetError(problem.message, hint=problem.hint, needed_nano=problem.needed_nano)
    if issubclass(kind, ModelError):
        return kind(problem.message, hint=problem.hint, status=problem.status)
    if kind.__init__ is not ConsilienceError.__init__:  # it would say more than crossed over
        return ConsilienceError(problem.message, hint=problem.hint)
    return kind(problem.message, hint=problem.hint)


@dataclass(frozen=True)
class Reserve:
    """May a call leave that costs so much at worst? Answered."""

    number: int
    item: str
    nano: int


@dataclass(frozen=True)
class Settled:
    """A reservation came to so much; the records up to ``through`` are durable in the segment."""

    number: int
    nano: int
    through: int


@dataclass(frozen=True)
class Enter:
    """May a call of about so many tokens leave for a model now? Answered."""

    number: int
    model: str
    tokens: int


@dataclass(frozen=True)
class Left:
    """The slot entered under this number is free; ``heard`` tells whether ``status`` says what the call came to."""

    number: int
    heard: bool
    status: int | None


@dataclass(frozen=True)
class Ended:
    """An item's turns ended, well or with a problem; the records up to ``through`` are durable in the segment."""

    item: str
    through: int
    problem: Problem | None


@dataclass(frozen=True)
class Over:
    """The worker ended; what came of it is told apart."""


Ask: TypeAlias = Reserve | Settled | Enter | Left | Ended | Over


@dataclass(frozen=True)
class Do:
    """Take the turns of an item."""

    item: Item
    course: Course


@dataclass(frozen=True)
class Granted:
    """Yes, to the ask of this number."""

    number: int


@dataclass(frozen=True)
class Refused:
    """No, and why."""

    number: int
    problem: Problem


@dataclass(frozen=True)
class Dismissed:
    """There is nothing more to do."""


Word: TypeAlias = Do | Granted | Refused | Dismissed


class Line(Protocol):
    """The coordinator's line to one worker. Every method raises `LostHandError` when the worker is gone."""

    async def hear(self) -> list[Ask]:
        """Return what the worker asks, waiting for it."""
        ...

    async def tell(self, words: list[Word]) -> None:
        """Give it answers and work."""
        ...

    async def result(self) -> Problem | None:
        """Return what came of a worker that ended."""
        ...


class Hire(Protocol):
    """Where workers come from."""

    async def open(self) -> int:
        """Make ready; return how many workers there are to be."""
        ...

    async def hire(self, brief: Brief, number: int) -> Line:
        """Start the ``number``-th worker anew and return the line to it."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...
