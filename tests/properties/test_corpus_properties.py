"""What lies at a cutoff or past it, or has no date, changes no byte of what is said of the documents before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from unittest import mock

import anyio
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import SearchError
from consilience.forecasting.search import bm25
from consilience.forecasting.search.corpus import Corpus
from consilience.forecasting.search.corpus_files import CorpusDocument
from consilience.forecasting.search.document import Hit

CUTOFF = datetime(2025, 2, 20, tzinfo=UTC)
WORDS = ("herring", "quota", "rates", "the", "of", "bank", "Ærø", "金利", "2025")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
PAGES = st.integers(0, 5).map(lambda page: f"https://a.example/{page}")
MINUTES = st.integers(0, 3) | st.integers(0, 10**6)


@st.composite
def documents(draw: st.DrawFn, period: str) -> CorpusDocument:
    published = None
    if period == "before":
        published = CUTOFF - timedelta(microseconds=1) - timedelta(minutes=draw(MINUTES))
    elif period == "after":
        published = CUTOFF + timedelta(minutes=draw(MINUTES))
    title, text = draw(TEXTS), draw(TEXTS) or "empty"
    return CorpusDocument(draw(PAGES), title, text, published, "none" if published is None else "metadata", None)


EARLY, LATE, UNDATED = (st.lists(documents(period), max_size=12) for period in ("before", "after", "undated"))
QUERIES = st.lists(TEXTS | st.sampled_from(("late", "zzz")), min_size=1, max_size=3)


def answers(given_documents: Sequence[CorpusDocument], queries: Sequence[str], limit: int) -> list[str]:
    """Return every byte that searches and readings as of the cutoff give, failures included."""
    with mock.patch.object(bm25, "_WORTH_PRUNING", 0):
        corpus = Corpus(given_documents, retrieved_at=CUTOFF, passage_characters=20)

        async def ask() -> list[str]:
            said = []
            for query in queries:
                hits = await corpus.search(query, max_results=limit, cutoff=CUTOFF)
                said.append("\n".join(hit.model_dump_json() for hit in hits))
            for page in range(6):
                try:
                    said.append((await corpus.read(f"https://a.example/{page}", cutoff=CUTOFF)).model_dump_json())
                except SearchError as error:
                    said.append(str(error))
            return said

        return anyio.run(ask)


def dated(lines: str) -> list[Hit]:
    return [hit for hit in map(Hit.model_validate_json, lines.splitlines()) if hit.published is not None]


@given(early=EARLY, undated=UNDATED, late=LATE, queries=QUERIES, limit=st.integers(1, 4), data=st.data())
def test_later_documents_change_no_byte(
    early: list[CorpusDocument],
    undated: list[CorpusDocument],
    late: list[CorpusDocument],
    queries: list[str],
    limit: int,
    data: st.DataObject,
) -> None:
    known = [*early, *undated]
    mixed = data.draw(st.permutations([*known, *late]))
    assert answers(mixed, queries, limit) == answers(known, queries, limit)


@given(early=EARLY, undated=UNDATED, queries=QUERIES, limit=st.integers(1, 4))
def test_undated_documents_change_nothing_of_dated_ones_and_come_after_them(
    early: list[CorpusDocument], undated: list[CorpusDocument], queries: list[str], limit: int
) -> None:
    alone = answers(early, queries, limit)[: len(queries)]
    beside = answers([*early, *undated], queries, limit)[: len(queries)]
    for without, lines in zip(alone, beside, strict=True):
        assert dated(lines) == dated(without)
        periods = [Hit.model_validate_json(line).published is None for line in lines.splitlines()]
        assert periods == sorted(periods)


@given(early=EARLY, undated=UNDATED, late=LATE, queries=QUERIES, limit=st.integers(1, 4))
def test_hits_lie_before_the_cutoff_in_order_and_without_repeats(
    early: list[CorpusDocument],
    undated: list[CorpusDocument],
    late: list[CorpusDocument],
    queries: list[str],
    limit: int,
) -> None:
    for lines in answers([*early, *undated, *late], queries, limit)[: len(queries)]:
        hits = dated(lines)
        assert len(hits) <= 2 * limit
        assert all(hit.published is not None and hit.published < CUTOFF for hit in hits)
        keys = [(-(hit.score or 0.0), -hit.published.timestamp(), hit.url) for hit in hits if hit.published]
        assert keys == sorted(keys)
