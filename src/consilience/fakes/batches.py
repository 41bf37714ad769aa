"""Batches of both vendors: accepted, polled, and answered in any order, with lines that go wrong on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from consilience.fakes.anthropic_shapes import BatchLine as MessageLine
from consilience.fakes.faults import BatchScript, Fault
from consilience.fakes.openai_shapes import BatchLine, BatchShape, valid
from consilience.fakes.refusals import RefusedError, Vendor, error_body
from consilience.models.simulated import Draws

Answer = Callable[[Any, Fault | None], dict[str, Any]]
"""Returns the reply to one line's body, or raises `RefusedError`."""
DAY_S = 86_400


@dataclass
class Batch:
    """One batch.

    Attributes:
        id: Its id.
        created: Seconds since the epoch.
        size: Number of requests.
        lines: Result lines by outcome: succeeded, errored, expired, canceled.
        shape: What creation was asked for (OpenAI).
        polls: How often it was retrieved.
        canceled: Whether it was cancelled.
        errors: Why it failed validation (OpenAI).
    """

    id: str
    created: float
    size: int
    lines: list[tuple[str, dict[str, Any]]]
    shape: BatchShape | None = None
    polls: int = 0
    canceled: bool = False
    errors: list[dict[str, Any]] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        """Return how many result lines have this outcome."""
        return sum(one == outcome for one, _ in self.lines)


