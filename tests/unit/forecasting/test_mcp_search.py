"""Search by a server of the Model Context Protocol, and how its lists of results are read."""

from __future__ import annotations

import importlib.util
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from consilience.errors import ConfigError, SearchError
from consilience.forecasting.search.dates import written
from consilience.forecasting.search.found_lists import found_in_text, found_objects, hit_of
from consilience.forecasting.search.mcp import McpSearch, McpTools

SEEN = datetime(2025, 6, 1, tzinfo=UTC)
ONE = {"url": "https://example.org/a", "title": "T"}
SERVER = """
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("found")

@server.tool()
def search(query: str, n: int = 5, lang: str = "") -> dict:
    if query == "boom":
        raise ValueError("a secret detail")
    if query == "odd":
        return {"answer": 42}
    text = lang + os.environ.get("TAVILY_API_KEY", "") + os.environ.get("SEARCH_KEY", "")
    return {"results": [{"url": f"https://example.org/{i}", "snippet": text, "date": "2025-02-19"} for i in range(n)]}

@server.tool()
def fetch(url: str) -> str:
    return "" if url.endswith("gone") else "Published: 19 February 2025\\n" + url

server.run("stdio")
"""


@pytest.mark.parametrize(
    "value",
    [
        [ONE],
        ONE,
        {"results": [ONE]},
        {"web": {"results": [ONE]}},
        {"data": {"news": [ONE]}},
        {"result": {"documents": [ONE]}, "query": "x"},
    ],
)
def test_lists_are_found_in_the_usual_shapes(value: Any) -> None:
    assert found_objects(value) == [ONE]
    assert found_in_text(json.dumps(value)) == [ONE]


@pytest.mark.parametrize(
    "value", [None, 1, "x", {}, {"answer": 42}, [1], [ONE, {"title": "no address"}], {"results": 1}]
)
def test_what_holds_no_list_of_addresses_cannot_be_read(value: Any) -> None:
    assert found_objects(value) is None
    assert found_in_text(json.dumps(value)) is None


def test_an_empty_list_is_no_failure() -> None:
    assert found_objects({"results": []}) == []


def test_blocks_of_labelled_lines_are_read() -> None:
    text = """Detailed Results:

1. Title: First
URL: https://example.org/1
Published: 2025-02-19
Content: one
two: three

**Title:** Second
**URL:** https://example.org/2
"""
    first, second = found_in_text(text) or []
    assert first == {
        "title": "First",
        "url": "https://example.org/1",
        "published": "2025-02-19",
        "text": "one\ntwo: three",
    }
    assert second == {"title": "Second", "url": "https://example.org/2"}
    assert found_in_text("No results found.") is None


def test_a_result_becomes_a_hit() -> None:
    hit = hit_of({"link": "https://example.org/a", "headline": "H\ud800", "age": "3 days ago", "score": "x"}, seen=SEEN)
    assert (hit.url, hit.title, hit.text, hit.score) == ("https://example.org/a", "H\ufffd", "", None)
    assert hit.published is not None
    assert written(hit.published) == "2025-05-29"


@pytest.mark.skipif(importlib.util.find_spec("mcp") is not None, reason="the SDK is installed")
def test_without_the_sdk_the_extra_is_named() -> None:
    with pytest.raises(ConfigError, match=r"consilience\[mcp\]"):
        McpSearch("https://example.org/mcp")


@pytest.mark.parametrize("server", ["", "example.org/mcp", "ftp://example.org", []])
def test_a_server_that_is_neither_address_nor_command_is_refused(server: Any) -> None:
    with pytest.raises(ConfigError, match="neither an http address nor a command"):
        McpSearch(server)


def failure_of(client: McpSearch, query: str) -> str:
    with pytest.raises(SearchError) as caught:
        anyio.run(lambda: client.search(query, max_results=1, cutoff=None))
    assert "secret" not in str(caught.value)
    return caught.value.failure


@pytest.mark.slow
def test_a_real_server_over_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp")
    monkeypatch.setenv("TAVILY_API_KEY", "never-inherited")
    script = tmp_path / "server.py"
    script.write_text(SERVER, encoding="utf-8")
    tools = McpTools(limit="n", extra={"lang": "en "}, read="fetch")
    client = McpSearch(
        [sys.executable, str(script)], tools=tools, environment={"SEARCH_KEY": "given"}, now=lambda: SEEN
    )

    hits = anyio.run(lambda: client.search("rates", max_results=2, cutoff=SEEN))
    assert [hit.url for hit in hits] == [f"https://example.org/{n}" for n in range(4)]
    assert hits[0].text == "en given"
    assert hits[0].published is not None
    assert written(hits[0].published) == "2025-02-19"
    page = anyio.run(lambda: client.read("https://example.org/1", cutoff=None))
    assert page.text.endswith("https://example.org/1")
    assert page.date_source == "text"
    assert failure_of(client, "boom") == "refused"
    assert failure_of(client, "odd") == "unreadable"


def test_a_server_that_ends_hangs_or_is_not_there() -> None:
    pytest.importorskip("mcp")
    hanging = McpSearch([sys.executable, "-c", "import sys; sys.stdin.read()"], timeout_s=0.5)
    assert failure_of(hanging, "x") == "timeout"
    assert failure_of(McpSearch([sys.executable, "-c", "1"]), "x") == "unreachable"
    assert failure_of(McpSearch(["/no/such/program"]), "x") == "unreachable"
    assert failure_of(McpSearch("http://127.0.0.1:9/mcp"), "x") == "unreachable"
    with pytest.raises(SearchError) as caught:
        anyio.run(lambda: McpSearch(["/no/such/program"]).read("https://example.org/", cutoff=None))
    assert caught.value.failure == "not_found"
