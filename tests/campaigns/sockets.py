"""Hostile HTTP: bytes on real sockets, at the viewer and at the server for assistants."""

from __future__ import annotations

import random
import re
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from campaigns.ground import Case, Ground
from campaigns.hostile import payloads
from engine_cases import make_items
from mcp_cases import served
from viewer_cases import recorded_run, running_viewer, study_of

PATIENCE_S = 3.0
"""For an answer; a machine under load is slow, not hung. The CPU time of the servers is not ours to see."""
WAITS_S = 0.2
"""After so long without a word a server waits for more."""
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
SECRET = b"not for the viewer"
PATHS = (
    *(b"/", b"/runs/_run", b"/runs/_run/row", b"/runs/_run/verify", b"/runs/_run/items/item-01", b"/compare"),
    *(b"/runs/_run/items/item-01/turn", b"/runs/_run/items/item-01/bytes", b"/decisions", b"/static/viewer.css"),
    *(b"/runs/_run/map.svg", b"/runs/_run/forecasts/item-01", b"/compare/a.svg", b"/mcp", b"/secret.txt"),
)
PIECES = (
    *(b"..%2f", b"%00", b"%ff", b"../", b"..\\", b"//", b"%2e%2e/", b"?run=", b"&run=_run", b"?seq=", b"-1", b"1e9"),
    *(b"9" * 400, b"%0d%0aX: y", b"#", b";", b"{{7*7}}", b"%F0%9F%92%A9", b"\xff", b"\x00", b" ", b"\t", b"a" * 9_000),
)
HEADERS = (
    *(
        b"Range: bytes=0-1",
        b"Accept: " + b"a" * 5_000,
        b"Cookie: \xff",
        b"Connection: upgrade",
        b"Expect: 100-continue",
    ),
    *(
        b"Transfer-Encoding: chunked",
        b"Content-Length: -1",
        b"Content-Length: 99999999999",
        b"X: \x00",
        b": x",
        b"noname",
    ),
    *(b"Origin: http://evil.example", b"Authorization: Bearer \xff", b"If-None-Match: *", b"Accept-Encoding: br, gzip"),
    *(b"Mcp-Session-Id: ../x", b"MCP-Protocol-Version: 9", b"Content-Type: application/json", b"Host: evil.example"),
)
BODIES = (
    *(b"", b"{}", b"[]", b"null", b"{" * 5_000, b"[" * 50_000, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_panel","arguments":{"question":1}}}',
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"\\ud800","params":[1e999]}',
    *(b"\xff\xfe", b"0\r\n\r\n", b"ffffffffff\r\n"),
)
METHODS = (*[b"GET"] * 9, b"POST", b"HEAD", b"POST", b"POST", b"PUT", b"OPTIONS", b"TRACE", b"get", b"\x00", b"A" * 300)


def request(rng: random.Random, host: bytes) -> bytes:
    """Return the bytes of one request: mostly in form, never well meant."""
    path = rng.choice(PATHS)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(path) + 1)
        told = rng.choice(payloads())[1][:300].encode("utf-8", "surrogatepass")
        path = path[:at] + (rng.choice(PIECES) if rng.random() < 0.7 else told) + path[at:]
    if rng.random() < 0.6:
        path = quote(path, safe="/?=&%.").encode()
    body = rng.choice(BODIES)
    lines = [
        rng.choice(METHODS) + b" " + path + rng.choice((b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b" HTTP/9", b""))
    ]
    lines += [b"Host: " + host] if rng.random() < 0.9 else []
    lines += [rng.choice(HEADERS) for _ in range(rng.randrange(4))]
    lines += [b"Content-Length: %d" % len(body)] if rng.random() < 0.7 else []
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


def told(port: int, sent: bytes) -> bytes:
    """Return what a server says to some bytes; where it waits for more, it is told that no more will come."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as line:
        heard = b""
        try:
            line.sendall(sent)
            if not select.select([line], [], [], WAITS_S)[0]:
                line.shutdown(socket.SHUT_WR)
            while len(heard) < 200_000 and (part := line.recv(65_536)):
                heard += part
        except ConnectionError:  # it hung up on us, which is its right
            return heard
    return heard


def plain(port: int, sent: bytes) -> bytes:
    """Return what a server says to a request in form."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as line:
        line.sendall(sent)
        return b"".join(iter(lambda: line.recv(65_536), b""))


def check_alive(port: int, path: bytes, status: bytes) -> None:
    """The server still answers a plain request, at once."""
    started = time.monotonic()
    answer = plain(port, b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % (path, port))
    assert answer.startswith(b"HTTP/1.1 " + status), answer[:200]
    assert time.monotonic() - started < PATIENCE_S


Serving = Callable[[Path], AbstractContextManager[int]]


@contextmanager
def viewer(folder: Path) -> Iterator[int]:
    recorded_run(folder, "_run", *make_items(1))
    (folder / "secret.txt").write_bytes(SECRET)
    with running_viewer(study_of(folder)) as shown:
        yield shown.port


@contextmanager
def assistants(folder: Path) -> Iterator[int]:
    folder.mkdir(parents=True)
    (folder / "secret.txt").write_bytes(SECRET)
    with served(folder) as address:
        yield int(urlsplit(address).port or 0)


def fuzzed(serve: Serving, alive: tuple[bytes, bytes]) -> Callable[[Ground], None]:
    """Return how a server is tried with bytes."""

    def carry(ground: Ground) -> None:
        folder = ground.folder / "project"
        with serve(folder) as port:
            before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            counts: dict[bytes, int] = {}
            for _ in range(ground.tries):
                sent = request(ground.rng, b"127.0.0.1:%d" % port)
                heard = told(port, sent)
                found = STATUS.match(heard)
                status = found[1] if found else b"none"
                counts[status] = counts.get(status, 0) + 1
                assert not status.startswith(b"5"), (sent, heard[:500])
                assert b"Traceback" not in heard
                assert SECRET not in heard
                ground.tried += 1
            check_alive(port, *alive)
            after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            assert {path for path in after if before.get(path) != after[path]} <= {folder / "lock"}
        ground.found = ", ".join(f"{status.decode()} × {n:,}" for status, n in sorted(counts.items()))

    return carry


def slow(ground: Ground) -> None:
    """Callers that send a byte now and then, and callers that never read: others are answered meanwhile."""
    folder = ground.folder / "project"
    with viewer(folder) as port:
        lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(ground.tries)]
        try:
            for number, line in enumerate(lines):
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
                whole = b"GET /runs/_run HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
                line.sendall(whole if number % 2 else whole[: 1 + number % 20])
                ground.tried += 1
            for _ in range(5):
                check_alive(port, b"/", b"200")
        finally:
            for line in lines:
                line.close()
        check_alive(port, b"/", b"200")


HOLDS = "no error of the server's own, nothing of another file, nothing written; a plain request is answered at once"
CASES = (
    Case("HTTP requests of any bytes, at the viewer", HOLDS, fuzzed(viewer, (b"/", b"200")), many=1_500, few=30),
    Case(
        "HTTP requests of any bytes, at the server for assistants",
        HOLDS,
        fuzzed(assistants, (b"/nothing", b"404")),
        many=1_500,
        by="test_a_foreign_host_is_refused",
    ),
    Case("callers that send a byte now and then or never read", "others are answered at once", slow, many=200, few=20),
)
