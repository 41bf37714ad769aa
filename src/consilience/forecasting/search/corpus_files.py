"""Dated documents from files: JSONL, Parquet and Markdown, or a folder of them. Nothing is left out without a count.

**JSONL and Parquet** hold one document a line or row. Fields: ``title``, ``text`` and ``published`` must be there
(``published`` may be null: undated), and ``url`` or else ``id``; ``retrieved_at`` may be. Others are ignored and
counted by name. Parquet may hold dates and instants as such; an instant without a zone stands for its whole day.

**Markdown**: title, url, id, date (or ``published``) and ``retrieved_at`` stand in the front matter, a block of plain
``key: value`` lines between two lines ``---``; everything else there is ignored and counted. Without a title the first
heading is it, else the name of the file. Without a date the one at the beginning of the file's name is it
(``2025-02-19-rates.md``).

A document without a url has one on a host that cannot exist: ``https://corpus.invalid/`` with its id, for Markdown
with its path in the folder. When it was published is read as everywhere (`dates.date_of`): what the file says, else a
date in the url, else a labelled line at the head of the text. A date that can mean several days makes it undated. An
age such as "3 days ago" counts from the document's own ``retrieved_at`` and without one says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import quote

from consilience.core.canonical import strict_json
from consilience.errors import DataError, reason
from consilience.forecasting.search.dates import UNDATED, Dated, date_of, parse_date
from consilience.forecasting.search.document import DateSource

NO_HOST: Final = "https://corpus.invalid/"
"""Where documents without an address stand; the top-level domain is reserved (RFC 2606), so no such page exists."""
FIELDS: Final = ("url", "id", "title", "text", "published", "retrieved_at")
_HINT: Final = "A document has title, text, published (or null), and url or id."
_ENDS = (datetime(9998, 6, 1, tzinfo=UTC), datetime(9999, 8, 2, tzinfo=UTC))
"""Two moments of retrieval: what is read alike from both counts from neither."""
_WORDLESS = re.compile(r"[0-9]{4}-[0-9TZ:.+ -]*")
"""A date that begins with its year and has no word in it: no age, whenever it was retrieved."""
_NAME_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9])")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_ -]*):(?:[ \t]+(.*))?")
_QUOTED = re.compile(r"\"([^\"\\]*)\"|'([^']*)'")
_FRONT = {"date": "published", "link": "url"}


class CorpusDocument(NamedTuple):
    """A document of a corpus.

    Attributes:
        url: As the file has it.
        title: Its title; may be empty.
        text: The whole text.
        published: When it was published, in UTC; None for an undated one.
        date_source: What that was read from.
        retrieved_at: When it was collected; None where the file does not say.
    """

    url: str
    title: str
    text: str
    published: datetime | None
    date_source: DateSource
    retrieved_at: datetime | None


@dataclass
class Loaded:
    """What was read.

    Attributes:
        documents: In the order of the files.
        unreadable_dates: Documents that say a date which is none or can mean several; they are undated.
        ignored_fields: How many documents had a field that is not used, by its name.
        ignored_files: Files of the folder that hold no documents, by their paths in it; hidden ones are not listed.
    """

    documents: list[CorpusDocument] = field(default_factory=list)
    unreadable_dates: int = 0
    ignored_fields: Counter[str] = field(default_factory=Counter)
    ignored_files: list[str] = field(default_factory=list)

    def add(self, row: Mapping[str, Any], where: str) -> None:
        """Check a row and keep it as a document.

        Raises:
            DataError: A field is missing or is not what it must be.

        Example:
            >>> loaded = Loaded()
            >>> loaded.add({"id": "a", "title": "Rates", "text": "Held.", "published": "2025-02-19"}, "line 1")
            >>> loaded.documents[0].url, loaded.documents[0].published.isoformat()
            ('https://corpus.invalid/a', '2025-02-19T23:59:59.999999+00:00')
        """
        for name in ("title", "text", "published"):
            if name not in row:
                raise DataError(f"{where}: {name} is missing", hint=_HINT)
        title, text = _text(row, "title", where), _text(row, "text", where)
        if not (title.strip() or text.strip()):
            raise DataError(f"{where}: title and text are empty", hint="Give the document a text or leave it out.")
        url = _url(row, where)
        retrieved_at = _retrieved(row.get("retrieved_at"), where)
        dated = _dated(row["published"], url, text, retrieved_at, where)
        self.unreadable_dates += dated.published is None and row["published"] not in {None, ""}
        self.ignored_fields.update(name for name in row if name not in FIELDS)
        self.documents.append(CorpusDocument(url, title, text, dated.published, dated.source, retrieved_at))


def read_documents(path: Path) -> Loaded:
    """Return the documents of a file or of a folder and its folders.

    Args:
        path: A file ``.jsonl``, ``.ndjson``, ``.parquet``, ``.md`` or ``.markdown``, or a folder. In a folder, files of
            other kinds are listed as ignored, and hidden ones (a name with a dot first) are not looked at.

    Raises:
        DataError: Something cannot be read, breaks the fields above, or holds no document; the message names file,
            line or row, and field.
    """
    loaded = Loaded()
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            relative = file.relative_to(path)
            if any(part.startswith(".") for part in relative.parts) or not file.is_file():
                continue
            read = _READERS.get(file.suffix.lower())
            if read is None:
                loaded.ignored_files.append(relative.as_posix())
            else:
                read(file, relative.as_posix(), loaded)
    else:
        read = _READERS.get(path.suffix.lower())
        if read is None:
            raise DataError(f"{path} is no corpus", hint=f"Give a folder or a file {', '.join(_READERS)}.")
        read(path, path.name, loaded)
    if not loaded.documents:
        raise DataError(f"{path} holds no document", hint=f"Give a folder or a file {', '.join(_READERS)}. {_HINT}")
    return loaded


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {file}: {reason(error)}", hint="Check the path and its permissions.") from error


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8 (byte {error.start})", hint="Save it as UTF-8.") from error


def _read_lines(file: Path, name: str, loaded: Loaded) -> None:
    for number, line in enumerate(_bytes(file).split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            row = strict_json(_decoded(line, where))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} is no JSON to read: {reason(error)}", hint="One JSON object per line.") from error
        if not isinstance(row, dict):
            raise DataError(f"{where} is no JSON object", hint="One JSON object per line.")
        loaded.add(row, where)


def _read_table(file: Path, name: str, loaded: Loaded) -> None:
    import polars as pl  # noqa: PLC0415 - heavy, and only Parquet needs it
    from polars.exceptions import PolarsError  # noqa: PLC0415 - the same

    try:
        table = pl.read_parquet(file)
    except (OSError, PolarsError) as error:
        raise DataError(f"cannot read {name}: {reason(error)}", hint="Write it anew as Parquet.") from error
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        loaded.add(row, f"{name}, row {number}")


def _read_markdown(file: Path, name: str, loaded: Loaded) -> None:
    text = _decoded(_bytes(file), name).replace("\r\n", "\n")
    said, body = _front_matter(text, name)
    heading = _HEADING.search(body)
    in_name = _NAME_DATE.match(file.name)
    row: dict[str, Any] = {
        "title": heading[1] if heading else file.stem,
        "text": body.strip("\n"),
        "published": in_name[1] if in_name else None,
        **said,
    }
    if not row.get("url") and not row.get("id"):
        row["id"] = name
    loaded.add(row, name)


_READERS: Final[Mapping[str, Callable[[Path, str, Loaded], None]]] = {
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".parquet": _read_table,
    ".md": _read_markdown,
    ".markdown": _read_markdown,
}


def _front_matter(text: str, name: str) -> tuple[dict[str, str], str]:
    """Return the plain ``key: value`` lines of a text's front matter, and what follows it."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if end is None:
        raise DataError(f"{name}, line 1: the front matter has no end", hint="Close it with a line ---.")
    said: dict[str, str] = {}
    for number, key, value in _pairs(lines[1:end], name):
        where = f"{name}, line {number}"
        if key in said:
            raise DataError(f"{where}: {key} is said twice", hint="Say it once.")
        said[key] = _plain(value, key, where) if key in FIELDS else value
    return said, "\n".join(lines[end + 1 :])


