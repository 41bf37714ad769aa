"""Answers from the record of an earlier run: zero calls, and an unknown key is an error, never a live call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from consilience.errors import IntegrityError, ModelError
from consilience.models.base import Identity, Model, ProbedModel, call_key
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
