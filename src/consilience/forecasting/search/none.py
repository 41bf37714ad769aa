"""No search at all: the closed book. The executor knows it by its name and answers ``disabled`` to both tools."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import JsonValue

from consilience.errors import SearchError
from consilience.forecasting.search.document import Hit


class NoSearch:
    """Finds nothing, ever, so that an agent forecasts from what it knows (a `SearchClient`).

    Example:
        >>> import anyio
        >>> async def found() -> tuple[Hit, ...]:
        ...     return await NoSearch().search("rates", max_results=5, cutoff=None)
        >>> anyio.run(found)
        ()
    """

    name: ClassVar[str] = "none"

    @property
    def identity(self) -> dict[str, JsonValue]:
        """Nothing decides its results: there are none."""
        return {}

    async def search(self, query: str, *, max_results: int, cutoff: datetime | None) -> tuple[Hit, ...]:
        """Return nothing."""
        del query, max_results, cutoff
        return ()

    async def read(self, url: str, *, cutoff: datetime | None) -> Hit:
        """Find no document.

        Raises:
            SearchError: Always (``not_found``).
        """
        del url, cutoff
        raise SearchError("this run searches nothing", hint="Choose a search client for it.", failure="not_found")
