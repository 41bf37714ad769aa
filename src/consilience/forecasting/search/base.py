"""What a search client is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue

from consilience.forecasting.search.document import Hit


class SearchClient(Protocol):
    """Finds documents. It filters nothing but what its source can filter: cutoff and policy are the executor's."""

    @property
    def name(self) -> str:
        """Registry name."""
        ...

    @property
    def identity(self) -> dict[str, JsonValue]:
        """What decides its results, for the frozen protocol: host and version, or the digest of a corpus; no key."""
        ...

    async def search(self, query: str, *, max_results: int, cutoff: datetime | None) -> Sequence[Hit]:
        """Return what was found, best first.

        Args:
            query: What to look for.
            max_results: How many the caller will keep; a client whose source cannot filter by date may return more.
            cutoff: The first inadmissible instant, for sources that can use it; None for an open question.

        Raises:
            SearchError: The search failed.
        """
        ...

    async def read(self, url: str, *, cutoff: datetime | None) -> Hit:
        """Return the whole document behind a result.

        Raises:
            SearchError: It could not be had.
        """
        ...
