"""What every feed of questions shares: a file read within limits, and rows made questions or refused by name."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from consilience.core.canonical import strict_json
from consilience.core.question import Strict
from consilience.errors import DataError, reason
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.resolutions import instant

BYTE_LIMIT = 512 * 1024**2
"""Most bytes of a file of questions."""


class Skipped(Strict):
    """Something in a source that is no question this package can ask.

    Attributes:
        where: File and row, and the source's own id where it has one.
        reason: Why.
    """

    where: str
    reason: str


class Feed(ABC):
    """A file format of forecast questions.

    A feed returns all of a file's questions or raises; it never returns a different question for one it cannot read.

    Attributes:
        name: What it is registered as.
    """

    name: ClassVar[str]

    @abstractmethod
    def read(self, path: Path, *, skipped: list[Skipped] | None = None) -> list[ForecastQuestion]:
        """Return the questions of a file, in its order.

        Args:
            path: The file.
            skipped: Takes what the format holds beside questions this package can ask (a poll, a combination of two
                questions), each with its reason. Without it the first such entry is an error.

        Raises:
            DataError: The file cannot be read, or a row is no question; row and field are named.
        """


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, without a byte-order mark.

    Raises:
        DataError: It is missing, too large or not UTF-8.
    """
    try:
        if path.stat().st_size > BYTE_LIMIT:
            raise DataError(f"{path} has more than {BYTE_LIMIT:,} bytes", hint="Split it.")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}", hint="Check the path and its permissions.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8: byte {error.start} is no part of it", hint="Save it as UTF-8."
        ) from error


def read_json(text: str, *, where: str) -> Any:
    """Return the JSON value of a text; NaN and infinities are none, and no key stands twice in one object.

    Raises:
        DataError: It is no such JSON.

    Example:
        >>> read_json('[{"text": "Rain?"}]', where="a.json")
        [{'text': 'Rain?'}]
    """
    try:
        return strict_json(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where} is no JSON to read: {reason(error)}", hint="Export it again; nothing was read."
        ) from error


def objects(value: Any, *, where: str) -> list[dict[str, Any]]:
    """Return a list of JSON objects as such.

    Raises:
        DataError: It is something else.

    Example:
        >>> objects([{"text": "Rain?"}], where="a.json")
        [{'text': 'Rain?'}]
    """
    if not isinstance(value, list):
        raise DataError(f"{where} is no list of questions", hint="A list of JSON objects is expected there.")
    for number, entry in enumerate(value, start=1):
        if not isinstance(entry, dict):
            raise DataError(f"{where}, entry {number} is no JSON object", hint="Every question is one.")
    return value


def make_question(fields: Mapping[str, Any], *, where: str) -> ForecastQuestion:
    """Return the question of a row; fields that are None count as not given.

    Raises:
        DataError: The row is no question; the message names row and field.

    Example:
        >>> make_question({"text": "Rain?", "kind": "binary", "cutoff": date(2025, 3, 1)}, where="row 1").id
        'b34366a138cbe122'
    """
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        written = json.dumps(given, default=_written, allow_nan=False)
        return ForecastQuestion.model_validate_json(written)
    except ValidationError as error:
        raise DataError(f"{where}: {_problem(error)}", hint="Mend the row; nothing was read in part.") from error
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: {reason(error)}", hint="Mend the row; nothing was read in part.") from error


def _written(value: Any) -> str:
    if isinstance(value, date | datetime):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__} is no value of a question")


def _problem(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "extra_forbidden":
        return f'unknown field "{".".join(map(str, first["loc"]))}"'
    return reason(error)


def refuse(where: str, why: str, skipped: list[Skipped] | None) -> None:
    """Note what is no question to ask, or raise where nobody takes the note.

    Raises:
        DataError: ``skipped`` is None.

    Example:
        >>> taken: list[Skipped] = []
        >>> refuse("row 1", "a poll", taken)
        >>> taken[0].reason
        'a poll'
    """
    if skipped is None:
        raise DataError(
            f"{where}: {why}", hint="Take it out of the file, or read with a list that takes what is skipped."
        )
    skipped.append(Skipped(where=where, reason=why))


def distinct(
    questions: Sequence[ForecastQuestion], *, where: str, skipped: Sequence[Skipped] | None = None
) -> list[ForecastQuestion]:
    """Return the questions if no two share an id; upper and lower case count as the same.

    Raises:
        DataError: Two do, or there are none and nothing was skipped either.
    """
    if not questions and not skipped:
        raise DataError(f"{where} holds no question", hint="Check that it is the file that was meant.")
    seen: dict[str, int] = {}
    for number, question in enumerate(questions, start=1):
        before = seen.setdefault(question.id.casefold(), number)
        if before != number:
            raise DataError(
                f"{where}: question {number} has the id {question.id}, as question {before}",
                hint="Give every question its own id; without ids, no two may have the same text.",
            )
    return list(questions)


def day_of(value: Any, *, where: str, field: str) -> date | None:
    """Return the day in UTC of an ISO date or time, or of milliseconds since 1970; None for nothing and ``N/A``.

    Raises:
        DataError: It is none of these.

    Example:
        >>> day_of("2025-02-19T23:30-05:00", where="row 1", field="endDate").isoformat()
        '2025-02-20'
    """
    moment = instant_of(value, where=where, field=field)
    return None if moment is None else moment.date()


def instant_of(value: Any, *, where: str, field: str) -> datetime | None:
    """Return the instant of an ISO date or time, or of milliseconds since 1970; None for nothing and ``N/A``.

    Raises:
        DataError: It is none of these.

    Example:
        >>> instant_of(86_400_000, where="row 1", field="closeTime").isoformat()
        '1970-01-02T00:00:00+00:00'
    """
    if absent(value):
        return None
    try:
        if isinstance(value, str):
            return instant(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise DataError(f"{where}, {field}: {reason(error)}", hint="Write an ISO 8601 date or time.") from error
    raise DataError(f"{where}, {field}: {value!r} is no date", hint="Write an ISO 8601 date or time.")


def text_of(value: Any, *, where: str, field: str) -> str:
    """Return a text; nothing and ``N/A`` are the empty one.

    Raises:
        DataError: It is no text.

    Example:
        >>> text_of("N/A", where="row 1", field="background")
        ''
    """
    if absent(value):
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}, {field}: {value!r} is no text", hint="Export it again.")
    return value


def number_of(value: Any, *, where: str, field: str) -> float | None:
    """Return a number, also one written as text; None for nothing and ``N/A``.

    Raises:
        DataError: It is none.

    Example:
        >>> number_of("0.25", where="row 1", field="price")
        0.25
    """
    if absent(value):
        return None
    try:
        if not isinstance(value, bool):
            return float(value)
    except (ValueError, TypeError):
        pass
    raise DataError(f"{where}, {field}: {value!r} is no number", hint="Export it again.")


def absent(value: Any) -> bool:
    """Return whether a value stands for nothing: null, an empty text, or ``N/A``.

    Example:
        >>> [absent(value) for value in (None, " ", "N/A", 0, "no")]
        [True, True, True, False, False]
    """
    return value is None or (isinstance(value, str) and value.strip() in {"", "N/A"})


def joined(parts: Iterable[str]) -> str:
    r"""Return the texts that are not empty, an empty line between them.

    Example:
        >>> joined(["One.", "", "Two."])
        'One.\n\nTwo.'
    """
    return "\n\n".join(part for part in parts if part)
