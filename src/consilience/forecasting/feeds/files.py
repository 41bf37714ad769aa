"""Questions from the user's own files: JSON, JSON Lines, CSV and Parquet, with the names of the model's fields.

Tables are flat: ``market_price`` (or ``market_prob``), ``market_source``, ``market_as_of`` make the market price;
``outcome``, ``resolution_source``, ``label_version``, ``known_on``, ``said`` the resolution. In JSON both may also be
nested, as the model has them. Other names for a field: `ALIASES`. Several rows with one id are one question with
several targets, one per ``resolution_date``. Options are labels, or objects with ``id`` and ``label``; in a cell of a
table a JSON list, or labels between bars (``red|blue``). Numbers of a date question may be ISO dates.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from consilience.core.question import option_label
from consilience.errors import DataError, reason
from consilience.experiments.parquet import read_parquet
from consilience.forecasting.feeds.base import (
    Feed,
    Skipped,
    distinct,
    make_question,
    number_of,
    objects,
    read_json,
    read_text,
)
from consilience.forecasting.questions import ForecastQuestion, question_id
from consilience.forecasting.resolutions import unix_seconds
from consilience.registry import nearest

ALIASES = {
    "question_id": "id",
    "question": "text",
    "background": "description",
    "forecast_due_date": "cutoff",
    "market_prob": "market_price",
    "source": "family",
}
"""Names of other tables, each read as a field of the model."""
ROW_LIMIT = 1_000_000

_MARKET = {"market_price": "price", "market_source": "source", "market_as_of": "as_of"}
_RESOLUTION = {
    "outcome": "outcome",
    "resolution_source": "source",
    "label_version": "label_version",
    "known_on": "known_on",
    "said": "said",
}
_KNOWN = {*ForecastQuestion.model_fields, *_MARKET, *_RESOLUTION}
_NUMBERS = ("lower", "upper", "zero_point", "market_price")
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_OF_A_TARGET = ("resolution_date", "resolution")

Row = dict[str, Any]


@dataclass(frozen=True)
class Files(Feed):
    """Questions of the user's own file, whose columns are fields of the model.

    Attributes:
        ignore: Columns that are no fields of a question; without their names here they are an error.
    """

    name: ClassVar[str] = "files"

    ignore: tuple[str, ...] = ()

    def read(self, path: Path, *, skipped: list[Skipped] | None = None) -> list[ForecastQuestion]:
        """Return the questions of a ``.json``, ``.jsonl``, ``.ndjson``, ``.csv`` or ``.parquet`` file; none is skipped.

        Raises:
            DataError: The file cannot be read, or a row is no question; row and field are named.
        """
        del skipped
        groups: dict[str, list[tuple[str, Row]]] = {}
        for where, row in _rows(path):
            fields = self._fields(row, where=where, default_source=path.name)
            groups.setdefault(_key(fields, where), []).append((where, fields))
        return distinct([_question(rows) for rows in groups.values()], where=str(path))

    def _fields(self, row: Mapping[str, Any], *, where: str, default_source: str) -> Row:
        """Return a row under the model's names, with market and resolution nested."""
        fields: Row = {}
        for column, value in row.items():
            if column in self.ignore:
                continue
            name = ALIASES.get(column, column)
            if name not in _KNOWN:
                raise DataError(
                    f'{where}: unknown field "{column}"', hint=f"{nearest(column, _KNOWN)} Or name it to be ignored."
                )
            if name in fields:
                raise DataError(f'{where}: "{column}" stands for {name}, which is there already', hint="Keep one.")
            if value is not None:
                fields[name] = value
        fields.setdefault("kind", "binary")
        _nest(fields, "market", _MARKET, needs="price", source="market", where=where)
        _nest(fields, "resolution", _RESOLUTION, needs="outcome", source=default_source, where=where)
        if isinstance(fields.get("options"), list):
            fields["options"] = [
                {"id": option_label(place), "label": option} if isinstance(option, str) else option
                for place, option in enumerate(fields["options"])
            ]
        if fields["kind"] == "date":
            for name in _NUMBERS[:3]:
                if isinstance(fields.get(name), str):
                    fields[name] = _seconds(fields[name], where=where, field=name)
        return fields


def _nest(fields: Row, into: str, names: Mapping[str, str], *, needs: str, source: str, where: str) -> None:
    """Put flat columns under one field, where the one it cannot do without is given."""
    flat = {part: fields.pop(name) for name, part in names.items() if name in fields}
    if not flat:
        return
    if into in fields:
        raise DataError(f"{where}: {into} is given twice, nested and in columns of its own", hint="Keep one.")
    if needs in flat or "said" in flat:
        fields[into] = {"source": source, "outcome": None} | flat if into == "resolution" else {"source": source} | flat


