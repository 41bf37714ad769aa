"""The results that the agents of one question share: who asks what another asked makes no second call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio
from pydantic import JsonValue

from consilience.forecasting.search.records import Fetched


def asked(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return the key of a call: its tool and everything that decides its result.

    Example:
        >>> asked("search", {"query": "rates", "cutoff": None})
        "search [('cutoff', None), ('query', 'rates')]"
    """
    return f"{tool} {sorted(arguments.items())}"


class _Flight:
    """A call under way."""

    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.fetched: Fetched | None = None


class SearchCache:
    """Results by what was asked, one cache per question.

    Two that ask the same at once make one call (single flight). A failure is told to those who waited for it and is
    not kept, so that a later try is a new call; a call that was cancelled is made anew by one of those who waited.

    Attributes:
        calls: Calls that were made.
        shared: Requests that needed none: the overlap of the agents' research.

    Example:
        >>> async def ask_twice() -> tuple[int, int, bool]:
        ...     cache = SearchCache()
        ...     async def work() -> Fetched:
        ...         return Fetched(status="success", duration_s=0.1)
        ...     await cache.fetch("rates", work)
        ...     second = await cache.fetch("rates", work)
        ...     return cache.calls, cache.shared, second.shared
        >>> anyio.run(ask_twice)
        (1, 1, True)
    """

    def __init__(self) -> None:
        self.calls = 0
        self.shared = 0
        self._kept: dict[str, Fetched] = {}
        self._flights: dict[str, _Flight] = {}

    def know(self, tool: str, arguments: Mapping[str, JsonValue], fetched: Fetched) -> None:
        """Take over a result that is on record, so that a resumed run does not ask for it again; no failure is kept."""
        if fetched.status == "success":
            self._kept.setdefault(asked(tool, arguments), fetched.model_copy(update={"shared": False}))

    async def fetch(self, key: str, work: Callable[[], Awaitable[Fetched]]) -> Fetched:
        """Return what is known under a key, or what the work gives.

        Args:
            key: What is asked, with everything that decides the result.
            work: Makes the call; it tells a failure in its result and raises nothing of its own.
        """
        while True:
            known = self._kept.get(key)
            flight = self._flights.get(key)
            if known is None and flight is None:
                return await self._fly(key, work)
            if known is None and flight is not None:
                await flight.landed.wait()
                known = flight.fetched
            if known is not None:
                self.shared += 1
                return known.model_copy(update={"shared": True})

    async def _fly(self, key: str, work: Callable[[], Awaitable[Fetched]]) -> Fetched:
        flight = self._flights[key] = _Flight()
        self.calls += 1
        try:
            flight.fetched = fetched = await work()
        finally:
            del self._flights[key]
            flight.landed.set()
        if fetched.status == "success":
            self._kept[key] = fetched
        return fetched