class Batches:
    """The batches and files of one fake.

    Args:
        script: How batches go.
        seed: Decides the shuffling.
        clock: Tells the time, seconds since the epoch.
    """

    def __init__(self, script: BatchScript, *, seed: int, clock: Callable[[], float]) -> None:
        self._script = script
        self._seed = seed
        self._clock = clock
        self._batches: dict[str, Batch] = {}
        self._files: dict[str, tuple[dict[str, Any], bytes]] = {}

    # Anthropic

    def create_messages(self, lines: Sequence[MessageLine], answer: Answer, base_url: str) -> dict[str, Any]:
        """Accept a batch of Messages and return it, unfinished."""
        bodies = [(line.custom_id, line.params) for line in lines]
        results = [
            (outcome, {"custom_id": custom_id, "result": _message_result(outcome, reply)})
            for outcome, custom_id, reply in self._run("anthropic", bodies, answer)
        ]
        batch = Batch(self._id("msgbatch_fake_", self._batches), self._clock(), len(lines), self._ordered(results))
        self._batches[batch.id] = batch
        return self._message_batch(batch, base_url, ended=False)

    def retrieve_messages(self, batch_id: str, base_url: str) -> dict[str, Any]:
        """Return a batch as far as it has come; each retrieval is a step.

        Raises:
            RefusedError: No such batch, or not yet.
        """
        batch = self._get(batch_id, "msgbatch_")
        batch.polls += 1
        if batch.polls <= self._script.not_found_polls:
            raise RefusedError(404, f"batch {batch_id} was not found")
        return self._message_batch(batch, base_url, ended=self._ended(batch))

    def message_results(self, batch_id: str) -> bytes:
        """Return the result lines of a finished batch.

        Raises:
            RefusedError: No such batch, or unfinished.
        """
        batch = self._get(batch_id, "msgbatch_")
        if not self._ended(batch):
            raise RefusedError(404, f"batch {batch_id} has no results yet")
        return _jsonl(line for _, line in batch.lines)

    def _message_batch(self, batch: Batch, base_url: str, *, ended: bool) -> dict[str, Any]:
        counts = {
            outcome: batch.count(outcome) if ended else 0 for outcome in ("succeeded", "errored", "expired", "canceled")
        }
        counts["processing"] = 0 if ended else batch.size
        stamp = _iso(batch.created)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "canceling" if batch.canceled else "in_progress",
            "request_counts": counts,
            "created_at": stamp,
            "expires_at": _iso(batch.created + DAY_S),
            "ended_at": stamp if ended else None,
            "cancel_initiated_at": stamp if batch.canceled else None,
            "archived_at": None,
            "results_url": f"{base_url}/v1/messages/batches/{batch.id}/results" if ended else None,
        }

    # OpenAI

    def add_file(self, name: str, content: bytes, purpose: str) -> dict[str, Any]:
        """Keep a file and return its description."""
        file = {
            "id": self._id("file_fake_", self._files),
            "object": "file",
            "bytes": len(content),
            "created_at": int(self._clock()),
            "filename": name,
            "purpose": purpose,
            "status": "processed",
        }
        self._files[str(file["id"])] = (file, content)
        return file

    def file(self, file_id: str) -> tuple[dict[str, Any], bytes]:
        """Return a file's description and content.

        Raises:
            RefusedError: No such file.
        """
        if file_id not in self._files:
            raise RefusedError(404, f"No such File object: {file_id}", param="id")
        return self._files[file_id]

    def create_responses(self, shape: BatchShape, answer: Answer) -> dict[str, Any]:
        """Accept a batch over an uploaded file and return it, unfinished.

        Raises:
            RefusedError: No such file.
        """
        content = self.file(shape.input_file_id)[1]
        batch = Batch(self._id("batch_fake_", self._batches), self._clock(), 0, [], shape)
        self._batches[batch.id] = batch
        lines, batch.errors = _input_lines(content, shape.endpoint)
        if not batch.errors:
            batch.size = len(lines)
            bodies = [(line.custom_id, line.body) for line in lines]
            results = [
                (outcome, _response_line(outcome, custom_id, reply, number))
                for number, (outcome, custom_id, reply) in enumerate(self._run("openai", bodies, answer))
            ]
            batch.lines = self._ordered(results)
        return self._response_batch(batch, status="validating")

    def retrieve_responses(self, batch_id: str) -> dict[str, Any]:
        """Return a batch as far as it has come; each retrieval is a step.

        Raises:
            RefusedError: No such batch.
        """
        batch = self._get(batch_id, "batch_")
        batch.polls += 1
        if batch.errors:
            return self._response_batch(batch, status="failed")
        if not self._ended(batch):
            return self._response_batch(batch, status="cancelling" if batch.canceled else "in_progress")
        done = "cancelled" if batch.canceled else "expired" if batch.count("expired") else "completed"
        return self._response_batch(batch, status=done)

    def _response_batch(self, batch: Batch, *, status: str) -> dict[str, Any]:
        done = status in {"completed", "expired", "cancelled"}
        good = [line for outcome, line in batch.lines if outcome == "succeeded"]
        bad = [line for outcome, line in batch.lines if outcome != "succeeded"]
        shape = batch.shape
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": shape.endpoint if shape else None,
            "input_file_id": shape.input_file_id if shape else None,
            "completion_window": "24h",
            "metadata": shape.metadata if shape else None,
            "status": status,
            "errors": {"object": "list", "data": batch.errors} if status == "failed" else None,
            "created_at": int(batch.created),
            "expires_at": int(batch.created + DAY_S),
            "output_file_id": self._result_file(batch, "output", good) if done else None,
            "error_file_id": self._result_file(batch, "error", bad) if done else None,
            "request_counts": {
                "total": batch.size,
                "completed": len(good) if done else 0,
                "failed": len(bad) if done else 0,
            },
        }

    def _result_file(self, batch: Batch, what: str, lines: list[dict[str, Any]]) -> str | None:
        """Return the id of a batch's file; a file without lines does not exist."""
        if not lines:
            return None
        name = f"{batch.id}_{what}.jsonl"
        known = next((file_id for file_id, (file, _) in self._files.items() if file["filename"] == name), None)
        return known or str(self.add_file(name, _jsonl(lines), "batch_output")["id"])

    # Both

    def cancel(self, batch_id: str) -> None:
        """Cancel a batch; what it has not answered is never answered.

        Raises:
            RefusedError: No such batch.
        """
        batch = self._get(batch_id, "")
        if self._ended(batch):
            return
        batch.canceled = True
        batch.lines = [("canceled", _canceled(line, anthropic=batch.shape is None)) for _, line in batch.lines]

    def _ended(self, batch: Batch) -> bool:
        unseen = self._script.not_found_polls if batch.shape is None else 0
        return batch.polls > unseen + self._script.pending_polls

    def _get(self, batch_id: str, prefix: str) -> Batch:
        if batch_id not in self._batches or not batch_id.startswith(prefix):
            raise RefusedError(404, f"batch {batch_id} was not found")
        return self._batches[batch_id]

    def _run(
        self, vendor: Vendor, bodies: Sequence[tuple[str, Any]], answer: Answer
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield outcome, custom id and body of every result line."""
        for index, (custom_id, body) in enumerate(bodies):
            planned = self._script.lines.get(index)
            if planned == "missing":
                continue
            if planned == "expired":
                yield "expired", custom_id, {}
                continue
            outcome, reply = "succeeded", {}
            try:
                reply = answer(body, planned if isinstance(planned, Fault) else None)
            except RefusedError as refused:
                outcome, reply = "errored", error_body(vendor, refused, f"req_line_{index}")
                reply["status"] = refused.http_status
            yield outcome, custom_id, reply
            if planned == "duplicate":
                yield outcome, custom_id, reply

    def _ordered(self, lines: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
        if self._script.order == "sent":
            return lines
        if self._script.order == "reversed":
            return lines[::-1]
        draws = Draws(self._seed, "batch")
        order = sorted(range(len(lines)), key=lambda index: draws.uniform(str(index)))
        return [lines[index] for index in order]

    def _id(self, prefix: str, known: Mapping[str, Any]) -> str:
        return f"{prefix}{len(known) + 1:06d}"


def _message_result(outcome: str, reply: dict[str, Any]) -> dict[str, Any]:
    if outcome == "succeeded":
        return {"type": "succeeded", "message": reply}
    if outcome == "errored":
        return {"type": "errored", "error": {name: part for name, part in reply.items() if name != "status"}}
    return {"type": outcome}


def _response_line(outcome: str, custom_id: str, reply: dict[str, Any], number: int) -> dict[str, Any]:
    line: dict[str, Any] = {"id": f"batch_req_{number:06d}", "custom_id": custom_id, "response": None, "error": None}
    if outcome == "expired":
        said = "This request could not be executed before the completion window expired."
        return line | {"error": {"code": "batch_expired", "message": said}}
    body = {name: part for name, part in reply.items() if name != "status"} if outcome == "errored" else reply
    status = reply["status"] if outcome == "errored" else 200
    return line | {"response": {"status_code": status, "request_id": f"req_line_{number}", "body": body}}


def _canceled(line: dict[str, Any], *, anthropic: bool) -> dict[str, Any]:
    if anthropic:
        return line | {"result": {"type": "canceled"}}
    return line | {"response": None, "error": {"code": "batch_cancelled", "message": "The batch was cancelled."}}


def _input_lines(content: bytes, endpoint: str) -> tuple[list[BatchLine], list[dict[str, Any]]]:
    """Return the lines of an input file and what is wrong with it."""
    lines: list[BatchLine] = []
    errors: list[dict[str, Any]] = []
    ids: set[str] = set()
    for number, raw in enumerate(content.splitlines(), start=1):
        try:
            line = valid(BatchLine, json.loads(raw))
        except (ValueError, RefusedError) as error:
            errors.append({"code": "invalid_json_line", "line": number, "message": str(error), "param": None})
            continue
        problem = None
        if line.url != endpoint:
            problem = "invalid_url"
        elif line.custom_id in ids:
            problem = "duplicate_custom_id"
        elif lines and line.body.get("model") != lines[0].body.get("model"):
            problem = "mismatched_model"
        if problem:
            errors.append({"code": problem, "line": number, "message": problem.replace("_", " "), "param": None})
        ids.add(line.custom_id)
        lines.append(line)
    if not lines and not errors:
        errors.append({"code": "empty_file", "line": None, "message": "The input file is empty.", "param": None})
    return lines, errors


def _jsonl(lines: Iterator[dict[str, Any]] | Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode("ascii") + b"\n" for line in lines)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat().replace("+00:00", "Z")