def _key(fields: Row, where: str) -> str:
    if isinstance(fields.get("id"), str):
        return str(fields["id"])
    if fields.get("id") is None and isinstance(fields.get("text"), str):
        return question_id(fields["text"])
    missing = "text" if fields.get("id") is None else "id"
    raise DataError(
        f"{where}, {missing}: a text is needed", hint="Every question has a text, and an id that is a text."
    )


def _question(rows: list[tuple[str, Row]]) -> ForecastQuestion:
    """Return one question of its rows; each of several is one target."""
    where, fields = rows[0]
    if len(rows) == 1:
        return make_question(fields, where=where)
    shared = {name: value for name, value in fields.items() if name not in _OF_A_TARGET}
    for here, row in rows[1:]:
        if row == fields:
            raise DataError(f"{here}: the same row as {where}", hint="Keep one of them.")
        for name in sorted({*row, *shared}.difference(_OF_A_TARGET)):
            if row.get(name) != shared.get(name):
                raise DataError(
                    f"{here}, {name}: another value than in {where}, which has the same id",
                    hint="Rows of one question differ in date and outcome only; give others ids of their own.",
                )
    for here, row in rows:
        if row.get("resolution_date") is None:
            raise DataError(
                f"{here}, resolution_date: missing, but {len(rows)} rows have the same id",
                hint="Give every question its own id, or every target its day.",
            )
    days: dict[str, str] = {}
    for here, row in rows:
        before = days.setdefault(str(row["resolution_date"]), here)
        if before != here:
            raise DataError(
                f"{here}, resolution_date: {row['resolution_date']} again, as in {before}",
                hint="Every day of a question stands once.",
            )
    targets = [{name: row.get(name) for name in _OF_A_TARGET} for _, row in rows]
    targets.sort(key=lambda target: str(target["resolution_date"]))
    return make_question(shared | {"targets": targets}, where=f"{where} to {rows[-1][0].rpartition(', ')[2]}")


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        for number, row in enumerate(read_parquet(path, row_limit=ROW_LIMIT).iter_rows(named=True), start=1):
            yield f"{path}, row {number}", _cells(row, where=f"{path}, row {number}")
    elif suffix == ".csv":
        yield from _csv_rows(path)
    elif suffix in {".jsonl", ".ndjson"}:
        for number, line in enumerate(read_text(path).split("\n"), start=1):
            where = f"{path}, line {number}"
            if line.strip():
                yield from ((where, row) for row in objects([read_json(line, where=where)], where=where))
    elif suffix == ".json":
        whole = read_json(read_text(path), where=str(path))
        listed = whole.get("questions") if isinstance(whole, dict) else whole
        for number, row in enumerate(objects(listed, where=str(path)), start=1):
            yield f"{path}, entry {number}", row
    else:
        raise DataError(
            f'{path}: questions are not read from "{suffix}"', hint="Use .json, .jsonl, .ndjson, .csv or .parquet."
        )


def _csv_rows(path: Path) -> Iterator[tuple[str, Row]]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True, restkey="", restval=None)
    try:
        names = list(reader.fieldnames or ())
        if len(set(names)) != len(names) or "" in names:
            raise DataError(f"{path}: its first line has an empty name, or one twice", hint="Name every column once.")
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            if "" in row or None in row.values():
                raise DataError(f"{where}: {len(names)} cells are expected", hint="Quote cells that hold commas.")
            yield where, _cells(row, where=where)
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {reason(error)}", hint="Export it again as CSV.") from error


def _cells(row: Mapping[str, Any], *, where: str) -> Row:
    """Return a table's cells as values: an empty one is none, and texts are read as what their field holds."""
    read: Row = {}
    for column, value in row.items():
        name = ALIASES.get(column, column)
        field = column if name == column else f"{column} ({name})"
        if value is None or value == "":
            read[column] = None
        elif not isinstance(value, str):
            read[column] = value
        elif name in _NUMBERS and not (row.get("kind") == "date" and name != "market_price"):
            read[column] = number_of(value, where=where, field=field)
        elif name in {"open_lower", "open_upper"}:
            if value.strip().lower() not in _TRUTHS:
                raise DataError(f'{where}, {field}: "{value}" is neither true nor false', hint="Write true or false.")
            read[column] = _TRUTHS[value.strip().lower()]
        elif name == "inbound_outcomes" and value.strip().isdecimal():
            read[column] = int(value)
        elif name in {"options", "blocked_domains", "targets"}:
            nested = value.lstrip().startswith("[")
            read[column] = read_json(value, where=f"{where}, {field}") if nested else value.split("|")
        else:
            read[column] = value
    return read


def _seconds(text: str, *, where: str, field: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return unix_seconds(text)
    except ValueError as error:
        raise DataError(f"{where}, {field}: {reason(error)}", hint="Write an ISO 8601 date.") from error
