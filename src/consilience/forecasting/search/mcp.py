"""Search by any server of the Model Context Protocol: one tool of it that searches, and one that reads a page.

The server sees a query, or an address, and what the run's configuration adds; its tools are never shown to a model,
and whatever it answers is data. Each call is a session of its own, so that a server that hangs or dies costs one call.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio
from pydantic import JsonValue

from consilience.core.canonical import tagged_hash
from consilience.errors import ConfigError, SearchError, SearchFailure
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.found_lists import found_in_text, found_objects, hit_of
from consilience.forecasting.search.urls import host_of

TIMEOUT_S = 30.0
CONNECTION_CLOSED = -32000
"""The SDK's code for a server that ended."""
_INSTALL = 'Install it: pip install "consilience[mcp]".'


def utc_now() -> datetime:
    """Return the present instant in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class McpTools:
    """Which of a server's tools are used, and how they are asked.

    Attributes:
        search: The tool that searches.
        query: Its argument for the query.
        limit: Its argument for the number of results; None where it has none.
        extra: Further arguments of every search, from the run's configuration.
        read: The tool that reads a page; None where there is none.
        url: Its argument for the address; a list of one where ``url_is_list``.
        url_is_list: Whether it takes a list.
    """

    search: str = "search"
    query: str = "query"
    limit: str | None = None
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
    read: str | None = None
    url: str = "url"
    url_is_list: bool = False


class McpSearch:
    """Searches by a server of the Model Context Protocol.

    Args:
        server: Its https (or loopback) address, or the command that starts it.
        tools: Which of its tools are used.
        environment: Variables of the started command, beyond the few every process gets; it inherits no others, so no
            key of ours reaches it unless named here.
        timeout_s: Longest a session may take, its start included.
        now: Tells when results were retrieved.

    Raises:
        ConfigError: Nothing is named to start or speak to, or the protocol's SDK is not installed.
    """

    def __init__(
        self,
        server: str | Sequence[str],
        *,
        tools: McpTools | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        unfit = not server or (isinstance(server, str) and host_of(server) is None)
        if unfit:
            raise ConfigError(
                "an MCP search server is neither an http address nor a command",
                hint="Give its address, such as https://example.org/mcp, or its command as a list of words.",
            )
        if importlib.util.find_spec("mcp") is None:
            raise ConfigError("the SDK of the Model Context Protocol is not installed", hint=_INSTALL)
        self._server = server if isinstance(server, str) else tuple(server)
        self._tools = tools or McpTools()
        self._environment = dict(environment or {})
        self._timeout_s = timeout_s
        self._now = now

    @property
    def name(self) -> str:
        """Registry name."""
        return "mcp"

    @property
    def identity(self) -> dict[str, JsonValue]:
        """Host or program, with a digest of address, words and extra arguments, which may hold something secret."""
        server = host_of(self._server) if isinstance(self._server, str) else self._server[0]
        told = {"server": self._server, "extra": dict(self._tools.extra)}
        tools: dict[str, JsonValue] = {"search": self._tools.search, "read": self._tools.read}
        return {"name": self.name, "server": server, "tools": tools, "digest": tagged_hash("mcp-search", told)}

    async def search(self, query: str, *, max_results: int, cutoff: datetime | None) -> Sequence[Hit]:
        """Return what the server's tool finds, in its order; twice as many are asked for under a cutoff.

        Raises:
            SearchError: The search failed.
        """
        arguments: dict[str, JsonValue] = {**self._tools.extra, self._tools.query: query}
        if self._tools.limit is not None:
            arguments[self._tools.limit] = max_results if cutoff is None else 2 * max_results
        result = await self._call(self._tools.search, arguments)
        seen = self._now()
        found = _found(result)
        if found is None:
            raise self._error("unreadable", "the reply holds no list of results with addresses")
        return tuple(hit_of(part, seen=seen) for part in found)

    async def read(self, url: str, *, cutoff: datetime | None) -> Hit:
        """Return the page that the server's tool reads, as it stands today.

        Raises:
            SearchError: There is no such tool, or the page could not be had.
        """
        del cutoff  # a page is read as it stands today; the executor judges the date it tells
        if self._tools.read is None:
            raise self._error("not_found", "no tool that reads pages is configured")
        address: JsonValue = [url] if self._tools.url_is_list else url
        result = await self._call(self._tools.read, {self._tools.url: address})
        seen = self._now()
        found = _found(result)
        if found:
            return hit_of(found[0], seen=seen, whole=True)
        text = _texts(result)
        if not text.strip():
            raise self._error("not_found", "the page has no text")
        return hit_of({"url": url, "text": text}, seen=seen, whole=True)

    async def _call(self, tool: str, arguments: dict[str, JsonValue]) -> Any:
        sdk = importlib.import_module("mcp")
        try:
            with anyio.fail_after(self._timeout_s):
                async with sdk.Client(self._target(sdk), read_timeout_seconds=self._timeout_s) as client:
                    result = await client.call_tool(tool, arguments)
        except (ExceptionGroup, OSError, RuntimeError, ValueError, sdk.MCPError, _http_error()) as error:
            raise self._broken(sdk, _leaf(error)) from None
        if result.is_error:
            raise self._error("refused", "the server's tool reports an error")
        return result

    def _broken(self, sdk: Any, error: BaseException) -> SearchError:
        if isinstance(error, TimeoutError):
            return self._error("timeout", f"no answer within {self._timeout_s:g} s")
        if isinstance(error, sdk.MCPError) and error.code != CONNECTION_CLOSED:
            return self._error("refused", f"the server refuses the call (code {error.code})")
        return self._error("unreachable", f"the session broke off ({type(error).__name__})")

    def _target(self, sdk: Any) -> Any:
        if isinstance(self._server, str):
            return self._server
        command, *words = self._server
        return sdk.StdioServerParameters(command=command, args=words, env=self._environment)

    def _error(self, failure: SearchFailure, what: str) -> SearchError:
        server = host_of(self._server) if isinstance(self._server, str) else self._server[0]
        return SearchError(
            f"MCP server {server}: {what}",
            hint="Check the server and the names of its tools and arguments in the run's configuration.",
            failure=failure,
        )


def _found(result: Any) -> list[Mapping[str, Any]] | None:
    structured = None if result.structured_content is None else found_objects(result.structured_content)
    if structured is not None:
        return structured
    parts = [found_in_text(part) for part in _parts(result)]
    if len(parts) == 1:
        return parts[0]
    return None if not parts or any(part is None for part in parts) else [one for part in parts for one in part or ()]


def _texts(result: Any) -> str:
    return "\n".join(_parts(result))


def _parts(result: Any) -> list[str]:
    return [part.text for part in result.content if isinstance(getattr(part, "text", None), str)]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _http_error() -> type[Exception]:
    error: type[Exception] = importlib.import_module("httpx2").HTTPError
    return error
