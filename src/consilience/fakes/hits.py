"""The journal of hits: every request as it came in, with nothing secret kept."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

GENERATION = re.compile(r"/v1/(?:messages|responses|chat/completions)")
REDACTED = "[redacted]"
SHORTEST_SECRET = 8
"""Shorter keys are no secrets, and looking for them would deface bodies."""
_SECRET_HEADER = re.compile(r"authorization|cookie|key|token|secret", re.IGNORECASE)


@dataclass
class Hit:
    """One request.

    Attributes:
        index: Its place among all requests.
        call_index: Its place among the requests for text; None for any other.
        time: When it came in, seconds since the epoch.
        method: HTTP method.
        path: URL path.
        query: URL query.
        headers: Headers in lower case; secrets redacted.
        body: The raw bytes; a key of the headers that also stood in the body is redacted.
        leaked_key: Whether the body or the query held the key.
        status: HTTP status of the answer; None while there is none.
        fault: Kind of the scripted fault, if any.
        refused: Why the request was refused by the fake's own rules, if it was.
        notes: What the vendor takes and this project must not send.
        usage: The usage that was reported.
    """

    index: int
    call_index: int | None
    time: float
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    leaked_key: bool
    status: int | None = None
    fault: str | None = None
    refused: str | None = None
    notes: list[str] = field(default_factory=list)
    usage: dict[str, Any] | None = None

    @property
    def json(self) -> Any:
        """The body as JSON values; None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def model(self) -> str | None:
        """The model asked for, if any."""
        body = self.json
        name = body.get("model") if isinstance(body, dict) else None
        return name if isinstance(name, str) else None


class HitJournal:
    """All requests received, in order; may be read from any thread.

    Args:
        clock: Tells the time, seconds since the epoch.
        kept: How many of the latest to keep; None for all.
        on_done: Called with each hit once it is answered.
    """

    def __init__(
        self, clock: Callable[[], float], *, kept: int | None = None, on_done: Callable[[Hit], None] | None = None
    ) -> None:
        self._clock = clock
        self._on_done = on_done
        self._hits: deque[Hit] = deque(maxlen=kept)
        self._changed = threading.Condition()
        self._seen = self._calls = 0

    def add(self, *, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Hit:
        """Record a request; keys are gone before anything is kept."""
        secrets = [_bare(value) for name, value in headers.items() if _SECRET_HEADER.search(name)]
        kept_body, kept_query = body, query
        for secret in (secret for secret in secrets if len(secret) >= SHORTEST_SECRET):
            kept_body = kept_body.replace(secret.encode("latin-1"), REDACTED.encode())
            kept_query = kept_query.replace(secret, REDACTED)
        with self._changed:
            is_call = method == "POST" and GENERATION.fullmatch(path) is not None
            hit = Hit(
                index=self._seen,
                call_index=self._calls if is_call else None,
                time=self._clock(),
                method=method,
                path=path,
                query=kept_query,
                headers={
                    name.lower(): REDACTED if _SECRET_HEADER.search(name) else value for name, value in headers.items()
                },
                body=kept_body,
                leaked_key=(kept_body, kept_query) != (body, query),
            )
            self._seen += 1
            self._calls += is_call
            self._hits.append(hit)
            self._changed.notify_all()
        return hit

    def done(self, hit: Hit, status: int | None) -> None:
        """Record how a request was answered."""
        hit.status = status
        if self._on_done is not None:
            self._on_done(hit)

    def all(self) -> tuple[Hit, ...]:
        """Return the hits kept so far."""
        with self._changed:
            return tuple(self._hits)

    def wait_for(self, calls: int, timeout_s: float) -> bool:
        """Block until so many requests for text have come in; False when time runs out first."""
        with self._changed:
            return self._changed.wait_for(lambda: self._calls >= calls, timeout_s)


def _bare(value: str) -> str:
    """Return a header's secret without its scheme."""
    return value.strip().rsplit(" ", 1)[-1]
