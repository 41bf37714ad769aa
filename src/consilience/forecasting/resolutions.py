"""What a question turned out to be, as far as anybody can say: an outcome, or null where it is neither yes nor no."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Literal

from consilience.core.question import Option, Strict

QuestionKind = Literal["binary", "multiple_choice", "numeric", "discrete", "date"]

SECONDS_PER_DAY = 86_400
_YES = frozenset({"yes", "true", "1", "1.0"})
_NO = frozenset({"no", "false", "0", "0.0"})


class Resolution(Strict):
    """How a question was resolved, by whom, and in which edition of the labels.

    Attributes:
        outcome: 1 or 0 of a yes-no question, an option id, or a number (seconds since 1970 UTC of a date question).
            None where it is none of these (0.49, N/A, annulled, above the range): such a question is in no score.
        source: Who said so.
        label_version: The edition of the labels, such as a commit or the day of a dump; None where nobody says.
        known_on: The first day the outcome was known; None where nobody says, which is not "late".
        said: What the source wrote where that is not the outcome itself, such as ``0.49`` or ``annulled``.
    """

    outcome: float | str | None
    source: str
    label_version: str | None = None
    known_on: date | None = None
    said: str | None = None


def unix_seconds(text: str) -> float:
    """Return an ISO 8601 date or time in seconds since 1970-01-01 UTC; a bare date is 00:00 UTC.

    Raises:
        ValueError: It is neither, or a time without an offset, whose instant nobody knows.

    Example:
        >>> unix_seconds("1970-01-02"), unix_seconds("1970-01-01T01:00:00+01:00")
        (86400.0, 0.0)
    """
    return instant(text).timestamp()


def instant(text: str) -> datetime:
    """Return an ISO 8601 date or time as an instant in UTC; a bare date is 00:00 UTC.

    Raises:
        ValueError: It is neither, or a time without an offset, whose instant nobody knows.

    Example:
        >>> instant("2025-02-19T23:30-05:00").isoformat()
        '2025-02-20T04:30:00+00:00'
        >>> instant("2025-02-19").isoformat()
        '2025-02-19T00:00:00+00:00'
    """
    stripped = text.strip()
    try:
        day = date.fromisoformat(stripped)
    except ValueError:
        moment = datetime.fromisoformat(stripped)
    else:
        return midnight(day)
    if moment.tzinfo is None:
        raise ValueError(f'"{stripped}" has no offset from UTC')
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f'"{stripped}" is no instant of UTC') from None


def midnight(day: date) -> datetime:
    """Return the instant a day begins in UTC.

    Example:
        >>> midnight(date(2025, 3, 1)).isoformat()
        '2025-03-01T00:00:00+00:00'
    """
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def settled(resolution: Resolution, *, kind: QuestionKind, options: Sequence[Option]) -> Resolution:
    """Return the resolution with the outcome its kind of question can have, or null with what was said.

    Yes and no are ``yes``, ``true``, 1 and ``no``, ``false``, 0 in any case. An option is named by its id, or by a
    label only one option has. Everything else (a share, ``N/A``, an option nobody listed) is null, never 0.

    Example:
        >>> settled(Resolution(outcome="YES", source="a"), kind="binary", options=()).outcome
        1.0
        >>> odd = settled(Resolution(outcome=0.49, source="a"), kind="binary", options=())
        >>> odd.outcome, odd.said
        (None, '0.49')
    """
    outcome = resolution.outcome
    if outcome is None:
        return resolution
    if kind == "binary":
        read: float | str | None = _yes_or_no(outcome)
    elif kind == "multiple_choice":
        read = _option(str(outcome), options)
    else:
        read = _number(outcome, dated=kind == "date")
    if read == outcome and type(read) is type(outcome):
        return resolution
    said = resolution.said if resolution.said is not None or read == outcome else str(outcome)
    return resolution.model_copy(update={"outcome": read, "said": said})


def _yes_or_no(outcome: float | str) -> float | None:
    if isinstance(outcome, int | float):
        return float(outcome) if outcome in {0, 1} else None
    word = outcome.strip().casefold()
    if word in _YES:
        return 1.0
    return 0.0 if word in _NO else None


def _option(outcome: str, options: Sequence[Option]) -> str | None:
    if any(option.id == outcome for option in options):
        return outcome
    labelled = [option.id for option in options if option.label.strip() == outcome.strip()]
    return labelled[0] if len(labelled) == 1 else None


def _number(outcome: float | str, *, dated: bool) -> float | None:
    try:
        value = float(outcome)
    except ValueError:
        if not dated:
            return None
        try:
            value = unix_seconds(str(outcome))
        except ValueError:
            return None
    return value if math.isfinite(value) else None
