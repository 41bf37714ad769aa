"""What the adapters share, and what they make of servers that answer anything at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import anthropic
import anyio
import httpx2
import openai
import pytest

from consilience.errors import (
    AccountError,
    FinalModelError,
    ModelError,
    PlanError,
    TransientModelError,
    UnreachedModelError,
)
from consilience.models.anthropic import Anthropic
from consilience.models.compatible import Compatible
from consilience.models.openai import OpenAI
from consilience.models.request import Block, Completion, Message, Request
from consilience.models.vendor import Vendor, host_of, json_body, lost_error, retry_after, status_error
from consilience.runtime.briefing import contract_of

KEY = "sk-canary-0123456789"
VENDOR = Vendor("Vendor", "VENDOR_API_KEY", KEY)
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
CONTRACT = contract_of("probability", ())


def request(model: str = "m", **changes: Any) -> Request:
    values: dict[str, Any] = {
        "model": model,
        "system": (Block("Judge.", cache=True),),
        "messages": (Message("user", (Block("What is it worth?", cache=True), Block("TASK", cache=False))),),
        "tools": (),
        "contract": CONTRACT,
        "max_output_tokens": 100,
        "effort": "medium",
        "sampling": None,
        "replicate": 0,
    }
    return Request(**(values | changes))


# Waits


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        ("300", 300.0),
        (" 0.5 ", 0.5),
        ("-3", 0.0),
        ("Sun, 01 Nov 2026 12:00:07 GMT", 7.0),
        ("Sun, 01 Nov 2026 11:59:00 GMT", 0.0),
        ("Sun, 01 Nov 2026 12:00:07 -0000", None),
        ("soon", None),
        ("2 s", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
    ],
)
def test_a_wait_is_read_in_either_form_or_not_at_all(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}, now=NOW) == seconds


def test_without_the_header_there_is_no_wait() -> None:
    assert retry_after({}, now=NOW) is None


# Errors


def error_of(status: int, **error: Any) -> ModelError:
    return status_error(VENDOR, "m", status, {"error": {"message": "No.", **error}}, {})


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529, 599])
def test_what_may_heal(status: int) -> None:
    error = error_of(status)
    assert (type(error), error.status) == (TransientModelError, status)


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_what_concerns_the_account(status: int) -> None:
    error = error_of(status)
    assert (type(error), error.status) == (AccountError, status)


@pytest.mark.parametrize("status", [400, 405, 413, 415, 422])
def test_what_concerns_the_request(status: int) -> None:
    error = error_of(status)
    assert (type(error), error.status) == (FinalModelError, status)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"code": "insufficient_quota", "type": "insufficient_quota"}),
        (429, {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}),
        (400, {"code": "billing_hard_limit_reached"}),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}),
    ],
)
def test_an_empty_account_is_no_busy_vendor(status: int, error: dict[str, Any]) -> None:
    found = error_of(status, **error)
    assert isinstance(found, AccountError)
    assert "Add credit to the Vendor account" in str(found)


def test_a_wait_that_the_vendor_asks_for_is_handed_on() -> None:
    error = status_error(VENDOR, "m", 429, None, {"retry-after": "7"})
    assert isinstance(error, TransientModelError)
    assert (error.retry_after_s, "no message" in str(error)) == (7.0, True)


@pytest.mark.parametrize("body", [None, "text", [1], {"error": None}, {"error": "text"}, {"error": {"message": 1}}, 7])
def test_an_error_in_any_shape_is_told(body: Any) -> None:
    assert status_error(VENDOR, "m", 500, body, {}).message.startswith("Vendor refused a call of m with status 500: ")


def test_a_long_error_is_told_in_one_short_line() -> None:
    error = error_of(400, message="word \n" * 1_000)
    assert (len(error.message) < 400, "\n" in error.message) == (True, False)


@pytest.mark.parametrize("where", range(286, 302))
def test_a_key_that_a_server_repeats_is_struck_out_wherever_the_message_is_cut(where: int) -> None:
    error = error_of(401, message="x" * (where - 20) + KEY + "y" * 20)
    assert "sk-can" not in str(error)


def test_no_error_shows_a_key() -> None:
    said = [
        str(lost_error(VENDOR, "m", f"gone, said {KEY}")),
        str(error_of(500, message=f"Bearer {KEY}")),
        repr(VENDOR),
    ]
    with pytest.raises(TransientModelError) as caught:
        json_body(json.dumps({"error": {"message": f"bad key {KEY}"}}), VENDOR, "m")
    assert [text for text in (*said, str(caught.value)) if KEY in text] == []
    assert "bad key [key]" in str(caught.value)


def test_a_short_key_is_no_secret_and_defaces_no_message() -> None:
    assert "none of it" in str(lost_error(Vendor("V", "K", "none"), "m", "none of it"))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.example.org/v1", "api.example.org"),
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000"),
        ("https://me:secret@api.example.org:8443/v1", "api.example.org:8443"),
    ],
)
def test_the_host_is_recorded_without_a_password(url: str, host: str) -> None:
    assert host_of(url) == host


# Servers that answer anything


Speaking = Callable[[Callable[[httpx2.Request], httpx2.Response]], Any]


def to(handler: Callable[[httpx2.Request], httpx2.Response]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.MockTransport(handler))


def an_anthropic(handler: Callable[[httpx2.Request], httpx2.Response]) -> Any:
    client = anthropic.AsyncAnthropic(api_key=KEY, base_url="http://vendor", max_retries=0, http_client=to(handler))
    return Anthropic("m", KEY, "http://vendor", _client=client)


def an_openai(handler: Callable[[httpx2.Request], httpx2.Response]) -> Any:
    client = openai.AsyncOpenAI(api_key=KEY, base_url="http://vendor/v1", max_retries=0, http_client=to(handler))
    return OpenAI("m", KEY, "http://vendor/v1", _client=client)


def a_compatible(handler: Callable[[httpx2.Request], httpx2.Response]) -> Any:
    client = openai.AsyncOpenAI(api_key=KEY, base_url="http://vendor/v1", max_retries=0, http_client=to(handler))
    return Compatible("m", "http://vendor/v1", KEY, _client=client)


every_adapter = pytest.mark.parametrize("make", [an_anthropic, an_openai, a_compatible])


async def whole(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


def outcome_of(make: Speaking, status: int, text: str) -> Completion | ModelError:
    """What one call comes to; anything but an answer or a typed error is a mistake."""

    async def run() -> Completion | ModelError:
        model = make(lambda _: httpx2.Response(status, content=whole(text)))
        try:
            done: Completion = await model.complete(request())
        except ModelError as error:
            return error
        finally:
            await model.close()
        return done

    return anyio.run(run)


ANYTHING: list[Any] = [
    None,
    "text",
    [],
    [{"content": "x"}],
    {},
    {"id": "x"},
    {"content": "text", "output": "text", "choices": "text"},
    {"content": None, "output": None, "choices": None, "usage": []},
    {"content": [None, "x", 1], "output": [None, "x"], "choices": [None]},
    {"content": [{"type": "text"}], "output": [{"type": "message", "content": "x"}], "choices": [{"message": "x"}]},
    {"content": [{"type": "text", "text": None}], "output": [{"type": "message"}], "choices": [{"message": None}]},
    {"stop_reason": ["x"], "status": {}, "incomplete_details": "x", "choices": [{"finish_reason": ["x"]}]},
    {"id": "x", "error": {"message": "both"}, "usage": {"prompt_tokens_details": [], "input_tokens_details": 7}},
    {"usage": {"input_tokens": -5, "output_tokens": "7", "prompt_tokens": 1.5, "completion_tokens": True}},
]


@every_adapter
@pytest.mark.parametrize("body", ANYTHING)
def test_a_success_of_any_shape_is_an_answer_without_a_bill_or_a_typed_error(make: Speaking, body: Any) -> None:
    found = outcome_of(make, 200, json.dumps(body))
    assert isinstance(found, TransientModelError) or (isinstance(found, Completion) and found.usage is None)


@every_adapter
@pytest.mark.parametrize("text", ["", "<html>busy</html>", '{"a": 1', "[" * 100_000, '{"a":' * 100_000])
def test_a_success_that_is_no_json_is_a_lost_call(make: Speaking, text: str) -> None:
    found = outcome_of(make, 200, text)
    assert isinstance(found, TransientModelError)
    assert (found.status, "the body is no JSON" in str(found)) == (None, True)


@every_adapter
@pytest.mark.parametrize("text", ["", "<html>busy</html>", "[" * 100_000, f'{{"error": {{"message": "{KEY}"}}}}'])
@pytest.mark.parametrize("status", [400, 401, 503])
def test_an_error_that_is_no_json_is_typed_and_shows_no_key(make: Speaking, text: str, status: int) -> None:
    found = outcome_of(make, status, text)
    assert isinstance(found, ModelError)
    assert (found.status, KEY in str(found), KEY in repr(found)) == (status, False, False)


@every_adapter
def test_a_call_is_made_once_whatever_the_server_says(make: Speaking) -> None:
    """The SDKs would try again by themselves; then a try would leave unrecorded."""
    seen: list[httpx2.Request] = []

    def busy(call: httpx2.Request) -> httpx2.Response:
        seen.append(call)
        return httpx2.Response(503, headers={"retry-after": "0", "x-should-retry": "true"})

    async def run() -> None:
        model = make(busy)
        with pytest.raises(TransientModelError):
            await model.complete(request())
        await model.close()

    anyio.run(run)
    assert len(seen) == 1


# What is sent


def adapters() -> tuple[Any, ...]:
    return Anthropic("m", KEY), OpenAI("m", KEY), Compatible("m", "http://vendor/v1", KEY)


def test_no_adapter_shows_its_key() -> None:
    assert [shown for shown in map(repr, adapters()) if KEY in shown] == []
    assert [
        model for model in adapters() if KEY in json.dumps([vars(model.identity), model.wire_body(request())])
    ] == []


def test_the_vendors_take_no_sampling_and_servers_do() -> None:
    ours, theirs, server = adapters()
    warm = request(sampling={"temperature": 0.7})
    for model in (ours, theirs):
        with pytest.raises(PlanError, match="takes no sampling parameters"):
            model.wire_body(warm)
    assert server.wire_body(warm)["temperature"] == 0.7


def test_a_text_that_no_request_can_carry_is_found_before_anything_leaves() -> None:
    for model in adapters():
        with pytest.raises(PlanError, match="lone surrogate"):
            model.wire_body(request(system=(Block("a\ud800b", cache=False),)))


def marks(body: dict[str, Any]) -> list[bool]:
    return ["cache_control" in block for block in (*body["system"], *body["messages"][0]["content"])]


@pytest.mark.parametrize(
    ("least", "expected"),
    [(None, [False, False, False]), (1_024, [False, True, False]), (512, [True, True, False])],
)
def test_a_breakpoint_stands_only_where_a_prefix_is_long_enough_to_be_cached(
    least: int | None, expected: list[bool]
) -> None:
    system = Block("x" * (4 * 600 - CONTRACT.size), cache=True)
    view = Block("y" * 4 * 600, cache=True)
    asked = request(system=(system,), messages=(Message("user", (view, Block("TASK", cache=False))),))
    assert marks(Anthropic("m", KEY, min_cacheable_tokens=least).wire_body(asked)) == expected


def test_no_breakpoint_stands_where_no_later_read_is_planned() -> None:
    long = Block("x" * 40_000, cache=False)
    asked = request(system=(long,), messages=(Message("user", (long,)),))
    assert "cache_control" not in json.dumps(Anthropic("m", KEY).wire_body(asked))


def test_a_seats_calls_go_to_one_cache_whatever_the_item_and_another_seats_to_another() -> None:
    model = OpenAI("m", KEY)
    other_item = request(messages=(Message("user", (Block("Another view.", cache=True),)),))
    other_seat = request(system=(Block("Doubt.", cache=True),))
    keys = [model.wire_body(asked)["prompt_cache_key"] for asked in (request(), other_item, other_seat)]
    assert (keys[0] == keys[1], keys[0] == keys[2], len(keys[0])) == (True, False, 32)


def test_a_server_is_probed_with_a_schema_against_the_prompt() -> None:
    server = Compatible("m", "http://vendor/v1", KEY)
    probe = server.wire_body(server.probe_request())
    assert probe["response_format"]["json_schema"]["schema"]["properties"] == {
        "word": {"type": "string", "enum": ["basalt"]}
    }
    assert "basalt" not in json.dumps(probe["messages"])


@pytest.mark.parametrize(
    ("text", "takes"),
    [('{"word": "basalt"}', True), ('{"word":"hello"}', False), ("Hello!", False), ("", False), ('"basalt"', False)],
)
def test_what_the_probe_says_decides_how_the_server_is_asked(text: str, takes: bool) -> None:
    server = Compatible("m", "http://vendor/v1", KEY)
    server.learn(Completion(text, "end", None, None, 0.1, "m", {"model": "file.gguf"}))
    body = server.wire_body(request())
    written = "The JSON object must fit this JSON schema" in body["messages"][0]["content"]
    assert (server.takes_schema, "response_format" in body, written) == (takes, takes, not takes)
    assert server.served_as == "file.gguf"


CLOSED = "http://127.0.0.1:1"
"""A port of the system's on which nothing listens."""


@pytest.mark.parametrize(
    "model",
    [Anthropic("m", KEY, CLOSED), OpenAI("m", KEY, f"{CLOSED}/v1"), Compatible("m", f"{CLOSED}/v1", KEY)],
    ids=["anthropic", "openai", "compatible"],
)
def test_a_connection_never_made_says_where_and_that_nothing_was_sent(model: Anthropic | OpenAI | Compatible) -> None:
    async def ask() -> None:
        try:
            await model.complete(request())
        finally:
            await model.close()

    with pytest.raises(UnreachedModelError, match=r"cannot be reached at 127\.0\.0\.1:1: "):
        anyio.run(ask)


def test_a_model_asked_elsewhere_than_at_its_vendor_says_so() -> None:
    assert Anthropic("m", KEY).describe() == OpenAI("m", KEY).describe() == ""
    assert Anthropic("m", KEY, CLOSED).describe() == "asked at 127.0.0.1:1, not at Anthropic"
    assert OpenAI("m", KEY, f"{CLOSED}/v1").describe() == "asked at 127.0.0.1:1, not at OpenAI"
