"""A search that answers from what a recorded run fetched, and from nothing else.

A call is known by its tool and its arguments, in canonical JSON, as the executor hands them to what records it. What
was not asked then is not found now: a replay never reaches for the world.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import ClassVar, Protocol

from pydantic import JsonValue

from consilience.core.canonical import canonical_json, tagged_hash
from consilience.errors import SearchError, SearchFailure
from consilience.forecasting.search.document import Hit

Call = tuple[str, Mapping[str, JsonValue], "Recorded"]
"""Tool, arguments and result of one call."""


class Recorded(Protocol):
    """What is kept of a call; `records.Fetched` is one."""

    @property
    def failure(self) -> SearchFailure | None:
        """The error's short class; None for a success."""
        ...

    @property
    def hits(self) -> tuple[Hit, ...]:
        """What was found, best first."""
        ...


def call_key(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return what a call is known by.

    Example:
        >>> call_key("read", {"url": "https://a.example/", "cutoff": None})
        '{"arguments":{"cutoff":null,"url":"https://a.example/"},"tool":"read"}'
    """
    return canonical_json({"tool": tool, "arguments": dict(arguments)}).decode("ascii")


def recorded_calls(calls: Iterable[Call]) -> dict[str, Recorded]:
    """Return the calls of a record by their keys, as `Replay` takes them.

    Of a call that was made several times the first success counts, as it did for the run, else the first failure.

    Example:
        >>> from consilience.forecasting.search.records import Fetched
        >>> failed = Fetched(status="error", failure="timeout", duration_s=30.0)
        >>> found = Fetched(status="success", duration_s=0.2)
        >>> asked = {"url": "https://a.example/", "cutoff": None}
        >>> recorded_calls([("read", asked, failed), ("read", asked, found)])[call_key("read", asked)] is found
        True
    """
    kept: dict[str, Recorded] = {}
    for tool, arguments, result in calls:
        known = kept.setdefault(call_key(tool, arguments), result)
        if known.failure is not None and result.failure is None:
            kept[call_key(tool, arguments)] = result
    return kept


class Replay:
    """Answers the calls of a recorded run with what they gave then, failures included (a `SearchClient`).

    Args:
        recorded: What each call gave, by its `call_key`; `recorded_calls` makes it.

    Example:
        >>> import anyio
        >>> from consilience.forecasting.search.records import Fetched
        >>> asked = {"query": "rates", "max_results": 5, "cutoff": None}
        >>> client = Replay({call_key("search", asked): Fetched(status="success", duration_s=0.2)})
        >>> async def found(query: str) -> tuple[Hit, ...]:
        ...     return await client.search(query, max_results=5, cutoff=None)
        >>> anyio.run(found, "rates")
        ()
    """

    name: ClassVar[str] = "replay"

    def __init__(self, recorded: Mapping[str, Recorded]) -> None:
        self._recorded = dict(recorded)

    @property
    def identity(self) -> dict[str, JsonValue]:
        """Number and digest of the recorded calls, durations aside."""
        said = {
            key: [result.failure, [hit.model_dump(mode="json") for hit in result.hits]]
            for key, result in self._recorded.items()
        }
        return {"calls": len(said), "sha256": tagged_hash("recorded search", said)}

    async def search(self, query: str, *, max_results: int, cutoff: datetime | None) -> tuple[Hit, ...]:
        """Return what the same search found then.

        Raises:
            SearchError: It failed then, or was not made (``not_found``).
        """
        return self._again("search", {"query": query, "max_results": max_results, "cutoff": _spelled(cutoff)})

    async def read(self, url: str, *, cutoff: datetime | None) -> Hit:
        """Return what the same reading gave then.

        Raises:
            SearchError: It failed then, or was not made (``not_found``).
        """
        for hit in self._again("read", {"url": url, "cutoff": _spelled(cutoff)}):
            return hit
        raise SearchError("the record holds no page", hint="Verify the record.", failure="not_found")

    def _again(self, tool: str, arguments: dict[str, JsonValue]) -> tuple[Hit, ...]:
        result = self._recorded.get(call_key(tool, arguments))
        if result is None:
            raise SearchError(
                f"the recorded run made no such {tool}",
                hint="Replay with the question, cutoff and limits of the record.",
                failure="not_found",
            )
        if result.failure is not None:
            raise SearchError(
                f"this {tool} failed in the recorded run ({result.failure})",
                hint="It fails in its replay too; run it anew for another result.",
                failure=result.failure,
            )
        return result.hits


def _spelled(cutoff: datetime | None) -> str | None:
    return None if cutoff is None else cutoff.isoformat()
