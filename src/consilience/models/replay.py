"""Answers from the record of an earlier run: zero calls, and an unknown key is an error, never a live call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from consilience.errors import IntegrityError, ModelError
from consilience.models.base import Identity, Model, ProbedModel, call_key
from consilience.models.batch import KEY_LENGTH, Line
from consilience.models.request import Completion, Request


@dataclass(frozen=True)
class Replay:
    """A model that repeats what was recorded.

    Attributes:
        original: The model whose calls were recorded; it gives identity and wire body and is never called.
        recorded: By key: the completion, or the error every try ended in.
    """

    original: Model
    recorded: Mapping[str, Completion | ModelError]
    min_cacheable_tokens: ClassVar[None] = None

    @property
    def id(self) -> str:
        """Return the original's id."""
        return self.original.id

    @property
    def identity(self) -> Identity:
        """Return the original's identity, so that keys are the same."""
        return self.original.identity

    def wire_body(self, request: Request) -> dict[str, Any]:
        """Return the original's body."""
        return self.original.wire_body(request)

    async def complete(self, request: Request) -> Completion:
        """Return what was answered then.

        Raises:
            IntegrityError: The run never made this call.
        """
        key = call_key(self.identity, self.wire_body(request), replicate=request.replicate)
        found = self.recorded.get(key)
        if found is None:
            raise IntegrityError(
                f"the recorded run holds no call with key {key[:12]} of model {self.id}",
                hint="Replay needs the prompts, schemas and model ids of the recorded run.",
            )
        if isinstance(found, ModelError):
            raise found
        return found


@dataclass(frozen=True)
class ProbedReplay(Replay):
    """The same for a model that was probed first: it learns from the recorded answer."""

    original: ProbedModel

    def probe_request(self) -> Request:
        """Return the original's probe."""
        return self.original.probe_request()

    def learn(self, completion: Completion) -> None:
        """Let the original take note."""
        self.original.learn(completion)


def replay_of(original: Model, recorded: Mapping[str, Completion | ModelError]) -> Replay:
    """Return a model that repeats what was recorded of ``original``."""
    if isinstance(original, ProbedModel):
        return ProbedReplay(original, recorded)
    return Replay(original, recorded)


@dataclass(frozen=True)
class RecordedBatches:
    """A batch endpoint that repeats what was recorded, for replaying a run in batch mode.

    Attributes:
        name: Provider name.
        recorded: By key: the completion, or the error the call ended in.
    """

    name: str
    recorded: Mapping[str, Completion | ModelError]
    _submitted: list[tuple[str, ...]] = field(default_factory=list)

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Take the calls and return a number."""
        self._submitted.append(tuple(bodies))
        return str(len(self._submitted) - 1)

    async def ended(self, batch_id: str) -> bool:
        """Return True: everything was answered long ago."""
        del batch_id
        return True

    async def lines(self, batch_id: str) -> Sequence[Line]:
        """Return what was answered then; a call that the run never made has no line."""
        by_start = {key[:KEY_LENGTH]: outcome for key, outcome in self.recorded.items()}
        names = self._submitted[int(batch_id)]
        return [Line(name, by_start[name[:KEY_LENGTH]]) for name in names if name[:KEY_LENGTH] in by_start]
