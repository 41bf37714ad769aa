"""ForecastBench: question sets and resolution sets as published, and a table of resolved targets.

Read are the JSON files of forecastingresearch/forecastbench-datasets (as of autumn 2025): a question set has
``forecast_due_date`` and ``questions``; a resolution set ``forecast_due_date`` and ``resolutions``. A question is of a
series where it lists ``resolution_dates``, else of a market. Its freeze value is a price only in the second case:
of a series it is a raw value (a share's price, a temperature), which goes into the description. The placeholders
``{forecast_due_date}`` and ``{resolution_date}`` are filled in. Ids are the source's, an underscore and the due date.

A market may resolve on any day, and an early end tells how: its day is ``known_on`` of the resolution and never the
question's ``resolution_date``, which agents see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

from consilience.errors import DataError
from consilience.experiments.parquet import read_parquet
from consilience.forecasting.feeds.base import (
    Feed,
    Skipped,
    absent,
    day_of,
    distinct,
    instant_of,
    joined,
    make_question,
    number_of,
    objects,
    read_json,
    read_text,
    refuse,
    text_of,
)
from consilience.forecasting.questions import ForecastQuestion

MARKETS = frozenset({"infer", "kalshi", "manifold", "metaculus", "polymarket", "rfi"})
"""Sources whose freeze value is a price."""
FROZEN = {"2025-10-26": "2025-10-16T00:00:00Z", "2025-11-09": "2025-10-30T00:00:00Z"}
"""When the rounds of the table of targets were frozen, by due date, as their question sets say; others are unknown."""
TARGET_COLUMNS = (
    *("question_id", "resolution_date", "outcome", "source", "question", "url"),
    *("forecast_due_date", "market_prob", "freeze_value"),
)
TARGET_ROWS = 10_000_000


@dataclass(frozen=True)
class QuestionSets(Feed):
    """ForecastBench question sets: binary questions of markets and series, most series with several horizons.

    Attributes:
        resolutions: The resolution set of the same due date; None leaves the questions unresolved.
    """

    name: ClassVar[str] = "forecastbench"

    resolutions: Path | None = None

    def read(self, path: Path, *, skipped: list[Skipped] | None = None) -> list[ForecastQuestion]:
        """Return the questions of a set; combinations of two questions are skipped.

        Raises:
            DataError: The file is no question set, or a row is no question; row and field are named.
        """
        whole, due = _whole(path)
        outcomes = {} if self.resolutions is None else _outcomes(self.resolutions, due)
        questions = []
        for number, row in enumerate(objects(whole.get("questions"), where=f"{path}, questions"), start=1):
            where = f"{path}, question {number}"
            if isinstance(row.get("id"), list):
                refuse(where, "a combination of questions", skipped)
                continue
            if absent(row.get("id")) or absent(row.get("source")):
                raise DataError(f"{where}, id: id and source are needed", hint="Export the question set again.")
            known = outcomes.get((str(row["source"]), str(row["id"])), {})
            questions.append(make_question(_fields(row, due, known, where=where), where=where))
        return distinct(questions, where=str(path), skipped=skipped)


def _whole(path: Path) -> tuple[dict[str, Any], date]:
    whole = read_json(read_text(path), where=str(path))
    due = (
        day_of(whole.get("forecast_due_date"), where=str(path), field="forecast_due_date")
        if isinstance(whole, dict)
        else None
    )
    if due is None:
        raise DataError(f"{path}, forecast_due_date: missing", hint="Give a set as ForecastBench publishes it.")
    return whole, due


def _outcomes(path: Path, due: date) -> dict[tuple[str, str], dict[date, dict[str, Any]]]:
    """Return the resolutions by source and id, then by day; what has not resolved is none."""
    whole, its_due = _whole(path)
    if its_due != due:
        raise DataError(f"{path} is of {its_due}, but the questions are of {due}", hint="Give the set of the same day.")
    found: defaultdict[tuple[str, str], dict[date, dict[str, Any]]] = defaultdict(dict)
    for number, row in enumerate(objects(whole.get("resolutions"), where=f"{path}, resolutions"), start=1):
        where = f"{path}, resolution {number}"
        day = day_of(row.get("resolution_date"), where=where, field="resolution_date")
        if isinstance(row.get("id"), list) or row.get("resolved") is not True or day is None:
            continue  # combinations are no questions; what is unresolved has a price there, which is no outcome
        outcome = row.get("resolved_to")
        if isinstance(outcome, bool) or not isinstance(outcome, int | float | str | None):
            raise DataError(f"{where}, resolved_to: {outcome!r} is no outcome", hint="Export the set again.")
        said = None if outcome is not None else "null"
        found[str(row.get("source")), str(row.get("id"))][day] = {
            "outcome": outcome,
            "source": f"ForecastBench {row.get('source')}",
            "label_version": path.name,
            "said": said,
        }
    return dict(found)


def _fields(row: Mapping[str, Any], due: date, known: Mapping[date, dict[str, Any]], *, where: str) -> dict[str, Any]:
    def text(field: str) -> str:
        written = text_of(row.get(field), where=where, field=field)
        filled = written.replace("{forecast_due_date}", due.isoformat())
        return filled.replace("{resolution_date}", "the resolution date")

    source = str(row["source"])
    fields: dict[str, Any] = {
        "id": f"{row['id']}_{due}",
        "text": text("question"),
        "kind": "binary",
        "description": text("background"),
        "resolution_criteria": joined((text("resolution_criteria"), text("market_info_resolution_criteria"))),
        "open_date": day_of(row.get("market_info_open_datetime"), where=where, field="market_info_open_datetime"),
        "cutoff": due,
        "url": None if absent(row.get("url")) else row["url"],
        "family": source,
    }
    frozen = instant_of(row.get("freeze_datetime"), where=where, field="freeze_datetime")
    dates = row.get("resolution_dates")
    if isinstance(dates, list):
        days = sorted({str(day_of(day, where=where, field="resolution_dates")) for day in dates})
        fields["targets"] = [
            {"resolution_date": day, "resolution": known.get(date.fromisoformat(day))} for day in days if day != "None"
        ]
        explained = text("freeze_datetime_value_explanation")
        fields["description"] = joined(
            (fields["description"], _series_value(row.get("freeze_datetime_value"), frozen, explained))
        )
        return fields
    if source not in MARKETS:
        raise DataError(f"{where}, resolution_dates: a question of {source} lists none", hint="Export the set again.")
    price = number_of(row.get("freeze_datetime_value"), where=where, field="freeze_datetime_value")
    if price is not None:
        fields["market"] = {"price": price, "source": source, "as_of": frozen}
    if known:
        day = min(known)
        fields["resolution"] = known[day] | {"known_on": day}
    # A market's closing time is moved to its end where it ends early, so only one in a set made before then is shown.
    fields["close_date"] = day_of(
        row.get("market_info_close_datetime"), where=where, field="market_info_close_datetime"
    )
    return fields


def _series_value(value: Any, frozen: Any, explained: str) -> str:
    if absent(value):
        return ""
    when = "" if frozen is None else f" on {frozen.date()}"
    return f"Value of the series{when}: {value}." + (f" {explained}" if explained else "")


@dataclass(frozen=True)
class ResolvedTargets(Feed):
    """A Parquet table of resolved ForecastBench targets, one row per question and resolution date.

    Columns are `TARGET_COLUMNS` (others are left alone). ``market_prob`` is the price of a market at the freeze;
    ``freeze_value`` of a series is a raw value. Every question of a series has targets, also where only one is left.
    """

    name: ClassVar[str] = "forecastbench_targets"

    def read(self, path: Path, *, skipped: list[Skipped] | None = None) -> list[ForecastQuestion]:
        """Return the questions in the order of their first rows; none is skipped.

        Raises:
            DataError: The table lacks a column, or a row is no target; row and field are named.
        """
        del skipped
        frame = read_parquet(path, row_limit=TARGET_ROWS)
        missing = [name for name in TARGET_COLUMNS if name not in frame.columns]
        if missing:
            raise DataError(f"{path} lacks the column {missing[0]}", hint="Give the table of resolved targets.")
        groups: defaultdict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        for number, row in enumerate(frame.select(TARGET_COLUMNS).iter_rows(named=True), start=1):
            where = f"{path}, row {number}"
            for name in ("question_id", "resolution_date", "source", "question", "forecast_due_date"):
                if not isinstance(row[name], str):
                    raise DataError(f"{where}, {name}: {row[name]!r} is no text", hint="Export the table again.")
            groups[row["question_id"]].append((where, row))
        return distinct([_of_targets(rows, path.name) for rows in groups.values()], where=str(path))


def _of_targets(rows: list[tuple[str, dict[str, Any]]], label_version: str) -> ForecastQuestion:
    where, first = rows[0]
    same = [name for name in TARGET_COLUMNS if name not in {"resolution_date", "outcome"}]
    for here, row in rows:
        for name in same:
            if row[name] != first[name]:
                raise DataError(f"{here}, {name}: another value than in {where}", hint="Export the table again.")
    due, source = first["forecast_due_date"], first["source"]
    fields: dict[str, Any] = {
        "id": first["question_id"],
        "text": first["question"],
        "kind": "binary",
        "cutoff": due,
        "url": first["url"],
        "family": source,
    }

    def resolution(row: Mapping[str, Any]) -> dict[str, Any]:
        said = None if row["outcome"] is not None else "null"
        label = {"source": f"ForecastBench {source}", "label_version": label_version, "said": said}
        return {"outcome": row["outcome"], **label}

    if source not in MARKETS:
        frozen = instant_of(FROZEN.get(due), where=where, field="forecast_due_date")
        fields["description"] = _series_value(first["freeze_value"], frozen, "")
        ordered = sorted((row for _, row in rows), key=lambda row: str(row["resolution_date"]))
        fields["targets"] = [
            {"resolution_date": row["resolution_date"], "resolution": resolution(row)} for row in ordered
        ]
        return make_question(fields, where=where)
    if len(rows) > 1:
        raise DataError(f"{rows[1][0]}: a second target of a market's question", hint="A market has one outcome.")
    fields["resolution"] = resolution(first) | {"known_on": first["resolution_date"]}
    if first["market_prob"] is not None:
        fields["market"] = {"price": first["market_prob"], "source": source, "as_of": FROZEN.get(due)}
    return make_question(fields, where=where)
