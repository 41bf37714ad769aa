from __future__ import annotations

import os
from pathlib import Path

import pytest

from consilience.journal.files import RealFiles, segment_path, segments


def test_partial_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: whole(handle, data[:3]))
    files, path = RealFiles(), tmp_path / "a"
    handle = files.open_append(path)
    files.write(handle, b"0123456789")
    files.close(handle)
    assert path.read_bytes() == b"0123456789"


def test_appending_cutting_and_renaming(tmp_path: Path) -> None:
    files, path = RealFiles(), tmp_path / "a"
    for part in (b"ab", b"cd"):
        handle = files.open_append(path)
        files.write(handle, part)
        files.fsync(handle)
        files.close(handle)
    files.truncate(path, 3)
    files.replace(path, tmp_path / "b")
    files.fsync_dir(tmp_path)
    assert (tmp_path / "b").read_bytes() == b"abc"
    assert not path.exists()


def test_segments_are_listed_by_number(tmp_path: Path) -> None:
    for name in ("events-00002.jsonl", "events-00010.jsonl", "events-1.jsonl", "events-00003.new", "events-x.jsonl"):
        (tmp_path / name).touch()
    assert segments(tmp_path) == [2, 10]
    assert segment_path(tmp_path, 2).name == "events-00002.jsonl"
    assert segments(tmp_path / "absent") == []
