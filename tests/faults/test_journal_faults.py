from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from consilience.errors import JournalError
from consilience.journal.events import AttemptReserved, AttemptResponse, ItemFinished, RunStarted, Where
from consilience.journal.files import FileLayer, RealFiles
from consilience.journal.reader import fold, read_events
from consilience.journal.verify import verify
from consilience.journal.writer import JournalWriter

START = RunStarted(run_id="r", protocol_sha256="0" * 64, package_version="0.1")
OPERATIONS = ("open_append", "write", "fsync", "close", "replace", "fsync_dir", "truncate")


def now() -> datetime:
    return datetime(2026, 11, 1, tzinfo=UTC)


class Disk(RealFiles):
    """The disk with a log of what was done, failing at one operation when asked."""

    def __init__(self, fail: Callable[[int, str], int | None] = lambda _count, _name: None) -> None:
        self.log: list[tuple[str, Any]] = []
        self.count = 0
        self._fail = fail

    def _enter(self, name: str, what: Any) -> None:
        self.count += 1
        code = self._fail(self.count, name)
        if code is not None:
            self.log.append((f"failed {name}", what))
            raise OSError(code, "injected")
        self.log.append((name, what))

    def open_append(self, path: Path) -> int:
        self._enter("open_append", path.name)
        return super().open_append(path)

    def write(self, handle: int, data: bytes) -> None:
        try:
            self._enter("write", data)
        except OSError:
            super().write(handle, data[: len(data) // 2])  # a full disk takes a part
            raise
        super().write(handle, data)

    def fsync(self, handle: int) -> None:
        self._enter("fsync", None)
        super().fsync(handle)

    def close(self, handle: int) -> None:
        super().close(handle)
        self._enter("close", None)

    def replace(self, source: Path, target: Path) -> None:
        self._enter("replace", (source.name, target.name))
        super().replace(source, target)

    def fsync_dir(self, folder: Path) -> None:
        self._enter("fsync_dir", folder)
        super().fsync_dir(folder)

    def truncate(self, path: Path, size: int) -> None:
        self._enter("truncate", (path.name, size))
        super().truncate(path, size)


def at(index: int) -> Where:
    return Where(item=f"i{index}", round=0, seat="analyst_01", kind="estimate", sample=0)


async def turn(journal: JournalWriter, index: int, log: list[tuple[str, Any]]) -> None:
    """Reserve, send, receive and use, in the order that the rules demand."""
    key = f"key-{index:03d}"
    reservation = AttemptReserved(
        key=key,
        key_version=1,
        ask=0,
        attempt=0,
        role="skeptic",
        model="m",
        provider="simulated",
        tier="standard",
        body={},
        reserved_nano=1,
    )
    await journal.durable(journal.append(reservation, at(index)))
    log.append(("request", index))
    for _ in range(index % 5):
        await anyio.lowlevel.checkpoint()
    response = AttemptResponse(key=key, ask=0, attempt=0, completion={"text": "1"}, cost_nano=1, estimated=False)
    await journal.durable(journal.append(response, at(index)))
    log.append(("use", index))


async def run_turns(folder: Path, disk: FileLayer, log: list[tuple[str, Any]], *, turns: int, size: int) -> int:
    """Run turns concurrently; return how many ended in a journal error."""
    failed = 0
    journal = JournalWriter(folder, clock=now, files=disk, segment_bytes=size)

    async def guarded(index: int) -> None:
        nonlocal failed
        try:
            await turn(journal, index, log)
        except JournalError as error:
            failed += "run the command again" in str(error)

    if journal.count == 0:
        journal.append(START)
    async with anyio.create_task_group() as group:
        for index in range(turns):
            group.start_soon(guarded, index)
    await journal.close()
    return failed


@pytest.mark.parametrize("size", [2**20, 3_000])
def test_nothing_leaves_or_is_used_before_its_record_is_on_disk(tmp_path: Path, size: int) -> None:
    disk = Disk()
    assert anyio.run(lambda: run_turns(tmp_path, disk, disk.log, turns=64, size=size)) == 0
    on_disk: set[tuple[str, int]] = set()
    written: set[tuple[str, int]] = set()
    drafted = False
    for name, what in disk.log:
        if name == "write":
            for index in range(64):
                key = b'"key":"key-%03d"' % index
                written |= {("request", index)} if key in what and b"attempt.reserved" in what else set()
            lines = what.splitlines()
            written |= {
                ("use", int(line.split(b'"key":"key-')[1][:3])) for line in lines if b"attempt.response" in line
            }
        elif name == "open_append":
            drafted = True
        elif name == "fsync" and not drafted:
            on_disk |= written
        elif name == "fsync_dir":  # a new file counts once its name is on disk
            drafted = False
            on_disk |= written
        elif name in {"request", "use"}:
            assert (name, what) in on_disk
    assert sum(name == "use" for name, _ in disk.log) == 64


def test_64_waiters_share_a_few_syncs(tmp_path: Path) -> None:
    disk = Disk()
    anyio.run(lambda: run_turns(tmp_path, disk, disk.log, turns=64, size=2**20))
    assert sum(name == "fsync" for name, _ in disk.log) <= 16


def test_a_record_on_its_way_to_disk_is_waited_for_not_written_again(tmp_path: Path) -> None:
    second = anyio.Event()

    class Slow(Disk):
        def fsync(self, handle: int) -> None:
            anyio.from_thread.run_sync(second.set)  # from here on another task waits for the same record
            anyio.from_thread.run(anyio.lowlevel.checkpoint)
            super().fsync(handle)

    disk = Slow()

    async def follow(journal: JournalWriter) -> None:
        await second.wait()
        await journal.durable(1)
        disk.log.append(("followed", None))

    async def run() -> None:
        journal = JournalWriter(tmp_path, clock=now, files=disk)
        journal.append(START)
        async with anyio.create_task_group() as group:
            group.start_soon(follow, journal)
            await journal.durable(1)
        await journal.close()

    anyio.run(run)
    names = [name for name, _ in disk.log]
    assert names.count("write") == names.count("fsync") == 1
    assert names.index("followed") > names.index("fsync_dir")


def test_a_new_file_gets_its_name_only_with_its_records_on_disk(tmp_path: Path) -> None:
    disk = Disk()

    async def run() -> None:
        journal = JournalWriter(tmp_path, clock=now, files=disk, segment_bytes=1)
        journal.append(START)
        await journal.durable(1)
        await journal.durable(journal.append(ItemFinished()))
        await journal.close()

    anyio.run(run)
    assert [name for name, _ in disk.log] == [
        *("open_append", "truncate", "write", "fsync", "replace", "fsync_dir", "fsync_dir"),
        *("close", "open_append", "truncate", "write", "fsync", "replace", "fsync_dir"),
        "close",
    ]
    assert [what for name, what in disk.log if name == "fsync_dir"] == [tmp_path, tmp_path.parent, tmp_path]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "close"])
