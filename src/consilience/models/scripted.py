"""Fixed replies, in order or by a function of the prompt: for tests and for checking a panel's mechanics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from consilience.models.base import Identity, plain_body
from consilience.models.request import Completion, Request, StopReason, Usage

Reply = str | Completion | Exception
IDENTITY = Identity(provider="scripted", host="local", api_version="1", adapter_version="1", simulated=True)


def prompt_text(request: Request) -> str:
    """Return all text a model reads, system first."""
    blocks = [*request.system, *(block for message in request.messages for block in message.blocks)]
    return "\n".join(block.text for block in blocks)


def counted(request: Request, text: str) -> Usage:
    """Return usage at four characters a token, rounded up, nothing cached."""
    return Usage(-(-len(prompt_text(request)) // 4), 0, 0, 0, -(-len(text) // 4), 0)


def completion(
    request: Request, text: str, *, latency_s: float = 0.0, stop_reason: StopReason = "end", usage: Usage | None = None
) -> Completion:
    """Return a reply of the requested model with counted usage unless another is given."""
    return Completion(
        text=text,
        stop_reason=stop_reason,
        usage=usage or counted(request, text),
        request_id=None,
        latency_s=latency_s,
        model=request.model,
        raw={},
    )


@dataclass
class Scripted:
    """A model whose replies are given beforehand.

    Attributes:
        id: Model id.
        replies: A function of the request, or replies in the order of calls; a text, a whole `Completion`, or an error
            to raise.
        requests: What was asked so far.

    Raises:
        IndexError: More calls than replies.
    """

    id: str
    replies: Callable[[Request], Reply] | Iterable[Reply]
    requests: list[Request] = field(default_factory=list)
    identity: Identity = IDENTITY
    min_cacheable_tokens: int | None = None

    def __post_init__(self) -> None:
        self._script = [] if callable(self.replies) else list(self.replies)

    def wire_body(self, request: Request) -> dict[str, Any]:
        """Return the request itself as JSON values."""
        return plain_body(request)

    async def complete(self, request: Request) -> Completion:
        """Return or raise the scripted reply."""
        self.requests.append(request)
        reply = self.replies(request) if callable(self.replies) else self._script[len(self.requests) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Completion) else completion(request, reply)