def _pairs(lines: list[str], name: str) -> Iterator[tuple[int, str, str]]:
    """Yield the lines that begin a key; indented lines and items below it belong to its value."""
    for number, line in enumerate(lines, start=2):
        if not line.strip() or line[0] in " \t-#":
            continue
        found = _KEY.fullmatch(line.rstrip())
        if found is None:
            raise DataError(f"{name}, line {number}: the front matter has no key here", hint="Write key: value.")
        key = found[1].strip().lower()
        yield number, _FRONT.get(key, key), (found[2] or "").strip()


def _plain(value: str, key: str, where: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    if quoted is not None:
        return quoted[1] if quoted[1] is not None else quoted[2]
    if value[:1] in {'"', "'", "[", "{", "|", ">", "&", "*", "!"}:
        raise DataError(f"{where}: {key} is no plain value", hint=f"Write {key}: value on one line.")
    return value.partition(" #")[0].rstrip()


def _wrong(where: str, name: str, value: object) -> NoReturn:
    raise DataError(f"{where}: {name} is {type(value).__name__}, not text", hint=_HINT)


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        _wrong(where, name, value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{where}: {name} has half a character at {error.start}", hint="Write the text anew as UTF-8."
            ) from error
    return value


def _url(row: Mapping[str, Any], where: str) -> str:
    """Return the address; whether it may be shown is the source policy's to say."""
    if row.get("url") not in {None, ""}:
        url = _text(row, "url", where).strip()
        if url:
            return url
    name = row.get("id")
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if name is None or name == "":
        raise DataError(f"{where}: url is missing, and so is id", hint=_HINT)
    if not isinstance(name, str):
        _wrong(where, "id", name)
    return NO_HOST + quote(_text({"id": name}, "id", where))


def _absolute(read: Callable[[datetime], Dated]) -> Dated:
    """Return a date only where it counts from no moment of retrieval."""
    first, second = (read(end) for end in _ENDS)
    return first if first == second else UNDATED


def _retrieved(value: object, where: str) -> datetime | None:
    if value is None or value == "":
        return None
    said = _said(value, "retrieved_at", where)
    found = _absolute(lambda end: Dated(parse_date(said, retrieved_at=end), "metadata")).published
    if found is None:
        raise DataError(f'{where}: retrieved_at "{said[:80]}" is no date', hint="Write such as 2025-02-19T08:00:00Z.")
    return found


def _said(value: object, name: str, where: str) -> str:
    """Return a date as text; of an instant without a zone its day alone is known."""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.utcoffset() is None else value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str):
        _wrong(where, name, value)
    return value


def _dated(value: object, url: str, text: str, retrieved_at: datetime | None, where: str) -> Dated:
    said = None if value is None else _said(value, "published", where)
    if retrieved_at is not None or (said is not None and _WORDLESS.fullmatch(said)):
        return date_of(metadata=said, url=url, text=text, retrieved_at=retrieved_at or _ENDS[0])
    return _absolute(lambda end: date_of(metadata=said, url=url, text=text, retrieved_at=end))
