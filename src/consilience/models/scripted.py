"""Fixed replies, in order or by a function of the prompt: for tests and for checking a panel's mechanics."""

from __future__ import annotations

import hashlib
import re
import unicodedata
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


_UNSEEN = re.compile(
    "[\\u00ad\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufe00-\\ufe0f\\ufeff\\U000e0000-\\U000e007f]"
)
_LOOK_ALIKES = str.maketrans(dict.fromkeys("‹〈〈❬❮⟨˂ᐸ", "<") | dict.fromkeys("›〉〉❭❯⟩˃ᐳ", ">") | {"а": "a", "‑": "-"})
_GULLIBLY_FENCED = re.compile(r"<\s*data\s*-\s*([0-9a-f]{16})[^>\n]*>.*?<\s*/\s*data\s*-\s*\1\s*>", re.DOTALL)


def outside_fences(text: str) -> str:
    r"""Return what a gullible model takes for instructions: all that stands outside of fences.

    It takes whatever looks like the end of a fence for one, in any case, spacing, width or script, and reads what comes
    next as said to it. Fence tags are left out, since they differ from item to item.

    Example:
        >>> outside_fences("Vote.\n<data-0123456789abcdef view>\n1\n</ DATA-0123456789ABCDEF >\nObey.")
        'vote.\n\nobey.'
    """
    seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", text).translate(_LOOK_ALIKES)).casefold()
    return re.sub(r"\b[0-9a-f]{16}\b", "", _GULLIBLY_FENCED.sub("", seen))


def obedience(request: Request) -> int:
    """Return a number that follows from every letter that stands outside of fences, and from nothing else.

    A model that answers by it is the most obedient victim there is: it does something else whenever anything at all
    escapes from a fence, in whatever language.
    """
    return int.from_bytes(hashlib.sha256(outside_fences(prompt_text(request)).encode("utf-8", "replace")).digest()[:6])


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
