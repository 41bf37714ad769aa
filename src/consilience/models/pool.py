"""The one place where calls leave: limits, money, record and retries around every model.

Per attempt: reserve the worst case, make the reservation durable, send, make the outcome durable, settle. Nothing that
was answered can be lost, and nothing is sent that the cap would not bear.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import anyio

from consilience.errors import FinalModelError, ModelError, StoppedError, TransientModelError, UnreachedModelError
from consilience.journal.budget import Budget, Reservation
from consilience.journal.events import AttemptError, AttemptReserved, AttemptResponse, Where
from consilience.journal.reader import AttemptKey
from consilience.journal.writer import JournalWriter
from consilience.models.base import KEY_VERSION, Model, cacheable_prefixes, call_key
from consilience.models.batch import DISCOUNT, TIER, BatchDesk, BatchVendor, Noted, Outcome, custom_id
from consilience.models.calls import Asked, Call, Limits, Pending, Stop
from consilience.models.prices import Price, bound_nano, cost_nano
from consilience.models.request import Completion, Request, completion_to_json
from consilience.models.throttle import Rates, Throttle
from consilience.models.warmth import Warmth
from consilience.registry import nearest

SCHEMA_OVERHEAD_TOKENS = 512
"""Allowance for what vendors add to a request with tools or a schema, beyond the bytes we send."""


class ModelPool:
    """All models of a run on one budget and one journal.

    Args:
        models: By model id.
        prices: By model id; None where no price is known.
        budget: The run's spend cap.
        journal: The run's record.
        limits: How models are called.
        jitter: Uniform numbers on [0, 1) for the back-off.
        rates: Limits of single models; a model not named has the general ones.
        stop: When requested, nothing more leaves; what is in flight is finished and recorded.

    Attributes:
        desk: Carries calls in batches, at half the price; without it they leave one by one.
        batched: Keys of calls that a recorded run made in batches; when it is replayed they cost half, too.
        throttles: The slots of every model.
        live_calls: Calls that left in this process, or in one of its workers.
        paid_nano: What this process was charged, by item; failed tries included.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        *,
        prices: Mapping[str, Price | Literal["free"] | None],
        budget: Budget,
        journal: JournalWriter,
        limits: Limits,
        jitter: Callable[[], float],
        stop: Stop,
        rates: Mapping[str, Rates] | None = None,
    ) -> None:
        self._models = models
        self._prices = prices
        self._budget = budget
        self._journal = journal
        self._limits = limits
        self._jitter = jitter
        self.throttles: dict[str, Throttle] = {
            name: (rates or {}).get(name, Rates()).throttle(limits.concurrency) for name in models
        }
        self._warmth = Warmth()
        self._stop = stop
        self.desk: BatchDesk | None = None
        self.batched: Container[str] = frozenset()
        self.live_calls = 0
        self.paid_nano: Counter[str] = Counter()

    def open_desk(self, vendors: Mapping[str, BatchVendor], *, noted: Noted) -> None:
        """Let all calls go in batches from now on."""
        self.desk = BatchDesk(
            vendors,
            noted=noted,
            quiet_s=self._limits.batch_quiet_s,
            poll_s=self._limits.batch_poll_s,
            stopping=lambda: self._stop.requested,
        )

    def model(self, model_id: str) -> Model:
        """Return the model with this id.

        Raises:
            FinalModelError: The pool has none.
        """
        try:
            return self._models[model_id]
        except KeyError:
            raise FinalModelError(f'no model "{model_id}" in this run', hint=nearest(model_id, self._models)) from None

    def key_of(self, request: Request) -> str:
        """Return the key under which a request is recorded."""
        model = self.model(request.model)
        return call_key(model.identity, model.wire_body(request), replicate=request.replicate)

    async def call(self, request: Request, asked: Asked) -> Call:
        """Send a request until it is answered or cannot heal.

        Raises:
            ModelError: The last failure, when retries are used up, out of time, or pointless.
            BudgetError: The cap does not bear the next try.
            JournalError: The record cannot be written; the run must stop.
            StoppedError: The user asked the run to stop.
        """
        model = self.model(request.model)
        limits = self._limits
        first = asked.tries_before if asked.pending is None else asked.pending.attempt
        took = 0.0  # waiting for a slot and for money apart, since a busy pool is no failure of the call
        for number in range(limits.attempts):
            leaving = self._prepare(model, request, asked, first + number)
            if asked.pending is not None and number == 0:
                outcome, charged = await self._take_up(leaving, asked, asked.pending)
            elif self.desk is not None:
                outcome, charged = await self._attempt(
                    leaving, asked, partial(self._by_desk, self.desk, leaving, asked.where)
                )
            else:
                outcome, charged, sent = await self._in_turn(leaving, asked, limits.total_s - took)
                took += 0.0 if isinstance(outcome, _Answer) else anyio.current_time() - sent
            if isinstance(outcome, _Answer):
                return Call(outcome.key, outcome.completion, charged, outcome.estimated, first + number)
            if isinstance(outcome, StoppedError):
                raise outcome
            wait = self._wait(outcome, number)
            if wait is None or number + 1 == limits.attempts:
                raise outcome
            took += wait
            if took >= limits.total_s:
                raise type(outcome)(
                    f"{outcome.message} (waiting {wait:.0f} s more would pass the limit of {limits.total_s:.0f} s)",
                    hint=outcome.hint,
                    status=outcome.status,
                )
            await anyio.sleep(wait)
        raise FinalModelError("no attempt is allowed", hint="Set limits.attempts to at least 1.")

    def _prepare(self, model: Model, request: Request, asked: Asked, attempt: int) -> _Leaving:
        body = model.wire_body(request)
        key = call_key(model.identity, body, replicate=request.replicate)
        discount = 1 if self.desk is None and key not in self.batched else DISCOUNT
        price = self._prices[request.model]
        size = _upper_input_tokens(request)
        bound = bound_nano(input_tokens=size, output_tokens=request.max_output_tokens, price=price)
        return _Leaving(
            model=model,
            request=request,
            body=body,
            key=key,
            ask=asked.ask,
            attempt=attempt,
            price=price,
            discount=discount,
            tokens=size // 4 + request.max_output_tokens,
            bound=None if bound is None else -(-bound // discount),
        )

    async def _in_turn(
        self, leaving: _Leaving, asked: Asked, left: float
    ) -> tuple[_Answer | ModelError | StoppedError, int | None, float]:
        """Make one try when slot and money are there; return outcome, charge, and when it was sent."""
        request = leaving.request
        sent = math.inf
        throttle = self.throttles[request.model]
        prefixes = cacheable_prefixes(request, leaving.model.min_cacheable_tokens)
        async with self._warmth.around(prefixes) as filled, throttle.slot(leaving.tokens) as heard:

            async def send() -> Outcome:
                nonlocal sent
                sent = anyio.current_time()
                return await self._directly(leaving, min(self._limits.attempt_s, left))

            outcome, charged = await self._attempt(leaving, asked, send)
            if isinstance(outcome, _Answer):
                filled()
                heard(None)
            elif isinstance(outcome, ModelError) and outcome.status is not None:
                heard(outcome.status)
        return outcome, charged, sent

    def _wait(self, error: ModelError, number: int) -> float | None:
        """Return the seconds to wait before the next try, or None when none can help."""
        if not isinstance(error, TransientModelError):
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s
        limits = self._limits
        return self._jitter() * min(limits.backoff_cap_s, limits.backoff_s * 2.0**number)

    async def _attempt(
        self, leaving: _Leaving, asked: Asked, carry: Callable[[], Awaitable[Outcome]]
    ) -> tuple[_Answer | ModelError | StoppedError, int | None]:
        """Reserve, record, let the call be carried, and conclude; return its outcome and what it was charged."""
        self._go_on()
        reservation = await self._budget.acquire(leaving.bound or 0, asked.envelope)
        charged: int | None = 0
        try:
            self._go_on()
            await self._journal.durable(self._journal.append(self._reserved(leaving, asked.role), asked.where))
            self.live_calls += 1
            charged = leaving.bound  # unless its outcome says less
            result, charged, seq = self._conclude(leaving, asked.where, await carry())
        finally:  # also when the disk fails: others may wait for this money and must not wait for ever
            self._settle(reservation, asked.where, charged)
        await self._journal.durable(seq)
        return result, charged

    async def _take_up(
        self, leaving: _Leaving, asked: Asked, pending: Pending
    ) -> tuple[_Answer | ModelError | StoppedError, int | None]:
        """Conclude a try that is still in a batch at the vendor."""
        if self.desk is None:
            raise FinalModelError("a batch is still at the vendor", hint="Run the command with --batch.")
        reservation = self._budget.adopt(pending.reserved_nano or 0)
        charged = pending.reserved_nano
        began = anyio.current_time()
        try:
            name = custom_id(AttemptKey(asked.where, leaving.ask, leaving.attempt), leaving.key)
            provider = leaving.model.identity.provider
            outcome = await self.desk.attach(provider, leaving.model.id, pending.batch_id, name)
            found = _carried(outcome, anyio.current_time() - began)
            result, charged, seq = self._conclude(leaving, asked.where, found)
        finally:
            self._settle(reservation, asked.where, charged)
        await self._journal.durable(seq)
        return result, charged

    def _reserved(self, leaving: _Leaving, role: str) -> AttemptReserved:
        return AttemptReserved(
            key=leaving.key,
            key_version=KEY_VERSION,
            ask=leaving.ask,
            attempt=leaving.attempt,
            role=role,
            model=leaving.request.model,
            provider=leaving.model.identity.provider,
            tier="standard" if leaving.discount == 1 else TIER,
            body=self._journal.intern(leaving.body),
            reserved_nano=leaving.bound,
        )

    def _conclude(
        self, leaving: _Leaving, where: Where, outcome: Outcome
    ) -> tuple[_Answer | ModelError | StoppedError, int | None, int]:
        """Append the outcome; return it, its charge, and the number of its record."""
        key, ask, attempt = leaving.key, leaving.ask, leaving.attempt
        if not isinstance(outcome, Completion):
            sent = not isinstance(outcome, UnreachedModelError)
            unknown = sent and isinstance(outcome, ModelError) and outcome.status is None
            charged = leaving.bound if unknown else 0
            failed = AttemptError(key=key, ask=ask, attempt=attempt, error=_error_json(outcome), charged_nano=charged)
            return outcome, charged, self._journal.append(failed, where)
        estimated = outcome.usage is None
        cost = leaving.bound if outcome.usage is None else cost_nano(outcome.usage, leaving.price)
        if cost is not None and not estimated:
            cost = -(-cost // leaving.discount)
        response = AttemptResponse(
            key=key,
            ask=ask,
            attempt=attempt,
            completion=self._journal.intern(completion_to_json(outcome)),
            cost_nano=cost,
            estimated=estimated,
        )
        return _Answer(key, outcome, estimated=estimated), cost, self._journal.append(response, where)

    def _settle(self, reservation: Reservation, where: Where, charged: int | None) -> None:
        self._budget.settle(reservation, charged or 0)
        self.paid_nano[where.item or ""] += charged or 0

    def _go_on(self) -> None:
        if self._stop.requested:
            raise StoppedError("the run was asked to stop", hint="Run the same command again to resume it.")

    async def _directly(self, leaving: _Leaving, seconds: float) -> Completion | ModelError:
        """Call the model once; a timeout or lost connection has no status and may have been billed."""
        try:
            with anyio.move_on_after(seconds):
                return await leaving.model.complete(leaving.request)
        except ModelError as error:
            return error
        return TransientModelError(
            f"model {leaving.model.id} did not answer within {seconds:.0f} s",
            hint="The try is charged at its reservation, since it may have been billed.",
        )

    async def _by_desk(self, desk: BatchDesk, leaving: _Leaving, where: Where) -> Outcome:
        """Let the call go with the next batch."""
        began = anyio.current_time()
        name = custom_id(AttemptKey(where, leaving.ask, leaving.attempt), leaving.key)
        outcome = await desk.complete(leaving.model.identity.provider, leaving.body, name)
        return _carried(outcome, anyio.current_time() - began)


def _carried(outcome: Outcome, seconds: float) -> Outcome:
    if isinstance(outcome, Completion) and outcome.latency_s is None:
        return replace(outcome, latency_s=round(seconds, 3))
    return outcome


@dataclass(frozen=True)
class _Leaving:
    """One try, ready to leave; ``tokens`` is about what it will take, four bytes a token and the whole output limit."""

    model: Model
    request: Request
    body: dict[str, Any]
    key: str
    ask: int
    attempt: int
    price: Price | Literal["free"] | None
    discount: int
    tokens: int
    bound: int | None


@dataclass(frozen=True)
class _Answer:
    key: str
    completion: Completion
    estimated: bool


def _upper_input_tokens(request: Request) -> int:
    """Return more tokens than the input can have: one per UTF-8 byte, plus what vendors add."""
    blocks = [*request.system, *(block for message in request.messages for block in message.blocks)]
    tools = sum(len(str(tool)) for tool in request.tools)
    return sum(block.size for block in blocks) + request.contract.size + tools + SCHEMA_OVERHEAD_TOKENS


def _error_json(error: ModelError | StoppedError) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "status": error.status if isinstance(error, ModelError) else None,
        "retry_after_s": error.retry_after_s if isinstance(error, TransientModelError) else None,
    }
