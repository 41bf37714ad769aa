"""The five tools over stdio, called by the official client in a process that ``consilience mcp`` serves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_cases import CAPPED, CHOICE, Assistant, over_stdio

TOOLS = ["ask_panel", "decide", "forecast", "get_trace", "list_runs"]
HOSTILE = "Is it \u202eesrever\u202c or \x1b[2Jnot\u200b?"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assisted")


@pytest.fixture(scope="module")
def assistant(project: Path) -> Iterator[Assistant]:
    with over_stdio(project) as found:
        yield found


def test_exactly_five_tools_are_listed_with_their_schemas(assistant: Assistant) -> None:
    tools = assistant.tools()
    assert sorted(tools) == TOOLS
    for name in ("ask_panel", "decide", "forecast"):
        schema = tools[name].input_schema
        assert "max_spend_usd" in schema["required"]
        assert schema["additionalProperties"] is False
        assert not tools[name].annotations.read_only_hint
    assert tools["get_trace"].annotations.read_only_hint


def test_a_panel_answers_with_its_dissent_its_cost_and_its_record(assistant: Assistant) -> None:
    told = assistant.answer("ask_panel", **CAPPED)
    assert told["status"] == "answered"
    assert told["simulated"] is True
    assert told["says"][0].startswith("simulated")
    assert told["value"] in CHOICE["options"]
    assert told["minority_report"] or told["minority_says"] == "nobody dissented"
    assert 0 < told["cost_usd"] <= told["max_spend_usd"] == 0.5
    assert told["run_id"].startswith("_ask-choice-")
    assert told["warnings"] == []
    assert "details" not in told
    (number, words), *_ = assistant.told
    assert number > 0
    assert words is not None
    assert "items" in words
    assert "of $0.50 spent" in words
    again = assistant.answer("ask_panel", **CAPPED, details=True)
    assert again["calls"] == 0
    assert again["value"] == told["value"]
    assert len(again["details"]["members"]) == 5


def test_voters_decide_or_leave_it_to_a_person(assistant: Assistant, project: Path) -> None:
    options = ["ship", "wait"]
    stakes = {"irreversible": True, "uncertain": True}
    told = assistant.answer("decide", question="Ship?", options=options, max_spend_usd=1, **stakes)
    assert told["necessity"]["justified"] is True
    assert told["trace"] == f"decisions/{told['run_id']}/decision.json"
    assert (project / "results" / told["trace"]).is_file()
    unsettled = told["status"] == "unsettled"
    assert (told["value"] is None) == unsettled
    assert (told["error"] is None) != unsettled
    assert all(one["option"] in options and one["rationale"] for one in told["minority_report"])


def test_one_agent_decides_where_the_stakes_justify_no_panel(assistant: Assistant) -> None:
    stakes = {"irreversible": False, "uncertain": False, "perspectives": False}
    told = assistant.answer("decide", question="Tea?", options=["yes", "no"], max_spend_usd=1, **stakes)
    assert told["necessity"]["justified"] is False
    assert told["answered"] == [1, 1]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("binary", {"arm": "E_single"}),
        ("multiple_choice", {"options": ["red", "blue"]}),
        ("numeric", {"lower": 0, "upper": 100, "unit": "boxes"}),
    ],
)
def test_a_question_is_forecast(assistant: Assistant, kind: str, more: dict[str, Any]) -> None:
    told = assistant.answer("forecast", question=f"What of {kind}?", kind=kind, max_spend_usd="2", **more)
    assert told["status"] == "answered", told
    assert told["simulated"] is True
    if kind == "binary":
        assert 0 < told["value"] < 1
    elif kind == "multiple_choice":
        assert set(told["value"]) == {"red", "blue"}
        assert "red" in told["headline"]
    else:
        assert len(told["quantiles"]) == 5
    assert told["trace"].split("/")[2] == "traces"


def test_records_are_listed_and_read_by_page(assistant: Assistant) -> None:
    run_id = assistant.answer("ask_panel", **CAPPED)["run_id"]
    listed = assistant.answer("list_runs", limit=100)
    assert run_id in [run["run_id"] for run in listed["runs"]]
    assert assistant.answer("list_runs", limit=1)["next_offset"] in {1, None}
    (trace,) = assistant.answer("get_trace", run_id=run_id)["traces"]
    page = assistant.answer("get_trace", trace=trace)
    assert page["total_chars"] == len(page["text"])
    assert json.loads(page["text"])["status"] == "answered"
    assert assistant.answer("get_trace", trace=trace, offset=10)["text"] == page["text"][10:]


@pytest.mark.parametrize("tool", ["ask_panel", "decide", "forecast"])
def test_a_call_without_a_cap_is_refused(assistant: Assistant, tool: str) -> None:
    asked = {name: value for name, value in CHOICE.items() if name != "kind"}
    error = assistant.error(tool, **asked)
    assert (error["name"], error["exit_code"], error["meaning"]) == ("ConfigError", 2, "usage")
    assert "no spend cap" in error["message"]
    assert "max_spend_usd" in error["hint"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("ask_panel", {**CAPPED, "protocl": "debate"}, 'Did you mean "protocol"?'),
        ("ask_panel", {**CAPPED, "kind": "estimat"}, "kind"),
        ("ask_panel", {**CAPPED, "live": "yes"}, "live"),
        ("ask_panel", {**CAPPED, "max_spend_usd": "a lot"}, "no amount in dollars"),
        ("ask_panel", {**CAPPED, "max_spend_usd": True}, "no amount in dollars"),
        ("ask_panel", {**CAPPED, "panel": "defalt"}, "default"),
        ("ask_panel", {**CAPPED, "panel": "/etc/passwd.yaml"}, "no relative path"),
        ("ask_panel", {**CAPPED, "context": "one text"}, "context"),
        ("forecast", {"question": "Rain?", "max_spend_usd": 1, "corpus": "../news.jsonl"}, "no relative path"),
        ("forecast", {"question": "Rain?", "max_spend_usd": 1, "resolution_date": "2031-13-45"}, "resolution_date"),
        ("forecast", {"question": "Rain?", "max_spend_usd": 1, "live": True}, "where to search"),
        ("forecast", {"question": "Rain?", "max_spend_usd": 1, "search": "tavily"}, "no real web"),
        ("forecast", {"question": "Rain?", "max_spend_usd": 1, "search": "corpus"}, "corpus"),
        ("ask_panel", {**CAPPED, "model": "no-such-model"}, "no-such-model"),
        ("decide", {"question": "?", "options": ["a"], "max_spend_usd": 1}, "options"),
        ("get_trace", {}, "one of them"),
        ("get_trace", {"run_id": ".."}, "no run"),
        ("list_runs", {"limit": 0}, "limit"),
        ("ask_pannel", CAPPED, 'Did you mean "ask_panel"?'),
    ],
)
def test_a_wrong_argument_is_a_typed_error(
    assistant: Assistant, tool: str, arguments: dict[str, Any], said: str
) -> None:
    error = assistant.error(tool, **arguments)
    assert error["name"] in {"ConfigError", "PlanError"}
    assert said in f"{error['message']} {error['hint']}"


def test_a_live_panel_without_keys_is_refused(assistant: Assistant) -> None:
    error = assistant.error("ask_panel", **CAPPED, live=True)
    assert error["name"] == "ConfigError"
    assert "API_KEY" in error["message"]


def test_a_cap_that_is_too_small_ends_with_the_class_of_its_error(assistant: Assistant) -> None:
    error = assistant.error("ask_panel", **{**CAPPED, "max_spend_usd": 0, "seed": 3})
    assert (error["name"], error["meaning"]) == ("BudgetError", "budget")


def test_hidden_characters_come_back_visible(assistant: Assistant) -> None:
    options = ["tea", "coffee"]
    asked = {"question": HOSTILE, "kind": "choice", "options": options, "context": ["\u2066hidden\u2069 instruction"]}
    told = assistant.answer("ask_panel", **asked, max_spend_usd="0.5", details=True)
    trace = assistant.answer("get_trace", trace=told["trace"])
    text = json.dumps([told, trace], ensure_ascii=False)
    assert not {char for char in text if char in "\u202e\u202c\u200b\u2066\u2069\x1b"}
    assert told["details"]["question"]["text"] == "Is it \\u202eesrever\\u202c or \\u001b[2Jnot\\u200b?"
    failed, refused = assistant.call("ask_panel", **{**asked, "options": ["tea\u202e", "coffee"]}, max_spend_usd="0.5")
    assert (failed, "U+202E" in refused["error"]["message"]) == (True, True)


@pytest.mark.slow
def test_stdout_carries_nothing_but_the_protocol(tmp_path: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked = [
        ("tools/list", {}),
        ("tools/call", {"name": "ask_panel", "arguments": CAPPED}),
        ("tools/call", {"name": "decide", "arguments": {"question": "?", "options": ["a", "b"], "max_spend_usd": 1}}),
        ("no/such/method", {}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}})
        for number, (method, params) in enumerate(asked)
    ]
    command = [sys.executable, "-m", "consilience", "--project", str(tmp_path), "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(lines) + "\nno JSON at all\n")
        process.stdin.flush()
        messages = [json.loads(process.stdout.readline()) for _ in lines]
        rest = process.communicate()[0]
    messages += [json.loads(line) for line in rest.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    assert {message["id"] for message in messages if message.get("id") is not None} == set(range(len(asked)))
    assert process.returncode == 0
