"""The one place where calls leave: limits, money, record and retries around every model.

Per attempt: reserve the worst case, make the reservation durable, send, make the outcome durable, settle. Nothing that
was answered can be lost, and nothing is sent that the cap would not bear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import anyio

from consilience.errors import FinalModelError, ModelError, StoppedError, TransientModelError
from consilience.journal.budget import Budget, Envelope
from consilience.journal.events import AttemptError, AttemptReserved, AttemptResponse, Where
from consilience.journal.writer import JournalWriter
from consilience.models.base import KEY_VERSION, Model, cacheable_prefixes, call_key
from consilience.models.prices import Price, bound_nano, cost_nano
from consilience.models.request import Completion, Request, completion_to_json
from consilience.models.throttle import Rates
from consilience.models.warmth import Warmth
from consilience.registry import nearest

SCHEMA_OVERHEAD_TOKENS = 512
"""Allowance for what vendors add to a request with tools or a schema, beyond the bytes we send."""


@dataclass(frozen=True)
class Limits:
    """How a model is called.

    Attributes:
        concurrency: Calls in flight per model id, unless its own rates say otherwise.
        attempts: Tries per ask, the first included.
        attempt_s: Seconds one try may take.
        total_s: Seconds all tries of one ask may take, waiting included.
        backoff_s: Base of the exponential back-off with full jitter.
        backoff_cap_s: Longest wait between tries.
    """

    concurrency: int = 6
    attempts: int = 5
    attempt_s: float = 120.0
    total_s: float = 180.0
    backoff_s: float = 0.5
    backoff_cap_s: float = 30.0


@dataclass(frozen=True)
class Call:
    """One answered ask.

    Attributes:
        key: The call's key.
        completion: The answer.
        cost_nano: Cost at list price; None where no price is known.
        estimated: The cost is the reservation, since no usage was reported.
        retries: How many tries of this ask were made before it, by earlier processes too.
    """

    key: str
    completion: Completion
    cost_nano: int | None
    estimated: bool
    retries: int


@dataclass(frozen=True)
class Asked:
    """Which ask of which turn a call belongs to.

    Attributes:
        where: The turn.
        role: Role behind the seat.
        ask: 0 for the question, then one more per corrective or enlarged ask.
        tries_before: Tries that an earlier process made for this ask.
        envelope: What the item holds against the cap.
    """

    where: Where
    role: str
    ask: int
    tries_before: int
    envelope: Envelope | None


@dataclass
class Stop:
    """A request to stop that whoever runs the pool may set at any time."""

    requested: bool = False


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
        live_calls: Calls that left in this process.
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
        self._throttles = {name: (rates or {}).get(name, Rates()).throttle(limits.concurrency) for name in models}
        self._warmth = Warmth()
        self._stop = stop
        self.live_calls = 0
        self.paid_nano: Counter[str] = Counter()

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
        throttle = self._throttles[request.model]
        prefixes = cacheable_prefixes(request, model.min_cacheable_tokens)
        took = 0.0  # waiting for a slot apart, since a busy pool is no failure of the call
        for number in range(limits.attempts):
            tries = asked.tries_before + number
            async with self._warmth.around(prefixes) as filled, throttle.slot(_expected_tokens(request)):
                began = anyio.current_time()
                seconds = min(limits.attempt_s, limits.total_s - took)
                outcome, charged = await self._attempt(model, request, asked, tries, seconds)
                took += anyio.current_time() - began
                if isinstance(outcome, _Answer):
                    filled()
            throttle.heard(None if isinstance(outcome, _Answer) else outcome.status)
            if isinstance(outcome, _Answer):
                return Call(outcome.key, outcome.completion, charged, outcome.estimated, tries)
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

    def _wait(self, error: ModelError, number: int) -> float | None:
        """Return the seconds to wait before the next try, or None when none can help."""
        if not isinstance(error, TransientModelError):
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s
        limits = self._limits
        return self._jitter() * min(limits.backoff_cap_s, limits.backoff_s * 2.0**number)

    async def _attempt(
        self, model: Model, request: Request, asked: Asked, attempt: int, seconds: float
    ) -> tuple[_Answer | ModelError, int | None]:
        """Make one try of at most so many seconds; return its outcome and what it was charged."""
        self._go_on()
        body = model.wire_body(request)
        key = call_key(model.identity, body, replicate=request.replicate)
        price = self._prices[request.model]
        bound = bound_nano(
            input_tokens=_upper_input_tokens(request), output_tokens=request.max_output_tokens, price=price
        )
        reservation = await self._budget.acquire(bound or 0, asked.envelope)
        journal, where = self._journal, asked.where
        charged: int | None = 0
        try:
            self._go_on()
            await journal.durable(
                journal.append(
                    AttemptReserved(
                        key=key,
                        key_version=KEY_VERSION,
                        ask=asked.ask,
                        attempt=attempt,
                        role=asked.role,
                        model=request.model,
                        provider=model.identity.provider,
                        tier="standard",
                        body=journal.intern(body),
                        reserved_nano=bound,
                    ),
                    where,
                )
            )
            self.live_calls += 1
            charged = bound  # unless its outcome says less
            outcome = await self._send(model, request, seconds)
            event: AttemptResponse | AttemptError
            if isinstance(outcome, Completion):
                known = outcome.usage is not None
                charged = cost_nano(outcome.usage, price) if outcome.usage is not None else bound
                event = AttemptResponse(
                    key=key,
                    ask=asked.ask,
                    attempt=attempt,
                    completion=journal.intern(completion_to_json(outcome)),
                    cost_nano=charged,
                    estimated=not known,
                )
                result: _Answer | ModelError = _Answer(key, outcome, estimated=not known)
            else:
                charged = bound if outcome.status is None else 0
                event = AttemptError(
                    key=key, ask=asked.ask, attempt=attempt, error=_error_json(outcome), charged_nano=charged
                )
                result = outcome
            seq = journal.append(event, where)
        finally:  # also when the disk fails: others may wait for this money and must not wait for ever
            self._budget.settle(reservation, charged or 0)
            self.paid_nano[where.item or ""] += charged or 0
        await journal.durable(seq)
        return result, charged

    def _go_on(self) -> None:
        if self._stop.requested:
            raise StoppedError("the run was asked to stop", hint="Run the same command again to resume it.")

    async def _send(self, model: Model, request: Request, seconds: float) -> Completion | ModelError:
        """Call the model once; a timeout or lost connection has no status and may have been billed."""
        try:
            with anyio.move_on_after(seconds):
                return await model.complete(request)
        except ModelError as error:
            return error
        return TransientModelError(
            f"model {model.id} did not answer within {seconds:.0f} s",
            hint="The try is charged at its reservation, since it may have been billed.",
        )


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


def _expected_tokens(request: Request) -> int:
    """Return about how many tokens a call will take: four bytes a token of input, and the whole output limit."""
    return _upper_input_tokens(request) // 4 + request.max_output_tokens


def _error_json(error: ModelError) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "status": error.status,
        "retry_after_s": error.retry_after_s if isinstance(error, TransientModelError) else None,
    }
