"""The index of a journal says what a fold of all its records says, also while the journal grows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from consilience.errors import IntegrityError
from consilience.journal.reader import fold, read_events
from consilience.models.request import Request
from consilience.viewer.index import JournalIndex
from engine_cases import make_items, read, speak
from viewer_cases import recorded_run, study_of


def indexed(folder: Path) -> JournalIndex:
    index = JournalIndex(folder)
    index.refresh()
    return index


def test_sums_items_and_texts_are_those_of_the_fold(tmp_path: Path) -> None:
    def sometimes(request: Request) -> str:
        return "no json at all" if str(read(request).task).startswith("critique") else speak(request)

    folder = recorded_run(tmp_path, "_run", *make_items(3), say=sometimes)
    index, state = indexed(folder), fold(folder)
    assert index.sums.records == sum(1 for _ in read_events(folder))
    assert (index.sums.started, index.sums.finished, index.sums.ended) == (3, 3, True)
    assert index.sums.all.cost_nano == state.spent_nano > 0
    assert index.sums.all.attempts == len(state.attempts)
    assert index.sums.turns == Counter(str(turn.outcome["status"]) for turn in state.turns.values())
    assert index.sums.turns["unreadable"] == 15
    assert set(index.sums.by_role) == {attempt.reserved.role for attempt in state.attempts.values()}
    assert sum(one.cost_nano for one in index.sums.by_role.values()) == state.spent_nano
    assert dict(index.items()) == dict(state.texts.items())
    for item in index.item_ids:
        assert index.records(item) == [record for record in read_events(folder) if record.where.item == item]


def test_the_index_goes_on_with_a_journal_that_grows_byte_by_byte(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(1))
    (journal,) = folder.glob("events-*.jsonl")
    whole = journal.read_bytes()
    growing = tmp_path / "growing"
    growing.mkdir()
    index, seen = JournalIndex(growing), []
    for end in (0, 10, len(whole) // 3, len(whole) // 3 + 1, len(whole) - 1, len(whole)):
        (growing / journal.name).write_bytes(whole[:end])
        index.refresh()
        seen.append(index.sums.records)
        assert seen[-1] == whole[:end].count(b"\n")
    assert seen[-1] == indexed(folder).sums.records
    assert index.sums == indexed(folder).sums


def test_an_index_of_one_item_holds_its_records_and_all_texts(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(3))
    whole, one = indexed(folder), JournalIndex(folder, only="item-02")
    one.refresh()
    assert one.item_ids == ("item-02",)
    assert one.records("item-02") == whole.records("item-02") != []
    assert dict(one.items()) == dict(whole.items())
    study = study_of(tmp_path)
    assert study.index(folder, item="item-01").item_ids == ("item-01",)
    assert len(study.index(folder).item_ids) == 3
    assert len(study.index(folder, item="item-01").item_ids) == 3


def test_money_on_its_way_counts_at_its_reservation(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(1))
    (journal,) = folder.glob("events-*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if b'"type":"attempt.reserved"' in line)
    journal.write_bytes(b"".join(lines[: first + 1]))
    assert indexed(folder).sums.all.cost_nano == fold(folder).spent_nano > 0


@pytest.mark.parametrize("line", [b"\n", b"nonsense\n", b'{"hash":"' + b"0" * 64 + b'","event":{"type":1}}\n'])
def test_a_line_that_is_no_record_is_named_by_its_place(tmp_path: Path, line: bytes) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(1))
    (journal,) = folder.glob("events-*.jsonl")
    size = journal.stat().st_size
    journal.write_bytes(journal.read_bytes() + line)
    with pytest.raises(IntegrityError, match=f"byte {size}"):
        indexed(folder)
