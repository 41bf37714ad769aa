"""Every scripted fault, as the real SDKs show it to a caller."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import anyio
import openai
import pytest

from consilience.core.contracts import Expected, read_reply
from consilience.core.question import Question
from consilience.errors import ConfigError, ContractError
from consilience.fakes.faults import Fault, FaultKind, by_model, status
from consilience.fakes.server import FakeServer, running_fake, serve
from consilience.fakes.settings import Settings
from consilience.fakes.spoiling import out_of_range, with_surrogate
from vendor_clients import BODIES, Clients, clients_of, messages, responses, text_of, with_clients
from vendor_clients import ask as ask_fake

EXPECTED = Expected(Question(id="q", text="?", kind="probability"), "answer")
VENDORS = {"messages": anthropic, "responses": openai, "chat": openai}


def faulty(server: FakeServer, endpoint: str, fault: Fault, **options: Any) -> Any:
    server.reset([fault])
    return ask_fake(server, endpoint, **options)


@pytest.mark.parametrize("endpoint", BODIES)
@pytest.mark.parametrize(
    ("code", "theirs", "others"),
    [
        (400, "BadRequestError", "BadRequestError"),
        (401, "AuthenticationError", "AuthenticationError"),
        (402, "PaymentRequiredError", "APIStatusError"),
        (403, "PermissionDeniedError", "PermissionDeniedError"),
        (404, "NotFoundError", "NotFoundError"),
        (408, "RequestTimeoutError", "APIStatusError"),
        (409, "ConflictError", "ConflictError"),
        (413, "ContentTooLargeError", "APIStatusError"),
        (422, "UnprocessableEntityError", "UnprocessableEntityError"),
        (429, "RateLimitError", "RateLimitError"),
        (500, "InternalServerError", "InternalServerError"),
        (503, "ServiceUnavailableError", "InternalServerError"),
        (529, "OverloadedError", "InternalServerError"),
    ],
)
def test_statuses(fake: FakeServer, endpoint: str, code: int, theirs: str, others: str) -> None:
    vendor = VENDORS[endpoint]
    with pytest.raises(vendor.APIStatusError) as caught:
        faulty(fake, endpoint, status(code))
    assert type(caught.value).__name__ == (theirs if endpoint == "messages" else others)
    assert (caught.value.status_code, caught.value.request_id) == (code, "req_fake_000001")
    assert [(hit.status, hit.fault, hit.refused) for hit in fake.calls()] == [(code, "status", None)]


@pytest.mark.parametrize("endpoint", BODIES)
@pytest.mark.parametrize("said", ["2", "300", None, "soon"])
def test_rate_limits_say_when_to_come_back(fake: FakeServer, endpoint: str, said: str | None) -> None:
    vendor = VENDORS[endpoint]
    with pytest.raises(vendor.APIStatusError) as caught:
        faulty(fake, endpoint, status(429, retry_after=said))
    assert isinstance(caught.value, vendor.RateLimitError)
    assert caught.value.response.headers.get("retry-after") == said


def test_an_exhausted_quota_is_told_apart_from_a_rate_limit(fake: FakeServer) -> None:
    with pytest.raises(anthropic.RateLimitError) as theirs:
        faulty(fake, "messages", Fault("quota"))
    assert theirs.value.error_code == "enforced_spend_limit_reached"
    with pytest.raises(openai.RateLimitError) as others:
        faulty(fake, "responses", Fault("quota"))
    assert others.value.code == others.value.type == "insufficient_quota"


@pytest.mark.parametrize(
    ("kind", "code"), [("context_exceeded", "context_length_exceeded"), ("schema_refused", "invalid_json_schema")]
)
def test_bad_requests(fake: FakeServer, kind: FaultKind, code: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long|Schema is too complex"):
        faulty(fake, "messages", Fault(kind))
    with pytest.raises(openai.BadRequestError) as caught:
        faulty(fake, "responses", Fault(kind))
    assert caught.value.code == code


@pytest.mark.parametrize("endpoint", BODIES)
def test_a_call_that_hangs_ends_at_the_callers_timeout(fake: FakeServer, endpoint: str) -> None:
    with pytest.raises((anthropic.APITimeoutError, openai.APITimeoutError)):
        faulty(fake, endpoint, Fault("hang"), timeout=0.05)
    assert [(hit.fault, hit.status) for hit in fake.calls()] == [("hang", None)]


@pytest.mark.parametrize("endpoint", BODIES)
def test_a_connection_that_drops_in_the_middle_of_the_body(fake: FakeServer, endpoint: str) -> None:
    with pytest.raises((anthropic.APIConnectionError, openai.APIConnectionError)) as caught:
        faulty(fake, endpoint, Fault("drop"))
    assert not isinstance(caught.value, anthropic.APITimeoutError | openai.APITimeoutError)
    assert "without sending complete message body" in str(caught.value.__cause__)
    assert fake.calls()[0].usage is not None, "the vendor has billed it"


@pytest.mark.parametrize("endpoint", BODIES)
def test_a_whole_body_of_broken_json_is_no_error_of_the_sdk(fake: FakeServer, endpoint: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        faulty(fake, endpoint, Fault("broken_body"))


def test_an_error_in_a_body_of_status_200_raises_nothing(fake: FakeServer) -> None:
    message = faulty(fake, "messages", Fault("error_body"))
    assert (message.type, message.content, message.usage, message.stop_reason) == ("error", None, None, None)
    response = faulty(fake, "responses", Fault("error_body"))
    assert (response.error.message, response.output, response.usage, response.status) == (
        "Overloaded",
        None,
        None,
        None,
    )
    with pytest.raises(TypeError):
        _ = response.output_text
    completion = faulty(fake, "chat", Fault("error_body"))
    assert (completion.choices, completion.usage) == (None, None)
    assert completion.error["message"] == "Overloaded"


def test_truncation(fake: FakeServer) -> None:
    assert faulty(fake, "messages", Fault("truncated")).stop_reason == "max_tokens"
    response = faulty(fake, "responses", Fault("truncated"))
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert faulty(fake, "chat", Fault("truncated")).choices[0].finish_reason == "length"


def test_refusal(fake: FakeServer) -> None:
    message = faulty(fake, "messages", Fault("refusal"))
    assert (message.stop_reason, message.stop_details.type, text_of(message)) == ("refusal", "refusal", "")
    response = faulty(fake, "responses", Fault("refusal"))
    assert (response.status, response.output[-1].content[0].type) == ("completed", "refusal")
    choice = faulty(fake, "chat", Fault("refusal")).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("stop", None)
    assert choice.message.refusal


def test_other_ends(fake: FakeServer) -> None:
    assert faulty(fake, "messages", Fault("context_stop")).stop_reason == "model_context_window_exceeded"
    assert faulty(fake, "responses", Fault("content_filter")).incomplete_details.reason == "content_filter"
    assert faulty(fake, "chat", Fault("content_filter")).choices[0].finish_reason == "content_filter"
    failed = faulty(fake, "responses", Fault("failed"))
    assert (failed.status, failed.error.code, failed.usage) == ("failed", "server_error", None)
    with pytest.raises(anthropic.InternalServerError):
        faulty(fake, "messages", Fault("failed"))


@pytest.mark.parametrize("endpoint", BODIES)
def test_what_is_said_about_a_good_reply(fake: FakeServer, endpoint: str) -> None:
    assert faulty(fake, endpoint, Fault("other_model")).model == "some-other-model-1"
    assert faulty(fake, endpoint, Fault("usage_missing")).usage is None
    usage = faulty(fake, endpoint, Fault("usage_none")).usage
    assert {value for name, value in usage if not name.endswith("details") and name != "cache_creation"} == {None}
    assert fake.calls()[0].status == 200


@pytest.mark.parametrize("endpoint", BODIES)
@pytest.mark.parametrize("kind", ["out_of_range", "invalid_json", "empty"])
def test_texts_that_break_the_contract(fake: FakeServer, endpoint: str, kind: FaultKind) -> None:
    reply = faulty(fake, endpoint, Fault(kind))
    with pytest.raises(ContractError):
        read_reply(text_of(reply), EXPECTED)


@pytest.mark.parametrize("endpoint", BODIES)
def test_lone_surrogates_arrive_as_sent(fake: FakeServer, endpoint: str) -> None:
    assert "\ud800" in text_of(faulty(fake, endpoint, Fault("surrogate")))
    escaped = text_of(faulty(fake, endpoint, Fault("surrogate_escape")))
    assert "\\ud800" in escaped
    assert "\ud800" not in escaped


def test_spoiled_texts() -> None:
    assert json.loads(out_of_range('{"q05": 1, "q95": 2}')) == {"q05": 3, "q95": 2}
    assert json.loads(out_of_range('[{"option_id": "A", "p": 0.5}]')) == [{"option_id": "A", "p": 1.7}]
    assert out_of_range("no JSON") == "no JSON"
    assert out_of_range('{"a": 1}') == '{"a": 1}'
    spoiled = json.loads(with_surrogate('{"evidence_ids": ["X1"], "rationale": "dry"}', escaped=True))
    assert spoiled == {"evidence_ids": ["X1"], "rationale": "dry\ud800"}
    assert with_surrogate("no JSON", escaped=False) == "no JSON\ud800"


def test_a_script_counts_calls_for_text_and_ends(fake: FakeServer) -> None:
    fake.reset([status(500), None, status(503)])

    async def use(clients: Clients) -> list[str]:
        seen = []
        for _ in range(4):
            await clients.anthropic.messages.count_tokens(
                model="claude-haiku-5-5", messages=[{"role": "user", "content": "x"}]
            )
            try:
                await clients.ask("messages", messages())
            except anthropic.APIStatusError as error:
                seen.append(type(error).__name__)
            else:
                seen.append("answered")
        return seen

    assert with_clients(fake, use) == ["InternalServerError", "answered", "ServiceUnavailableError", "answered"]
    assert [hit.call_index for hit in fake.hits] == [None, 0, None, 1, None, 2, None, 3]


def test_a_script_by_model_or_by_any_rule(fake: FakeServer) -> None:
    fake.reset(by_model({"gpt-6.1-sol": [None, status(500)]}))
    ask_fake(fake, "messages")
    ask_fake(fake, "responses")
    with pytest.raises(openai.InternalServerError):
        ask_fake(fake, "responses")
    ask_fake(fake, "responses")
    assert [hit.status for hit in fake.calls("gpt-6.1-sol")] == [200, 500, 200]

    fake.reset(lambda hit: status(503) if "unlucky" in hit.body.decode() else None)
    ask_fake(fake, "messages")
    with pytest.raises(anthropic.ServiceUnavailableError):
        ask_fake(fake, "messages", messages("unlucky"))


def test_a_refused_request_is_refused_whatever_the_script(fake: FakeServer) -> None:
    fake.reset([Fault("hang")])
    with pytest.raises(openai.NotFoundError):
        ask_fake(fake, "responses", responses(model="nobody"))


def test_many_calls_at_once_are_each_recorded(fake: FakeServer) -> None:
    async def use(clients: Clients) -> None:
        async with anyio.create_task_group() as group:
            for index in range(64):
                group.start_soon(clients.ask, "messages", messages(f"TASK: estimate {index}"))

    with_clients(fake, use)
    assert len({hit.body for hit in fake.calls()}) == 64
    assert {hit.status for hit in fake.calls()} == {200}
    assert fake.wait_for_calls(64)
    assert not fake.wait_for_calls(65, timeout_s=0)


def test_a_server_stops_while_a_call_hangs() -> None:
    with running_fake([Fault("hang")]) as server, clients_of(server):
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask_fake, server, "messages")
            assert server.wait_for_calls(1)
            server.stop()
            with pytest.raises(anthropic.APIConnectionError):
                waiting.result()
        assert server.calls()[0].fault == "hang"


def test_a_port_that_is_taken_is_said_to_be(fake: FakeServer) -> None:
    with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{fake.port}"):
        serve(fake.port, settings=Settings())