@pytest.mark.parametrize("size", [2**20, 2_000])
def test_a_failing_disk_stops_dispatch_and_loses_nothing(tmp_path: Path, code: int, operation: str, size: int) -> None:
    for nth in range(1, 12):
        folder = tmp_path / str(nth)
        folder.mkdir()
        disk = Disk(lambda count, name, nth=nth: code if count >= nth and name == operation else None)  # type: ignore[misc]
        failed = anyio.run(lambda: run_turns(folder, disk, disk.log, turns=8, size=size))  # noqa: B023
        used = {what for name, what in disk.log if name == "use"}
        sent = {what for name, what in disk.log if name == "request"}
        assert failed == 8 - len(used)
        first_failure = next((i for i, (name, _) in enumerate(disk.log) if name.startswith("failed")), None)
        if first_failure is not None:
            assert not [name for name, _ in disk.log[first_failure:] if name in {"request", "use"}]
        journal = JournalWriter(folder, clock=now)  # the disk is well again
        state = fold(folder)
        assert {f"key-{index:03d}" for index in used} <= state.answers.keys()
        assert sent <= {int(str(key.where.item)[1:]) for key in state.attempts}
        journal.append(ItemFinished() if journal.count else START)
        anyio.run(journal.close)
        assert verify(folder).ok


def test_every_later_call_says_what_failed(tmp_path: Path) -> None:
    disk = Disk(lambda _count, name: errno.EIO if name == "fsync" else None)

    async def run() -> None:
        journal = JournalWriter(tmp_path, clock=now, files=disk)
        journal.append(START)
        for _ in range(2):
            with pytest.raises(JournalError, match=r"cannot be written.*injected"):
                await journal.durable(1)
        with pytest.raises(JournalError, match=r"cannot be written.*injected"):
            journal.append(ItemFinished())
        await journal.close()

    anyio.run(run)
    assert sum("write" in name for name, _ in disk.log) == 1


