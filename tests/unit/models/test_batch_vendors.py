"""What vendors may send back that the fake does not: the adapters over the real SDKs, without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import anthropic
import anyio
import httpx2
import openai
import pytest

from consilience.errors import AccountError, FinalModelError, ModelError, TransientModelError
from consilience.models.anthropic_batch import AnthropicBatches
from consilience.models.batch import BatchVendor, Line
from consilience.models.openai_batch import OpenAIBatches
from consilience.models.request import Completion

KEY = "sk-canary-0123456789"
HOST = "http://127.0.0.1:9"
Answer = Callable[[httpx2.Request], httpx2.Response]
NAMES = ("anthropic", "openai")


def use(name: str, answer: Answer, work: Callable[[BatchVendor], Any]) -> Any:
    """Let ``work`` use an adapter whose requests are answered by a function."""

    async def run() -> Any:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            if name == "anthropic":
                client: Any = anthropic.AsyncAnthropic(api_key=KEY, base_url=HOST, max_retries=0, http_client=http)
                return await work(AnthropicBatches(client))
            client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{HOST}/v1", max_retries=0, http_client=http)
            return await work(OpenAIBatches(client))

    return anyio.run(run)


def described(name: str, **changes: Any) -> dict[str, Any]:
    if name == "anthropic":
        ended = {"id": "b", "type": "message_batch", "processing_status": "ended", "results_url": f"{HOST}/results"}
        return ended | changes
    return {"id": "b", "object": "batch", "status": "completed", "output_file_id": "f", "error_file_id": None} | changes


def answering(name: str, body: str, **changes: Any) -> Answer:
    """Answer with a batch, and with this text where its results are asked for."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith(("/results", "/content")):
            return httpx2.Response(200, content=body.encode())
        return httpx2.Response(200, json=described(name, **changes))

    return answer


def lines(name: str, body: str, **changes: Any) -> dict[str, Any]:
    """Return what came of each call, by its id."""
    found: Sequence[Line] | ModelError = use(
        name, answering(name, body, **changes), lambda vendor: vendor.lines("b", "the-model")
    )
    assert not isinstance(found, ModelError)
    return {line.custom_id: line.outcome for line in found}


def good(name: str, custom_id: str, text: str = "So.") -> dict[str, Any]:
    if name == "anthropic":
        message = {"id": "m", "model": "the-model", "content": [{"type": "text", "text": text}], "usage": None}
        return {"custom_id": custom_id, "result": {"type": "succeeded", "message": message}}
    content = [{"type": "output_text", "text": text}]
    body = {"model": "the-model", "status": "completed", "output": [{"type": "message", "content": content}]}
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}


@pytest.mark.parametrize("name", NAMES)
def test_texts_may_hold_any_line_end_and_any_surrogate(name: str) -> None:
    text = "one\u2028two\x85three\x0bfour"
    rows = [json.dumps(good(name, "a", text), ensure_ascii=False), json.dumps(good(name, "b", "\ud800"))]
    found = lines(name, "\r\n".join(rows))
    assert {key: one.text for key, one in found.items()} == {"a": text, "b": "\ud800"}


@pytest.mark.parametrize("name", NAMES)
def test_a_line_that_is_no_line_is_missing_and_the_others_count(name: str) -> None:
    rows = ["[]", '{"custom_id": 7}', "null", json.dumps(good(name, "a")), json.dumps(good(name, "b"))[:-1], ""]
    assert list(lines(name, "\n".join(rows))) == ["a"]


@pytest.mark.parametrize(
    ("name", "line", "kind", "status", "said"),
    [
        ("anthropic", {"result": {"type": "canceled"}}, FinalModelError, 410, "was cancelled in its batch"),
        ("anthropic", {"result": {"type": "expired"}}, FinalModelError, 410, "expired in its batch"),
        ("anthropic", {"result": {"type": "strange"}}, TransientModelError, None, "of type strange"),
        ("anthropic", {"result": {"type": "succeeded"}}, TransientModelError, None, "of type succeeded"),
        ("anthropic", {"result": None}, TransientModelError, None, "of type None"),
        ("openai", {"error": {"code": "batch_cancelled"}}, FinalModelError, 410, "was cancelled in its batch"),
        ("openai", {"error": {"code": "batch_expired"}}, FinalModelError, 410, "expired in its batch"),
        ("openai", {"error": {"message": "odd"}}, FinalModelError, 400, "a call of the-model with status 400: odd"),
        ("openai", {"response": {"body": {}}}, TransientModelError, None, "has no status"),
        (
            "openai",
            {"response": {"status_code": 200, "body": {"status": "failed", "error": "odd"}}},
            TransientModelError,
            None,
            "the response failed: odd",
        ),
        ("openai", {"response": {"status_code": 503, "body": {}}}, TransientModelError, 503, "with status 503"),
    ],
)
def test_lines_without_an_answer(name: str, line: Any, kind: type[ModelError], status: int | None, said: str) -> None:
    error = lines(name, json.dumps({"custom_id": "a"} | line))["a"]
    assert (type(error), error.status) == (kind, status)
    assert said in str(error)


