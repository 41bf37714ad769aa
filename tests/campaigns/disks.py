"""Faults of the disk and of the clock: full, failing, read-only, gone, backwards."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from campaigns.ground import CALLS, CAPPED, FREE, ITEMS, PLAN, Case, Ground, answered_keys, check_money, resumed, whole
from consilience.errors import ConsilienceError, DataError, JournalError
from consilience.experiments.verification import verify_run
from consilience.journal.files import RealFiles
from consilience.models.request import Request
from engine_cases import carry_out, make_shell, panel, speak

OPERATIONS = ("open_append", "write", "fsync", "close", "replace", "fsync_dir", "truncate")
CODES = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
OFTEN = ("write", "fsync")


@dataclass
class Failing(RealFiles):
    """The disk, which refuses one operation from its nth time on."""

    operation: str
    nth: int
    code: int
    count: int = 0

    def _enter(self, name: str) -> None:
        self.count += name == self.operation
        if name == self.operation and self.count >= self.nth:
            raise OSError(self.code, os.strerror(self.code))

    def open_append(self, path: Path) -> int:
        self._enter("open_append")
        return super().open_append(path)

    def write(self, handle: int, data: bytes) -> None:
        try:
            self._enter("write")
        except OSError:
            super().write(handle, data[: len(data) // 3])  # a full disk takes a part
            raise
        super().write(handle, data)

    def fsync(self, handle: int) -> None:
        self._enter("fsync")
        super().fsync(handle)

    def close(self, handle: int) -> None:
        super().close(handle)
        self._enter("close")

    def replace(self, source: Path, target: Path) -> None:
        self._enter("replace")
        super().replace(source, target)

    def fsync_dir(self, folder: Path) -> None:
        self._enter("fsync_dir")
        super().fsync_dir(folder)

    def truncate(self, path: Path, size: int) -> None:
        self._enter("truncate")
        super().truncate(path, size)


def failing(ground: Ground) -> None:
    """Any operation on the journal fails, once or for good: the run stops, and goes on when the disk is well."""
    stopped = 0
    for run in ground.each():
        operation = ground.rng.choice((*OPERATIONS, *OFTEN * 3))
        nth = ground.rng.randrange(1, 10) if operation in OFTEN else 1
        disk = Failing(operation, nth, ground.rng.choice(CODES))
        model = panel()
        try:
            carry_out(run, PLAN, ITEMS, model, orders=CAPPED, shell=make_shell(files=disk))
        except JournalError as error:
            stopped += 1
            assert os.strerror(disk.code) in str(error)  # noqa: PT017 - which code is drawn
        check_money(run)
        known = answered_keys(run)
        assert len(model.requests) <= CALLS
        resumed(run, known=len(known))
    ground.found = f"{stopped} runs were stopped"


@contextmanager
def small_disk(folder: Path, *, size: str = "4m") -> Iterator[None]:
    """Mount a small file system in memory; needs the rights to mount."""
    folder.mkdir(parents=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no file system can be mounted here; the same is tried at the journal's seam")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def full(ground: Ground) -> None:
    """A real disk fills up while a run goes on, until there is room again."""
    stopped = 0
    for place in ground.each():
        with small_disk(place):
            ballast, run = place / "ballast", place / "results" / "runs" / "run"
            free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
            ballast.write_bytes(bytes(free - 4096 * ground.rng.randrange(0, 60)))
            try:
                carry_out(run, PLAN, ITEMS, panel(), orders=CAPPED)
            except (JournalError, DataError) as error:
                stopped += 1
                assert "No space left on device" in str(error)  # noqa: PT017 - some runs fit
            ballast.unlink()
            known = len(answered_keys(run)) if (run / "events-00001.jsonl").exists() else 0
            resumed(run, known=known)
    ground.found = f"a real one, tmpfs; {stopped} runs were stopped"
    assert stopped > ground.tried // 3


def read_only(ground: Ground) -> None:
    """The file system of a run that was stopped is read-only when it is resumed, until it can be written again."""
    for place in ground.each():
        with small_disk(place):
            run = place / "run"
            disk = Failing("fsync", ground.rng.randrange(2, 7), errno.EROFS)
            with pytest.raises(JournalError):
                carry_out(run, PLAN, ITEMS, panel(), orders=CAPPED, shell=make_shell(files=disk))
            remount = ["mount", "-o", "remount,ro", str(place)]
            subprocess.run(remount, check=True)
            before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
            model = panel()
            with pytest.raises((JournalError, DataError), match="Read-only file system"):
                carry_out(run, PLAN, ITEMS, model, orders=CAPPED)
            assert model.requests == []
            assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
            remount[2] = "remount,rw"
            subprocess.run(remount, check=True)
            resumed(run, known=len(answered_keys(run)))


def _vanishing(ground: Ground, go: Callable[[Path], object], back: Callable[[Path], None] | None) -> None:
    for place in ground.each():
        run, left = place / "runs" / "run", [ground.rng.randrange(1, CALLS + 1)]
        called: list[int] = []

        def say(request: Request, run: Path = run, left: list[int] = left, called: list[int] = called) -> str:
            left[0] -= 1
            if left[0] == 0:
                go(run)
            called.append(left[0])
            return speak(request)

        with pytest.raises(ConsilienceError):
            carry_out(run, PLAN, ITEMS, panel(say), orders=CAPPED)
        # What was in flight may still be answered; nothing is begun whose reservation is nowhere on disk.
        assert sum(left <= 0 for left in called) <= 1 + CAPPED.concurrency * 5
        if back is None:
            assert not run.exists() or answered_keys(run) == []
        else:
            back(run)
            resumed(run, known=len(answered_keys(run)))


def removed(ground: Ground) -> None:
    """The run's folder is removed while it works."""
    _vanishing(ground, shutil.rmtree, None)


