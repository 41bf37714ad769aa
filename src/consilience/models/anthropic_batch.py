"""Anthropic's message batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from consilience.errors import ModelError
from consilience.models.anthropic import VENDOR, completion_of
from consilience.models.batch import Line, expired
from consilience.models.vendor import lost_error, status_error

NEW_POLLS = 10
"""A batch just created may answer 404 for a while; so many are borne."""
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}


class AnthropicBatches:
    """The batch endpoint behind one account.

    Args:
        client: The SDK's asynchronous client.
    """

    name = "anthropic"

    def __init__(self, client: Any) -> None:
        self._batches = client.messages.batches
        self._unknown: dict[str, int] = {}

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Submit wire bodies by custom id and return the batch's id."""
        requests = [{"custom_id": name, "params": dict(body)} for name, body in bodies.items()]
        return str((await self._call(self._batches.create, requests=requests)).id)

    async def ended(self, batch_id: str) -> bool:
        """Return whether the batch has ended."""
        try:
            return bool((await self._call(self._batches.retrieve, batch_id)).processing_status == "ended")
        except ModelError as error:
            self._unknown[batch_id] = self._unknown.get(batch_id, 0) + 1
            if error.status == 404 and self._unknown[batch_id] <= NEW_POLLS:
                return False
            raise

    async def lines(self, batch_id: str) -> Sequence[Line]:
        """Return the result lines."""
        found = await self._call(self._batches.results, batch_id)
        return [_line(item.model_dump(mode="json")) async for item in found]

    async def _call(self, method: Any, *arguments: Any, **named: Any) -> Any:
        import anthropic  # noqa: PLC0415 - heavy, only for live calls

        try:
            return await method(*arguments, **named)
        except anthropic.APIStatusError as error:
            raise status_error(VENDOR, "a batch", error.status_code, error.body, error.response.headers) from None
        except anthropic.APIError as error:
            raise lost_error(VENDOR, "a batch", type(error).__name__) from None


def _line(item: Mapping[str, Any]) -> Line:
    name, result = str(item["custom_id"]), item["result"]
    if result["type"] == "succeeded":
        message = result["message"]
        return Line(name, completion_of(message, request_id=str(message.get("id")), latency_s=None))
    if result["type"] == "errored":
        body = result.get("error") or {}
        kind = str((body.get("error") or {}).get("type"))
        return Line(name, status_error(VENDOR, "a batched call", _STATUS.get(kind, 400), body, {}))
    return Line(name, expired(name))
