"""Batches of both vendors through the real SDKs."""

from __future__ import annotations

import json
from typing import Any, Literal

import anthropic
import openai
import pytest

from consilience.fakes.faults import BatchScript, Fault, status
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import Settings
from vendor_clients import Clients, messages, responses, with_clients

BAD = BatchScript(
    lines={1: "missing", 2: "duplicate", 3: "expired", 4: status(500), 5: Fault("truncated")}, pending_polls=1
)
IDS = [f"turn-{index}" for index in range(7)]


def requests(*ids: str, **changed: Any) -> Any:
    return [{"custom_id": custom_id, "params": messages(**changed)} for custom_id in ids]


def lines(*ids: str, **changed: Any) -> bytes:
    rows = [
        {"custom_id": custom_id, "method": "POST", "url": "/v1/responses", "body": responses(**changed)}
        for custom_id in ids
    ]
    return "\n".join(json.dumps(row) for row in rows).encode()


async def create(clients: Clients, content: bytes) -> Any:
    file = await clients.openai.files.create(file=("in.jsonl", content), purpose="batch")
    return await clients.openai.batches.create(
        input_file_id=file.id, endpoint="/v1/responses", completion_window="24h", metadata={"run": "r"}
    )


async def rows(clients: Clients, file_id: str | None) -> list[dict[str, Any]]:
    if file_id is None:
        return []
    return [json.loads(line) for line in (await clients.openai.files.content(file_id)).text.splitlines()]


def test_a_batch_of_messages(fake: FakeServer) -> None:
    fake.reset(settings=Settings(batches=BatchScript(not_found_polls=1, pending_polls=1)))

    async def use(clients: Clients) -> list[Any]:
        batches = clients.anthropic.messages.batches
        batch = await batches.create(requests=requests(*IDS))
        assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 7)
        with pytest.raises(anthropic.NotFoundError):
            await batches.retrieve(batch.id)
        assert (await batches.retrieve(batch.id)).results_url is None
        ended = await batches.retrieve(batch.id)
        assert (ended.processing_status, ended.request_counts.succeeded) == ("ended", 7)
        return [result async for result in await batches.results(batch.id)]

    results = with_clients(fake, use)
    assert [result.custom_id for result in results] != IDS, "results come in any order"
    assert sorted(result.custom_id for result in results) == IDS
    assert {result.result.message.usage.service_tier for result in results} == {"batch"}


def test_a_batch_of_messages_goes_wrong(fake: FakeServer) -> None:
    fake.reset(settings=Settings(batches=BAD))

    async def use(clients: Clients) -> dict[str, list[Any]]:
        batches = clients.anthropic.messages.batches
        asked = requests(*IDS)
        asked[6]["params"]["temperature"] = 1.0
        batch = await batches.create(requests=asked)
        with pytest.raises(anthropic.AnthropicError, match="in_progress"):
            await batches.results(batch.id)
        found: dict[str, list[Any]] = {}
        async for line in await batches.results(batch.id):
            found.setdefault(line.custom_id, []).append(line.result)
        return found

    found = with_clients(fake, use)
    outcomes = {custom_id: [result.type for result in results] for custom_id, results in found.items()}
    assert outcomes == {
        "turn-0": ["succeeded"],
        "turn-2": ["succeeded", "succeeded"],
        "turn-3": ["expired"],
        "turn-4": ["errored"],
        "turn-5": ["succeeded"],
        "turn-6": ["errored"],
    }
    assert found["turn-5"][0].message.stop_reason == "max_tokens"
    assert found["turn-6"][0].error.error.type == "invalid_request_error"


def test_a_batch_of_messages_is_cancelled(fake: FakeServer) -> None:
    fake.reset(settings=Settings(batches=BatchScript(pending_polls=1)))

    async def use(clients: Clients) -> list[str]:
        batches = clients.anthropic.messages.batches
        batch = await batches.create(requests=requests("a"))
        assert (await batches.cancel(batch.id)).processing_status == "canceling"
        assert (await batches.retrieve(batch.id)).request_counts.canceled == 1
        return [line.result.type async for line in await batches.results(batch.id)]

    assert with_clients(fake, use) == ["canceled"]


