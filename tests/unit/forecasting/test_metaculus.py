"""The Metaculus client over real HTTP, against a server that is stricter than the real one."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import ValidationError

from consilience.errors import ConfigError, ConsilienceError, DataError, SearchError
from consilience.forecasting.feeds.base import Skipped
from consilience.forecasting.feeds.metaculus import MetaculusClient, MetaculusForecast, submit_forecasts

TOKEN = "canary-0123456789abcdef"  # noqa: S105 - of no account
LIST_PARAMETERS = {"statuses", "order_by", "with_cp", "limit", "offset", "tournaments"}


def binary(number: int, **fields: Any) -> dict[str, Any]:
    asked = {
        "id": number,
        "title": f"Will {number} happen?",
        "type": "binary",
        "description": "Background.",
        "resolution_criteria": "Criteria.",
        "fine_print": "Fine print.",
        "open_time": "2025-01-01T00:00:00Z",
        "scheduled_close_time": "2025-11-30T23:00:00Z",
        "scheduled_resolve_time": "2025-12-31T00:00:00Z",
        "resolution": None,
        "scaling": {"range_min": None, "range_max": None, "zero_point": None},
        "aggregations": {"recency_weighted": {"latest": {"start_time": 1_738_368_000.0, "centers": [0.62]}}},
    }
    return {"id": 1_000 + number, "title": "A post", "question": asked | fields}


class Server(ThreadingHTTPServer):
    """Serves posts page by page, takes forecasts, and refuses what the API does not know."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posts: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.submitted: list[Any] = []
        self.scripted: list[tuple[int, dict[str, str], bytes]] = []
        self.next_url: str | None = "https://elsewhere.example/api/posts/"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        del format, args

    def reply(self, status: int, value: Any = None, *, headers: dict[str, str] | None = None, raw: bytes = b"") -> None:
        body = raw or json.dumps(value).encode()
        self.send_response(status)
        for name, said in (headers or {}).items():
            self.send_header(name, said)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refused(self) -> bool:
        self.server.asked.append(self.path)
        if self.headers.get("Authorization") != f"Token {TOKEN}" or TOKEN in self.path:
            self.reply(401, {"detail": f"Invalid token {self.headers.get('Authorization')}"})
            return True
        if self.server.scripted:
            status, headers, raw = self.server.scripted.pop(0)
            self.reply(status, headers=headers, raw=raw)
            return True
        return False

    def do_GET(self) -> None:
        if self.refused():
            return
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
        if parts.path == "/api/posts/":
            if not set(query) <= LIST_PARAMETERS:
                self.reply(400, {"detail": "unknown parameter"})
                return
            start, size = int(query["offset"][0]), int(query["limit"][0])
            page = self.server.posts[start : start + size]
            more = start + size < len(self.server.posts)
            self.reply(200, {"next": self.server.next_url if more else None, "previous": None, "results": page})
            return
        for post in self.server.posts:
            if parts.path == f"/api/posts/{post['id']}/":
                self.reply(200, post)
                return
        self.reply(404, {"detail": "Not found."})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        forms = ("probability_yes", "probability_yes_per_category", "continuous_cdf")
        sound = self.path == "/api/questions/forecast/" and isinstance(body, list)
        for entry in body if sound else ():
            sound &= set(entry) <= {"question", "source", *forms} and sum(form in entry for form in forms) == 1
        if sound:
            self.server.submitted.append(body)
            self.reply(201, {})
        else:
            self.reply(400, {"detail": "unsound"})


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def client(server: Server, token: str = TOKEN, **settings: Any) -> MetaculusClient:
    return MetaculusClient(token=token, base_url=server.url, **settings)


@contextmanager
def refusal(kind: type[ConsilienceError], said: str | None = None) -> Iterator[pytest.ExceptionInfo[ConsilienceError]]:
    """Expect an error in which no key stands, also not in what it was raised from."""
    with pytest.raises(kind, match=said) as caught:
        yield caught
    error: BaseException | None = caught.value
    while error is not None:
        assert TOKEN not in f"{error!s} {error!r}"
        error = error.__cause__


