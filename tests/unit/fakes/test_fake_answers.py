"""What the fake says when all is well, read under the project's own contracts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from consilience.core.answers import Estimate, Probability
from consilience.core.contracts import Expected, read_reply
from consilience.core.question import Option, Question
from consilience.core.schema import wire_schema
from consilience.experiments.general import read_anything
from consilience.fakes.answers import draw_reply, schema_in
from consilience.fakes.calls import simulated_responder
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import Settings
from consilience.fakes.speaking import PROSE
from consilience.fakes.uploads import read_upload
from vendor_clients import BODIES, CANARY, chat, messages, prompt, responses, text_of, with_clients
from vendor_clients import ask as ask_fake

OPTIONS = (Option(id="A", label="a"), Option(id="B", label="b"), Option(id="C", label="c"))
OTHERS = ("analyst_02", "analyst_03")
COMMITTEE = {"round": 1, "others": [{"seat": "analyst_02"}, {"seat": "analyst_03"}]}


def question(kind: str, **more: Any) -> Question:
    options = OPTIONS if kind in {"distribution", "choice"} else ()
    return Question.model_validate({"id": "q", "text": "?", "kind": kind, "options": options} | more)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("yields", ["answer", "critiques"])
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("estimate", {}),
        ("estimate", {"scale": "log"}),
        ("estimate", {"lower": 3.0, "upper": 4.0}),
        ("estimate", {"lower": -9.0}),
        ("estimate", {"upper": -9.0}),
        ("probability", {}),
        ("distribution", {}),
        ("choice", {}),
    ],
)
def test_drawn_replies_keep_the_contract(kind: str, more: dict[str, Any], yields: Any, seed: int) -> None:
    asked = question(kind, **more)
    task = "estimate" if yields == "answer" else "critique"
    shown = asked.model_dump(exclude={"id", "text", "kind"}, exclude_none=True)
    text = prompt(kind, task, committee=COMMITTEE, **shown)
    schema = wire_schema(asked.kind, tuple(option.id for option in asked.options))

    reply = draw_reply(schema, text, seed=seed)

    read = read_reply(reply, Expected(asked, yields, OTHERS))
    said = getattr(read.said, "evidence_ids", None)
    assert said in (None, ("X1",)), "evidence is that of the prompt"
    assert reply == draw_reply(schema, text, seed=seed)
    assert reply != draw_reply(schema, text, seed=seed + 1)


@pytest.mark.parametrize("endpoint", BODIES)
def test_every_endpoint_answers_in_contract(fake: FakeServer, endpoint: str) -> None:
    reply = ask_fake(fake, endpoint)
    read = read_reply(text_of(reply), Expected(question("probability"), "answer", OTHERS))
    assert isinstance(read.said, Probability)
    assert reply.model == BODIES[endpoint]()["model"]
    assert reply._request_id == "req_fake_000001"


def test_reasoning_comes_before_the_text(fake: FakeServer) -> None:
    assert [block.type for block in ask_fake(fake, "messages").content] == ["thinking", "text"]
    assert [item.type for item in ask_fake(fake, "responses").output] == ["reasoning", "message"]


def test_a_responder_writes_the_replies(fake: FakeServer) -> None:
    fake.reset(responder=lambda call: f"{call.endpoint} {call.model} {call.text.splitlines()[-1]}")
    assert text_of(ask_fake(fake, "messages", messages("one\ntwo"))) == "messages claude-sonnet-5-5 two"
    assert text_of(ask_fake(fake, "chat", chat("three"))) == "chat fake-compatible three"


@pytest.mark.parametrize("endpoint", BODIES)
def test_simulated_analysts_answer_through_every_endpoint(fake: FakeServer, endpoint: str) -> None:
    fake.reset(responder=simulated_responder(read_anything, seed=3))
    text = text_of(ask_fake(fake, endpoint, BODIES[endpoint](prompt("estimate", "estimate"))))
    read = read_reply(text, Expected(question("estimate"), "answer", OTHERS))
    assert isinstance(read.said, Estimate)
    assert read.said.reasoning_summary.startswith("[simulated]")


def test_a_server_that_ignores_the_schema_still_reads_it_in_the_prompt(fake: FakeServer) -> None:
    fake.reset(settings=Settings(ignore_schema=True))
    assert text_of(ask_fake(fake, "chat")) == PROSE
    written = json.dumps(wire_schema("probability"))
    asked = f"Answer under this schema:\n```json\n{written}\n```\nTASK: estimate"
    assert json.loads(text_of(ask_fake(fake, "chat", chat(asked))))["answer"]["p_yes"] <= 1


def test_the_last_schema_in_a_prompt_counts() -> None:
    first, second = ({"type": "object", "properties": {name: {"type": "null"}}} for name in "ab")
    assert schema_in(f"x {{ {json.dumps(first)} {{}} {json.dumps(second)} {{") == second
    assert schema_in('{"type": "object"}') is None


def test_output_beyond_the_limit_is_cut_and_said_to_be(fake: FakeServer) -> None:
    fake.reset(responder=lambda _: "x" * 4_000)
    cut = ask_fake(fake, "messages", messages(max_tokens=100))
    assert (cut.stop_reason, cut.usage.output_tokens) == ("max_tokens", 100)
    assert len(text_of(cut)) == 4 * (100 - cut.usage.output_tokens_details.thinking_tokens)
    incomplete = ask_fake(fake, "responses", responses(max_output_tokens=100))
    assert (incomplete.status, incomplete.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert ask_fake(fake, "chat", chat(max_tokens=100)).choices[0].finish_reason == "length"


def test_models_are_listed_in_each_vendors_shape(fake: FakeServer) -> None:
    async def listed(clients: Any) -> tuple[list[str], list[str], str, str]:
        theirs = [model.id async for model in clients.anthropic.models.list()]
        others = [model.id async for model in clients.openai.models.list()]
        one = await clients.anthropic.models.retrieve(theirs[0])
        other = await clients.openai.models.retrieve(others[0])
        return theirs, others, one.id, other.id

    theirs, others, one, other = with_clients(fake, listed)
    assert theirs == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert others == ["gpt-6.1-sol", "gpt-6-luna", "fake-compatible"]
    assert (one, other) == (theirs[0], others[0])


def test_tokens_are_counted_as_they_are_billed(fake: FakeServer) -> None:
    body = messages()
    usage = ask_fake(fake, "messages", body).usage
    countable = {name: part for name, part in body.items() if name != "max_tokens"}
    counted = with_clients(fake, lambda clients: clients.anthropic.messages.count_tokens(**countable))
    assert counted.input_tokens == usage.input_tokens + usage.cache_creation_input_tokens


def test_no_key_is_kept_anywhere(fake: FakeServer) -> None:
    for endpoint in BODIES:
        ask_fake(fake, endpoint)
    ask_fake(fake, "messages", messages(f"my key is {CANARY}"))
    assert CANARY not in repr(fake.hits)
    assert [hit.leaked_key for hit in fake.hits] == [False, False, False, True]
    assert [hit.headers["authorization"] for hit in fake.hits] == ["[redacted]"] * 4
    assert fake.hits[0].json == messages(), "everything else is kept as it came"


def test_an_upload_is_read_as_it_was_sent() -> None:
    content = '{"text": "é"}\r\n{"a": 1}\n'.encode()
    head = b'--b\r\nContent-Disposition: form-data; name="'
    body = (
        head + b'purpose"\r\n\r\nbatch\r\n' + head + b'file"; filename="in.jsonl"\r\n\r\n' + content + b"\r\n--b--\r\n"
    )
    assert read_upload("multipart/form-data; boundary=b", body) == ("in.jsonl", content)