@pytest.mark.parametrize(
    ("kind", "expected", "status"),
    [
        ("overloaded_error", TransientModelError, 529),
        ("timeout_error", TransientModelError, 504),
        ("rate_limit_error", TransientModelError, 429),
        ("invalid_request_error", FinalModelError, 400),
        ("not_found_error", AccountError, 404),
        ("billing_error", AccountError, 402),
        ("new_error", FinalModelError, 400),
    ],
)
def test_errored_messages_have_the_status_they_would_have_had(kind: str, expected: Any, status: int) -> None:
    error = {"type": "error", "error": {"type": kind, "message": f"{KEY} is odd"}}
    found = lines("anthropic", json.dumps({"custom_id": "a", "result": {"type": "errored", "error": error}}))["a"]
    assert (type(found), found.status) == (expected, status)
    assert "the-model" in str(found)
    assert KEY not in str(found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_refusals_name_the_vendor_and_never_the_key(name: str, status: int) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        del request
        return httpx2.Response(status, json={"error": {"message": f"{KEY} is odd", "type": "odd"}})

    async def work(vendor: BatchVendor) -> list[str]:
        said = []
        for call in (
            lambda: vendor.submit({"a": {"model": "the-model"}}),
            lambda: vendor.ended("b"),
            lambda: vendor.lines("b", "the-model"),
        ):
            with pytest.raises(ModelError) as caught:
                await call()
            assert caught.value.status == status
            said.append(str(caught.value))
        return said

    said = use(name, answer, work)
    assert all("[key] is odd" in one and KEY not in one for one in said)
    assert "the-model" in said[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_connection_that_is_lost_may_heal_and_has_no_status(name: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("slow", request=request)

    async def work(vendor: BatchVendor) -> ModelError:
        with pytest.raises(TransientModelError) as caught:
            await vendor.lines("b", "the-model")
        return caught.value

    assert use(name, answer, work).status is None


@pytest.mark.parametrize("name", NAMES)
def test_every_request_has_a_time_limit(name: str) -> None:
    limits: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        limits.append(request.extensions["timeout"]["read"])
        if request.method == "POST":
            return httpx2.Response(200, json=described(name) | {"object": "file"})
        return answering(name, "")(request)

    async def work(vendor: BatchVendor) -> None:
        await vendor.submit({"a": {"model": "the-model"}})
        assert await vendor.ended("b")
        await vendor.lines("b", "the-model")

    use(name, answer, work)
    assert set(limits) == {120.0}


def test_an_ended_batch_that_names_no_results_is_polled_again() -> None:
    with pytest.raises(TransientModelError, match="names no results"):
        lines("anthropic", "", results_url=None)


def test_a_batch_without_any_file_has_no_lines() -> None:
    assert lines("openai", "", output_file_id=None, status="cancelled") == {}


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (None, "no reason given"),
        ({"object": "list", "data": None}, "no reason given"),
        ({"object": "list", "data": [{"message": "odd"}, {"message": "odd"}, {"message": f"{KEY}"}]}, "odd; [key]"),
    ],
)
def test_a_failed_batch_says_why_once(errors: Any, said: str) -> None:
    answer = answering("openai", "", status="failed", errors=errors)
    found = use("openai", answer, lambda vendor: vendor.lines("b", "the-model"))
    assert isinstance(found, FinalModelError)
    assert found.message == f"OpenAI failed batch b as a whole: {said}"
    assert found.status == 400


def test_an_answer_is_read_as_without_batches() -> None:
    for name in NAMES:
        (found,) = lines(name, json.dumps(good(name, "a"))).values()
        assert isinstance(found, Completion)
        assert (found.text, found.model, found.usage, found.latency_s) == ("So.", "the-model", None, None)
