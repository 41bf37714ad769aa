"""The embedded search: a corpus of dated documents on disk, searched as of any instant, offline.

How to: put documents into JSONL, Parquet or a folder of Markdown (`corpus_files` says the fields) and open it::

    corpus = Corpus.open(Path("documents.jsonl"), retrieved_at=started)
    hits = await corpus.search("herring quota", max_results=5, cutoff=cutoff)

**Point in time.** Under a cutoff only documents dated strictly before it are searched, and only they count in the
statistics of the index. Whatever is added with a date at the cutoff or later changes no byte of an answer: no hit, no
order, no score, no passage, no error. For the same reason a search does not tell how many documents it withheld;
`Corpus.periods` does, for a report and never for an agent.

**Undated documents** come after all dated ones, so that the executor counts and rejects or flags them. They never
change what is said of dated ones. Without a cutoff they are documents like all others.

**Repeats.** A document that is there twice in all it says is kept once and counted. Several captures of one address
that differ in date or text are several documents, each found as of its own date; when they were collected makes no
difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from pydantic import JsonValue

from consilience.core.canonical import canonical_json, sha256_hex
from consilience.errors import PlanError, SearchError
from consilience.forecasting.search.bm25 import K1, B, Bm25Index, Ranked
from consilience.forecasting.search.corpus_files import CorpusDocument, Loaded, read_documents
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.passages import passage
from consilience.forecasting.search.terms import TOKENIZER
from consilience.forecasting.search.urls import canonical_url

PASSAGE_CHARACTERS: Final = 1_200
SPARE: Final = 2
"""A search returns this many times what the caller will keep, for what policy, scan and duplicates take away."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Periods(NamedTuple):
    """How many documents of a corpus lie before a cutoff, have no date, or lie at the cutoff or after it."""

    before: int
    undated: int
    after: int


