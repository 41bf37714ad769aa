"""Anthropic's Messages API through the official SDK, with structured output and explicit cache breakpoints."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from consilience.errors import PlanError
from consilience.models.base import Identity
from consilience.models.hosted import Hosted, told
from consilience.models.request import Block, Completion, Request, StopReason, Usage
from consilience.models.vendor import (
    Vendor,
    bill,
    check_sendable,
    counts,
    fields,
    host_of,
    json_body,
    objects,
)

VENDOR = Vendor("Anthropic", "ANTHROPIC_API_KEY")
BASE_URL = "https://api.anthropic.com"
API_VERSION = "2023-06-01"
ADAPTER_VERSION = "1"
CHARACTERS_PER_TOKEN = 4
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
}


@dataclass
class Anthropic(Hosted):
    """A model behind the Messages API.

    Attributes:
        id: Model id.
        api_key: Sent with every call; never recorded.
        base_url: Where the API is.
        min_cacheable_tokens: Shortest prefix the model caches; shorter ones carry no breakpoint. None: never one.
    """

    id: str
    api_key: str = field(repr=False)
    base_url: str = BASE_URL
    min_cacheable_tokens: int | None = 1024
    _client: Any = field(default=None, repr=False)

    @property
    def identity(self) -> Identity:
        """Return who is called."""
        return Identity("anthropic", host_of(self.base_url), API_VERSION, ADAPTER_VERSION, simulated=False)

    def describe(self) -> str:
        """Return where the model was asked, if not at the vendor; nothing otherwise."""
        return "" if self.base_url == BASE_URL else f"asked at {host_of(self.base_url)}, not at {VENDOR.name}"

    def wire_body(self, request: Request) -> dict[str, Any]:
        """Return the exact body: system, view and the rest as blocks, with breakpoints where a prefix is worth caching.

        Raises:
            PlanError: Sampling parameters are given; the API takes none. Or a text cannot be sent.
        """
        check_sendable(request)
        if request.sampling is not None:
            raise PlanError(f"model {self.id} takes no sampling parameters", hint="Leave sampling out.")
        before = request.contract.size // CHARACTERS_PER_TOKEN
        system, before = self._blocks(request.system, before)
        messages = []
        for message in request.messages:
            content, before = self._blocks(message.blocks, before)
            messages.append({"role": message.role, "content": content})
        body: dict[str, Any] = {
            "model": self.id,
            "max_tokens": request.max_output_tokens,
            "system": system,
            "messages": messages,
            "output_config": {
                "effort": request.effort,
                "format": {"type": "json_schema", "schema": dict(request.contract.schema)},
            },
            "thinking": {"type": "adaptive"},
        }
        if request.tools:
            body["tools"] = [dict(tool) for tool in request.tools]
        return body

    def _blocks(self, blocks: tuple[Block, ...], before: int) -> tuple[list[dict[str, Any]], int]:
        """Return content blocks and how many tokens stand before the next one."""
        content: list[dict[str, Any]] = []
        for block in blocks:
            before += len(block.text) // CHARACTERS_PER_TOKEN
            part: dict[str, Any] = {"type": "text", "text": block.text}
            if block.cache and self.min_cacheable_tokens is not None and before >= self.min_cacheable_tokens:
                part["cache_control"] = {"type": "ephemeral"}
            content.append(part)
        return content, before

    def _open(self) -> Any:
        import anthropic  # noqa: PLC0415 - heavy, only for live calls

        return anthropic.AsyncAnthropic(api_key=self.api_key, base_url=self.base_url, max_retries=0, timeout=None)

    def _vendor(self) -> Vendor:
        return VENDOR.holding(self.api_key)

    def _told(self) -> AbstractContextManager[None]:
        import anthropic  # noqa: PLC0415 - heavy, only for live calls

        return told(anthropic, self._vendor(), self.id)

    async def complete(self, request: Request) -> Completion:
        """Call the model once.

        Raises:
            TransientModelError: The failure may heal.
            FinalModelError: It will not.
        """
        with self._told():
            response = await self.client().messages.with_raw_response.create(**self.wire_body(request))
            text = await response.text()
        body = json_body(text, self._vendor(), self.id)
        return completion_of(body, request_id=response.request_id, latency_s=response.elapsed.total_seconds())


def completion_of(body: dict[str, Any], *, request_id: str | None, latency_s: float | None) -> Completion:
    """Return a Messages response in our terms; a reason to stop that we do not know is ``other``."""
    text = "".join(str(part.get("text", "")) for part in objects(body.get("content")) if part.get("type") == "text")
    return Completion(
        text=text,
        stop_reason=_STOPS.get(str(body.get("stop_reason")), "other"),
        usage=usage_of(body.get("usage")),
        request_id=request_id,
        latency_s=latency_s,
        model=str(body.get("model")),
        raw={"id": body.get("id"), "stop_reason": body.get("stop_reason")},
    )


def usage_of(usage: Any) -> Usage | None:
    """Return disjoint buckets, or None where a count is missing; ``input_tokens`` excludes both cache buckets.

    Example:
        >>> usage_of({"input_tokens": 3, "cache_creation_input_tokens": 12304, "cache_read_input_tokens": 0,
        ...           "output_tokens": 550}).cache_write_5m
        12304
    """
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    known = counts(*(usage.get(name) for name in names))
    if known is None:
        return None
    fresh, written, read, output = known
    hour = fields(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")
    thinking = fields(usage.get("output_tokens_details")).get("thinking_tokens")
    details = counts(hour or 0, thinking or 0)
    if details is None:
        return None
    hour, thinking = details
    return bill(fresh, read, written - hour, hour, output - thinking, thinking)
