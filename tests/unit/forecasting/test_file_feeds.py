"""Questions from the user's files: one question however it is written, and errors that name row and field."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.errors import ConfigError, DataError
from consilience.forecasting.feeds import FEEDS
from consilience.forecasting.feeds.files import Files
from consilience.forecasting.questions import ForecastQuestion, question_id

ROW: dict[str, Any] = {
    "question": "Will it rain?",
    "forecast_due_date": "2025-03-01",
    "resolution_date": "2025-04-01",
    "market_prob": 0.25,
    "market_as_of": "2025-02-01T12:00:00Z",
    "outcome": "0",
}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    match path.suffix:
        case ".json":
            path.write_text(json.dumps(rows), encoding="utf-8")
        case ".jsonl":
            path.write_text("\n\n".join(json.dumps(row) for row in rows), encoding="utf-8-sig")
        case ".csv":
            pl.DataFrame(rows).write_csv(path)
        case _:
            pl.DataFrame(rows).write_parquet(path)
    return path


def read(path: Path, rows: list[dict[str, Any]]) -> list[ForecastQuestion]:
    return Files().read(written(path, rows))


@pytest.mark.parametrize("name", ["q.json", "q.jsonl", "q.csv", "q.parquet"])
def test_the_same_question_in_every_format(tmp_path: Path, name: str) -> None:
    (found,) = read(tmp_path / name, [ROW])
    assert found.id == question_id("Will it rain?")
    assert (found.kind, found.resolution_date) == ("binary", date(2025, 4, 1))
    assert found.cutoff == datetime(2025, 3, 1, tzinfo=UTC)
    assert found.market is not None
    assert (found.market.price, found.market.source) == (0.25, "market")
    assert found.market.as_of == datetime(2025, 2, 1, 12, tzinfo=UTC)
    assert found.resolution is not None
    assert (found.resolution.outcome, found.resolution.source) == (0.0, name)


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"text": ["A?"], "cutoff": [date(2025, 3, 1)], "outcome": [1], "known_on": [date(2025, 4, 1)]},
        schema_overrides={"outcome": pl.Int8},
    )
    frame.write_parquet(tmp_path / "q.parquet")
    (found,) = Files().read(tmp_path / "q.parquet")
    assert found.cutoff == datetime(2025, 3, 1, tzinfo=UTC)
    assert found.resolution is not None
    assert (found.resolution.outcome, found.resolution.known_on) == (1.0, date(2025, 4, 1))


@pytest.mark.parametrize("name", ["q.json", "q.csv", "q.parquet"])
def test_rows_of_one_id_are_targets_in_the_order_of_their_days(tmp_path: Path, name: str) -> None:
    rows = [
        {"question_id": "a", "text": "A?", "resolution_date": day, "outcome": outcome}
        for day, outcome in [("2025-05-01", "0.49"), ("2025-04-01", "1"), ("2025-06-01", None)]
    ]
    (found,) = read(tmp_path / name, rows)
    assert [target.resolution_date.month for target in found.targets] == [4, 5, 6]
    outcomes = [target.resolution and target.resolution.outcome for target in found.targets]
    assert outcomes == [1.0, None, None]
    assert found.resolution is None


def test_options_and_dates_in_a_table(tmp_path: Path) -> None:
    choice = {"text": "Who?", "kind": "multiple_choice", "options": "red|blue", "outcome": "blue", "lower": None}
    day = {"text": "When?", "kind": "date", "options": None, "outcome": "1970-01-03", "lower": "1970-01-02"}
    which, when = read(tmp_path / "q.csv", [choice, day])
    assert [(option.id, option.label) for option in which.options] == [("A", "red"), ("B", "blue")]
    assert which.resolution is not None
    assert which.resolution.outcome == "B"
    assert when.lower == 86_400.0
    assert when.resolution is not None
    assert when.resolution.outcome == 172_800.0


def test_a_column_may_be_ignored_by_name_only(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", [{"text": "A?", "comment": "x"}])
    with pytest.raises(DataError, match='line 2: unknown field "comment"'):
        Files().read(path)
    assert len(Files(ignore=("comment",)).read(path)) == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "holds no question"),
        ([{"text": "A?"}, {"text": "B?", "cutoff": "soon"}], "entry 2: cutoff"),
        ([{"text": "A?", "market_price": 1.5}], "entry 1: market.price"),
        ([{"text": "A?", "market_price": "dear"}], "entry 1: market.price"),
        ([{"text": 7}], "entry 1, text"),
        ([{"id": 7, "text": "A?"}], "entry 1, id"),
        ([{"id": "a"}], "entry 1: text"),
        ([{"text": "A?", "question": "A?"}], "stands for text"),
        ([{"text": "A?", "market": {"price": 0.5, "source": "m"}, "market_price": 0.5}], "given twice"),
        ([{"text": "A?", "market": {"price": 0.5, "source": "m", "x": 1}}], 'entry 1: unknown field "market.x"'),
        ([{"id": "a", "text": "A?"}, {"id": "a", "text": "B?"}], "entry 2, text: another value"),
        ([{"text": "A?", "resolution_date": "2025-01-01"}, {"text": "A?"}], "entry 2, resolution_date: missing"),
        ([{"id": "a", "text": "A?"}, {"id": "A", "text": "A?"}], "question 2 has the id A"),
        ([{"text": "A?"}, {"text": "A?"}], "entry 2: the same row as .*entry 1"),
        (
            [
                {"text": "A?", "resolution_date": "2025-01-01"},
                {"text": "A?", "resolution_date": "2025-01-01", "outcome": 1},
            ],
            "entry 2, resolution_date: 2025-01-01 again, as in .*entry 1",
        ),
        ([["no object"]], "entry 1 is no JSON object"),
    ],
)
def test_errors_name_row_and_field(tmp_path: Path, rows: list[Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(tmp_path / "q.json", rows)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("q.txt", b"[]", "not read from"),
        ("q.json", b"{", "no JSON"),
        ("q.json", b'[{"text": "A?", "lower": NaN}]', "NaN"),
        ("q.json", b'[{"text": "A?", "text": "B?"}]', '"text" stands twice'),
        (
            "q.jsonl",
            b'{"text": "A?"}\n{"text": "B?", "market": {"price": 0, "price": 1}}',
            'line 2 .*"price" stands twice',
        ),
        ("q.jsonl", b'{"text": "A?", "kind": "numeric", "lower": 1e999}', "no finite number"),
        ("q.json", b"[" * 100_000, "no JSON"),
        ("q.json", b"\xff", "not UTF-8"),
        ("q.json", b'{"items": []}', "no list"),
        ("q.jsonl", b'{"text": "A?"}\n[1]', "line 2"),
        ("q.csv", b"text,text\nA?,B?\n", "one twice"),
        ("q.csv", b"text,kind\nA?\n", "line 2: 2 cells"),
        ("q.csv", b"text,kind\nA?,binary,more\n", "line 2: 2 cells"),
        ("q.csv", b'text,kind\n"A?,binary\n', "line"),
        ("q.csv", b"text,open_lower\nA?,perhaps\n", "open_lower"),
        ("q.csv", b"text,market_prob\nA?,dear\n", r"line 2, market_prob \(market_price\)"),
        ("q.parquet", b"nothing", "Parquet"),
    ],
)
@pytest.mark.filterwarnings("default")
def test_unreadable_files_are_errors(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        Files().read(path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        Files().read(tmp_path / "none.json")


def test_a_feed_of_another_name_is_unknown() -> None:
    with pytest.raises(ConfigError, match="feed of questions"):
        FEEDS["polymarkets"]
