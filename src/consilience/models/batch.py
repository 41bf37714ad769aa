"""Batch mode: calls that wait together go to the vendor as one batch, at half the price and within a day.

A batch's id is in the journal before it is polled, so that a crash re-attaches to it instead of paying again. What
cannot be polled or read is no outcome of its calls: it stays with the vendor for a later process.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import anyio

from consilience.core.canonical import tagged_hash
from consilience.errors import (
    AccountError,
    ConsilienceError,
    FinalModelError,
    ModelError,
    StoppedError,
    TransientModelError,
)
from consilience.journal.reader import Attempt, AttemptKey, RunState
from consilience.models.request import Completion

TIER = "batch"
DISCOUNT = 2
"""Both vendors charge half the list price for batches."""
MOST_CALLS = 5_000
"""In one batch: below both vendors' limits in number and, at 40 KB a call, in bytes."""
CALL_TIMEOUT_S = 120.0
"""Seconds without a byte after which a submission or poll counts as lost."""
UNKNOWN_POLLS = 10
"""A batch just created may not be known to the vendor yet; so many answers of 404 are borne."""
UNREACHED_POLLS = 30
"""So many polls in a row may fail in ways that heal before the batch is left with the vendor."""
LONGEST_PAUSE_S = 60.0
LONGEST_OBEYED_S = 600.0
"""The longest Retry-After that a poll heeds."""
STEP_S = 1.0
"""How long a request to stop may go unnoticed between polls."""
Outcome = Completion | ModelError | StoppedError
"""What came of a call; a `StoppedError` says that it never left."""


@dataclass(frozen=True)
class Line:
    """One result line of a batch."""

    custom_id: str
    outcome: Completion | ModelError


