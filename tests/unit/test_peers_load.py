"""The load of the benchmarks against peers: the same for everybody, sound under our contract, and pinned."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from consilience.core.contracts import Expected, read_reply
from consilience.core.outcomes import Answered
from consilience.core.question import Question

PEERS = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PEERS))
    return importlib.import_module("load")


def test_prompt_and_reply_are_as_long_as_the_page_says(load: ModuleType) -> None:
    assert len(load.REPLY) == 330
    assert {len(load.system_of(seat)) + len(load.prompt_of(7)) for seat in range(load.SEATS)} == {870}


def test_the_reply_is_an_answer_under_our_contract_too(load: ModuleType) -> None:
    question = Question(id="q", text="What is it worth?", kind="estimate", scale="log", unit="USD")
    ours, peers = read_reply(load.REPLY, Expected(question, "answer")), load.Reply.model_validate_json(load.REPLY)
    assert isinstance(ours, Answered)
    assert ours.said.model_dump() == {**ours.said.model_dump(), "q05": peers.answer.q05, "q95": peers.answer.q95}


def test_a_turn_without_an_answer_is_refused(load: ModuleType) -> None:
    reply = load.Reply.model_validate_json(load.REPLY)
    load.checked([reply] * load.SEATS, 1)
    with pytest.raises(SystemExit, match="11 sound replies to 12 turns"):
        load.checked([reply] * (load.SEATS - 1), 1)


def test_every_peer_is_pinned() -> None:
    lines = [line for path in (PEERS / "requirements").glob("*.txt") for line in path.read_text("utf-8").split()]
    assert lines
    assert [line for line in lines if line.count("==") != 1] == []
