"""Dates of publication: what each form means, and what is no date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from consilience.forecasting.search.dates import date_in_text, date_in_url, date_of, parse_date, written

SEEN = datetime(2025, 2, 22, 12, tzinfo=UTC)


def read(text: str) -> str | None:
    found = parse_date(text, retrieved_at=SEEN)
    return None if found is None else written(found)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("2025-02-19T23:30-05:00", "2025-02-20T04:30:00+00:00"),
        ("2025-02-19T23:30:15.250Z", "2025-02-19T23:30:15.250000+00:00"),
        ("2025-02-19 10:00:00+0530", "2025-02-19T04:30:00+00:00"),
        ("2025-02-19 10:00 UTC", "2025-02-19T10:00:00+00:00"),
        ("20250219T233000Z", "2025-02-19T23:30:00+00:00"),
        ("2025-02-19T10:00:00.123456789Z", "2025-02-19T10:00:00.123456+00:00"),
        ("Wed, 19 Feb 2025 23:30:00 -0500", "2025-02-20T04:30:00+00:00"),
        ("Wed, 19 Feb 2025 23:30:00 EST", "2025-02-20T04:30:00+00:00"),
        ("19 Feb 2025 23:30 GMT", "2025-02-19T23:30:00+00:00"),
        ("Wed, 19 Feb 2025 23:30:00 +0000 (UTC)", "2025-02-19T23:30:00+00:00"),
        ("2025-02-19", "2025-02-19"),
        ("20250219", "2025-02-19"),
        ("2025/2/9", "2025-02-09"),
        ("2025.02.19", "2025-02-19"),
        ("February 19, 2025", "2025-02-19"),
        ("Feb. 19, 2025", "2025-02-19"),
        ("Sept 3 2024", "2024-09-03"),
        ("19 February 2025", "2025-02-19"),
        ("19th of February, 2025", "2025-02-19"),
        ("19-Feb-2025", "2025-02-19"),
        ("Wednesday, February 19, 2025", "2025-02-19"),
        ("Feb 19, 2025 at 3:30 PM EST", "2025-02-19T20:30:00+00:00"),
        ("Feb 19, 2025, 12:05 a.m. UTC", "2025-02-19T00:05:00+00:00"),
        ("2025 Feb 19", "2025-02-19"),
        ("29 February 2024", "2024-02-29"),
        ("19/02/2025", "2025-02-19"),
        ("02/19/2025", "2025-02-19"),
        ("05/05/2025", "2025-05-05"),
    ],
)
def test_a_date_is_read_as_the_instant_it_means(text: str, means: str) -> None:
    assert read(text) == means


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "yesterday-ish", "soon", "2025", "February 2025", "2025-02", "Feb 19"),
        *("02/03/2025", "3.2.2025", "3-2-2025", "02/03/25", "19 Feb 25"),
        *("2025-02-30", "2025-13-01", "2025-00-10", "30 February 2025", "31/02/2025", "29 February 2023"),
        *("2025-02-19T25:00Z", "2025-02-19T10:61Z", "2025-02-19T10:00+15:00", "Feb 19, 2025 13:30 PM UTC"),
        *("Mon, 19 Feb 2025 10:00:00 GMT", "Wed, 19 Feb 2025 10:00:00 IST", "19 Febtober 2025"),
        *("in 3 days", "3 days", "-3 days ago", "3 fortnights ago", "99999 days ago", "9999 years ago"),
        *("0000-01-01", "9999-12-31T23:59-12:00", "２０２５-02-19", "1739990000", "2025-02-19" + " " * 5 + "x" * 90),
    ],
)
def test_what_is_no_date_or_two_is_undated(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("3 days ago", "2025-02-19"),
        ("a day ago", "2025-02-21"),
        ("2 weeks ago", "2025-02-08"),
        ("1 month ago", "2025-01-22"),
        ("2 years ago", "2023-02-22"),
        ("yesterday", "2025-02-21"),
        ("5 hours ago", "2025-02-22T07:00:00+00:00"),
        ("5h ago", "2025-02-22T07:00:00+00:00"),
        ("10 mins ago", "2025-02-22T11:50:00+00:00"),
        ("today", "2025-02-22T12:00:00+00:00"),
        ("0 days ago", "2025-02-22T12:00:00+00:00"),
        ("Just Now", "2025-02-22T12:00:00+00:00"),
    ],
)
def test_an_age_counts_from_when_it_was_retrieved(text: str, means: str) -> None:
    assert read(text) == means


def test_a_month_ago_from_its_last_day_is_the_shorter_months_last_day() -> None:
    found = parse_date("1 month ago", retrieved_at=datetime(2025, 3, 31, tzinfo=UTC))
    assert found is not None
    assert written(found) == "2025-02-28"


def test_a_bare_day_passes_only_a_cutoff_that_the_whole_day_lies_before() -> None:
    for text in ("2025-02-19", "2025-02-19T08:00:00", "Feb 19, 2025 08:00"):
        found = parse_date(text, retrieved_at=SEEN)
        assert found is not None
        assert not found < datetime(2025, 2, 19, 12, tzinfo=UTC)
        assert not found < datetime(2025, 2, 19, 23, 59, 59, tzinfo=UTC)
        assert found < datetime(2025, 2, 20, tzinfo=UTC)


def test_rfc_2822_agrees_with_the_standard_library() -> None:
    start = datetime(1999, 12, 30, 22, 5, 7, tzinfo=UTC)
    for hours in range(0, 200_000, 7_919):
        instant = start + timedelta(hours=hours)
        assert parse_date(format_datetime(instant), retrieved_at=SEEN) == instant


def test_dates_in_addresses() -> None:
    found = date_in_url("https://example.org/news/2024/12/31/rates?d=/2025/01/01/")
    assert found is not None
    assert written(found) == "2024-12-31"
    assert date_in_url("https://example.org/2025/02/30/x") is None
    assert date_in_url("https://example.org/2025/02/x") is None
    latest = date_in_url("https://example.org/2024/01/02/and-2025-03-04")
    assert latest is not None
    assert latest.year == 2024


def test_labelled_dates_in_a_text_take_the_latest_and_one_unreadable_spoils_them() -> None:
    text = "Title\nPublished: 19 February 2025\nUpdated: 21 February 2025\nText."
    found = date_in_text(text, retrieved_at=SEEN)
    assert found is not None
    assert written(found) == "2025-02-21"
    assert date_in_text(text.replace("21 February 2025", "02/03/2025"), retrieved_at=SEEN) is None
    assert date_in_text("x\n" * 2_000 + "Published: 19 February 2025", retrieved_at=SEEN) is None


def test_metadata_comes_first_and_is_not_overruled() -> None:
    url, text = "https://example.org/2025/02/19/x", "Published: 20 February 2025"
    assert date_of(metadata="2025-02-18", url=url, text=text, retrieved_at=SEEN).source == "metadata"
    assert date_of(metadata="02/03/2025", url=url, text=text, retrieved_at=SEEN) == (None, "none")
    assert date_of(metadata=None, url=url, text=text, retrieved_at=SEEN).source == "url"
    assert date_of(metadata=" ", url="https://example.org/", text=text, retrieved_at=SEEN).source == "text"
    assert date_of(metadata=None, url=None, text="none", retrieved_at=SEEN) == (None, "none")
