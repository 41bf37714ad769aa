"""OpenAI's Responses API through the official SDK, with strict structured output; prefixes are cached by the vendor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from consilience.core.canonical import sha256_hex
from consilience.errors import PlanError
from consilience.models.base import Identity
from consilience.models.hosted import Hosted, told
from consilience.models.request import Completion, Request, StopReason, Usage
from consilience.models.vendor import (
    Vendor,
    bill,
    check_sendable,
    counts,
    fields,
    host_of,
    json_body,
    lost_error,
    objects,
)

VENDOR = Vendor("OpenAI", "OPENAI_API_KEY")
BASE_URL = "https://api.openai.com/v1"
API_VERSION = "v1"
ADAPTER_VERSION = "1"
CACHE_KEY_LENGTH = 32


@dataclass
class OpenAI(Hosted):
    """A model behind the Responses API.

    Attributes:
        id: Model id.
        api_key: Sent with every call; never recorded.
        base_url: Where the API is, with ``/v1``.
        min_cacheable_tokens: Shortest prefix the vendor caches by itself.
    """

    id: str
    api_key: str = field(repr=False)
    base_url: str = BASE_URL
    min_cacheable_tokens: int | None = 1024
    _client: Any = field(default=None, repr=False)

    @property
    def identity(self) -> Identity:
        """Return who is called."""
        return Identity("openai", host_of(self.base_url), API_VERSION, ADAPTER_VERSION, simulated=False)

    def describe(self) -> str:
        """Return where the model was asked, if not at the vendor; nothing otherwise."""
        return "" if self.base_url == BASE_URL else f"asked at {host_of(self.base_url)}, not at {VENDOR.name}"

    def wire_body(self, request: Request) -> dict[str, Any]:
        """Return the exact body; nothing is stored at the vendor.

        Raises:
            PlanError: Sampling parameters are given; the models take none. Or a text cannot be sent.
        """
        check_sendable(request)
        if request.sampling is not None:
            raise PlanError(f"model {self.id} takes no sampling parameters", hint="Leave sampling out.")
        system = "\n\n".join(block.text for block in request.system)
        body: dict[str, Any] = {
            "model": self.id,
            "instructions": system,
            "input": [
                {
                    "role": message.role,
                    "content": [{"type": "input_text", "text": block.text} for block in message.blocks],
                }
                for message in request.messages
            ],
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": request.contract.name,
                    "schema": dict(request.contract.schema),
                    "strict": True,
                }
            },
            "reasoning": {"effort": request.effort},
            "max_output_tokens": request.max_output_tokens,
            "prompt_cache_key": sha256_hex(system.encode())[:CACHE_KEY_LENGTH],  # one place per seat, for all its items
            "store": False,
        }
        if request.tools:
            body["tools"] = [dict(tool) for tool in request.tools]
        return body

    def _open(self) -> Any:
        import openai  # noqa: PLC0415 - heavy, only for live calls

        return openai.AsyncOpenAI(api_key=self.api_key, base_url=self.base_url, max_retries=0, timeout=None)

    def _vendor(self) -> Vendor:
        return VENDOR.holding(self.api_key)

    def _told(self) -> AbstractContextManager[None]:
        import openai  # noqa: PLC0415 - heavy, only for live calls

        return told(openai, self._vendor(), self.id)

    async def complete(self, request: Request) -> Completion:
        """Call the model once.

        Raises:
            TransientModelError: The failure may heal.
            FinalModelError: It will not.
        """
        with self._told():
            response = await self.client().responses.with_raw_response.create(**self.wire_body(request))
            text = response.text
        body = json_body(text, self._vendor(), self.id)
        if body.get("status") == "failed":
            raise lost_error(self._vendor(), self.id, f"the response failed: {body.get('error')}")
        return completion_of(body, request_id=response.request_id, latency_s=response.elapsed.total_seconds())


def completion_of(body: dict[str, Any], *, request_id: str | None, latency_s: float | None) -> Completion:
    """Return a Responses response in our terms."""
    parts = list(_parts(body))
    refusal = [str(part.get("refusal", "")) for part in parts if part.get("type") == "refusal"]
    text = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "output_text")
    return Completion(
        text=text or "".join(refusal),
        stop_reason="refusal" if refusal else _stop(body),
        usage=usage_of(body.get("usage")),
        request_id=request_id,
        latency_s=latency_s,
        model=str(body.get("model")),
        raw={"id": body.get("id"), "status": body.get("status"), "incomplete_details": body.get("incomplete_details")},
    )


def _parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in objects(body.get("output")):
        if item.get("type") == "message":
            yield from objects(item.get("content"))


def _stop(body: dict[str, Any]) -> StopReason:
    if body.get("status") == "completed":
        return "end"
    reason = fields(body.get("incomplete_details")).get("reason")
    stops: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
    return stops.get(str(reason), "other")


def usage_of(usage: Any) -> Usage | None:
    """Return disjoint buckets, or None where a count is missing; ``input_tokens`` includes cached and written ones.

    Example:
        >>> usage_of({"input_tokens": 10000, "output_tokens": 200,
        ...           "input_tokens_details": {"cached_tokens": 4000, "cache_write_tokens": 5000},
        ...           "output_tokens_details": {"reasoning_tokens": 0}}).input
        1000
    """
    if not isinstance(usage, dict):
        return None
    inner, outer = fields(usage.get("input_tokens_details")), fields(usage.get("output_tokens_details"))
    known = counts(
        usage.get("input_tokens"),
        inner.get("cached_tokens"),
        inner.get("cache_write_tokens"),
        usage.get("output_tokens"),
        outer.get("reasoning_tokens"),
    )
    if known is None:
        return None
    total, read, written, output, thought = known
    return bill(total - read - written, read, written, 0, output - thought, thought)