# Reading


def test_a_post_becomes_a_question(server: Server) -> None:
    server.posts = [binary(1)]
    (found,) = client(server).post(1_001)
    assert (found.id, found.text, found.url) == ("metaculus-1", "Will 1 happen?", f"{server.url}/questions/1001")
    assert (found.description, found.resolution_criteria) == ("Background.", "Criteria.\n\nFine print.")
    assert (found.open_date, found.close_date) == (date(2025, 1, 1), date(2025, 11, 30))
    assert found.resolution_date == date(2025, 12, 31)
    assert found.market is not None
    assert (found.market.price, found.market.as_of) == (0.62, datetime(2025, 2, 1, tzinfo=UTC))
    assert found.resolution is None
    assert found.cutoff is None


def test_all_pages_are_read_and_the_servers_link_is_not_followed(server: Server) -> None:
    server.posts = [binary(number) for number in range(1, 231)]
    found = client(server).questions(tournament="minibench", statuses=("open", "resolved"))
    assert [question.id for question in found] == [f"metaculus-{number}" for number in range(1, 231)]
    pages = [parse_qs(urlsplit(path).query) for path in server.asked]
    assert [page["offset"] for page in pages] == [["0"], ["100"], ["200"]]
    assert pages[0]["statuses"] == ["open", "resolved"]
    assert pages[0]["tournaments"] == ["minibench"]


def test_a_limit_asks_for_no_more(server: Server) -> None:
    server.posts = [binary(number) for number in range(1, 231)]
    assert len(client(server).questions(limit=130)) == 130
    assert [parse_qs(urlsplit(path).query)["limit"] for path in server.asked] == [["100"], ["30"]]


def test_a_list_without_questions_is_empty(server: Server) -> None:
    assert client(server).questions() == []


@pytest.mark.parametrize(
    ("said", "outcome"), [("yes", 1.0), ("no", 0.0), ("annulled", None), ("ambiguous", None), ("0.49", None)]
)
def test_a_resolved_question_has_no_crowd(server: Server, said: str, outcome: float | None) -> None:
    server.posts = [binary(1, resolution=said, actual_resolve_time="2025-06-01T10:00:00Z")]
    (found,) = client(server).questions()
    assert found.market is None
    assert found.resolution is not None
    assert (found.resolution.outcome, found.resolution.known_on) == (outcome, date(2025, 6, 1))
    assert found.resolution_date == date(2025, 12, 31)


def test_ranges_options_and_groups(server: Server) -> None:
    numeric = {
        "type": "numeric",
        "unit": "people",
        "open_lower_bound": False,
        "open_upper_bound": True,
        "scaling": {"range_min": 200.0, "range_max": 1e8, "zero_point": 0.0},
        "resolution": "above_upper_bound",
    }
    dated = {
        "type": "date",
        "open_lower_bound": True,
        "open_upper_bound": True,
        "scaling": {"range_min": 86_400, "range_max": 864_000, "zero_point": None},
        "resolution": "1970-01-03T00:00:00Z",
    }
    discrete: dict[str, Any] = {
        "type": "discrete",
        "scaling": {"range_min": -0.5, "range_max": 5.5, "inbound_outcome_count": 6},
    }
    discrete |= {"open_lower_bound": False, "open_upper_bound": False, "resolution": "3"}
    choice = {"type": "multiple_choice", "options": ["Red", "Blue"], "resolution": "Blue"}
    group = binary(5)
    inner = [binary(number, description="", title=f"Part {number}")["question"] for number in (6, 7)]
    group["group_of_questions"] = {"description": "Shared.", "questions": inner}
    group["question"] = None
    server.posts = [binary(1, **numeric), binary(2, **dated), binary(3, **discrete), binary(4, **choice), group]
    above, when, how_many, which, first, second = client(server).questions()
    assert (above.lower, above.open_lower, above.open_upper, above.log_scale) == (200.0, False, True, True)
    assert above.resolution is not None
    assert (above.resolution.outcome, above.resolution.said) == (None, "above_upper_bound")
    assert when.resolution is not None
    assert when.resolution.outcome == 172_800.0
    assert how_many.inbound_outcomes == 6
    assert which.resolution is not None
    assert which.resolution.outcome == "B"
    assert [first.text, second.text, second.description] == ["Part 6", "Part 7", "Shared."]
    assert first.url == second.url


