from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.journal.events import ItemFinished, ProtocolNote, RunStarted, Where
from consilience.journal.files import segments
from consilience.journal.reader import expand, fold, read_events
from consilience.journal.verify import verify
from consilience.journal.writer import JournalWriter

START = RunStarted(run_id="r", protocol_sha256="0" * 64, package_version="0.1")
TEXT = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["\ud800", "a\udfff\x00", "x" * 3_000, "€" * 700, "\r\n"]
)
KEY = TEXT | st.sampled_from(["$text", "$json", "$$text", "$$json", "$"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=8,
)
WHERE = st.builds(
    Where,
    item=st.none() | TEXT,
    round=st.none() | st.integers(0, 4),
    seat=st.none() | TEXT,
    kind=st.sampled_from([None, "estimate"]),
    sample=st.none() | st.integers(0, 12),
)


def now() -> datetime:
    return datetime(2026, 11, 1, tzinfo=UTC)


async def write(folder: Path, events: list[tuple[Any, Where]], segment_bytes: int) -> None:
    journal = JournalWriter(folder, clock=now, segment_bytes=segment_bytes)
    for event, where in events:
        seq = journal.append(event, where)
        if seq % 2:
            await journal.durable(seq)
    await journal.close()


@settings(max_examples=50, deadline=None)
@given(notes=st.lists(st.tuples(st.dictionaries(KEY, JSON, max_size=3), WHERE), max_size=5), size=st.integers(1, 2_000))
def test_what_is_written_is_read(notes: list[tuple[dict[str, Any], Where]], size: int) -> None:
    events = [(START, Where()), *((ProtocolNote(note="n", data=data), where) for data, where in notes)]
    with tempfile.TemporaryDirectory() as name:
        anyio.run(write, Path(name), events, size)
        assert [(record.event, record.where) for record in read_events(Path(name))] == events
        assert verify(Path(name)).records == len(events)


@settings(max_examples=50, deadline=None)
@given(bodies=st.lists(JSON, max_size=4))
def test_interning_loses_nothing(bodies: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        journal = JournalWriter(Path(name), clock=now)
        journal.append(START)
        stored = [journal.intern(body) for body in bodies]
        anyio.run(journal.close)
        texts = fold(Path(name)).texts
        assert [expand(body, texts) for body in stored] == bodies


@settings(max_examples=50, deadline=None)
@given(count=st.integers(1, 6), size=st.integers(1, 600), data=st.data())
def test_a_journal_cut_anywhere_in_its_last_file_opens_as_a_prefix_and_goes_on(
    count: int, size: int, data: st.DataObject
) -> None:
    events = [(START, Where()), *((ItemFinished(data={"n": n}), Where(item=str(n))) for n in range(count))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        anyio.run(write, folder, events, size)
        before = list(read_events(folder))
        path = folder / f"events-{segments(folder)[-1]:05d}.jsonl"
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        journal = JournalWriter(folder, clock=now, segment_bytes=size)
        kept = journal.count
        assert before[:kept] == list(read_events(folder))
        torn = b"".join(aside.read_bytes() for aside in folder.glob("*.torn-*"))
        assert (path.read_bytes() + torn, len(torn)) == (whole[:cut], journal.torn_bytes)
        journal.append(ItemFinished() if kept else START)
        anyio.run(journal.close)
        found = verify(folder)
        assert (found.ok, found.records) == (True, kept + 1)
