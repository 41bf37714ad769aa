"""The corpus as a search client: as of a cutoff, byte for byte."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import anyio
import pytest

from consilience.errors import PlanError, SearchError
from consilience.forecasting.search.corpus import Corpus, Periods
from consilience.forecasting.search.corpus_files import CorpusDocument
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.executor import Executor

DAY = timedelta(days=1)
CUTOFF = datetime(2025, 2, 20, tzinfo=UTC)
SEEN = datetime(2026, 1, 1, tzinfo=UTC)


def document(name: str, text: str, published: datetime | None, *, title: str = "News") -> CorpusDocument:
    source = "none" if published is None else "metadata"
    return CorpusDocument(f"https://a.example/{name}", title, text, published, source, None)  # type: ignore[arg-type]


def corpus(*documents: CorpusDocument, passage_characters: int = 1_200) -> Corpus:
    return Corpus(documents, retrieved_at=SEEN, passage_characters=passage_characters)


def search(client: Corpus, query: str, cutoff: datetime | None = CUTOFF, max_results: int = 5) -> tuple[Hit, ...]:
    async def ask() -> tuple[Hit, ...]:
        return await client.search(query, max_results=max_results, cutoff=cutoff)

    return anyio.run(ask)


def read(client: Corpus, url: str, cutoff: datetime | None = CUTOFF) -> Hit:
    async def ask() -> Hit:
        return await client.read(url, cutoff=cutoff)

    return anyio.run(ask)


def names(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.url.rpartition("/")[2] for hit in hits]


def test_the_cutoff_itself_is_past_it() -> None:
    found = corpus(
        document("before", "herring quota", CUTOFF - timedelta(microseconds=1)),
        document("at", "herring quota", CUTOFF),
        document("after", "herring quota", CUTOFF + DAY),
    )
    assert names(search(found, "herring")) == ["before"]
    assert names(search(found, "herring", CUTOFF.astimezone(timezone(timedelta(hours=-5))))) == ["before"]
    assert names(search(found, "herring", None)) == ["after", "at", "before"]
    assert found.periods(CUTOFF) == Periods(before=1, undated=0, after=2)
    assert found.periods(None) == Periods(before=3, undated=0, after=0)


def test_a_hit_has_everything_of_its_document() -> None:
    told = document("a", "The herring quota was cut.", CUTOFF - DAY)._replace(retrieved_at=CUTOFF + DAY)
    (hit,) = search(corpus(told), "HERRING")
    assert (hit.url, hit.title, hit.text) == (told.url, "News", told.text)
    assert (hit.published, hit.date_source, hit.retrieved_at) == (CUTOFF - DAY, "metadata", SEEN)
    assert hit.score is not None
    assert hit.score > 0


def test_titles_are_searched() -> None:
    assert names(search(corpus(document("a", "x", CUTOFF - DAY, title="Herring")), "herring")) == ["a"]


def test_twice_as_many_dated_ones_as_asked_for_and_then_undated_ones() -> None:
    dated = [document(f"d{number}", "herring", CUTOFF - number * DAY) for number in range(1, 9)]
    undated = [document(f"u{number}", "herring herring", None) for number in range(5)]
    found = corpus(*undated, *dated)
    assert names(search(found, "herring", max_results=2)) == ["d1", "d2", "d3", "d4", "u0", "u1", "u2", "u3"]
    assert names(search(found, "herring", None, max_results=2)) == ["u0", "u1", "u2", "u3"]
    assert search(found, "herring", max_results=0) == ()


def test_a_long_text_is_shown_in_part_and_read_whole() -> None:
    text = "start " * 300 + "the herring quota " + "end " * 300
    found = corpus(document("long", text, CUTOFF - DAY), passage_characters=100)
    (hit,) = search(found, "herring")
    assert "herring quota" in hit.text
    assert len(hit.text) <= 102
    assert hit.text.strip("…") in text
    whole = read(found, hit.url)
    assert (whole.text, whole.score, whole.published) == (text, None, hit.published)


def test_reading_what_is_past_the_cutoff_fails_like_reading_what_never_was() -> None:
    late = document("late", "herring", CUTOFF)
    said = []
    for client in (corpus(late), corpus(document("other", "x", None))):
        with pytest.raises(SearchError) as caught:
            read(client, late.url)
        assert caught.value.failure == "not_found"
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert read(corpus(late), late.url, CUTOFF + DAY).text == "herring"
    assert read(corpus(late), late.url, None).text == "herring"


def test_reading_takes_any_spelling_and_the_latest_capture_before_the_cutoff() -> None:
    old = document("page", "old", CUTOFF - 2 * DAY)
    new = document("page?utm_source=x", "new", CUTOFF - DAY)
    late = document("page", "late", CUTOFF + DAY)
    unknown = document("page", "undated", None)
    found = corpus(late, old, new, unknown)
    assert read(found, "HTTPS://A.example/page#top").text == "new"
    assert read(found, "https://a.example/page", CUTOFF - DAY).text == "old"
    assert read(found, "https://a.example/page", CUTOFF - 9 * DAY).text == "undated"
    assert read(found, "https://a.example/page", None).text == "late"


def test_an_address_that_is_no_page_can_still_be_read_as_it_is_written() -> None:
    odd = document("x", "herring", CUTOFF - DAY)._replace(url="urn:note:7")
    assert read(corpus(odd), "urn:note:7").text == "herring"


def test_repeats_are_kept_once_and_counted() -> None:
    one = document("a", "herring", CUTOFF - DAY)
    same = one._replace(published=(CUTOFF - DAY).astimezone(timezone(timedelta(hours=2))))
    found = corpus(one, same, one._replace(retrieved_at=SEEN))
    assert found.repeats == 2
    assert found.identity == corpus(one).identity
    assert names(search(found, "herring")) == ["a"]


def test_the_order_of_the_files_decides_nothing() -> None:
    documents = [document(f"{number}", "herring " * (number % 3 + 1), CUTOFF - DAY) for number in range(9)]
    forward, backward = corpus(*documents), corpus(*reversed(documents))
    assert forward.identity == backward.identity
    assert search(forward, "herring") == search(backward, "herring")


def test_the_identity_holds_every_document_and_parameter() -> None:
    one = document("a", "herring", CUTOFF - DAY)
    seen = {json.dumps(corpus(one).identity)}
    for changed in (
        one._replace(url="https://a.example/b"),
        one._replace(title="Other"),
        one._replace(text="herrings"),
        one._replace(published=CUTOFF),
        one._replace(published=None, date_source="none"),
        one._replace(date_source="url"),
    ):
        seen.add(json.dumps(corpus(changed).identity))
    seen.add(json.dumps(corpus(one, one._replace(url="https://a.example/c", published=CUTOFF + DAY)).identity))
    seen.add(json.dumps(corpus(one, passage_characters=9).identity))
    seen.add(json.dumps(Corpus([one], retrieved_at=SEEN, k1=1.0).identity))
    seen.add(json.dumps(Corpus([one], retrieved_at=SEEN, b=0.5).identity))
    assert len(seen) == 11
    assert Corpus([one], retrieved_at=CUTOFF).identity == corpus(one).identity


def test_instants_without_a_zone_are_refused() -> None:
    naive = datetime(2025, 2, 20)  # noqa: DTZ001 - what is refused
    with pytest.raises(PlanError, match="retrieval has no time zone"):
        Corpus([], retrieved_at=naive)
    with pytest.raises(PlanError, match="cutoff has no time zone"):
        search(corpus(), "x", naive)
    with pytest.raises(PlanError, match="cutoff has no time zone"):
        read(corpus(), "https://a.example/a", naive)
    with pytest.raises(PlanError, match="no time zone"):
        corpus(document("a", "x", naive))
    with pytest.raises(PlanError, match="passage"):
        corpus(passage_characters=1)


def test_a_file_is_opened_with_what_was_left_out(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    row = {"url": "https://a.example/a", "title": "x", "text": "herring", "published": "02/03/2025", "author": "y"}
    path.write_text(json.dumps(row), encoding="utf-8")
    opened = Corpus.open(path, retrieved_at=SEEN)
    assert opened.loaded is not None
    assert (opened.loaded.unreadable_dates, opened.loaded.ignored_fields) == (1, {"author": 1})
    (hit,) = search(opened, "herring")
    assert (hit.published, hit.date_source) == (None, "none")


@dataclass(frozen=True)
class Asked:
    url: str | None = None
    resolution_criteria: str = ""
    blocked_domains: tuple[str, ...] = ()


def test_the_executor_takes_it() -> None:
    found = corpus(
        document("a", "herring quota " * 200, CUTOFF - DAY),
        document("b", "herring quota", None),
        document("c", "herring quota", CUTOFF),
    )
    executor = Executor(client=found, question=Asked(), cutoff=CUTOFF)

    async def use() -> tuple[str, str, str]:
        searched = await executor.search("herring quota", step=1)
        assert (searched.before, searched.undated, searched.after) == (1, 1, 0)
        assert searched.kept == ("D01",)
        done = await executor.read("D01", step=2)
        return searched.status, done.status, executor.documents["D01"].text

    assert anyio.run(use) == ("success", "success", "herring quota " * 200)