def test_what_is_no_question_is_skipped_with_a_reason_or_refused(server: Server) -> None:
    server.posts = [{"id": 1, "question": None}, {"id": 2, "conditional": {}}, binary(3, type="ranked"), binary(4)]
    skipped: list[Skipped] = []
    assert [found.id for found in client(server).questions(skipped=skipped)] == ["metaculus-4"]
    assert [entry.where for entry in skipped] == [
        "Metaculus post 1",
        "Metaculus post 2",
        "Metaculus post 1003, question 3",
    ]
    with refusal(DataError, "post 1: no question"):
        client(server).questions()


@pytest.mark.parametrize(
    ("post", "said"),
    [
        (binary(1, title=""), "question 1: text"),
        (binary(1, open_time="soon"), "question 1, open_time"),
        (binary(1, title=7), "question 1, title"),
        (binary(1, id="x"), "question x, id"),
        ({"id": "x"}, "id: 'x'"),
        (binary(1, type="numeric", scaling={"range_min": 2.0, "range_max": 1.0}), "lower must be below"),
        (binary(1, type="multiple_choice", options=["Only"]), "at least two"),
    ],
)
def test_a_post_that_breaks_the_promise_is_an_error_that_names_the_field(
    server: Server, post: dict[str, Any], said: str
) -> None:
    server.posts = [post]
    with refusal(DataError, said):
        client(server).questions()


def test_a_question_that_moved_between_pages_and_changed_is_an_error(server: Server) -> None:
    server.posts = [binary(1)] * 101
    assert len(client(server).questions()) == 1
    server.posts = [binary(1)] * 100 + [binary(1, title="Other?")]
    with refusal(DataError, "came twice"):
        client(server).questions()


def test_a_page_that_is_empty_but_not_the_last_is_an_error(server: Server) -> None:
    server.scripted = [(200, {}, b'{"next": "x", "results": []}')]
    with refusal(DataError, "empty page"):
        client(server).questions()


# Failures


@pytest.mark.parametrize(
    ("status", "headers", "body", "failure", "hint"),
    [
        (401, {}, b"no", "refused", "METACULUS_TOKEN"),
        (403, {}, b"no", "refused", "METACULUS_TOKEN"),
        (404, {}, b"no", "not_found", "id"),
        (429, {"Retry-After": "17"}, b"slow", "rate_limited", "17 s"),
        (429, {"Retry-After": "1" * 5_000}, b"slow", "rate_limited", "Wait"),
        (500, {}, b"oops", "unreachable", "later"),
        (302, {"Location": "https://elsewhere.example/"}, b"there", "refused", "elsewhere"),
        (400, {}, f"your token {TOKEN}\x1b[31m is odd\n".encode(), "refused", "Read"),
        (200, {}, b"<html>", "unreadable", "again"),
        (200, {}, b'{"next": null, "results": [NaN]}', "unreadable", "again"),
    ],
)
def test_failures_have_their_class_and_tell_no_key(
    server: Server, status: int, headers: dict[str, str], body: bytes, failure: str, hint: str
) -> None:
    server.scripted = [(status, headers, body)]
    with refusal(SearchError) as caught:
        client(server).questions()
    error = caught.value
    assert isinstance(error, SearchError)
    assert (error.failure, len(server.asked)) == (failure, 1)
    assert hint in error.hint
    assert "\x1b" not in str(error)


@pytest.mark.parametrize("body", [b'{"results": []}', b"[]", b'{"next": null, "results": {}}', b'{"next": null}'])
def test_an_answer_of_another_shape_is_an_error(server: Server, body: bytes) -> None:
    server.scripted = [(200, {}, body)]
    with refusal(DataError):
        client(server).questions()


