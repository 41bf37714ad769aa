"""OpenAI's batches of responses: a file in, an output file and an error file out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from consilience.errors import FinalModelError
from consilience.models.batch import Line, expired
from consilience.models.openai import VENDOR, completion_of
from consilience.models.vendor import lost_error, status_error

ENDPOINT = "/v1/responses"
WINDOW = "24h"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class OpenAIBatches:
    """The batch endpoint behind one account.

    Args:
        client: The SDK's asynchronous client.
    """

    name = "openai"

    def __init__(self, client: Any) -> None:
        self._client = client

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Upload the bodies as a file, submit it and return the batch's id."""
        lines = [
            json.dumps({"custom_id": name, "method": "POST", "url": ENDPOINT, "body": dict(body)})
            for name, body in bodies.items()
        ]
        content = "\n".join(lines).encode("ascii") + b"\n"
        uploaded = await self._call(self._client.files.create, file=("calls.jsonl", content), purpose="batch")
        batch = await self._call(
            self._client.batches.create, completion_window=WINDOW, endpoint=ENDPOINT, input_file_id=uploaded.id
        )
        return str(batch.id)

    async def ended(self, batch_id: str) -> bool:
        """Return whether the batch has ended."""
        return (await self._call(self._client.batches.retrieve, batch_id)).status in _ENDED

    async def lines(self, batch_id: str) -> Sequence[Line]:
        """Return the lines of the output file and of the error file.

        Raises:
            FinalModelError: The batch failed as a whole.
        """
        batch = await self._call(self._client.batches.retrieve, batch_id)
        if batch.status == "failed":
            reasons = "; ".join(str(error.message) for error in (batch.errors.data or ()) if batch.errors)
            raise FinalModelError(f"the batch failed as a whole: {reasons}", hint="Mend what it names.", status=400)
        found: list[Line] = []
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id is not None:
                text = (await self._call(self._client.files.content, file_id)).text
                found += [_line(json.loads(line)) for line in text.splitlines() if line.strip()]
        return found

    async def _call(self, method: Any, *arguments: Any, **named: Any) -> Any:
        import openai  # noqa: PLC0415 - heavy, only for live calls

        try:
            return await method(*arguments, **named)
        except openai.APIStatusError as error:
            raise status_error(VENDOR, "a batch", error.status_code, error.body, error.response.headers) from None
        except openai.APIError as error:
            raise lost_error(VENDOR, "a batch", type(error).__name__) from None


def _line(item: Mapping[str, Any]) -> Line:
    name, response, error = str(item["custom_id"]), item.get("response"), item.get("error")
    if isinstance(error, dict) and error.get("code") == "batch_expired":
        return Line(name, expired(name))
    if not isinstance(response, dict):
        return Line(name, status_error(VENDOR, "a batched call", 400, {"error": error}, {}))
    status, body = int(response.get("status_code") or 0), response.get("body") or {}
    if status != 200:
        return Line(name, status_error(VENDOR, "a batched call", status, body, {}))
    if body.get("status") == "failed":
        return Line(name, lost_error(VENDOR, "a batched call", f"the response failed: {body.get('error')}"))
    request_id = str(response.get("request_id") or "") or None
    return Line(name, completion_of(body, request_id=request_id, latency_s=None))
