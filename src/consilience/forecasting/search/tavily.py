"""Search by Tavily's HTTP interface.

The key travels in the ``Authorization`` header and nowhere else: not in a body, an address, a log or a message, and to
no other host, since redirects are not followed. The interface filters by day at best, so its ``end_date`` only saves
results; what decides is the executor's cutoff. A page is read as it stands today: its date is the one it tells.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from types import ModuleType
from typing import Any, Literal
from urllib.parse import urlsplit

import anyio
from pydantic import JsonValue

from consilience.errors import ConfigError, SearchError, SearchFailure
from consilience.forecasting.search.dates import date_of
from consilience.forecasting.search.document import Hit

BASE_URL = "https://api.tavily.com"
KEY_VARIABLE = "TAVILY_API_KEY"
TIMEOUT_S = 30.0
MOST_RESULTS = 20
"""What the interface gives at most."""
MOST_BYTES = 20_000_000
"""Of a reply; a longer one is unreadable."""

Topic = Literal["general", "news", "finance"]

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_REFUSALS: dict[int, tuple[SearchFailure, str]] = {
    400: ("refused", "The request is refused as it stands; nothing else can be done about this query."),
    401: ("refused", f"Set {KEY_VARIABLE} to a valid key."),
    403: ("refused", "The key may not do this: ask the owner of the Tavily account."),
    404: ("not_found", "Check the base URL, where one is set."),
    408: ("timeout", "Try again later."),
    429: ("rate_limited", "Try again later, or with fewer agents at once."),
    432: ("refused", "The plan's limit is reached: raise it at Tavily or wait for the next month."),
    433: ("refused", "The account's pay-as-you-go limit is reached: raise it at Tavily."),
    504: ("timeout", "Try again later."),
}


def utc_now() -> datetime:
    """Return the present instant in UTC."""
    return datetime.now(UTC)


class TavilySearch:
    """Searches the web by Tavily.

    Under a cutoff it asks for twice as many results as will be kept, and by default for news, because only news carry
    dates; without one, for the whole web.

    Args:
        api_key: The key.
        base_url: Where the interface is; plain http only on this machine.
        topic: What to search in; None chooses ``news`` under a cutoff and ``general`` without.
        timeout_s: Longest a call may take.
        now: Tells when results were retrieved.

    Raises:
        ConfigError: The key or the base URL cannot be used, or the HTTP library is not installed.

    Example:
        >>> TavilySearch("tvly-some-key").name
        'tavily'
    """

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str = BASE_URL,
        topic: Topic | None = None,
        timeout_s: float = TIMEOUT_S,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
            raise ConfigError("the key for Tavily is empty or malformed", hint=f"Set {KEY_VARIABLE} to a valid key.")
        parts = urlsplit(base_url)
        plain = parts.scheme == "http" and parts.hostname in _LOOPBACK
        if not parts.hostname or not (parts.scheme == "https" or plain) or parts.username or parts.query:
            raise ConfigError(
                "the base URL for Tavily is not an https address",
                hint=f"Leave it out for {BASE_URL}, or give an https address without name, password and parameters.",
            )
        if importlib.util.find_spec("httpx2") is None:
            raise ConfigError(
                "the HTTP library for live search is not installed", hint='Install it: pip install "consilience[live]".'
            )
        self._key = api_key
        self._base_url = base_url.rstrip("/")
        self._host = parts.netloc
        self._topic = topic
        self._timeout_s = timeout_s
        self._now = now

    def __repr__(self) -> str:
        return f"TavilySearch(base_url={self._base_url!r}, topic={self._topic!r})"

    @property
    def name(self) -> str:
        """Registry name."""
        return "tavily"

    @property
    def identity(self) -> dict[str, JsonValue]:
        """What decides the results, as far as it is ours."""
        return {"name": self.name, "host": self._host, "topic": self._topic, "search_depth": "basic"}

    async def search(self, query: str, *, max_results: int, cutoff: datetime | None) -> Sequence[Hit]:
        """Return what was found, best first.

        Raises:
            SearchError: The search failed.
        """
        wanted = max_results if cutoff is None else 2 * max_results
        body: dict[str, JsonValue] = {
            "query": query,
            "max_results": min(wanted, MOST_RESULTS),
            "topic": self._topic or ("general" if cutoff is None else "news"),
            "search_depth": "basic",
            "include_answer": False,
            "include_raw_content": False,
        }
        if cutoff is not None:
            body["end_date"] = _end_date(cutoff)
        reply = await self._post("/search", body)
        seen = self._now()
        return tuple(self._hit(result, text="content", seen=seen) for result in self._results(reply))

    async def read(self, url: str, *, cutoff: datetime | None) -> Hit:
        """Return the whole text of a page as it stands today.

        Raises:
            SearchError: It could not be had.
        """
        del cutoff  # the interface reads only the present page
        reply = await self._post("/extract", {"urls": [url], "extract_depth": "basic", "format": "text"})
        for result in self._results(reply):
            hit = self._hit(result, text="raw_content", seen=self._now())
            if hit.text:
                return hit
        raise SearchError(
            f"{self._host} could not extract a page", hint="The page may be gone or barred.", failure="not_found"
        )

    def _hit(self, result: Any, *, text: str, seen: datetime) -> Hit:
        url = result.get("url") if isinstance(result, dict) else None
        if not isinstance(url, str):
            raise self._unreadable("a result has no address")
        content, said, score = _text(result.get(text)), result.get("published_date"), result.get("score")
        whole = content if text == "raw_content" else None
        dated = date_of(metadata=said if isinstance(said, str) else None, url=_text(url), text=whole, retrieved_at=seen)
        known = isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
        return Hit(
            url=_text(url),
            title=_text(result.get("title")),
            text=content,
            published=dated.published,
            date_source=dated.source,
            retrieved_at=seen,
            score=float(score) if known else None,
        )

    def _results(self, reply: dict[str, Any]) -> list[Any]:
        results = reply.get("results")
        if not isinstance(results, list):
            raise self._unreadable("the reply has no list of results")
        return results

    async def _post(self, path: str, body: dict[str, JsonValue]) -> dict[str, Any]:
        http = importlib.import_module("httpx2")
        try:
            with anyio.fail_after(self._timeout_s):
                status, content = await self._exchange(http, path, body)
        except (TimeoutError, http.TimeoutException):
            raise SearchError(
                f"{self._host} did not answer within {self._timeout_s:g} s", hint="Try again later.", failure="timeout"
            ) from None
        except (OSError, http.HTTPError, http.InvalidURL) as error:
            raise SearchError(
                f"{self._host} could not be reached, or broke off ({type(error).__name__})",
                hint="Check the network and, where one is set, the base URL.",
                failure="unreachable",
            ) from None
        if status != 200:
            default: tuple[SearchFailure, str] = (
                ("unreachable", "Try again later.") if status >= 500 else ("refused", "Check the base URL.")
            )
            failure, hint = _REFUSALS.get(status, default)
            raise SearchError(f"{self._host} answered with status {status}", hint=hint, failure=failure)
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            raise self._unreadable("the reply is no JSON") from None
        if not isinstance(reply, dict):
            raise self._unreadable("the reply is no JSON object")
        return reply

    async def _exchange(self, http: ModuleType, path: str, body: dict[str, JsonValue]) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        async with http.AsyncClient(timeout=self._timeout_s, follow_redirects=False) as client:
            sent = json.dumps(body).encode()
            async with client.stream("POST", self._base_url + path, content=sent, headers=headers) as response:
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MOST_BYTES:
                        raise self._unreadable(f"the reply is longer than {MOST_BYTES} bytes")
                return response.status_code, bytes(content)

    def _unreadable(self, why: str) -> SearchError:
        return SearchError(
            f"the reply of {self._host} cannot be read: {why}",
            hint="Try again; if it stays so, the interface has changed: please report it.",
            failure="unreadable",
        )


def _end_date(cutoff: datetime) -> str:
    """Return the first day that lies wholly past a cutoff: whether the interface reads it as in or out, none is lost.

    Example:
        >>> _end_date(datetime(2025, 2, 20, tzinfo=UTC)), _end_date(datetime(2025, 2, 20, 1, tzinfo=UTC))
        ('2025-02-20', '2025-02-21')
    """
    instant = cutoff.astimezone(UTC)
    begun = timedelta(days=instant.time() != time.min)
    return (instant.date() + begun).isoformat()


def _text(value: Any) -> str:
    """Return a text with lone surrogates, which nothing can carry on, as replacement characters; empty for no text."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else ""
