"""OpenAI's batches of responses: a file in, an output file and an error file out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from consilience.errors import FinalModelError, ModelError
from consilience.models.batch import CALL_TIMEOUT_S, Line, not_done, rows_of
from consilience.models.openai import VENDOR, completion_of
from consilience.models.request import Completion
from consilience.models.vendor import broken, fields, lost_error, status_error

ENDPOINT = "/v1/responses"
WINDOW = "24h"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_NOT_DONE = {"batch_expired": "expired", "batch_cancelled": "was cancelled"}


class OpenAIBatches:
    """The batch endpoint behind one account.

    Args:
        client: The SDK's asynchronous client.
    """

    name = "openai"

    def __init__(self, client: Any) -> None:
        self._client = client
        self._vendor = VENDOR.holding(client.api_key)

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Upload the bodies as a file, submit it and return the batch's id."""
        lines = [
            json.dumps({"custom_id": name, "method": "POST", "url": ENDPOINT, "body": dict(body)})
            for name, body in bodies.items()
        ]
        content = "\n".join(lines).encode("ascii") + b"\n"
        model = str(next(iter(bodies.values()))["model"])
        files, batches = self._client.files, self._client.batches
        uploaded = await self._call(
            model, lambda: files.create(file=("calls.jsonl", content), purpose="batch", timeout=CALL_TIMEOUT_S)
        )
        batch = await self._call(
            model,
            lambda: batches.create(
                completion_window=WINDOW, endpoint=ENDPOINT, input_file_id=uploaded.id, timeout=CALL_TIMEOUT_S
            ),
        )
        return str(batch.id)

    async def ended(self, batch_id: str) -> bool:
        """Return whether the batch has ended."""
        return (await self._retrieved(batch_id)).status in _ENDED

    async def lines(self, batch_id: str, model: str) -> Sequence[Line] | ModelError:
        """Return the lines of the output file and of the error file, or why the batch failed as a whole."""
        batch = await self._retrieved(batch_id)
        if batch.status == "failed":
            found = (batch.errors.data if batch.errors else None) or ()
            reasons = "; ".join(dict.fromkeys(str(error.message) for error in found)) or "no reason given"
            return FinalModelError(
                f"{self._vendor.name} failed batch {batch_id} as a whole: {self._vendor.clean(reasons)}",
                hint="Nothing was charged. Mend what it names and run the same command with --retry-failed.",
                status=400,
            )
        lines: list[Line] = []
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id is not None:
                text = await self._text(file_id)
                lines += [Line(row["custom_id"], self._outcome(row, model)) for row in rows_of(text)]
        return lines

    async def _text(self, file_id: str) -> str:
        content = self._client.files.content
        return str((await self._call("a batch", lambda: content(file_id, timeout=CALL_TIMEOUT_S))).text)

    async def _retrieved(self, batch_id: str) -> Any:
        retrieve = self._client.batches.retrieve
        return await self._call("a batch", lambda: retrieve(batch_id, timeout=CALL_TIMEOUT_S))

    async def _call(self, model: str, method: Callable[[], Awaitable[Any]]) -> Any:
        import openai  # noqa: PLC0415 - heavy, only for live calls

        try:
            return await method()
        except openai.APIStatusError as error:
            raise status_error(self._vendor, model, error.status_code, error.body, error.response.headers) from None
        except openai.OpenAIError as error:
            raise broken(self._vendor, model, error) from None

    def _outcome(self, row: Mapping[str, Any], model: str) -> Completion | ModelError:
        response, error = row.get("response"), fields(row.get("error"))
        if error.get("code") in _NOT_DONE:
            return not_done(row["custom_id"], _NOT_DONE[error["code"]])
        if not isinstance(response, dict):
            return status_error(self._vendor, model, 400, {"error": row.get("error")}, {})
        status, body = response.get("status_code"), fields(response.get("body"))
        if not isinstance(status, int):
            return lost_error(self._vendor, model, "its line in the batch has no status")
        if status != 200:
            return status_error(self._vendor, model, status, body, {})
        if body.get("status") == "failed":
            return lost_error(self._vendor, model, f"the response failed: {body.get('error')}")
        return completion_of(body, request_id=str(response.get("request_id") or "") or None, latency_s=None)