def test_a_wrong_key_is_refused_and_not_repeated(server: Server) -> None:
    wrong = "wrong-canary-42"
    with pytest.raises(SearchError, match="401") as caught:
        client(server, token=wrong).questions()
    assert wrong not in str(caught.value)
    assert "[key]" in str(caught.value)


def test_nobody_there() -> None:
    with Server() as closed:
        url = closed.url
    with refusal(SearchError) as caught:
        MetaculusClient(token=TOKEN, base_url=url).post(1)
    assert isinstance(caught.value, SearchError)
    assert caught.value.failure == "unreachable"


def test_a_server_that_says_nothing_times_out() -> None:
    with Server() as silent, refusal(SearchError, "no answer within") as caught:  # accepts, and never serves
        client(silent, timeout_s=0.05).post(1)
    assert isinstance(caught.value, SearchError)
    assert caught.value.failure == "timeout"


def test_the_key_stands_in_no_log_and_no_representation(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.posts = [binary(1)]
    with caplog.at_level(logging.DEBUG):
        reader = client(server)
        reader.questions()
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(reader)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "clé"])
def test_a_key_that_is_none_is_refused_at_once_and_not_repeated(token: str) -> None:
    with pytest.raises(ConfigError, match="key") as caught:
        MetaculusClient(token=token)
    assert "METACULUS_TOKEN" in caught.value.hint
    assert not token or token not in str(caught.value)


def test_a_key_does_not_travel_unencrypted() -> None:
    with refusal(ConfigError, "unencrypted"):
        MetaculusClient(token=TOKEN, base_url="http://metaculus.example")


def test_without_the_extra_there_is_advice(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with refusal(ConfigError, "not installed") as caught:
        client(server).questions()
    assert "consilience[live]" in caught.value.hint


# Submitting


def test_forecasts_are_submitted_as_they_are_in_one_request(server: Server) -> None:
    submit_forecasts(
        client(server),
        [
            MetaculusForecast(question=1, probability_yes=0.25),
            MetaculusForecast(question=2, probability_yes_per_category={"Red": 0.5, "Blue": 0.5}),
            MetaculusForecast(question=3, continuous_cdf=(0.0, 0.5, 1.0)),
        ],
    )
    assert server.submitted == [
        [
            {"question": 1, "source": "api", "probability_yes": 0.25},
            {"question": 2, "source": "api", "probability_yes_per_category": {"Red": 0.5, "Blue": 0.5}},
            {"question": 3, "source": "api", "continuous_cdf": [0.0, 0.5, 1.0]},
        ]
    ]


def test_reading_submits_nothing(server: Server) -> None:
    server.posts = [binary(1)]
    client(server).questions()
    client(server).post(1_001)
    assert server.submitted == []


def test_a_refused_submission_says_why_and_is_not_repeated(server: Server) -> None:
    server.scripted = [(400, {}, b'{"detail": "cdf must be increasing"}')]
    with refusal(SearchError, "cdf must be increasing"):
        submit_forecasts(client(server), [MetaculusForecast(question=1, probability_yes=0.25)])
    server.scripted = [(502, {}, b"gone")]
    with refusal(SearchError, "may have taken it"):
        submit_forecasts(client(server), [MetaculusForecast(question=1, probability_yes=0.25)])
    assert len(server.asked) == 2


def test_one_forecast_per_question(server: Server) -> None:
    twice = [MetaculusForecast(question=1, probability_yes=0.25)] * 2
    for forecasts in ([], twice):
        with refusal(DataError, "forecasts of"):
            submit_forecasts(client(server), forecasts)
    assert server.asked == []


@pytest.mark.parametrize("fields", [{}, {"probability_yes": 0.5, "continuous_cdf": (0.1,)}, {"probability_yes": 1.5}])
def test_a_forecast_has_exactly_one_form(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MetaculusForecast(question=1, **fields)