@pytest.mark.parametrize("asked", [requests(), requests("a", "a"), requests("a b")])
def test_batches_of_messages_that_are_refused(fake: FakeServer, asked: Any) -> None:
    with pytest.raises(anthropic.BadRequestError):
        with_clients(fake, lambda clients: clients.anthropic.messages.batches.create(requests=asked))


def test_a_batch_of_responses(fake: FakeServer) -> None:
    fake.reset(settings=Settings(batches=BatchScript(pending_polls=1, order="reversed")))

    async def use(clients: Clients) -> list[dict[str, Any]]:
        batch = await create(clients, lines(*IDS))
        assert (batch.status, batch.metadata) == ("validating", {"run": "r"})
        assert (await clients.openai.batches.retrieve(batch.id)).status == "in_progress"
        done = await clients.openai.batches.retrieve(batch.id)
        assert (done.status, done.error_file_id) == ("completed", None)
        assert done.request_counts
        assert done.request_counts.completed == 7
        again = await clients.openai.batches.retrieve(batch.id)
        assert again.output_file_id == done.output_file_id
        return await rows(clients, done.output_file_id)

    found = with_clients(fake, use)
    assert [row["custom_id"] for row in found] == IDS[::-1]
    assert {row["response"]["status_code"] for row in found} == {200}
    assert found[0]["response"]["body"]["object"] == "response"


def test_a_batch_of_responses_goes_wrong(fake: FakeServer) -> None:
    fake.reset(settings=Settings(batches=BAD))

    async def use(clients: Clients) -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]:
        content = lines(*IDS[:6]) + b"\n" + lines(IDS[6], temperature=1.0)
        batch = await create(clients, content)
        await clients.openai.batches.retrieve(batch.id)
        done = await clients.openai.batches.retrieve(batch.id)
        return done, await rows(clients, done.output_file_id), await rows(clients, done.error_file_id)

    done, good, bad = with_clients(fake, use)
    assert done.status == "expired"
    assert sorted(row["custom_id"] for row in good) == ["turn-0", "turn-2", "turn-2", "turn-5"]
    errors = {row["custom_id"]: row for row in bad}
    assert errors["turn-3"]["error"]["code"] == "batch_expired"
    assert errors["turn-4"]["response"]["status_code"] == 500
    assert errors["turn-6"]["response"]["body"]["error"]["code"] == "unsupported_parameter"
    assert len(errors) == 3


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_file"),
        (b"{", "invalid_json_line"),
        (lines("a").replace(b"/v1/responses", b"/v1/other"), "invalid_url"),
        (lines("a", "a"), "duplicate_custom_id"),
        (lines("a") + b"\n" + lines("b", model="gpt-6-luna"), "mismatched_model"),
    ],
)
def test_input_files_that_fail_validation(fake: FakeServer, content: bytes, code: str) -> None:
    async def use(clients: Clients) -> Any:
        batch = await create(clients, content)
        return await clients.openai.batches.retrieve(batch.id)

    failed = with_clients(fake, use)
    assert (failed.status, failed.output_file_id, failed.errors.data[0].code) == ("failed", None, code)


def test_a_batch_of_responses_is_cancelled(fake: FakeServer) -> None:
    fake.reset(settings=Settings(batches=BatchScript(pending_polls=1)))

    async def use(clients: Clients) -> tuple[str, list[dict[str, Any]]]:
        batch = await create(clients, lines("a"))
        assert (await clients.openai.batches.cancel(batch.id)).status == "cancelling"
        done = await clients.openai.batches.retrieve(batch.id)
        return done.status, await rows(clients, done.error_file_id)

    found, left = with_clients(fake, use)
    assert (found, left[0]["error"]["code"]) == ("cancelled", "batch_cancelled")


def test_unknown_batches_and_files_are_not_found(fake: FakeServer) -> None:
    for use in (
        lambda clients: clients.openai.batches.retrieve("batch_none"),
        lambda clients: clients.openai.files.retrieve("file_none"),
        lambda clients: create_over(clients, "file_none"),
    ):
        with pytest.raises(openai.NotFoundError):
            with_clients(fake, use)
    with pytest.raises(anthropic.NotFoundError):
        with_clients(fake, lambda clients: clients.anthropic.messages.batches.retrieve("msgbatch_none"))


async def create_over(clients: Clients, file_id: str) -> Any:
    window: Literal["24h"] = "24h"
    return await clients.openai.batches.create(
        input_file_id=file_id, endpoint="/v1/responses", completion_window=window
    )
