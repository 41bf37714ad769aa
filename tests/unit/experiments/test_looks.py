from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from consilience.errors import DataError, IntegrityError, PlanError
from consilience.experiments.looks import LAST, Glance, Look, look_text, note_look, read_looks

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
GLANCE = Glance("test", simulated=False, run_ids=("E", "G"), tables_sha256="a" * 64)
HEAD = "f" * 64


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "results" / "looks.jsonl"


def look(log: Path, glance: Glance = GLANCE, **options: Any) -> Look:
    terms: dict[str, Any] = {"at": NOON, "freeze_sha256": HEAD, "again": None, **options}
    return note_look(log, glance, **terms)


def test_test_is_looked_at_once_after_the_freeze(log: Path) -> None:
    for told in (None, " "):
        with pytest.raises(PlanError, match=r"after the freeze, and this study is not frozen\. Fix it"):
            look(log, freeze_sha256=None, again=told)
    assert read_looks(log) == ()
    before = [look(log, freeze_sha256=None, again="curious") for _ in range(2)]
    assert [one.number for one in before] == [1, 2]
    assert "no freeze existed" in look_text(before[1])
    with pytest.raises(PlanError, match="not frozen; looks at it so far: 2"):
        look(log, freeze_sha256=None)
    first = look(log)
    said = f"This is look 3 at test under freeze {HEAD[:12]}; earlier looks at it without a freeze: 2"
    assert look_text(first) == said
    noted = log.read_bytes()
    with pytest.raises(PlanError, match="look 3 on 2026-11-01 12:00 UTC, runs E, G"):
        look(log)
    with pytest.raises(PlanError, match="looked at under the freeze"):
        look(log, again=" ")
    assert log.read_bytes() == noted
    again = look(log, again="a reviewer asked")
    assert again.number == 4
    assert look_text(again).endswith(", because: a reviewer asked")
    assert [one.reason for one in read_looks(log)] == ["curious", "curious", None, "a reviewer asked"]


def test_a_new_freeze_brings_no_new_look(log: Path) -> None:
    look(log)
    with pytest.raises(PlanError, match="looked at under the freeze"):
        look(log, freeze_sha256="e" * 64)
    with pytest.raises(PlanError, match="looked at under the freeze"):
        look(log, freeze_sha256=None)


def test_splits_and_simulated_looks_are_counted_apart(log: Path) -> None:
    look(log)
    assert look(log, replace(GLANCE, split="holdout")).number == 1
    made_up = look(log, replace(GLANCE, simulated=True))
    assert made_up.number == 1
    assert "test (simulated)" in look_text(made_up)
    with pytest.raises(PlanError, match="holdout was looked at"):
        look(log, replace(GLANCE, split="holdout"))
    with pytest.raises(PlanError, match="looked at under the freeze"):
        look(log, replace(GLANCE, simulated=True))


def test_tables_that_were_shown_are_no_new_look(log: Path) -> None:
    first = look(log)
    noted = log.read_bytes()
    assert look(log, repeated=True) == first
    assert log.read_bytes() == noted
    with pytest.raises(PlanError, match="looked at under the freeze"):
        look(log, replace(GLANCE, tables_sha256="b" * 64), repeated=True)
    with pytest.raises(PlanError, match="looked at under the freeze"):
        look(log, replace(GLANCE, run_ids=("E",)), repeated=True)


def test_the_latest_of_looks_at_the_same_tables_is_shown(log: Path) -> None:
    look(log, freeze_sha256=None, again="curious")
    second = look(log)
    assert look(log, repeated=True, again="not needed") == second
    assert f"look 2 at test under freeze {HEAD[:12]}" in look_text(second)
    assert len(read_looks(log)) == 2


def test_looks_taken_out_at_the_end_are_missed(log: Path) -> None:
    for _ in range(3):
        look(log, again="because")
    whole, last = log.read_bytes(), log.with_name(LAST).read_bytes()
    lines = whole.splitlines(keepends=True)
    for left in (b"", lines[0], b"".join(lines[:2]), b"".join(lines[:2]) + lines[2][:-1]):
        log.write_bytes(left)
        with pytest.raises(IntegrityError, match="does not hold the 3 looks that were made"):
            read_looks(log)
        with pytest.raises(IntegrityError, match="does not hold the 3 looks"):
            look(log, again="because")
        assert log.read_bytes() == left
    log.unlink()
    for _ in range(2):
        with pytest.raises(IntegrityError, match="taken away"):
            look(log, again="because")
    log.write_bytes(whole)
    assert look(log, again="because").number == 4
    for damaged in (b"{", b"[]", b"{}"):
        log.with_name(LAST).write_bytes(damaged)
        with pytest.raises(IntegrityError, match="is no count of looks"):
            read_looks(log)
    log.with_name(LAST).write_bytes(last)  # a crash before the fourth was counted
    assert len(read_looks(log)) == 4


def test_a_torn_last_line_showed_nothing_and_is_reported(log: Path) -> None:
    look(log, freeze_sha256=None, again="curious")
    whole = log.read_bytes()
    log.write_bytes(whole + whole[:40])
    assert len(read_looks(log)) == 1
    second = look(log)
    assert (second.number, second.torn_bytes) == (2, 40)
    assert read_looks(log) == (Look.model_validate_json(whole), second)
    log.write_bytes(whole[:17])
    log.with_name(LAST).unlink()  # a crash at the very first look
    assert look(log).torn_bytes == 17
    assert len(read_looks(log)) == 1


def test_a_reason_that_could_not_be_read_again_is_refused(log: Path) -> None:
    look(log)
    noted = log.read_bytes()
    with pytest.raises(DataError, match="this look could not be read again"):
        look(log, again="caf\udce9")  # as a terminal that is not UTF-8 hands it over
    assert log.read_bytes() == noted


def test_a_changed_line_is_named(log: Path) -> None:
    for _ in range(3):
        look(log, again="because")
    lines = log.read_bytes().splitlines(keepends=True)
    for damaged, said in (
        ([lines[0], lines[2]], "line 2 .* does not follow"),
        ([lines[0].replace(b'"E"', b'"F"'), *lines[1:]], "line 2 .* does not follow"),
        ([lines[0], b"{}\n", lines[2]], "line 2 .* is no look"),
    ):
        log.write_bytes(b"".join(damaged))
        with pytest.raises(IntegrityError, match=said):
            read_looks(log)
        with pytest.raises(IntegrityError, match=said):
            look(log, again="because")
        assert log.read_bytes() == b"".join(damaged)


def test_a_log_that_cannot_be_written_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written"):
        look(tmp_path / "results" / "looks.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        read_looks(tmp_path / "folder")
    assert read_looks(tmp_path / "none.jsonl") == ()


def test_a_log_of_before_unfrozen_looks_were_counted_is_read_and_counted(log: Path) -> None:
    told = look(log, freeze_sha256=None, again="curious").model_dump(mode="json")
    del told["unfrozen"]
    log.write_bytes(json.dumps(told, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    log.with_name(LAST).unlink()
    (old,) = read_looks(log)
    assert old.unfrozen is None
    assert look(log).unfrozen == 1


def test_each_look_is_one_line_of_canonical_json(log: Path) -> None:
    first = look(log)
    (line,) = log.read_bytes().splitlines()
    assert json.loads(line) == json.loads(first.model_dump_json())
    assert first.at == NOON
