"""A search that invents its results, for demonstrations and tests without documents. It says so in every one.

Everything follows from the seed, the query and the cutoff: the same search gives the same bytes in every process, and
a page can be read again from its address alone. Nothing in it bears on any question.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import ClassVar, Final
from urllib.parse import quote, unquote

from pydantic import JsonValue

from consilience.core.canonical import tagged_hash
from consilience.errors import PlanError, SearchError
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.terms import terms

HOST: Final = "simulated.example"
"""A host that belongs to nobody (RFC 2606)."""
OLDEST_DAYS: Final = 365
_TERMS_IN_ADDRESS = 8
_PATH = re.compile(rf"https://{re.escape(HOST)}/(?P<about>[^/?#]{{1,800}})/(?P<key>[0-9a-f]{{16}})")


class SimulatedSearch:
    """Invents as many hits as are asked for, each marked as simulated (a `SearchClient`).

    Args:
        seed: Other seeds invent other hits.
        retrieved_at: Told as the moment of retrieval; without a cutoff the hits are dated before it.

    Raises:
        PlanError: ``retrieved_at`` has no time zone.

    Example:
        >>> import anyio
        >>> from datetime import UTC
        >>> client = SimulatedSearch(seed=7, retrieved_at=datetime(2026, 1, 1, tzinfo=UTC))
        >>> async def found() -> tuple[Hit, ...]:
        ...     return await client.search("Rates?", max_results=2, cutoff=datetime(2025, 2, 20, tzinfo=UTC))
        >>> first, second = anyio.run(found)
        >>> first.title, first.published < datetime(2025, 2, 20, tzinfo=UTC), second.url == first.url
        ('Simulated document about "rates"', True, False)
    """

    name: ClassVar[str] = "simulated"

    def __init__(self, *, seed: int, retrieved_at: datetime) -> None:
        if retrieved_at.utcoffset() is None:
            raise PlanError("the moment of retrieval has no time zone", hint="Give it as an instant, such as in UTC.")
        self._seed = seed
        self._retrieved_at = retrieved_at

    @property
    def identity(self) -> dict[str, JsonValue]:
        """The seed."""
        return {"seed": self._seed}

    async def search(self, query: str, *, max_results: int, cutoff: datetime | None) -> tuple[Hit, ...]:
        """Return ``max_results`` invented hits, dated within a year before the cutoff; none without a term."""
        words = terms(query)
        about = quote("-".join(words[:_TERMS_IN_ADDRESS])[:80], safe="-")
        keys = [tagged_hash("simulated search", [self._seed, words, rank])[:16] for rank in range(max_results)]
        scores = [1.0 / (rank + 1) for rank in range(max_results)]
        return tuple(self._hit(about, key, cutoff, score) for key, score in zip(keys, scores, strict=True) if about)

    async def read(self, url: str, *, cutoff: datetime | None) -> Hit:
        """Return an invented page again.

        Raises:
            SearchError: It is none of this client's addresses (``not_found``).
        """
        found = _PATH.fullmatch(url)
        if found is None:
            raise SearchError(
                "no simulated document has this address", hint="Read what a search returned.", failure="not_found"
            )
        return self._hit(found["about"], found["key"], cutoff, None)

    def _hit(self, about: str, key: str, cutoff: datetime | None, score: float | None) -> Hit:
        drawn = int(tagged_hash("simulated document", [self._seed, about, key])[:12], 16)
        minutes = 1 + drawn % (OLDEST_DAYS * 24 * 60)
        said = unquote(about).replace("-", " ")
        return Hit(
            url=f"https://{HOST}/{about}/{key}",
            title=f'Simulated document about "{said}"',
            text=f'This is a simulated document, invented by a program for the query "{said}" (draw {drawn:015d}). It '
            "reports nothing about the world and supports no answer.",
            published=(cutoff or self._retrieved_at) - timedelta(minutes=minutes),
            date_source="metadata",
            retrieved_at=self._retrieved_at,
            score=score,
        )