class BatchVendor(Protocol):
    """A vendor's batch endpoint."""

    @property
    def name(self) -> str:
        """Provider name."""
        ...

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Submit wire bodies of one model by custom id and return the batch's id.

        Raises:
            ModelError: The vendor refused it or could not be reached.
        """
        ...

    async def ended(self, batch_id: str) -> bool:
        """Return whether the batch has ended.

        Raises:
            ModelError: The vendor does not know it or could not be reached.
        """
        ...

    async def lines(self, batch_id: str, model: str) -> Sequence[Line] | ModelError:
        """Return the result lines of an ended batch, in any order, or why it failed as a whole.

        Args:
            batch_id: The batch.
            model: The model its calls went to, for messages.

        Raises:
            ModelError: They could not be read.
        """
        ...


Noted = Callable[[str, str, Sequence[str]], Awaitable[None]]
"""Records (provider, batch id, custom ids) durably."""


def custom_id(at: AttemptKey, key: str) -> str:
    """Return the id of a call within its batch: 64 hexadecimal digits, different for every try of every ask.

    Example:
        >>> len(custom_id(AttemptKey(("item-1",), 0, 0), "ab"))
        64
    """
    return tagged_hash("batched-call", {"where": list(at.where), "ask": at.ask, "attempt": at.attempt, "key": key})


def still_out(state: RunState, at: AttemptKey, attempt: Attempt) -> tuple[str, str] | None:
    """Return provider and id of the batch in which an attempt without outcome was left, or None."""
    return None if attempt.outcome is not None else state.batches.get(custom_id(at, attempt.reserved.key))


def calls_out(state: RunState) -> dict[AttemptKey, tuple[str, str]]:
    """Return provider and batch of the attempts that are still with a vendor."""
    found = {at: still_out(state, at, attempt) for at, attempt in state.lost().items()}
    return {at: batch for at, batch in found.items() if batch is not None}


@dataclass
class _Group:
    """Calls that share a batch, and what came of it once that is known."""

    bodies: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    came: Mapping[str, Outcome] | Outcome | None = None
    failure: ConsilienceError | None = None
    known: anyio.Event = field(default_factory=anyio.Event)

    async def lead(self, work: Callable[[], Awaitable[Mapping[str, Outcome] | Outcome]]) -> None:
        """Do the work for all calls; those that come later find it done."""
        try:
            self.came = await work()
        except ConsilienceError as error:
            self.failure = error
        self.known.set()

    async def outcome(self, name: str) -> Outcome:
        await self.known.wait()
        if self.failure is not None:
            raise self.failure
        return self.came.get(name) or _missing(name) if isinstance(self.came, Mapping) else self.came or _missing(name)


class BatchDesk:
    """Gathers calls until no more come, submits them per provider and model, and hands every one its line.

    Args:
        vendors: By provider name.
        noted: Records a batch before it is polled.
        quiet_s: A batch is closed when no call has come for so long.
        poll_s: Seconds between polls; a tenth longer after each, up to a minute.
        most_calls: In one batch.
        sleep: Waits.
        stopping: Whether the run was asked to stop; batches are then left to a later process.
    """

    def __init__(
        self,
        vendors: Mapping[str, BatchVendor],
        *,
        noted: Noted,
        quiet_s: float,
        poll_s: float,
        most_calls: int = MOST_CALLS,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._vendors = vendors
        self._noted = noted
        self._quiet_s = quiet_s
        self._poll_s = poll_s
        self._most_calls = most_calls
        self._sleep = sleep
        self._stopping = stopping
        self._gathering: dict[tuple[str, str], _Group] = {}
        self._attached: dict[str, _Group] = {}

    async def complete(self, provider: str, body: Mapping[str, Any], name: str) -> Outcome:
        """Put a call into the next batch of its model and return what came of it.

        Raises:
            StoppedError: The batch was left with the vendor, to be taken up by a later process.
            AccountError: The vendor does not let it be read.
            JournalError: It could not be recorded.
        """
        place = (provider, str(body["model"]))  # a batch of OpenAI's takes one model only
        group = self._gathering.get(place)
        if group is None or len(group.bodies) >= self._most_calls:
            group = self._gathering[place] = _Group({name: body})
            await group.lead(partial(self._send, place, group))
        else:
            group.bodies[name] = body
        return await group.outcome(name)

    async def attach(self, provider: str, model: str, batch_id: str, name: str) -> Outcome:
        """Return what came of a call in a batch that an earlier process submitted.

        Raises:
            StoppedError: The batch was left with the vendor once more.
            AccountError: The vendor does not let it be read.
        """
        group = self._attached.get(batch_id)
        if group is None:
            group = self._attached[batch_id] = _Group()
            await group.lead(partial(self._collect, provider, model, batch_id))
        return await group.outcome(name)

    async def _send(self, place: tuple[str, str], group: _Group) -> Mapping[str, Outcome] | Outcome:
        provider, model = place
        size = 0
        while size < len(group.bodies):
            size = len(group.bodies)
            await self._sleep(self._quiet_s)
        if self._gathering[place] is group:
            del self._gathering[place]
        if self._stopping():
            return StoppedError("the run was asked to stop", hint="Run the same command again to resume it.")
        try:
            batch_id = await self._vendors[provider].submit(group.bodies)
        except TransientModelError as error:
            return error
        except ModelError as error:
            return _refused(error, len(group.bodies))
        await self._noted(provider, batch_id, tuple(group.bodies))
        return await self._collect(provider, model, batch_id)

    async def _collect(self, provider: str, model: str, batch_id: str) -> Mapping[str, Outcome] | ModelError:
        vendor = self._vendors[provider]
        pause, unknown, unreached = self._poll_s, 0, 0
        while True:
            wait = pause
            try:
                if await vendor.ended(batch_id):
                    return _by_name(await vendor.lines(batch_id, model))
                unreached = 0
            except TransientModelError as error:
                unreached += 1
                if unreached == UNREACHED_POLLS:
                    raise _left(batch_id, f" after {unreached} polls in vain: {error.message}") from None
                wait = max(pause, min(error.retry_after_s or 0.0, LONGEST_OBEYED_S))
            except ModelError as error:
                unknown += 1
                if error.status != 404 or unknown > UNKNOWN_POLLS:
                    raise _unreadable(error, batch_id) from None
            await self._pause(wait, batch_id)
            pause = min(LONGEST_PAUSE_S, pause * 1.1)

    async def _pause(self, seconds: float, batch_id: str) -> None:
        left = seconds
        while not self._stopping():
            if left <= 0:
                return
            await self._sleep(min(left, STEP_S))
            left -= STEP_S
        raise _left(batch_id)


def _by_name(lines: Sequence[Line] | ModelError) -> Mapping[str, Outcome] | ModelError:
    if isinstance(lines, ModelError):
        return lines
    found: dict[str, Outcome] = {}
    for line in lines:
        found[line.custom_id] = _twice(line.custom_id) if line.custom_id in found else line.outcome
    return found


def _refused(error: ModelError, calls: int) -> AccountError:
    hint = error.hint if isinstance(error, AccountError) else "Mend what it names, or run without --batch."
    return AccountError(f"no batch of {calls} calls was made: {error.message}", hint=hint, status=error.status)


def _unreadable(error: ModelError, batch_id: str) -> AccountError:
    hint = "Use the key of the account that submitted it and run the same command again; nothing of it is lost."
    return AccountError(f"batch {batch_id} cannot be read: {error.message}", hint=hint, status=error.status)


def _left(batch_id: str, why: str = "") -> StoppedError:
    return StoppedError(f"batch {batch_id} is left with the vendor{why}", hint="The same command takes it up again.")


def _missing(name: str) -> ModelError:
    return FinalModelError(
        f"the batch ended without a line for call {name}",
        hint="The call is charged at its reservation, since it may have been billed.",
    )


def _twice(name: str) -> ModelError:
    return FinalModelError(
        f"the batch has more than one line for call {name}, so none can be trusted",
        hint="The call is charged at its reservation, since it was billed.",
    )


def not_done(name: str, why: str) -> ModelError:
    """Return the error of a line that expired or was cancelled; it is not billed.

    Example:
        >>> not_done("a", "expired").status
        410
    """
    return FinalModelError(
        f"call {name} {why} in its batch", hint="Run the same command with --retry-failed.", status=410
    )


def rows_of(text: str) -> Iterator[dict[str, Any]]:
    r"""Yield the objects of a JSONL text that name their call; a line that is none counts as missing.

    Example:
        >>> [row["custom_id"] for row in rows_of('{"custom_id": "a\u2028"}\n{"custom_id"\n\n')]
        ['a\u2028']
    """
    for line in text.split("\n"):  # str.splitlines would also break at line ends that JSON texts may hold
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
            yield row
