"""The official SDK's client, in a thread of its own, speaking with the real server: a process on stdio or on a port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from consilience.fakes.server import FakeServer
from vendor_clients import CANARY

CHOICE: dict[str, Any] = {"question": "Tea or coffee?", "kind": "choice", "options": ["tea", "coffee"]}
CAPPED: dict[str, Any] = {**CHOICE, "max_spend_usd": "0.50"}
HASTY = (
    "import os, sys; from pathlib import Path; from consilience.mcp.errands import Project; "
    "from consilience.mcp.server import serve_stdio; "
    "serve_stdio(Project(Path(sys.argv[1]), os.environ), patience_s=float(sys.argv[2]))"
)
"""A server whose patience is an argument."""


@dataclass
class Assistant:
    """A connected client.

    Attributes:
        told: Progress of the last call: the number and the words.
    """

    portal: BlockingPortal
    client: Client
    told: list[tuple[float, str | None]] = field(default_factory=list)

    def tools(self) -> dict[str, Any]:
        listed = self.portal.call(partial(self.client.list_tools))
        return {tool.name: tool for tool in listed.tools}

    def call(self, tool: str, **arguments: Any) -> tuple[bool, dict[str, Any]]:
        """Return whether the call failed, and the document."""
        self.told.clear()

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            assert total is None
            self.told.append((progress, message))

        result = self.portal.call(partial(self.client.call_tool, tool, arguments, progress_callback=progress))
        document = result.structured_content
        assert isinstance(document, dict)
        return result.is_error, document

    def answer(self, tool: str, **arguments: Any) -> dict[str, Any]:
        failed, document = self.call(tool, **arguments)
        assert not failed, document
        return document

    def error(self, tool: str, **arguments: Any) -> dict[str, Any]:
        failed, document = self.call(tool, **arguments)
        assert failed, document
        assert "Traceback" not in str(document)
        found: dict[str, Any] = document["error"]
        assert set(found) == {"name", "exit_code", "meaning", "message", "hint"}
        return found


def keys_of(fake: FakeServer) -> dict[str, str]:
    """Variables under which live models are those of the vendors' double."""
    return {
        "ANTHROPIC_API_KEY": CANARY,
        "ANTHROPIC_BASE_URL": fake.base_url,
        "OPENAI_API_KEY": CANARY,
        "OPENAI_BASE_URL": fake.openai_base_url,
    }


@contextmanager
def over_stdio(
    project: Path, *, patience_s: float | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Assistant]:
    """Start ``consilience mcp`` as an assistant does, and connect."""
    words = ["-m", "consilience", "--project", str(project), "mcp"]
    if patience_s is not None:
        words = ["-c", HASTY, str(project), str(patience_s)]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(environment or {}))
    with start_blocking_portal() as portal:
        client = Client(server)
        with portal.wrap_async_context_manager(client):
            yield Assistant(portal, client)


@contextmanager
def served(project: Path, *options: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Start ``consilience mcp --http`` on a free port and return its address."""
    words = [sys.executable, "-m", "consilience", "--project", str(project), "mcp", "--http", "--port", "0", *options]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("listening: http://"), line + process.stderr.read()
        yield line.split()[1]
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextmanager
def over_http(address: str, token: str | None = None) -> Iterator[Assistant]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with start_blocking_portal() as portal:
        http = httpx2.AsyncClient(headers=headers)
        client = Client(streamable_http_client(address, http_client=http))
        with portal.wrap_async_context_manager(http), portal.wrap_async_context_manager(client):
            yield Assistant(portal, client)
