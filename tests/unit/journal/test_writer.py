from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from consilience.core.canonical import canonical_json
from consilience.errors import IntegrityError, JournalError
from consilience.journal.events import ItemFinished, Record, RunFinished, RunStarted, TextStored, Where
from consilience.journal.files import segments
from consilience.journal.reader import Texts, expand, genesis, read_events, text_sha256
from consilience.journal.verify import verify
from consilience.journal.writer import JournalWriter

START = RunStarted(run_id="r", protocol_sha256="0" * 64, package_version="0.1")
Write = Callable[..., JournalWriter]


def now() -> datetime:
    return datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def started(folder: Path) -> JournalWriter:
    journal = JournalWriter(folder, clock=now)
    journal.append(START)
    return journal


def test_a_line_is_hash_and_canonical_event(tmp_path: Path, write: Write) -> None:
    journal = write(tmp_path, [(START, Where())], finish=False)
    line = (tmp_path / "events-00001.jsonl").read_bytes()
    event = canonical_json(
        {
            "seq": 1,
            "type": "run.started",
            "at": "2026-11-01T12:00:00+00:00",
            "run_id": "r",
            "protocol_sha256": "0" * 64,
            "package_version": "0.1",
        }
    )
    digest = hashlib.sha256(genesis("r").encode() + event).hexdigest()
    assert line == b'{"hash":"' + digest.encode() + b'","event":' + event + b"}\n"
    assert json.loads(line)["event"]["run_id"] == "r"
    assert (journal.head, journal.count) == (digest, 1)


def test_events_come_back_in_order_with_coordinates(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    write(tmp_path, small_run)
    records = list(read_events(tmp_path))
    assert [(record.event, record.where) for record in records[:-1]] == small_run
    last = records[-1].event
    assert isinstance(last, RunFinished)
    assert (last.events, last.head) == (len(small_run), records[-2].hash)


@pytest.mark.parametrize("segment_bytes", [1, 400, 900])
def test_segments_carry_one_chain(tmp_path: Path, write: Write, small_run: list[Any], segment_bytes: int) -> None:
    journal = write(tmp_path, small_run, segment_bytes=segment_bytes)
    found = verify(tmp_path)
    assert (found.ok, found.records, found.head, found.finished) == (True, len(small_run) + 1, journal.head, True)
    assert len(segments(tmp_path)) > 1
    assert not list(tmp_path.glob("*.new"))


def test_a_finished_run_may_go_on(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    write(tmp_path, small_run)
    journal = write(tmp_path, [(ItemFinished(), Where(item="b"))])
    assert verify(tmp_path).head == journal.head
    assert journal.count == len(small_run) + 3


def test_opening_shows_every_record(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    write(tmp_path, small_run)
    seen: list[Record] = []
    JournalWriter(tmp_path, clock=now, seen=seen.append)
    assert seen == list(read_events(tmp_path))


def test_opening_a_damaged_journal_is_refused(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    write(tmp_path, small_run)
    path = tmp_path / "events-00001.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"status":429', b'"status":529'))
    with pytest.raises(IntegrityError, match=r"journal record 4 .*hash"):
        JournalWriter(tmp_path, clock=now)


def test_the_first_event_is_run_started(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, clock=now)
    with pytest.raises(JournalError, match=r"starts with run\.started"):
        journal.append(ItemFinished())
    assert journal.count == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}, {1: 1, "a": 2}])
def test_what_is_not_json_is_refused_and_the_chain_goes_on(tmp_path: Path, bad: Any) -> None:
    journal = started(tmp_path)
    with pytest.raises(JournalError, match="is not JSON"):
        journal.append(ItemFinished(data={"x": bad}), Where(item="a"))
    journal.append(ItemFinished())
    anyio.run(journal.close)
    assert verify(tmp_path).records == 2


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(JournalError, match="is not JSON"):
        started(tmp_path).append(ItemFinished(data={"x": deep}))


def test_long_texts_are_stored_once(tmp_path: Path) -> None:
    journal = started(tmp_path)
    long, limit, wide = "x" * 2_049, "x" * 2_048, "€" * 683
    body = {"system": [long, limit], "again": long, "wide": wide, "$text": "mine", "$$json": 1}
    stored = journal.intern(body)
    assert stored["system"] == [{"$text": text_sha256(long)}, limit]
    assert stored["wide"] == {"$text": text_sha256(wide)}
    assert journal.store_text(long) == text_sha256(long)
    schema = journal.store_json({"type": "object"})
    anyio.run(journal.close)
    texts = Texts(tmp_path)
    for record in read_events(tmp_path):
        texts.add(record)
    assert len(texts) == 3
    assert expand(stored, texts) == body
    assert expand({"schema": schema}, texts) == {"schema": {"type": "object"}}


def test_a_resumed_journal_knows_its_texts(tmp_path: Path) -> None:
    journal = started(tmp_path)
    journal.store_text("a text")
    anyio.run(journal.close)
    again = JournalWriter(tmp_path, clock=now)
    again.store_text("a text")
    again.store_text("another")
    anyio.run(again.close)
    assert sum(isinstance(record.event, TextStored) for record in read_events(tmp_path)) == 2


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    journal = started(tmp_path)
    anyio.run(journal.close)
    anyio.run(journal.close)
    with pytest.raises(JournalError, match="closed"):
        journal.append(ItemFinished())


def test_waiting_for_a_record_never_appended_is_refused(tmp_path: Path) -> None:
    journal = started(tmp_path)
    with pytest.raises(JournalError, match="record 2 was never appended"):
        anyio.run(journal.durable, 2)
