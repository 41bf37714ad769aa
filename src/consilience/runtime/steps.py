"""The steps of a turn that is more than one call: each is recorded, and found again instead of being taken twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from operator import itemgetter
from typing import Any

from consilience.core.outcomes import Answered, Outcome, outcome_from_json
from consilience.errors import FinalModelError, ModelError, TransientModelError
from consilience.journal.budget import Envelope
from consilience.journal.events import AttemptError, ToolReturned, Where
from consilience.journal.reader import AttemptKey, expand
from consilience.models.calls import Asked, Call
from consilience.models.request import Request
from consilience.runtime.turn import TurnTaker, mismatch

Work = Callable[[], Awaitable[dict[str, Any]]]
"""Uses a tool and returns what came of it, failures included, as JSON values."""


class Steps:
    """Calls and tools of one turn, in order: step by step from the record as far as it reaches, live from there on.

    A turn that has ended on record is taken through its recorded steps alone; one that was cut short goes on behind
    them; one without an answer begins anew where the run retries what failed.

    Args:
        taker: Takes calls for the run.
        where: The turn.
        role: Role behind the seat.
        envelope: What the item holds against the spend cap.

    Attributes:
        calls: Every answered call, in order; all of them were paid for.
        recorded: What the turn came to on record; None when it is still to be ended.
    """

    def __init__(self, taker: TurnTaker, *, where: Where, role: str, envelope: Envelope | None) -> None:
        self.calls: list[Call] = []
        self._taker, self._where, self._role, self._envelope = taker, where, role, envelope
        before, last = taker.last_ends(where)
        ended = taker.recorded.turns.get(where)
        outcome = None if ended is None else outcome_from_json(ended.outcome)
        again = taker.retry_failed and not isinstance(outcome, Answered)
        self.recorded: Outcome | None = None if again else outcome
        self._since = last if self.recorded is None else before
        self._until: int | None = None if self.recorded is None else last

    def _there(self, record: int) -> bool:
        return record > self._since and (self._until is None or record < self._until)

    async def ask(self, request: Request, step: int) -> Call:
        """Return the answer to the call of a step.

        Raises:
            ModelError: It failed, now or on record.
            ResumeMismatchError: The record holds this step with another prompt, schema or model.
            BudgetError: The cap does not bear the call.
            JournalError: The record cannot be written.
            StoppedError: The run was asked to stop.
        """
        call = self._recorded_call(request, step)
        if call is None:
            tries = self._taker.recorded.next_attempt(self._where, step)
            asked = Asked(self._where, self._role, step, tries, self._envelope)
            call = await self._taker.pool.call(request, asked)
        self.calls.append(call)
        return call

    def _recorded_call(self, request: Request, step: int) -> Call | None:
        state, key = self._taker.recorded, self._taker.pool.key_of(request)
        failed: ModelError | None = None
        for tries in range(state.next_attempt(self._where, step)):
            attempt = state.attempts[AttemptKey(self._where, step, tries)]
            if not self._there(attempt.record):
                continue
            if attempt.reserved.key != key:
                raise mismatch(self._where, attempt.reserved.key, key)
            if attempt.outcome is None:
                continue
            if isinstance(attempt.outcome, AttemptError):
                failed = _as_recorded(attempt.outcome.error)
                continue
            call = self._taker.restored(attempt, tries)
            if call is not None:
                return call
        if failed is not None and self._until is not None:
            raise failed
        return None

    async def use(self, tool: str, arguments: dict[str, Any], step: int, work: Work) -> dict[str, Any]:
        """Return what the tool of a step gave, as recorded if it was used before.

        Raises:
            ResumeMismatchError: The record holds this step with another tool or other arguments.
            JournalError: The record cannot be written.
        """
        found = self._recorded_tool(step)
        if found is None:
            found = ToolReturned(tool=tool, step=step, arguments=arguments, result=await work())
            journal = self._taker.journal
            noted = ToolReturned(**{**vars(found), "result": journal.store_json(found.result)})
            await journal.durable(journal.append(noted, self._where))
        elif (found.tool, found.arguments) != (tool, arguments):
            raise mismatch(self._where, f"{found.tool} {found.arguments}", f"{tool} {arguments}")
        result: dict[str, Any] = expand(found.result, self._taker.recorded.texts)
        return result

    def of_item(self) -> Iterator[ToolReturned]:
        """Yield what tools gave on record in this item, to any seat, texts put back."""
        recorded = self._taker.recorded
        own = [found for (where, _), found in recorded.tools.items() if where.item == self._where.item]
        for _, event in sorted(own, key=itemgetter(0)):
            yield ToolReturned(**{**vars(event), "result": expand(event.result, recorded.texts)})

    def _recorded_tool(self, step: int) -> ToolReturned | None:
        replayed = self._taker.tools.get((self._where, step))
        if replayed is not None:
            return replayed
        record, event = self._taker.recorded.tools.get((self._where, step), (0, None))
        return event if self._there(record) else None


def _as_recorded(error: dict[str, Any]) -> ModelError:
    kind = TransientModelError if error["type"] == TransientModelError.__name__ else FinalModelError
    return kind(error["message"], hint=error["hint"], status=error["status"])