class Corpus:
    """Searches dated documents by BM25, as of a cutoff (a `SearchClient`).

    Args:
        documents: What can be searched.
        retrieved_at: When the corpus was opened, which is told as the moment of retrieval of every hit; when a document
            was collected matters for its own date alone. It decides no result; give one instant for a run and its
            replay.
        k1: BM25's saturation of a term's occurrences.
        b: BM25's weight of a text's length.
        passage_characters: Longest text of a search result; `read` gives the whole text.

    Attributes:
        loaded: What the reading of the files left out or could not date; None where no file was read.
        repeats: Documents that were there before in all they say, and are kept once.

    Raises:
        PlanError: A parameter is out of its range, or ``retrieved_at`` has no zone.

    Example:
        >>> import anyio
        >>> day = datetime(2025, 2, 19, tzinfo=UTC)
        >>> held = CorpusDocument("https://a.example/1", "Rates", "The bank held rates.", day, "metadata", None)
        >>> cut = held._replace(url="https://a.example/2", text="Rates were cut.", published=day + timedelta(days=1))
        >>> corpus = Corpus([held, cut], retrieved_at=day)
        >>> async def found(cutoff: datetime) -> list[str]:
        ...     return [hit.url for hit in await corpus.search("rates", max_results=5, cutoff=cutoff)]
        >>> anyio.run(found, day + timedelta(days=1))
        ['https://a.example/1']
        >>> anyio.run(found, day + timedelta(days=2))
        ['https://a.example/2', 'https://a.example/1']
    """

    name: ClassVar[str] = "corpus"

    def __init__(
        self,
        documents: Iterable[CorpusDocument],
        *,
        retrieved_at: datetime,
        k1: float = K1,
        b: float = B,
        passage_characters: int = PASSAGE_CHARACTERS,
    ) -> None:
        if passage_characters < 2:
            raise PlanError(f"a passage cannot have {passage_characters} characters", hint="Give at least 2.")
        _instant(retrieved_at, "the moment of retrieval")
        given = [_plain(one) for one in documents]
        unique = sorted(dict.fromkeys(given), key=_order)
        self.repeats = len(given) - len(unique)
        self.loaded: Loaded | None = None
        self._documents = unique
        self._retrieved_at = retrieved_at
        self._passage_characters = passage_characters
        instants = [_instant(one.published, one.url) for one in unique if one.published is not None]
        self._dated = len(instants)
        self._index = Bm25Index((f"{one.title}\n{one.text}" for one in unique), instants, k1=k1, b=b)
        self._places: dict[str, list[int]] | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        retrieved_at: datetime,
        k1: float = K1,
        b: float = B,
        passage_characters: int = PASSAGE_CHARACTERS,
    ) -> Corpus:
        """Return the corpus of a file or folder, with what was left out in ``loaded``.

        Raises:
            DataError: A file cannot be read or a document breaks its fields.
            PlanError: A parameter is out of its range.
        """
        loaded = read_documents(path)
        corpus = cls(loaded.documents, retrieved_at=retrieved_at, k1=k1, b=b, passage_characters=passage_characters)
        corpus.loaded = loaded
        return corpus

    @property
    def identity(self) -> dict[str, JsonValue]:
        """Digest and number of the documents, of any date, and the parameters."""
        return {
            "documents": len(self._documents),
            "sha256": self._sha256,
            "tokenizer": TOKENIZER,
            "k1": self._index.k1,
            "b": self._index.b,
            "passage_characters": self._passage_characters,
        }

    @cached_property
    def _sha256(self) -> str:
        """Hash everything the documents say, each by itself, in their order."""
        whole = hashlib.sha256(b"corpus\x00")
        for one in self._documents:
            published = None if one.published is None else one.published.isoformat()
            whole.update(bytes.fromhex(sha256_hex(canonical_json([*one[:3], published, one.date_source]))))
        return whole.hexdigest()

    def periods(self, cutoff: datetime | None) -> Periods:
        """Return how much of the corpus a cutoff withholds: for a report, never for an agent."""
        before = self._index.before(_cutoff(cutoff))
        return Periods(before, len(self._documents) - self._dated, self._dated - before)

    async def search(self, query: str, *, max_results: int, cutoff: datetime | None) -> tuple[Hit, ...]:
        """Return the best hits: up to twice ``max_results`` dated before the cutoff, then as many undated ones.

        Sorted by score, then the later date, then the url. Titles are searched like texts, and a document without any
        term of the query is none of them. Without a cutoff, up to twice ``max_results`` of all documents.

        Raises:
            PlanError: The cutoff has no time zone.
        """
        found = self._index.search(query, cutoff=_cutoff(cutoff), limit=SPARE * max_results)

        def hit(ranked: Ranked) -> Hit:
            text = passage(self._documents[ranked.place].text, found.weights, characters=self._passage_characters)
            return self._hit(ranked.place, text, score=ranked.score)

        return tuple(map(hit, (*found.best, *found.undated)))

    async def read(self, url: str, *, cutoff: datetime | None) -> Hit:
        """Return the whole document at an address, in any spelling of it.

        Of several captures it is the latest before the cutoff, else an undated one. What is dated at the cutoff or
        later is not found, in the words in which an address that never was is not found.

        Raises:
            SearchError: No such document (``not_found``).
            PlanError: The cutoff has no time zone.
        """
        before = self._index.before(_cutoff(cutoff))
        if self._places is None:
            self._places = {}
            for place, one in enumerate(self._documents):
                self._places.setdefault(canonical_url(one.url) or one.url, []).append(place)
        captures = self._places.get(canonical_url(url) or url, [])
        dated = [place for place in captures if place < before]
        undated = [place for place in captures if place >= self._dated]
        for place in (*dated[-1:], *undated[:1]):
            return self._hit(place, self._documents[place].text, score=None)
        raise SearchError(
            "the corpus has no such document", hint="Read what a search of the corpus returned.", failure="not_found"
        )

    def _hit(self, place: int, text: str, *, score: float | None) -> Hit:
        one = self._documents[place]
        return Hit(
            url=one.url,
            title=one.title,
            text=text,
            published=one.published,
            date_source=one.date_source,
            retrieved_at=self._retrieved_at,
            score=score,
        )


def _instant(moment: datetime, what: str) -> int:
    """Return a moment in microseconds, exactly."""
    if moment.utcoffset() is None:
        raise PlanError(f"{what} has no time zone", hint="Give it as an instant, such as in UTC.")
    return (moment - _EPOCH) // _MICROSECOND


def _cutoff(cutoff: datetime | None) -> int | None:
    return None if cutoff is None else _instant(cutoff, "the cutoff")


def _plain(one: CorpusDocument) -> CorpusDocument:
    """Return a document with its date in UTC, so that one instant has one spelling, and without its retrieval."""
    if one.published is not None and one.published.tzinfo is not UTC:
        _instant(one.published, one.url)
        one = one._replace(published=one.published.astimezone(UTC))
    return one if one.retrieved_at is None else one._replace(retrieved_at=None)


def _order(one: CorpusDocument) -> tuple[bool, datetime, str, str, str, str]:
    """Order by date, undated last, then by everything else a document says, so that the order is no accident."""
    return (
        one.published is None,
        one.published or _EPOCH,
        one.url,
        one.title,
        one.text,
        one.date_source,
    )
