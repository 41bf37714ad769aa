"""A strict stand-in for Tavily's search interface on loopback: what the vendor refuses, it refuses."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from pydantic import Field, ValidationError

from consilience.fakes.strict import Shape, place_of

SearchFaultKind = Literal["status", "hang", "drop", "broken_body", "no_object", "redirect"]


class SearchBody(Shape):
    """What ``/search`` takes of this project."""

    query: str = Field(min_length=1, max_length=400)
    max_results: int = Field(ge=1, le=20)
    topic: Literal["general", "news", "finance"]
    search_depth: Literal["basic", "advanced"]
    include_answer: Literal[False]
    include_raw_content: Literal[False]
    end_date: str | None = Field(default=None, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")


class ExtractBody(Shape):
    """What ``/extract`` takes of this project."""

    urls: list[str] = Field(min_length=1, max_length=20)
    extract_depth: Literal["basic", "advanced"]
    format: Literal["text", "markdown"]


@dataclass(frozen=True)
class SearchFault:
    """One thing that goes wrong.

    Attributes:
        kind: ``status`` and ``redirect`` answer with `status`; ``hang`` gives no answer, ``drop`` half a body,
            ``broken_body`` half a JSON text, ``no_object`` JSON that is no object.
        status: HTTP status.
        location: Where a redirect leads.
    """

    kind: SearchFaultKind
    status: int = 500
    location: str = ""


@dataclass
class FakeSearch:
    """A running stand-in.

    Attributes:
        base_url: Where it is.
        key: The only key it takes.
        results: What ``/search`` finds, in order, as many as are asked for.
        pages: Raw content by address, for ``/extract``; others fail.
        faults: What goes wrong, call by call; beyond the end all is well.
        bodies: Every body it took, in order, with the path.
        refused: Why it refused calls.
    """

    base_url: str
    key: str
    results: Sequence[dict[str, Any]] = ()
    pages: dict[str, str] = field(default_factory=dict)
    faults: list[SearchFault | None] = field(default_factory=list)
    bodies: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def reply(self, path: str, authorization: str | None, kind: str | None, raw: bytes) -> tuple[int, dict[str, Any]]:
        """Return status and body of the answer to a sound request, or of a refusal."""
        if authorization != f"Bearer {self.key}":
            return self._refuse(401, "Unauthorized: missing or invalid API key.")
        if self.key.encode() in raw or self.key in path:
            return self._refuse(400, "the key stands outside its header")
        if kind != "application/json":
            return self._refuse(400, "the body is not declared as JSON")
        try:
            return self._answer(path, raw)
        except ValidationError as error:
            return self._refuse(400, ": ".join(place_of(error)))

    def _answer(self, path: str, raw: bytes) -> tuple[int, dict[str, Any]]:
        if path == "/search":
            asked = SearchBody.model_validate_json(raw)
            self.bodies.append((path, json.loads(raw)))
            found = list(self.results)[: asked.max_results]
            return 200, {"query": asked.query, "results": found, "response_time": 0.1, "images": []}
        if path == "/extract":
            wanted = ExtractBody.model_validate_json(raw)
            self.bodies.append((path, json.loads(raw)))
            read = [{"url": url, "raw_content": self.pages[url]} for url in wanted.urls if url in self.pages]
            failed = [{"url": url, "error": "not fetched"} for url in wanted.urls if url not in self.pages]
            return 200, {"results": read, "failed_results": failed, "response_time": 0.1}
        return self._refuse(404, "no such endpoint")

    def _refuse(self, status: int, why: str) -> tuple[int, dict[str, Any]]:
        self.refused.append(why)
        return status, {"detail": {"error": why}}


class _Handler(BaseHTTPRequestHandler):
    fake: FakeSearch

    def do_POST(self) -> None:
        """Answer one call."""
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fake = self.fake
        fault = fake.faults.pop(0) if fake.faults else None
        status, told = fake.reply(self.path, self.headers.get("Authorization"), self.headers.get("Content-Type"), raw)
        body = json.dumps(told).encode()
        headers: dict[str, str] = {}
        if fault is not None and fault.kind == "hang":
            fake.released.wait()
            self.close_connection = True
            return
        if fault is not None and fault.kind in {"status", "redirect"}:
            status = fault.status
            body = json.dumps({"detail": {"error": f"scripted; {self.headers.get('Authorization')}"}}).encode()
            headers = {"Location": fault.location} if fault.kind == "redirect" else {}
        if fault is not None and fault.kind == "no_object":
            body = b"[1]"
        if fault is not None and fault.kind == "broken_body":
            body = body[: len(body) // 2]
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault is not None and fault.kind == "drop" else body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Keep silent."""


@contextmanager
def running_search(key: str = "tvly-fake-key-0123456789") -> Iterator[FakeSearch]:
    """Run a stand-in on a free loopback port for the length of a ``with`` block."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fake = FakeSearch(base_url=f"http://127.0.0.1:{server.server_address[1]}", key=key)
        handler.fake = fake  # type: ignore[attr-defined]
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
        thread.start()
        try:
            yield fake
        finally:
            fake.released.set()
            server.shutdown()
            thread.join()
