"""Tavily over real HTTP, against a strict stand-in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from consilience.errors import ConfigError, SearchError
from consilience.fakes.search import FakeSearch, SearchFault, running_search
from consilience.forecasting.search.dates import written
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.tavily import TavilySearch

SEEN = datetime(2025, 6, 1, tzinfo=UTC)
CUTOFF = datetime(2025, 2, 20, 9, tzinfo=UTC)


@pytest.fixture
def fake() -> Iterator[FakeSearch]:
    with running_search() as running:
        running.results = [result(n) for n in range(30)]
        yield running


def result(n: int, **changes: Any) -> dict[str, Any]:
    return {
        "url": f"https://example.org/{n}",
        "title": f"Title {n}",
        "content": f"Content {n}",
        "published_date": "Wed, 19 Feb 2025 23:30:00 GMT",
        "score": 0.5,
    } | changes


def client(fake: FakeSearch, **settings: Any) -> TavilySearch:
    return TavilySearch(settings.pop("key", fake.key), base_url=fake.base_url, now=lambda: SEEN, **settings)


def search(fake: FakeSearch, *, cutoff: datetime | None = CUTOFF, limit: int = 5, **settings: Any) -> list[Hit]:
    made = client(fake, **settings)
    return list(anyio.run(lambda: made.search("rates", max_results=limit, cutoff=cutoff)))


def test_under_a_cutoff_twice_as_many_news_are_asked_for_by_end_date(fake: FakeSearch) -> None:
    hits = search(fake)
    assert len(hits) == 10
    (path, body), *_ = fake.bodies
    assert path == "/search"
    assert (body["query"], body["max_results"], body["topic"], body["end_date"]) == ("rates", 10, "news", "2025-02-21")
    assert hits[0] == Hit(
        url="https://example.org/0",
        title="Title 0",
        text="Content 0",
        published=datetime(2025, 2, 19, 23, 30, tzinfo=UTC),
        date_source="metadata",
        retrieved_at=SEEN,
        score=0.5,
    )


def test_an_open_question_asks_for_what_it_keeps_from_everywhere(fake: FakeSearch) -> None:
    assert len(search(fake, cutoff=None)) == 5
    assert fake.bodies[0][1]["topic"] == "general"
    assert "end_date" not in fake.bodies[0][1]
    search(fake, cutoff=None, topic="finance")
    assert fake.bodies[1][1]["topic"] == "finance"


def test_no_more_is_asked_for_than_the_interface_gives(fake: FakeSearch) -> None:
    assert len(search(fake, limit=15)) == 20
    assert fake.refused == []


def test_odd_results_are_read_for_what_they_say(fake: FakeSearch) -> None:
    fake.results = [
        result(0, published_date=None, score=None, title=None, content=None),
        result(1, published_date="02/03/2025", score=True),
        result(2, published_date="3 days ago", title="\ud800x"),
        {"url": "https://example.org/2025/02/18/x"},
    ]
    first, second, third, fourth = search(fake)
    assert (first.title, first.text, first.published, first.score) == ("", "", None, None)
    assert (second.published, second.date_source, second.score) == (None, "none", None)
    assert third.published is not None
    assert (written(third.published), third.title) == ("2025-05-29", "\ufffdx")
    assert fourth.date_source == "url"


def test_a_page_is_read_whole_and_may_tell_its_date(fake: FakeSearch) -> None:
    fake.pages = {"https://example.org/a": "Title\nUpdated: 21 February 2025\nwhole"}
    made = client(fake)
    hit = anyio.run(lambda: made.read("https://example.org/a", cutoff=CUTOFF))
    assert hit.text.endswith("whole")
    assert hit.published is not None
    assert (written(hit.published), hit.date_source) == ("2025-02-21", "text")
    with pytest.raises(SearchError) as caught:
        anyio.run(lambda: made.read("https://example.org/gone", cutoff=None))
    assert caught.value.failure == "not_found"


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        *((SearchFault("status", status), "refused") for status in (400, 401, 403, 418, 432, 433)),
        (SearchFault("status", 404), "not_found"),
        (SearchFault("status", 429), "rate_limited"),
        (SearchFault("status", 500), "unreachable"),
        (SearchFault("status", 504), "timeout"),
        (SearchFault("drop"), "unreachable"),
        (SearchFault("broken_body"), "unreadable"),
        (SearchFault("no_object"), "unreadable"),
        (SearchFault("redirect", 307, "http://192.0.2.1/steal"), "refused"),
    ],
)
def test_a_failure_has_its_class_and_never_tells_the_key(fake: FakeSearch, fault: SearchFault, failure: str) -> None:
    fake.faults = [fault]
    with pytest.raises(SearchError) as caught:
        search(fake)
    assert caught.value.failure == failure
    assert fake.key not in str(caught.value)
    assert len(search(fake)) == 10


def test_a_server_that_does_not_answer_times_out(fake: FakeSearch) -> None:
    fake.faults = [SearchFault("hang")]
    with pytest.raises(SearchError) as caught:
        search(fake, timeout_s=0.1)
    assert caught.value.failure == "timeout"


def test_nobody_there_is_unreachable() -> None:
    with running_search() as gone:
        made = client(gone)
    with pytest.raises(SearchError) as caught:
        anyio.run(lambda: made.search("rates", max_results=5, cutoff=None))
    assert caught.value.failure == "unreachable"


@pytest.mark.parametrize("results", [None, "x", [1], [{"title": "no address"}]])
def test_a_reply_without_results_cannot_be_read(fake: FakeSearch, results: Any) -> None:
    fake.results = results if isinstance(results, list) else []
    if not isinstance(results, list):
        fake.reply = lambda *_: (200, {"results": results})  # type: ignore[method-assign]
    with pytest.raises(SearchError, match="cannot be read"):
        search(fake)


def test_the_key_is_in_the_header_and_nowhere_else(fake: FakeSearch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = client(fake)
    anyio.run(lambda: made.search("rates", max_results=5, cutoff=None))
    assert fake.refused == []
    assert fake.key not in caplog.text + repr(made) + str(made.identity)
    with pytest.raises(SearchError) as caught:
        search(fake, key="tvly-another-key")
    assert caught.value.failure == "refused"


@pytest.mark.parametrize("key", ["", "with space", "line\nend", "ключ"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="TAVILY_API_KEY"):
        TavilySearch(key)


@pytest.mark.parametrize(
    "url", ["http://api.tavily.com", "https://u:p@example.org", "ftp://x", "", "https://example.org/?k=1"]
)
def test_a_base_url_that_would_show_the_key_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="https address"):
        TavilySearch("key", base_url=url)
