"""The server over HTTP on a real port: the official client, and requests that no assistant would send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from consilience.cli import main
from mcp_cases import CAPPED, over_http, served

TOKEN = "a-token-of-many-characters"  # noqa: S105 - opens nothing but a test's server
ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("open")) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    project = tmp_path_factory.mktemp("guarded")
    (project / ".env").write_text(f"CONSILIENCE_MCP_TOKEN={TOKEN}\n")
    with served(project, "--host", "0.0.0.0") as found:  # noqa: S104 - what the token is for
        yield found.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - the same


def post(address: str, **headers: str) -> httpx2.Response:
    usual = {"Accept": "application/json, text/event-stream"}
    return httpx2.post(address, json=ASKED, headers={**usual, **headers})


def test_every_tool_is_called_and_progress_told(address: str) -> None:
    with over_http(address) as assistant:
        assert len(assistant.tools()) == 5
        told = assistant.answer("ask_panel", **CAPPED)
        assert told["status"] == "answered"
        assert assistant.told
        assert assistant.answer("get_trace", trace=told["trace"])["total_chars"] > 0
        assert assistant.answer("decide", question="?", options=["a", "b"], max_spend_usd=1)["run_id"]
        assert assistant.answer("forecast", question="Rain?", max_spend_usd=1)["value"]
        assert len(assistant.answer("list_runs")["runs"]) == 3
        assert assistant.error("ask_panel", question="?", kind="probability")["name"] == "ConfigError"


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize(
    "origin", ["https://example.org", "null", "http://localhost.example.org:1", "http://localhost"]
)
def test_a_foreign_origin_is_forbidden(address: str, version: str, origin: str) -> None:
    assert post(address, **{"Origin": origin, "MCP-Protocol-Version": version}).status_code == 403


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("host", ["example.org", "rebound.example.org:8766", "127.0.0.1:1", "localhost"])
def test_a_foreign_host_is_refused(address: str, version: str, host: str) -> None:
    assert post(address, **{"Host": host, "MCP-Protocol-Version": version}).status_code == 421


def test_its_own_origin_is_let_in(address: str) -> None:
    own = f"http://{urlsplit(address).netloc}"
    assert post(address, Origin=own, **{"MCP-Protocol-Version": "2026-07-28"}).status_code not in {401, 403, 421}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer another-token-of-characters"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer x"},
    ],
)
def test_without_the_token_nothing_is_answered(guarded: str, headers: dict[str, str]) -> None:
    refused = post(guarded, **headers)
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert TOKEN not in refused.text


def test_with_the_token_everything_is(guarded: str) -> None:
    with over_http(guarded, TOKEN) as assistant:
        assert len(assistant.tools()) == 5
    assert post(guarded, Authorization=f"Bearer {TOKEN}", Origin="https://example.org").status_code == 403


def test_other_machines_are_refused_without_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONSILIENCE_MCP_TOKEN", raising=False)
    for host in ("0.0.0.0", "::", "192.0.2.7", "study.example.org"):  # noqa: S104 - refused
        assert main(["mcp", "--http", "--host", host, "--project", str(tmp_path)]) == 2
        assert "CONSILIENCE_MCP_TOKEN" in capsys.readouterr().err


def test_options_of_http_need_http(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--port", "1", "--project", str(tmp_path)]) == 2
    assert "--http" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = urlsplit(address).port
    assert main(["mcp", "--http", "--port", str(port), "--project", str(tmp_path)]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
