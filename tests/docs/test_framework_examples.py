"""The examples inside other frameworks run, on stand-ins of the few names that they use, and never invent a winner."""

from __future__ import annotations

import importlib.util
import json
import re
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

import anyio
import pytest
from pydantic import BaseModel

from ask_cases import ballots, let_speak

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("langgraph_node", "autogen_agent", "crewai_tool")
QUESTION = "Which?"
OPTIONS = ["tea", "coffee", "cocoa"]

T = TypeVar("T")


class StateGraph:
    """LangGraph: nodes change a state one after the other; a conditional edge names the next."""

    def __init__(self, schema: type) -> None:
        self.keys = schema.__annotations__.keys()
        self.nodes: dict[str, Callable[[Any], Any]] = {}
        self.edges: dict[str, Callable[[Any], str]] = {}

    def add_node(self, name: str, node: Callable[[Any], Any]) -> None:
        self.nodes[name] = node

    def add_edge(self, start: str, end: str) -> None:
        self.edges[start] = lambda _: end

    def add_conditional_edges(self, start: str, choose: Callable[[Any], str], ends: Sequence[str]) -> None:
        def chosen(state: Any) -> str:
            assert choose(state) in ends
            return choose(state)

        self.edges[start] = chosen

    def compile(self) -> StateGraph:
        return self

    def invoke(self, state: Mapping[str, Any]) -> dict[str, Any]:
        state, at = dict(state), "start"
        while (at := self.edges.get(at, lambda _: "end")(state)) != "end":
            state |= self.nodes[at](state) or {}
        assert state.keys() <= self.keys
        return state


@dataclass(frozen=True)
class TextMessage:
    """AutoGen: what a task becomes."""

    content: str
    source: str

    def to_text(self) -> str:
        return self.content


@dataclass(frozen=True)
class StructuredMessage(Generic[T]):
    """AutoGen: a message whose content is a model."""

    content: T
    source: str

    def to_text(self) -> str:
        assert isinstance(self.content, BaseModel)
        return self.content.model_dump_json()


@dataclass(frozen=True)
class Response:
    """AutoGen: an agent's answer."""

    chat_message: StructuredMessage[Any]


@dataclass(frozen=True)
class TaskResult:
    """AutoGen: the task and all that was said."""

    messages: list[Any]


@dataclass
class BaseChatAgent:
    """AutoGen: an agent that is run on a task."""

    name: str
    description: str

    async def run(self, *, task: str) -> TaskResult:
        asked = TextMessage(task, "user")
        response = await self.on_messages([asked], object())  # type: ignore[attr-defined] # the example's own
        return TaskResult([asked, response.chat_message])


class BaseTool(BaseModel):
    """CrewAI: a tool that checks its arguments."""

    name: str
    description: str
    args_schema: type[BaseModel]

    def run(self, **arguments: Any) -> str:
        checked = self.args_schema.model_validate(arguments)
        return str(self._run(**checked.model_dump()))  # type: ignore[attr-defined] # the example's own


STAND_INS: dict[str, dict[str, Any]] = {
    "langgraph": {},
    "langgraph.graph": {"StateGraph": StateGraph, "START": "start", "END": "end"},
    "autogen_agentchat": {},
    "autogen_agentchat.agents": {"BaseChatAgent": BaseChatAgent},
    "autogen_agentchat.base": {"Response": Response},
    "autogen_agentchat.messages": {"BaseChatMessage": TextMessage, "StructuredMessage": StructuredMessage},
    "autogen_core": {"CancellationToken": object},
    "crewai": {},
    "crewai.tools": {"BaseTool": BaseTool},
}


@pytest.fixture(autouse=True)
def _frameworks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, members in STAND_INS.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CONSILIENCE_MAX_SPEND_USD", raising=False)


def put(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Put the question the way the framework does and return what it gets."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    if name == "langgraph_node":
        return dict(module.app.invoke({"question": QUESTION, "options": OPTIONS}))
    if name == "autogen_agent":
        agent = module.Panel("panel", "votes")
        told = anyio.run(partial(agent.run, task="\n".join([QUESTION, *OPTIONS])))
        assert isinstance(told.messages[-1].content, module.Outcome)
        return dict(told.messages[-1].content.model_dump())
    return dict(json.loads(module.PanelTool().run(question=QUESTION, options=OPTIONS)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("votes", "winner", "because", "differing"),
    [
        ("11211", "tea", None, ["coffee"]),
        ("11223", None, "tie: tea, coffee", ["tea", "tea", "coffee", "coffee", "cocoa"]),
        ("11---", None, "2 of 5 answered and more than half must; ", []),
    ],
    ids=["winner", "tie", "no quorum"],
)
def test_a_framework_gets_the_winner_or_the_reason_why_there_is_none(
    name: str,
    votes: str,
    winner: str | None,
    because: str | None,
    differing: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    let_speak(monkeypatch, ballots(votes))
    told = put(name, monkeypatch)
    assert told["winner"] == winner
    if because is None:
        assert told["no_winner_because"] is None
    else:
        assert told["no_winner_because"].startswith(because)
    assert [re.search(r" for (\w+): ", line)[1] for line in told["minority_report"]] == differing  # type: ignore[index]
    assert told["cost_usd"] > 0
    if name == "langgraph_node":
        assert ("A person decides." in capsys.readouterr().out) == (winner is None)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_it_says_and_fits_a_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = EXAMPLES / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert "`pip install . " in text
    assert f"`python examples/{name}.py`" in text
    ran = runpy.run_path(str(path), run_name="__main__")
    said = "".join(f"{line[4:]}\n" for line in ran["__doc__"].splitlines() if line.startswith("    "))
    assert without_cost(capsys.readouterr().out) == without_cost(said)  # prompts grow, and the cost with them


def without_cost(text: str) -> str:
    return re.sub(r"[\d.]+ USD", "… USD", text)
