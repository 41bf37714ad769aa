"""Anthropic's message batches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from consilience.errors import ModelError
from consilience.models.anthropic import VENDOR, completion_of
from consilience.models.batch import CALL_TIMEOUT_S, Line, not_done, rows_of
from consilience.models.request import Completion
from consilience.models.vendor import broken, fields, lost_error, status_error

_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches:
    """The batch endpoint behind one account.

    Args:
        client: The SDK's asynchronous client.
    """

    name = "anthropic"

    def __init__(self, client: Any) -> None:
        self._client = client
        self._batches = client.messages.batches
        self._vendor = VENDOR.holding(client.api_key)

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Submit wire bodies by custom id and return the batch's id."""
        requests = [{"custom_id": name, "params": dict(body)} for name, body in bodies.items()]
        model = str(next(iter(bodies.values()))["model"])
        return str(
            (await self._call(model, lambda: self._batches.create(requests=requests, timeout=CALL_TIMEOUT_S))).id
        )

    async def ended(self, batch_id: str) -> bool:
        """Return whether the batch has ended."""
        return bool((await self._retrieved(batch_id)).processing_status == "ended")

    async def lines(self, batch_id: str, model: str) -> Sequence[Line] | ModelError:
        """Return the result lines, read from their bytes: the SDK's own reader knows no lone surrogates."""
        url = (await self._retrieved(batch_id)).results_url
        if not url:
            raise lost_error(self._vendor, "a batch", "an ended batch names no results")
        options = {"timeout": CALL_TIMEOUT_S}
        text = await self._call("a batch", lambda: self._client.get(url, cast_to=str, options=options))
        return [Line(row["custom_id"], self._outcome(row, model)) for row in rows_of(text)]

    async def _retrieved(self, batch_id: str) -> Any:
        return await self._call("a batch", lambda: self._batches.retrieve(batch_id, timeout=CALL_TIMEOUT_S))

    async def _call(self, model: str, method: Callable[[], Awaitable[Any]]) -> Any:
        import anthropic  # noqa: PLC0415 - heavy, only for live calls

        try:
            return await method()
        except anthropic.APIStatusError as error:
            raise status_error(self._vendor, model, error.status_code, error.body, error.response.headers) from None
        except anthropic.AnthropicError as error:
            raise broken(self._vendor, model, error) from None

    def _outcome(self, row: Mapping[str, Any], model: str) -> Completion | ModelError:
        result = fields(row.get("result"))
        kind, message = str(result.get("type")), result.get("message")
        if kind == "succeeded" and isinstance(message, dict):
            return completion_of(message, request_id=str(message.get("id")), latency_s=None)
        if kind == "errored":
            body = fields(result.get("error"))
            status = _STATUS.get(str(fields(body.get("error")).get("type")), 400)
            return status_error(self._vendor, model, status, body, {})
        if kind in {"expired", "canceled"}:
            return not_done(row["custom_id"], "expired" if kind == "expired" else "was cancelled")
        return lost_error(self._vendor, model, f"its line in the batch is of type {kind}")
