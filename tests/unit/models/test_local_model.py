from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import anyio.to_thread
import pytest

from consilience.core.answers import Answer
from consilience.core.contracts import read_reply
from consilience.core.outcomes import Answered, Outcome
from consilience.core.question import Question
from consilience.errors import ConfigError, FinalModelError, IntegrityError, PlanError, TransientModelError
from consilience.models import local as local_module
from consilience.models.base import call_key
from consilience.models.local import MOST_STARTS, Local
from consilience.models.local_profile import wire
from consilience.models.local_server import EngineSettings, grammar_of
from consilience.models.local_weights import Weights
from consilience.models.request import Block, Completion
from local_cases import QUESTIONS, SEATS, STATE, expected, make_request

SHA256 = "ab" * 32
SAID = {"p_yes": 0.25, "evidence_ids": ["P"], "reason": "Two sales were near."}


class Chat(ThreadingHTTPServer):
    """A chat server that answers as it is told, or hangs up on the caller."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.says: str | None = json.dumps(SAID)
        self.heard: list[dict[str, Any]] = []


class Answering(BaseHTTPRequestHandler):
    server: Chat

    def do_POST(self) -> None:
        heard = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert self.headers["authorization"] == "Bearer k"
        self.server.heard.append(heard)
        if self.server.says is None:
            self.close_connection = True
            return
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
        message = {"role": "assistant", "content": self.server.says}
        reply = {"id": "c", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage, "model": "m"}
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is given
        del format, args


class Double:
    """An engine whose server is the double above, and which can be made to have ended."""

    def __init__(self, chat: Chat) -> None:
        self.base_url = f"http://127.0.0.1:{chat.server_port}/v1"
        self.api_key = "k"
        self.stopped = False
        self.ended_as: str | None = None
        self.alive = False
        self._chat = chat

    async def start(self) -> None:
        return

    def ended(self, *, within_s: float = 1.0) -> str | None:
        if within_s and self._chat.says is None and not self.alive:  # as seen after a call that was cut off
            self.ended_as = "ended by signal 11"
        return self.ended_as

    async def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def chat() -> Iterator[Chat]:
    server = Chat()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def engines(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> list[Double]:
    made: list[Double] = []

    def make(settings: EngineSettings) -> Double:
        assert settings.path == "/m/tiny.gguf"
        made.append(Double(chat))
        return made[-1]

    monkeypatch.setattr(local_module, "Engine", make)
    return made


def model() -> Local:
    return Local("local:/m/tiny.gguf", Weights(Path("/m/tiny.gguf"), SHA256, "tiny"), "2026.10")


def test_identity_holds_engine_profile_and_weights() -> None:
    identity = model().identity
    assert (identity.provider, identity.host, identity.simulated) == ("local", "local", False)
    assert identity.api_version == "2026.10"
    assert identity.adapter_version == f"1/offsets-1/{SHA256}"


def test_the_body_holds_everything_that_is_sent() -> None:
    body = model().wire_body(make_request(QUESTIONS["probability"]))
    assert json.loads(json.dumps(body)) == body
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["grammar"].startswith("%llguidance {}\nstart: %json {")
    assert '"whitespace_flexible":false' in body["grammar"]
    assert "uniqueItems" not in body["grammar"]
    assert (body["cache_prompt"], body["seed"], body["temperature"]) == (True, 0, 0.2)


def test_samples_of_one_prompt_differ_by_seed_and_take_sampling_parameters() -> None:
    request = make_request(QUESTIONS["choice"])
    body = model().wire_body(replace(request, replicate=3, sampling={"temperature": 1.0}))
    assert (body["seed"], body["temperature"]) == (3, 1.0)


def test_a_recorded_model_has_the_same_keys_without_being_installed() -> None:
    live = Local("local:/m/tiny.gguf", Weights(Path("/m/tiny.gguf"), SHA256, "tiny"), "2026.10")
    recorded = Local.recorded(live.id, {"api_version": "2026.10", "adapter_version": f"1/offsets-1/{SHA256}"})
    body = make_request(QUESTIONS["estimate"])
    assert call_key(recorded.identity, recorded.wire_body(body), replicate=0) == call_key(
        live.identity, live.wire_body(body), replicate=0
    )
    with pytest.raises(IntegrityError, match="0/offsets-0"):
        Local.recorded("local", {"api_version": "1", "adapter_version": f"0/offsets-0/{SHA256}"})


def test_a_lone_surrogate_is_refused_before_anything_is_sent() -> None:
    request = make_request(QUESTIONS["choice"])
    with pytest.raises(PlanError, match="lone surrogate"):
        model().wire_body(replace(request, system=(Block("\ud800", cache=False),)))


@pytest.mark.usefixtures("engines")
def test_what_was_said_and_what_was_read_are_both_kept(chat: Chat) -> None:
    async def run() -> Completion:
        local = model()
        completion = await local.complete(make_request(QUESTIONS["probability"]))
        await local.close()
        return completion

    completion = anyio.run(run)
    assert completion.raw["said"] == json.dumps(SAID)
    assert completion.raw["profile"] == "offsets-1"
    outcome = read_reply(completion.text, expected(QUESTIONS["probability"]))
    assert isinstance(outcome, Answered)
    assert completion.usage is not None
    assert (completion.usage.input, completion.usage.cache_read, completion.usage.output_visible) == (4, 5, 4)
    assert chat.heard[-1] == model().wire_body(make_request(QUESTIONS["probability"]))


def test_calls_share_one_engine_which_is_stopped_at_the_end(chat: Chat, engines: list[Double]) -> None:
    async def run() -> None:
        local = model()
        async with anyio.create_task_group() as group:
            for seat in range(3):
                group.start_soon(local.complete, make_request(QUESTIONS["probability"], seat=seat))
        await local.close()

    anyio.run(run)
    assert len(chat.heard) == 3
    assert [engine.stopped for engine in engines] == [True]


@pytest.mark.usefixtures("engines")
def test_a_reply_in_another_form_stays_as_it_was_said(chat: Chat) -> None:
    chat.says = "I would rather not."
    completion = anyio.run(model().complete, make_request(QUESTIONS["estimate"]))
    assert completion.text == completion.raw["said"] == "I would rather not."


def test_an_engine_that_ends_during_a_call_fails_that_call_and_starts_anew(chat: Chat, engines: list[Double]) -> None:
    request = make_request(QUESTIONS["probability"])

    async def run() -> Completion:
        local = model()
        chat.says = None
        for number in range(1, MOST_STARTS):
            with pytest.raises(TransientModelError, match="ended by signal 11 during a call"):
                await local.complete(request)
            assert local.starts == number
        chat.says = json.dumps(SAID)
        completion = await local.complete(request)
        engines[-1].ended_as = "ended by signal 11"
        with pytest.raises(FinalModelError, match=f"ended by signal 11, after {MOST_STARTS} starts"):
            await local.complete(request)
        return completion

    completion = anyio.run(run)
    assert completion.raw["engine_start"] == MOST_STARTS
    assert len(engines) == MOST_STARTS
    assert all(engine.stopped for engine in engines)


def test_a_lost_connection_to_a_living_engine_is_told_as_such(chat: Chat, engines: list[Double]) -> None:
    chat.says = None

    async def run() -> None:
        local = model()
        await local._running()
        engines[0].alive = True
        with pytest.raises(TransientModelError, match="connection to"):
            await local.complete(make_request(QUESTIONS["choice"]))
        await local.close()

    anyio.run(run)


# What follows is spoken by the real model where it is installed.


@pytest.fixture(scope="module")
def installed() -> Local:
    try:
        return Local.found()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_a_panel_of_five_answers_every_kind_under_its_contract(installed: Local) -> None:
    async def run() -> list[Completion]:
        completions = []
        for question in QUESTIONS.values():
            for seat in range(len(SEATS)):
                completion = await installed.complete(make_request(question, seat=seat))
                outcome = read_reply(completion.text, expected(question, seat=seat))
                assert isinstance(outcome, Answered), completion
                assert isinstance(outcome.said, Answer)
                completions.append(completion)
        await installed.close()
        return completions

    completions = anyio.run(run)
    assert {completion.stop_reason for completion in completions} == {"end"}
    later = [completion.usage for index, completion in enumerate(completions) if index % len(SEATS)]
    assert all(usage is not None and usage.input < 80 < usage.cache_read for usage in later)


@pytest.mark.slow
def test_critique_revision_and_odd_questions_are_answered_under_their_contract(installed: Local) -> None:
    share = Question(id="q", text="Which share of houses?", kind="estimate", lower=0, upper=0.5)
    change = Question(id="q", text="By how much do prices change?", kind="estimate", unit="percent")

    async def run() -> list[Outcome]:
        asked = [
            (QUESTIONS["estimate"], "critique"),
            (QUESTIONS["estimate"], "revision"),
            (share, "estimate"),
            (change, "estimate"),
        ]
        outcomes: list[Outcome] = []
        for question, task in asked:
            state = STATE if task != "estimate" else None
            completion = await installed.complete(make_request(question, task=task, state=state))
            outcomes.append(read_reply(completion.text, expected(question, task=task)))
        await installed.close()
        return outcomes

    outcomes = anyio.run(run)
    assert all(isinstance(outcome, Answered) for outcome in outcomes)


@pytest.mark.slow
def test_the_real_engine_is_killed_and_comes_back(installed: Local) -> None:
    request = make_request(QUESTIONS["choice"])

    async def run() -> list[Any]:
        await installed.complete(request)
        assert installed._engine is not None
        process = installed._engine._process
        assert process is not None
        process.kill()
        await anyio.to_thread.run_sync(process.wait)
        again = await installed.complete(request)
        await installed.close()
        return [again, process.returncode]

    again, code = anyio.run(run)
    assert code == -9
    assert again.raw["engine_start"] == 2
    assert isinstance(read_reply(again.text, expected(QUESTIONS["choice"])), Answered)


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_our_grammar_is_the_engines_own() -> None:
    schema = wire(make_request(QUESTIONS["estimate"])).schema
    code = (
        "import json, sys, xllamacpp;print(json.dumps(xllamacpp.json_schema_to_grammar(json.loads(sys.stdin.read()))))"
    )
    strict = {**schema, "x-guidance": {"whitespace_flexible": False}}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(strict), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == grammar_of(schema)