def test_a_disk_that_refuses_at_closing_is_said_and_hides_no_earlier_failure(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    disk = Disk(lambda _count, name: errno.EDQUOT if name == "close" else None)
    with pytest.raises(JournalError, match=r"cannot be closed.*injected"):
        anyio.run(lambda: run_turns(tmp_path / "a", disk, [], turns=1, size=2**20))
    assert fold(tmp_path / "a").attempts
    disk = Disk(lambda _count, name: errno.EIO if name in {"fsync", "close"} else None)
    assert anyio.run(lambda: run_turns(tmp_path / "b", disk, [], turns=1, size=2**20)) == 1


def test_a_disk_that_refuses_at_opening_is_said(tmp_path: Path) -> None:
    anyio.run(lambda: run_turns(tmp_path, RealFiles(), [], turns=1, size=2**20))
    path = tmp_path / "events-00001.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    for operation in ("open_append", "write", "fsync", "fsync_dir", "truncate", "close"):
        disk = Disk(lambda _count, name, operation=operation: errno.EROFS if name == operation else None)  # type: ignore[misc]
        with pytest.raises(JournalError, match=r"cannot be opened for writing.*injected"):
            JournalWriter(tmp_path, clock=now, files=disk)
    assert JournalWriter(tmp_path, clock=now).count == 2


def test_a_folder_removed_mid_run_stops_dispatch(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()

    async def run() -> None:
        journal = JournalWriter(folder, clock=now)
        journal.append(START)
        await journal.durable(1)
        shutil.rmtree(folder)
        journal.append(ItemFinished())
        with pytest.raises(JournalError, match="was removed while the run was going on"):
            await journal.durable(2)
        await journal.close()

    anyio.run(run)
    assert not folder.exists()


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "absent", clock=now)
    journal.append(START)
    with pytest.raises(JournalError, match=r"cannot be written"):
        anyio.run(journal.close)


def test_a_torn_last_record_is_kept_aside_at_every_byte(tmp_path: Path) -> None:
    anyio.run(lambda: run_turns(tmp_path, RealFiles(), [], turns=1, size=2**20))
    path = tmp_path / "events-00001.jsonl"
    whole = path.read_bytes()
    start = whole.rstrip(b"\n").rindex(b"\n") + 1
    for number, cut in enumerate(range(start + 1, len(whole)), start=1):
        path.write_bytes(whole[:cut])
        journal = JournalWriter(tmp_path, clock=now)
        assert (journal.count, journal.torn_bytes) == (2, cut - start)
        assert path.read_bytes() == whole[:start]
        assert (tmp_path / f"events-00001.torn-{number}").read_bytes() == whole[start:cut]
        anyio.run(journal.close)


def test_what_was_written_but_not_synced_is_synced_before_it_is_folded(tmp_path: Path) -> None:
    anyio.run(lambda: run_turns(tmp_path, RealFiles(), [], turns=1, size=2**20))
    disk = Disk()
    JournalWriter(tmp_path, clock=now, files=disk)
    assert [name for name, _ in disk.log] == ["open_append", "fsync"]


def test_a_cancelled_leader_finishes_for_those_who_wait(tmp_path: Path) -> None:
    synced: list[int] = []

    async def wait(journal: JournalWriter, seq: int) -> None:
        await journal.durable(seq)
        synced.append(seq)

    async def run() -> None:
        journal = JournalWriter(tmp_path, clock=now)
        journal.append(START)
        async with anyio.create_task_group() as others, anyio.create_task_group() as leader:
            leader.start_soon(wait, journal, 1)
            await anyio.lowlevel.checkpoint()
            others.start_soon(wait, journal, journal.append(ItemFinished()))
            leader.cancel_scope.cancel()
        await journal.close()

    anyio.run(run)
    assert 2 in synced
    assert verify(tmp_path).records == 2


def test_an_interrupted_flush_stops_everybody(tmp_path: Path) -> None:
    class Interrupted(RealFiles):
        def fsync(self, handle: int) -> None:
            raise MemoryError(handle)

    async def follow(journal: JournalWriter) -> None:
        with pytest.raises(JournalError, match="was interrupted"):
            await journal.durable(1)

    async def run() -> None:
        journal = JournalWriter(tmp_path, clock=now, files=Interrupted())
        journal.append(START)
        async with anyio.create_task_group() as group:
            group.start_soon(follow, journal)
            group.start_soon(follow, journal)
            with pytest.raises(MemoryError):
                await journal.durable(1)
        await journal.close()

    anyio.run(run)
    assert list(tmp_path.glob("*.jsonl")) == []


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
import anyio
from consilience.journal.events import ItemFinished, RunStarted, Where
from consilience.journal.lock import RunLock
from consilience.journal.writer import JournalWriter

async def main(folder):
    with RunLock(folder):
        journal = JournalWriter(folder, clock=lambda: datetime.now(UTC), segment_bytes=4000)
        if journal.count == 0:
            journal.append(RunStarted(run_id="r", protocol_sha256="0" * 64, package_version="0"))
        async def work(index):
            while True:
                seq = journal.append(ItemFinished(data={"text": "x" * 200}), Where(item=str(index)))
                await journal.durable(seq)
                print(seq, flush=True)
        async with anyio.create_task_group() as group:
            for index in range(8):
                group.start_soon(work, index)

anyio.run(main, Path(sys.argv[1]))
"""


def test_a_killed_writer_loses_no_record_it_called_durable(tmp_path: Path) -> None:
    confirmed = 0
    for lines in (1, 40, 97):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            said = [int(process.stdout.readline()) for _ in range(lines)]
            process.kill()
            said += [int(line) for line in process.stdout.read().split(b"\n")[:-1]]
        confirmed = max(said)
        journal = JournalWriter(tmp_path, clock=now)
        assert journal.count >= confirmed
        anyio.run(journal.close)
        assert verify(tmp_path).records == journal.count
    assert len(list(read_events(tmp_path))) >= confirmed > 138 - 8 * 3
