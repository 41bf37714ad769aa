"""When something was published: a text that says so, read as an aware instant in UTC or not at all.

The cutoff rule is strict and one comparison long: ``published < cutoff``. So a date is read as the *latest* instant
it can mean. A day without a time, or with a time of an unnamed zone, stands for its last microsecond in UTC: it passes
a cutoff only if the whole day lies before it, and "2025-02-19" does not pass noon of that day. What can mean two days,
no day, or a whole month is undated, which under a cutoff is not "before".

A bare day is read in UTC, because its zone is unknown: the evening of a zone west of it may lie some hours later.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import NamedTuple

from consilience.forecasting.search.document import DateSource

LONGEST_DATE = 80
"""Characters; nothing longer is a date."""
HEAD_OF_TEXT = 2_000
"""Characters of a text in which a labelled date is looked for."""

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_MONTH_OF = {
    **{name: number for number, name in enumerate(_MONTHS, 1)},
    **{name[:3]: number for number, name in enumerate(_MONTHS, 1)},
    "sept": 9,
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY_OF = {
    **{name: number for number, name in enumerate(_WEEKDAYS)},
    **{name[:3]: number for number, name in enumerate(_WEEKDAYS)},
    **dict.fromkeys(("thur", "thurs"), 3),
    "tues": 1,
    "weds": 2,
}
_ZONES = {
    **dict.fromkeys(("z", "gmt", "ut", "utc", "wet"), 0),
    **dict.fromkeys(("cet",), 60),
    **dict.fromkeys(("cest", "eet"), 120),
    **dict.fromkeys(("eest",), 180),
    **dict.fromkeys(("edt",), -240),
    **dict.fromkeys(("est", "cdt"), -300),
    **dict.fromkeys(("cst", "mdt"), -360),
    **dict.fromkeys(("mst", "pdt"), -420),
    **dict.fromkeys(("pst",), -480),
}
"""Minutes east of Greenwich of zones that mean one thing; those of RFC 2822 as it says. IST or BST mean several."""

_ZONE = r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?P<fraction>[.,][0-9]{1,9})?)?"
_ISO = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})(?:(?:T|[ ]+)" + _CLOCK + rf"[ ]*(?:{_ZONE}|UTC|GMT)?)?",
    re.IGNORECASE,
)
_BASIC_ISO = re.compile(
    r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
    rf"(?:T(?P<hour>[0-9]{{2}})(?P<minute>[0-9]{{2}})(?P<second>[0-9]{{2}})?{_ZONE}?)?",
    re.IGNORECASE,
)
_YEAR_FIRST = re.compile(r"(?P<year>[0-9]{4})([/.-])(?P<month>[0-9]{1,2})\2(?P<day>[0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2([0-9]{4})")
_TIME_AND_ZONE = (
    rf"(?:,?[ ]+(?:at[ ]+)?{_CLOCK}[ ]*(?P<half>[apAP]\.?[mM]\.?)?"
    r"[ ]*(?P<zone>[+-][0-9]{2}:?[0-9]{2}|[A-Za-z]{1,5})?(?:[ ]*\([A-Za-z ]{1,30}\))?)?"
)
_WEEKDAY = r"(?:(?P<weekday>[A-Za-z]{3,9})\.?,?[ ]+)?"
_NAMED = tuple(
    re.compile(_WEEKDAY + pattern + _TIME_AND_ZONE)
    for pattern in (
        (
            r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?(?:[ ]+(?:of[ ]+)?|-)(?P<name>[A-Za-z]{3,9})\.?"
            r"(?:,?[ ]+|-)(?P<year>[0-9]{4})"
        ),
        r"(?P<name>[A-Za-z]{3,9})\.?[ ]+(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?,?[ ]+(?P<year>[0-9]{4})",
        r"(?P<year>[0-9]{4})[ -](?P<name>[A-Za-z]{3,9})\.?[ -](?P<day>[0-9]{1,2})",
    )
)
_UNITS = {
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), "second"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "minute"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), "hour"),
    **dict.fromkeys(("day", "days", "d"), "day"),
    **dict.fromkeys(("week", "weeks", "wk", "wks", "w"), "week"),
    **dict.fromkeys(("month", "months", "mo", "mos"), "month"),
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), "year"),
}
_AGO = re.compile(r"(?P<count>[0-9]{1,4}|an?|one)[ ]*(?P<unit>[a-z]{1,7})[ ]+ago")
_LABELLED = re.compile(
    r"^[ \t]*(?:date|published(?: on)?|publication date|posted(?: on)?|updated(?: on)?|last updated)[ \t]*:[ \t]*"
    rf"([^\n]{{4,{LONGEST_DATE}}})$",
    re.IGNORECASE | re.MULTILINE,
)
_IN_PATH = re.compile(r"/(?P<year>(?:19|20)[0-9]{2})([/-])(?P<month>[0-9]{1,2})\2(?P<day>[0-9]{1,2})(?=[/-]|$)")


class Dated(NamedTuple):
    """A date with what it was read from; without a date the source is ``none``."""

    published: datetime | None
    source: DateSource


UNDATED = Dated(None, "none")


def parse_date(text: str | None, *, retrieved_at: datetime) -> datetime | None:
    """Return the latest instant in UTC that a written date can mean; None where it is no date or an ambiguous one.

    Read are ISO 8601 (calendar dates), RFC 2822, year-month-day, names of months in English, full or short, and ages
    such as "3 days ago". A weekday that contradicts its date, a year of two digits, D/M/Y in which both numbers may
    be the month, a month without a day, an unknown zone and a day that does not exist make it undated. Ages in days or
    longer mean the end of that day, never later than ``retrieved_at``.

    Args:
        text: What the source says.
        retrieved_at: When the source said it: ages count from here.

    Example:
        >>> seen = datetime(2025, 2, 22, 12, tzinfo=UTC)
        >>> parse_date("2025-02-19T23:30-05:00", retrieved_at=seen).isoformat()
        '2025-02-20T04:30:00+00:00'
        >>> parse_date("3 days ago", retrieved_at=seen).isoformat()
        '2025-02-19T23:59:59.999999+00:00'
        >>> parse_date("02/03/2025", retrieved_at=seen) is None
        True
    """
    said = " ".join((text or "")[: LONGEST_DATE + 1].split())
    if not said or len(said) > LONGEST_DATE or not said.isascii():
        return None
    try:
        return _absolute(said) or _relative(said.lower(), retrieved_at)
    except (ValueError, OverflowError):  # such as 30 February, or a year before the first
        return None


def date_of(*, metadata: str | None, url: str | None = None, text: str | None = None, retrieved_at: datetime) -> Dated:
    """Return the date of a document: what its metadata says, else its address, else a labelled line at its head.

    Metadata that says something unreadable is not overruled by a guess from elsewhere: the document is undated.

    Example:
        >>> seen = datetime(2025, 3, 1, tzinfo=UTC)
        >>> date_of(metadata=None, url="https://example.org/2025/02/19/rates", retrieved_at=seen).source
        'url'
        >>> date_of(metadata="02/03/2025", url="https://example.org/2025/02/19/rates", retrieved_at=seen).source
        'none'
    """
    if metadata is not None and metadata.strip():
        found = parse_date(metadata, retrieved_at=retrieved_at)
        return UNDATED if found is None else Dated(found, "metadata")
    in_address = None if url is None else date_in_url(url)
    if in_address is not None:
        return Dated(in_address, "url")
    in_text = None if text is None else date_in_text(text, retrieved_at=retrieved_at)
    return UNDATED if in_text is None else Dated(in_text, "text")


def date_in_url(url: str) -> datetime | None:
    """Return the end of the latest day that a path such as ``/2025/02/19/`` names; None where there is none.

    Example:
        >>> date_in_url("https://example.org/2025/02/19/rates").isoformat()
        '2025-02-19T23:59:59.999999+00:00'
    """
    path = url.partition("?")[0].partition("#")[0]
    days = []
    for found in _IN_PATH.finditer(path):
        try:
            days.append(_end(int(found["year"]), int(found["month"]), int(found["day"])))
        except ValueError:  # no such day
            continue
    return max(days, default=None)


def date_in_text(text: str, *, retrieved_at: datetime) -> datetime | None:
    r"""Return the latest date of the labelled lines at a text's head, such as ``Published: 19 February 2025``.

    One that cannot be read makes the text undated: it could be the latest.

    Example:
        >>> seen = datetime(2025, 3, 1, tzinfo=UTC)
        >>> date_in_text("Title\nPublished: 19 February 2025\n", retrieved_at=seen).date().isoformat()
        '2025-02-19'
    """
    found = [parse_date(said, retrieved_at=retrieved_at) for said in _LABELLED.findall(text[:HEAD_OF_TEXT])]
    dated = [instant for instant in found if instant is not None]
    return max(dated) if dated and len(dated) == len(found) else None


def written(published: datetime) -> str:
    """Return a date as it is shown: a day where no more is known, else the instant in UTC.

    Example:
        >>> written(datetime(2025, 2, 19, 23, 59, 59, 999999, tzinfo=UTC))
        '2025-02-19'
    """
    instant = published.astimezone(UTC)
    return instant.date().isoformat() if instant.time() == time.max else instant.isoformat()


def end_of_day(day: date) -> datetime:
    """Return the last microsecond of a day in UTC, which stands for the day.

    Example:
        >>> end_of_day(date(2025, 2, 19)) < datetime(2025, 2, 20, tzinfo=UTC)
        True
    """
    return datetime.combine(day, time.max, tzinfo=UTC)


def _end(year: int, month: int, day: int) -> datetime:
    return end_of_day(date(year, month, day))


def _absolute(said: str) -> datetime | None:
    found = _ISO.fullmatch(said)
    if found is not None:
        zone = found["zone"] or ("Z" if said[-3:].upper() in {"UTC", "GMT"} else None)
        return _instant(found, month=int(found["month"]), zone=zone)
    found = _BASIC_ISO.fullmatch(said)
    if found is not None:
        return _instant(found, month=int(found["month"]), zone=found["zone"])
    found = _YEAR_FIRST.fullmatch(said)
    if found is not None:
        return _end(int(found["year"]), int(found["month"]), int(found["day"]))
    found = _YEAR_LAST.fullmatch(said)
    if found is not None:
        return _year_last(int(found[1]), int(found[3]), int(found[4]))
    for pattern in _NAMED:
        found = pattern.fullmatch(said)
        if found is not None:
            return _named(found)
    return None


def _year_last(first: int, second: int, year: int) -> datetime | None:
    """Return the day where only one reading exists: 19/02/2025, 02/19/2025 or 05/05/2025."""
    readings = {(month, day) for month, day in ((first, second), (second, first)) if 1 <= month <= 12}
    if len(readings) != 1:
        return None
    month, day = readings.pop()
    return _end(year, month, day)


def _named(found: re.Match[str]) -> datetime | None:
    month = _MONTH_OF.get(found["name"].lower())
    if month is None:
        return None
    if found["weekday"] is not None:
        weekday = _WEEKDAY_OF.get(found["weekday"].lower())
        if weekday != date(int(found["year"]), month, int(found["day"])).weekday():
            return None
    return _instant(found, month=month, zone=found["zone"], half=found["half"])


def _instant(found: re.Match[str], *, month: int, zone: str | None, half: str | None = None) -> datetime | None:
    """Return the instant, or the day's end where the time or its zone is not told; None for an unknown zone."""
    parts = found.groupdict()
    day = date(int(parts["year"]), month, int(parts["day"]))
    if parts["hour"] is None:
        return end_of_day(day)
    hour = int(parts["hour"])
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half[0] in "pP")
    fraction = (parts.get("fraction") or ".0")[1:7].ljust(6, "0")
    clock = time(hour, int(parts["minute"]), int(parts["second"] or 0), int(fraction))
    if zone is None:
        return end_of_day(day)
    minutes = _minutes_east(zone)
    if minutes is None:
        return None
    local = datetime.combine(day, clock, tzinfo=timezone(timedelta(minutes=minutes)))
    return local.astimezone(UTC)


def _minutes_east(zone: str) -> int | None:
    if zone[0] not in "+-":
        return _ZONES.get(zone.lower())
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 14 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


def _relative(said: str, retrieved_at: datetime) -> datetime | None:
    seen = retrieved_at.astimezone(UTC)
    if said in {"now", "just now", "today"}:
        return seen
    if said == "yesterday":
        return end_of_day(seen.date() - timedelta(days=1))
    found = _AGO.fullmatch(said)
    unit = None if found is None else _UNITS.get(found["unit"])
    if found is None or unit is None:
        return None
    count = 1 if found["count"] in {"a", "an", "one"} else int(found["count"])
    if unit in {"second", "minute", "hour"}:
        return seen - timedelta(**{f"{unit}s": count})
    if unit in {"day", "week"}:
        day = seen.date() - timedelta(**{f"{unit}s": count})
    else:
        day = _months_before(seen.date(), count * (12 if unit == "year" else 1))
    return min(end_of_day(day), seen)


def _months_before(day: date, months: int) -> date:
    """Return the same day of an earlier month, or that month's last where it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    for last in range(day.day, 27, -1):
        try:
            return date(year, month + 1, last)
        except ValueError:  # the month is shorter
            continue
    return date(year, month + 1, min(day.day, 28))