def moved(ground: Ground) -> None:
    """The run's folder is moved away while it works, and comes back."""

    def back(run: Path) -> None:
        if run.exists():  # what was written in its place holds no answer
            assert answered_keys(run) == []
            shutil.rmtree(run)
        run.with_name("elsewhere").rename(run)

    _vanishing(ground, lambda run: run.rename(run.with_name("elsewhere")), back)


def backwards(ground: Ground) -> None:
    """The clock stands, jumps or runs backwards."""
    for run in ground.each():
        now = [datetime(2026, 11, 1, tzinfo=UTC)]
        jump = ground.rng.choice([-1.0, -86_400.0, 0.0, None])

        def clock(now: list[datetime] = now, jump: float | None = jump) -> datetime:
            now[0] += timedelta(seconds=ground.rng.uniform(-1e6, 1e6) if jump is None else jump)
            return now[0]

        report = carry_out(run, PLAN, ITEMS, panel(), orders=CAPPED, shell=make_shell(clock=clock))
        assert report.predictions.drop(FREE).equals(whole())
        assert report.predictions["latency_s"].min() == 0  # of a scripted model, whatever the clock says
        assert verify_run(run).ok
        resumed(run, known=CALLS, lost=0)


WELL_AGAIN = "the run stops and says why; well again, exactly the missing calls are made and nothing else differs"

CASES = (
    Case(
        "ENOSPC, EIO, EROFS or EDQUOT at any operation on the journal",
        WELL_AGAIN,
        failing,
        many=120,
        by="test_a_failing_disk_stops_dispatch_and_loses_nothing_that_was_recorded",
    ),
    Case(
        "a disk that is full, until there is room",
        WELL_AGAIN,
        full,
        many=40,
        by="test_a_full_disk_stops_the_run_which_then_goes_on_where_it_was",
    ),
    Case(
        "a file system that is read-only when a run is resumed",
        f"no call is made and no byte changes; {WELL_AGAIN}",
        read_only,
        many=25,
        by="test_a_read_only_results_folder_is_named_and_left_alone",
    ),
    Case(
        "the run's folder removed while it works",
        "the run stops and says why; no call begins that is not on disk",
        removed,
        many=30,
        by="test_a_folder_removed_mid_run_stops_dispatch",
    ),
    Case("the run's folder moved away and back", WELL_AGAIN, moved, many=30, few=2),
    Case(
        "a clock that stands, jumps or runs backwards",
        "predictions and costs are those of a good clock; verify passes",
        backwards,
        many=25,
        few=2,
    ),
)
