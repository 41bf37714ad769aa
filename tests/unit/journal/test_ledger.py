from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consilience.errors import DataError
from consilience.journal.events import AttemptError, AttemptReserved, AttemptResponse, Where
from consilience.journal.ledger import ledger_rows, totals, write_csv, write_jsonl
from consilience.journal.reader import read_events
from consilience.journal.writer import JournalWriter

Write = Callable[..., JournalWriter]
TURN = Where(item="a", round=0, seat="analyst_01", kind="estimate", sample=0)


def test_every_attempt_has_a_row(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    lost = AttemptReserved(**{**small_run[2][0].__dict__, "key": "k2", "ask": 1, "role": "buyer_wtp"})
    write(tmp_path, [*small_run, (lost, TURN)])
    rows = ledger_rows(read_events(tmp_path))
    assert [(row.ask, row.attempt, row.status, row.cost_nano, row.estimated) for row in rows] == [
        (0, 0, "error", 0, False),
        (0, 1, "answered", 700, False),
        (1, 0, "lost", 1_000, True),
    ]
    answered = rows[1]
    assert (answered.input, answered.cache_read, answered.cache_write_5m, answered.latency_s) == (5, 2, None, 0.5)
    whole = totals(rows)[None]
    assert (whole.attempts, whole.cost_nano, whole.cost_unknown, whole.tokens_unknown) == (3, 1_700, 0, 2)
    assert whole.tokens["input"] == 5
    assert whole.tokens["output_reasoning"] is None
    assert {name: total.cost_nano for name, total in totals(rows, "role").items()} == {
        "buyer_wtp": 1_000,
        "skeptic": 700,
    }


def test_rows_are_sorted_by_coordinates_not_arrival(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    attempt = small_run[2][0]
    write(tmp_path, [small_run[0], *((attempt, TURN._replace(item=item)) for item in "cab")])
    assert [row.item for row in ledger_rows(read_events(tmp_path))] == ["a", "b", "c"]


def test_unknown_is_null_and_saved_is_counted(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    unpriced = AttemptReserved(**{**small_run[2][0].__dict__, "reserved_nano": None})
    unknown = AttemptError(**{**small_run[3][0].__dict__, "charged_nano": None})
    cached = AttemptResponse(**{**small_run[5][0].__dict__, "cost_nano": 0, "saved_nano": 700})
    write(tmp_path, [small_run[0], (unpriced, TURN), (unknown, TURN), small_run[4], (cached, TURN)])
    rows = ledger_rows(read_events(tmp_path))
    assert [row.cost_nano for row in rows] == [None, 0]
    assert (totals(rows)[None].cost_unknown, totals(rows)[None].saved_nano) == (1, 700)
    assert totals(rows[:1])[None].cost_nano is None


def test_an_unknown_bucket_is_refused(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    strange = AttemptResponse(**{**small_run[5][0].__dict__, "completion": {"usage": {"tokens": 5}}})
    write(tmp_path, [small_run[0], small_run[4], (strange, TURN)])
    with pytest.raises(DataError, match=r"item a.*reports tokens as tokens"):
        ledger_rows(read_events(tmp_path))


def test_exports(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    write(tmp_path, small_run)
    rows = ledger_rows(read_events(tmp_path))
    write_jsonl(rows, tmp_path / "ledger.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert [line["cost_nano"] for line in lines] == [0, 700]
    assert lines[0]["input"] is None
    write_csv(rows, tmp_path / "ledger.csv")
    with (tmp_path / "ledger.csv").open(newline="") as table:
        cells = list(csv.DictReader(table))
    assert cells[1]["request_id"] == "'=evil"
    assert (cells[0]["input"], cells[1]["input"], cells[1]["estimated"]) == ("", "5", "false")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(tmp_path: Path, write: Write, small_run: list[Any], start: str) -> None:
    hostile = AttemptReserved(**{**small_run[2][0].__dict__, "model": f"{start}1\ud800"})
    write(tmp_path, [small_run[0], (hostile, TURN)])
    write_csv(ledger_rows(read_events(tmp_path)), tmp_path / "ledger.csv")
    with (tmp_path / "ledger.csv").open(newline="") as table:
        assert next(csv.DictReader(table))["model"].startswith(f"'{start}1")
