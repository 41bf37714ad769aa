"""One turn: ask, read under the contract, correct at most twice, record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from consilience.core.answers import Abstention
from consilience.core.contracts import MAX_CORRECTIONS, Expected, read_reply
from consilience.core.outcomes import (
    Abstained,
    Answered,
    Failed,
    Outcome,
    Unreadable,
    outcome_from_json,
    outcome_to_json,
)
from consilience.errors import AccountError, ContractError, IntegrityError, ModelError, ResumeMismatchError
from consilience.evidence.rendering import fence
from consilience.journal.budget import Envelope
from consilience.journal.events import (
    AttemptLost,
    AttemptResponse,
    ToolReturned,
    TurnAccepted,
    TurnFailed,
    Where,
)
from consilience.journal.reader import Attempt, AttemptKey, RunState, expand
from consilience.journal.writer import JournalWriter
from consilience.models.batch import still_out
from consilience.models.calls import Asked, Call, Pending
from consilience.models.pool import ModelPool
from consilience.models.request import Block, Completion, Message, Request, completion_from_json

_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}")
"""What a vendor adds to the id of the model asked when it names the release that answered."""
MEND = "Your last reply was refused for the errors above. Give the whole reply again, mended, as the TASK line asks."


@dataclass(frozen=True)
class Taken:
    """A turn that was taken, live or from the record.

    Attributes:
        outcome: What came of it.
        calls: Every answered ask, in order; all of them were paid for.
        live: Whether this process took it; otherwise it came from the record.
    """

    outcome: Outcome
    calls: tuple[Call, ...]
    live: bool


@dataclass(frozen=True)
class TurnTaker:
    """Takes turns for one run: through the pool, or from what an earlier process recorded.

    Attributes:
        pool: Where calls leave.
        journal: The run's record.
        recorded: The fold of what is already recorded.
        retry_failed: Ask again where the record holds a turn without an answer, or an answer to a prompt that has
            changed since, because a turn before it was asked again.
        watch: Is told of every turn.
        given_up: Tries in a batch at the vendor that nobody waits for any more.
        probes: So many samples of a prompt are kept when they are taken, because they are asked for again later.
        tools: What tools gave in a run that is replayed, by turn and step; nothing is used then.
    """

    pool: ModelPool
    journal: JournalWriter
    recorded: RunState
    retry_failed: bool = False
    watch: Callable[[Taken], None] = lambda _: None
    given_up: list[AttemptKey] = field(default_factory=list)
    probes: int = 0
    tools: Mapping[tuple[Where, int], ToolReturned] = field(default_factory=dict)
    _kept: dict[Where, Taken] = field(default_factory=dict)

    async def take(
        self, request: Request, expected: Expected, *, where: Where, role: str, tag: str, envelope: Envelope | None
    ) -> Taken:
        """Ask until there is an outcome.

        Raises:
            ResumeMismatchError: The record holds this turn with another prompt, schema or model.
            BudgetError: The cap does not bear the next call.
            JournalError: The record cannot be written.
            StoppedError: The run was asked to stop.
        """
        if where in self._kept:
            return self._kept[where]
        ended = self.recorded.turns.get(where)
        if ended is not None:
            outcome = outcome_from_json(ended.outcome)
            now, recorded = self.pool.key_of(request), self._ended_key(where)
            if recorded != now and not self.retry_failed:
                raise mismatch(where, recorded, now)
            if not self.retry_failed or (isinstance(outcome, Answered) and recorded == now):
                return Taken(outcome, self._ended_calls(where), live=False)
        outcome, calls = await self._ask(request, expected, where=where, role=role, tag=tag, envelope=envelope)
        return Taken(outcome, calls, live=True)

    async def call(self, request: Request, *, where: Where, role: str) -> Call:
        """Make one call that is no turn, unless the record holds its answer.

        Raises:
            ModelError: It failed.
        """
        asked = Asked(where, role, 0, self.recorded.next_attempt(where, 0), None)
        return self._recorded_call(request, asked) or await self.pool.call(request, asked)

    def record(self, taken: Taken, *, where: Where, data: dict[str, Any]) -> None:
        """Record how a turn ended, with what was shown and flagged; a turn already recorded is left as it is."""
        if where in self._kept:
            return
        if where.sample is not None and where.sample < self.probes:
            self._kept[where] = replace(taken, live=False)
        self.watch(taken)
        if not taken.live:
            return
        outcome = taken.outcome
        if isinstance(outcome, Answered | Abstained):
            event: TurnAccepted | TurnFailed = TurnAccepted(
                key=taken.calls[-1].key, asks=len(taken.calls), outcome=outcome_to_json(outcome), data=data
            )
        else:
            event = TurnFailed(outcome=outcome_to_json(outcome), error=_error(outcome), data=data)
        self.journal.append(event, where)

    async def _ask(
        self, request: Request, expected: Expected, *, where: Where, role: str, tag: str, envelope: Envelope | None
    ) -> tuple[Outcome, tuple[Call, ...]]:
        calls: list[Call] = []
        corrections = 0
        enlarged = False
        current = request
        while True:
            tries = self.recorded.next_attempt(where, len(calls))
            pending = self._pending(current, AttemptKey(where, len(calls), tries - 1))
            asked = Asked(where, role, len(calls), tries, envelope, pending)
            try:
                call = self._recorded_call(current, asked) or await self.pool.call(current, asked)
            except IntegrityError as error:
                raise IntegrityError(f"{where.label()}, role {role}: {error.message}", hint=error.hint) from error
            except ModelError as error:
                if isinstance(error, AccountError):
                    raise
                return Failed(error=type(error).__name__, message=str(error)), tuple(calls)
            calls.append(call)
            reply = call.completion
            ended = ended_early(reply, request.model)
            if ended is not None:
                return ended, tuple(calls)
            if reply.stop_reason == "max_tokens":
                if enlarged:
                    return Failed(error="Truncated", message="the reply was cut off twice"), tuple(calls)
                enlarged = True
                current = replace(current, max_output_tokens=2 * request.max_output_tokens)
                continue
            try:
                return read_reply(reply.text, expected), tuple(calls)
            except ContractError as error:
                if corrections == MAX_CORRECTIONS:
                    return Unreadable(problems=tuple(error.problems)), tuple(calls)
                corrections += 1
                current = _corrective(
                    replace(request, max_output_tokens=current.max_output_tokens), reply.text, error, tag
                )

    def _pending(self, request: Request, last: AttemptKey) -> Pending | None:
        """Return the last try of an ask if an earlier process left it in a batch at the vendor.

        A try of another prompt, which a turn asked again has overtaken, is given up and stays charged.
        """
        attempt = self.recorded.attempts.get(last)
        batch = None if attempt is None else still_out(self.recorded, last, attempt)
        if attempt is None or batch is None:
            return None
        reserved, now = attempt.reserved, self.pool.key_of(request)
        if reserved.key == now:
            return Pending(batch[1], last.attempt, reserved.reserved_nano)
        if not self.retry_failed:
            raise mismatch(last.where, reserved.key, now)
        lost = AttemptLost(key=reserved.key, ask=last.ask, attempt=last.attempt, charged_nano=reserved.reserved_nano)
        self.journal.append(lost, last.where)
        self.given_up.append(last)
        return None

    def _recorded_call(self, request: Request, asked: Asked) -> Call | None:
        """Return the recorded answer to this ask of a turn cut short, or None when there is none."""
        _, since = self.last_ends(asked.where)
        for tries in range(asked.tries_before):
            attempt = self.recorded.attempts[AttemptKey(asked.where, asked.ask, tries)]
            if attempt.record > since and isinstance(attempt.outcome, AttemptResponse):
                key = self.pool.key_of(request)
                if attempt.outcome.key == key:
                    return self._restore(attempt.outcome, tries)
                if not self.retry_failed:
                    raise mismatch(asked.where, attempt.outcome.key, key)
        return None

    def last_ends(self, where: Where) -> tuple[int, int]:
        """Return the numbers of the records that ended this turn the last two times; 0 where it never did."""
        ends = [0, 0, *self.recorded.turn_ends.get(where, [])]
        return ends[-2], ends[-1]

    def restored(self, attempt: Attempt, tries: int) -> Call | None:
        """Return the recorded answer of an attempt as a call; None where it has none."""
        return self._restore(attempt.outcome, tries) if isinstance(attempt.outcome, AttemptResponse) else None

    def _ended_attempts(self, where: Where) -> Iterator[tuple[int, Attempt]]:
        """Yield the attempts of the turn as it last ended, ask by ask, each with its index."""
        before, last = self.last_ends(where)
        for ask in range(MAX_CORRECTIONS + 2):
            for tries in range(self.recorded.next_attempt(where, ask)):
                attempt = self.recorded.attempts[AttemptKey(where, ask, tries)]
                if before < attempt.record < last:
                    yield tries, attempt

    def _ended_key(self, where: Where) -> str:
        questions = [attempt.reserved for _, attempt in self._ended_attempts(where) if attempt.reserved.ask == 0]
        return questions[-1].key  # tries before it may have been overtaken by turns that were asked again

    def _ended_calls(self, where: Where) -> tuple[Call, ...]:
        return tuple(
            self._restore(attempt.outcome, tries)
            for tries, attempt in self._ended_attempts(where)
            if isinstance(attempt.outcome, AttemptResponse)
        )

    def _restore(self, response: AttemptResponse, tries: int) -> Call:
        completion = completion_from_json(expand(response.completion, self.recorded.texts))
        return Call(response.key, completion, response.cost_nano, response.estimated, tries)


def ended_early(reply: Completion, asked: str) -> Abstained | Failed | None:
    """Return what a reply comes to that is not to be read at all: another model's, a refusal, an unknown end."""
    if reply.model != asked and not _DATED.fullmatch(reply.model.removeprefix(asked)):
        return Failed(error="OtherModel", message=f"{asked} was asked and {reply.model} answered")
    if reply.stop_reason == "refusal":
        reason = reply.text.strip()[:500] or "the model refused without a reason"
        return Abstained(said=Abstention(reason=reason, by="vendor"))
    if reply.stop_reason == "other":
        return Failed(error="Stopped", message=f"the reply ended in an unknown way: {dict(reply.raw)}")
    return None


def _corrective(request: Request, reply: str, error: ContractError, tag: str) -> Request:
    """Return the request again with the last reply and its errors, both as fenced data; nothing else is repeated."""
    block = Block(
        f"{fence(tag, {'errors': error.problems, 'last_reply': reply}, label='correction')}\n{MEND}\n", cache=False
    )
    *before, last = request.messages
    return replace(request, messages=(*before, Message(last.role, (*last.blocks, block))))


def _error(outcome: Unreadable | Failed) -> dict[str, Any]:
    if isinstance(outcome, Failed):
        return {"type": outcome.error, "message": outcome.message}
    return {"type": "ContractError", "message": "; ".join(outcome.problems)}


def mismatch(where: Where, recorded: str, now: str) -> ResumeMismatchError:
    """Return the error of a turn on record that would now be asked otherwise."""
    return ResumeMismatchError(
        f"{where.label()} was asked with key {recorded[:12]} and would now be asked with {now[:12]}",
        hint="A prompt, schema, model or the evidence changed: start a new run with --run-id. If a run with "
        "--retry-failed was cut short here, go on with --retry-failed.",
    )
