"""Batch mode: calls that wait together go to the vendor as one batch, at half the price and within a day.

A batch's id is in the journal before it is polled, so that a crash re-attaches to it instead of paying again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from consilience.errors import FinalModelError, ModelError, StoppedError
from consilience.models.request import Completion

TIER = "batch"
DISCOUNT = 2
"""Both vendors charge half the list price for batches."""
KEY_LENGTH = 40
"""How much of a call's key its custom id begins with."""
Outcome = Completion | ModelError | StoppedError


@dataclass(frozen=True)
class Line:
    """One result line of a batch."""

    custom_id: str
    outcome: Outcome


class BatchVendor(Protocol):
    """A vendor's batch endpoint."""

    @property
    def name(self) -> str:
        """Provider name."""
        ...

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Submit wire bodies by custom id and return the batch's id.

        Raises:
            ModelError: The vendor refused it.
        """
        ...

    async def ended(self, batch_id: str) -> bool:
        """Return whether the batch has ended; a batch just created may not be known yet, which is no end.

        Raises:
            ModelError: The vendor does not know it or cannot be reached.
        """
        ...

    async def lines(self, batch_id: str) -> Sequence[Line]:
        """Return the result lines of an ended batch, those of its error file too, in any order."""
        ...


@dataclass
class _Waiting:
    body: Mapping[str, Any]
    outcome: Outcome | None = None
    ready: anyio.Event = field(default_factory=anyio.Event)


Noted = Callable[[str, str, Sequence[str]], Awaitable[None]]
"""Records (provider, batch id, custom ids) durably."""


def custom_id(key: str, ask: int, attempt: int) -> str:
    """Return the id of a call within its batch: at most 64 of ``[A-Za-z0-9_-]``.

    Example:
        >>> custom_id("ab" * 32, 0, 1)
        'abababababababababababababababababababab-0-1'
    """
    return f"{key[:KEY_LENGTH]}-{ask}-{attempt}"


class BatchDesk:
    """Gathers calls until no more come, submits them per provider, and hands every one its line.

    Args:
        vendors: By provider name.
        noted: Records a batch before it is polled.
        quiet_s: A batch is closed when no call has come for so long.
        poll_s: Seconds between polls; a tenth longer after each, up to a minute.
        sleep: Waits.
        stopping: Whether the run was asked to stop; batches are then left to a later process.
    """

    def __init__(
        self,
        vendors: Mapping[str, BatchVendor],
        *,
        noted: Noted,
        quiet_s: float = 0.5,
        poll_s: float = 5.0,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._vendors = vendors
        self._noted = noted
        self._quiet_s = quiet_s
        self._poll_s = poll_s
        self._sleep = sleep
        self._stopping = stopping
        self._open: dict[str, dict[str, _Waiting]] = {}
        self._attached: dict[str, dict[str, _Waiting]] = {}

    async def complete(self, provider: str, body: Mapping[str, Any], name: str) -> Outcome:
        """Put a call into the provider's next batch and return what came of it."""
        waiting = _Waiting(body)
        gathering = self._open.setdefault(provider, {})
        gathering[name] = waiting
        if len(gathering) == 1:
            await self._lead(provider, gathering)
        else:
            await waiting.ready.wait()
        return waiting.outcome or _missing(name)

    async def attach(self, provider: str, batch_id: str, name: str) -> Outcome:
        """Return what came of a call in a batch that an earlier process submitted."""
        waiting = self._attached.get(batch_id)
        if waiting is None:
            waiting = self._attached[batch_id] = {name: _Waiting({})}
            await self._collect(self._vendors[provider], batch_id, waiting, attached=True)
        elif name not in waiting:
            waiting[name] = _Waiting({})
        if not waiting[name].ready.is_set():
            await waiting[name].ready.wait()
        return waiting[name].outcome or _missing(name)

    async def _lead(self, provider: str, gathering: dict[str, _Waiting]) -> None:
        size = 0
        while size < len(gathering):
            size = len(gathering)
            await self._sleep(self._quiet_s)
        del self._open[provider]
        vendor = self._vendors[provider]
        try:
            batch_id = await vendor.submit({name: waiting.body for name, waiting in gathering.items()})
        except ModelError as error:
            _give(gathering, dict.fromkeys(gathering, error))
            return
        await self._noted(provider, batch_id, tuple(gathering))
        await self._collect(vendor, batch_id, gathering)

    async def _collect(
        self, vendor: BatchVendor, batch_id: str, waiting: dict[str, _Waiting], *, attached: bool = False
    ) -> None:
        pause = self._poll_s
        try:
            while not await vendor.ended(batch_id):
                if self._stopping():
                    _give(waiting, dict.fromkeys(waiting, _left(batch_id)))
                    return
                await self._sleep(pause)
                pause = min(60.0, pause * 1.1)
            lines = await vendor.lines(batch_id)
        except ModelError as error:
            _give(waiting, dict.fromkeys(waiting, error))
            return
        found: dict[str, Outcome] = {}
        for line in lines:
            found[line.custom_id] = _twice(line.custom_id) if line.custom_id in found else line.outcome
        if attached:  # calls that ask for their line later find it here
            for name in found.keys() - waiting.keys():
                waiting[name] = _Waiting({})
        _give(waiting, {name: found.get(name) or _missing(name) for name in waiting})


def _give(waiting: Mapping[str, _Waiting], outcomes: Mapping[str, Outcome]) -> None:
    for name, one in waiting.items():
        one.outcome = outcomes[name]
        one.ready.set()


def _left(batch_id: str) -> StoppedError:
    return StoppedError(f"batch {batch_id} is left with the vendor", hint="The same command takes it up again.")


def _missing(name: str) -> ModelError:
    return FinalModelError(
        f"the batch ended without a line for call {name}",
        hint="The call is charged at its reservation, since it may have been billed.",
    )


def _twice(name: str) -> ModelError:
    return FinalModelError(
        f"the batch has two lines for call {name}, so neither can be trusted",
        hint="The call is charged at its reservation, since it was billed.",
    )


def expired(name: str) -> ModelError:
    """Return the error of a line that the vendor did not get to within a day; it is not billed."""
    return FinalModelError(
        f"call {name} expired in its batch", hint="Run the same command with --retry-failed.", status=410
    )
