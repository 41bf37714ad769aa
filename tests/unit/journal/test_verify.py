from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from consilience.errors import IntegrityError
from consilience.journal.reader import read_events
from consilience.journal.verify import verify
from consilience.journal.writer import JournalWriter

Write = Callable[..., JournalWriter]


@pytest.fixture
def path(tmp_path: Path, write: Write, small_run: list[Any]) -> Path:
    """The one file of a finished small run."""
    write(tmp_path, small_run)
    return tmp_path / "events-00001.jsonl"


def test_an_untouched_run_verifies(path: Path) -> None:
    found = verify(path.parent)
    assert (found.ok, found.finished, found.first_bad) == (True, True, None)
    assert verify(path.parent, head=found.head).ok


@pytest.mark.parametrize("mask", [0x01, 0x20])
def test_every_flipped_byte_is_found_and_its_record_named(path: Path, mask: int) -> None:
    whole = path.read_bytes()
    starts = [0, *accumulate(len(line) for line in whole.splitlines(keepends=True))]
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ mask]) + whole[position + 1 :])
        bad = verify(path.parent).first_bad
        record = bisect_right(starts, position)
        assert bad is not None, position
        assert (bad.file, bad.record, bad.offset) == (path.name, record, starts[record - 1]), position


def test_every_cut_is_found(path: Path) -> None:
    whole = path.read_bytes()
    starts = set(accumulate(len(line) for line in whole.splitlines(keepends=True)))
    head = verify(path.parent).head
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        found = verify(path.parent)
        assert not found.finished
        assert found.ok == (size in starts)  # at a record's end the run only looks unfinished…
        assert not verify(path.parent, head=head).ok  # …but not against a noted head


def test_a_torn_record_is_told_from_a_changed_one(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    torn = verify(path.parent).first_bad
    assert torn is not None
    assert torn.kind == "torn"
    assert "its own command resumes it" in str(torn.error())
    path.write_bytes(whole.replace(b"run.started", b"run.starteD", 1))
    changed = verify(path.parent).first_bad
    assert changed is not None
    assert changed.kind == "changed"
    assert "restore it from a copy" in str(changed.error())
    path.write_bytes(b"")
    empty = verify(path.parent).first_bad
    assert empty is not None
    assert empty.reason == "the file is empty"


def test_a_removed_a_repeated_and_a_swapped_record_are_named(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for index in range(len(lines) - 1):
        path.write_bytes(b"".join(lines[:index] + lines[index + 1 :]))
        removed = verify(path.parent).first_bad
        path.write_bytes(b"".join(lines[: index + 1] + lines[index:]))
        repeated = verify(path.parent).first_bad
        swapped = [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]]
        path.write_bytes(b"".join(swapped))
        exchanged = verify(path.parent).first_bad
        assert [bad.record for bad in (removed, repeated, exchanged) if bad] == [index + 1, index + 2, index + 1]


def test_a_rewritten_tail_shows_against_a_noted_head(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    true = write(tmp_path / "a", small_run).head
    write(tmp_path / "b", [*small_run[:-1], small_run[1]])
    assert verify(tmp_path / "b").ok
    bad = verify(tmp_path / "b", head=true).first_bad
    assert bad is not None
    assert "cut or rewritten" in bad.reason
    assert bad.record == len(small_run) + 2
    assert "journal record" not in str(bad.error())


def test_a_head_noted_before_the_run_went_on_still_holds(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    noted = write(tmp_path, small_run[:4], finish=False).head
    write(tmp_path, small_run[4:])
    assert verify(tmp_path, head=noted).ok


@pytest.mark.parametrize("gone", [1, 3])
def test_a_removed_segment_is_named(tmp_path: Path, write: Write, small_run: list[Any], gone: int) -> None:
    write(tmp_path, small_run, segment_bytes=1)
    (tmp_path / f"events-{gone:05d}.jsonl").unlink()
    bad = verify(tmp_path).first_bad
    assert bad is not None
    assert (bad.file, bad.record, bad.reason) == (f"events-{gone:05d}.jsonl", gone, "the file is missing")


def test_a_removed_last_segment_is_a_cut_tail(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    head = write(tmp_path, small_run, segment_bytes=1).head
    (tmp_path / f"events-{len(small_run) + 1:05d}.jsonl").unlink()
    assert not verify(tmp_path).finished
    assert not verify(tmp_path, head=head).ok


def test_a_cut_inside_an_earlier_segment_is_named(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    write(tmp_path, small_run, segment_bytes=1)
    second = tmp_path / "events-00002.jsonl"
    second.write_bytes(second.read_bytes()[:-1])
    bad = verify(tmp_path).first_bad
    assert bad is not None
    assert (bad.file, bad.record) == ("events-00002.jsonl", 2)
    with pytest.raises(IntegrityError, match="cut off"):
        list(read_events(tmp_path))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "events-00001.jsonl").mkdir()
    bad = verify(tmp_path).first_bad
    assert bad is not None
    assert "cannot be read" in bad.reason


def test_another_run_id_fits_no_chain(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"run_id":"r"', b'"run_id":"s"'))
    bad = verify(path.parent).first_bad
    assert bad is not None
    assert bad.record == 1
