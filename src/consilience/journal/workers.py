"""Segments of a run's workers: journals of their own, which the run's one journal takes in.

A worker writes nothing but its segment, ``workers/NAME/events-*.jsonl``, and holds the lock beside it while it lives.
Whoever holds the run's lock takes the records over in their order, a ``segment.taken`` before them, so that after any
end the journal itself says how far it has come with whom.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import anyio

from consilience.errors import IntegrityError, JournalError
from consilience.journal.events import Record, SegmentTaken, TextStored
from consilience.journal.files import FileLayer, segment_path
from consilience.journal.lock import RunLock
from consilience.journal.reader import RunState, Scan, Texts
from consilience.journal.writer import JournalWriter

WORKERS = "workers"
PATIENCE_S = 30.0
"""So long may a worker that is gone take to let go of its lock."""
_PAUSE_S = 0.05
_OPENING = 1
"""A segment's first record, ``run.started`` of the worker, is its own and is not taken over."""


def worker_folder(run: Path, worker: str) -> Path:
    """Return the folder of a worker's segment.

    Example:
        >>> worker_folder(Path("run"), "00001").as_posix()
        'run/workers/00001'
    """
    return run / WORKERS / worker


def workers_of(run: Path) -> list[str]:
    """Return the names of all workers a run ever had, in the order they began; empty where there was none.

    Example:
        >>> workers_of(Path("no-such-run"))
        []
    """
    folder = run / WORKERS
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


class LentTexts(Texts):
    """The long texts of a run, among them those that its workers' segments hold and its journal has only just taken.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._lent: dict[str, Texts] = {}

    def lend(self, sha256: str, texts: Texts) -> None:
        """Note that a text can be read from a worker's segment."""
        self._lent[sha256] = texts

    def __getitem__(self, sha256: str) -> str:
        lent = self._lent.get(sha256)
        return super().__getitem__(sha256) if lent is None else lent[sha256]

    def __iter__(self) -> Iterator[str]:
        yield from {*super().__iter__(), *self._lent}

    def __len__(self) -> int:
        return len({*super().__iter__(), *self._lent})


class Takings:
    """How far a run's journal has come with each worker's segment, folded from the journal itself.

    Attributes:
        through: Number of the last record taken over, by worker.

    Example:
        >>> takings = Takings()
        >>> takings.through.get("00001")
    """

    def __init__(self) -> None:
        self.through: dict[str, int] = {}
        self._worker = ""
        self._to_come = 0

    def seen(self, record: Record) -> None:
        """Take the journal's next record in."""
        event = record.event
        if isinstance(event, SegmentTaken):
            self._worker, self._to_come = event.worker, event.last - event.first + 1
            self.through[event.worker] = event.first - 1
        elif self._to_come:
            self._to_come -= 1
            self.through[self._worker] += 1


class Segment(Scan):
    """A worker's segment, read on as it grows, with its chain checked.

    Args:
        run: The run folder.
        worker: The worker's name.

    Attributes:
        worker: As given.
    """

    def __init__(self, run: Path, worker: str) -> None:
        super().__init__(worker_folder(run, worker))
        self.worker = worker
        self._texts = Texts(worker_folder(run, worker))

    def read_on(self, last: int | None = None) -> list[Record]:
        """Return the records after those returned before, up to number ``last`` or all that are whole.

        Raises:
            IntegrityError: A record is not what was written, or the segment ends before ``last``.
        """
        found = [record for record in self._following(last) if record.seq > _OPENING]
        if self.damage is not None:
            raise self.damage.error()
        if last is not None and self.count < last:
            raise IntegrityError(
                f"the segment of worker {self.worker} ends at record {self.count}, and {last} were written",
                hint="All nodes must see one results folder: put it on storage that they share.",
            )
        return found

    def _following(self, last: int | None) -> Iterator[Record]:
        number = max(self.segment, 1)
        while segment_path(self._folder, number).exists():
            if number != self.segment:
                self.segment, self.size = number, 0
            with segment_path(self._folder, number).open("rb") as lines:
                lines.seek(self.size)
                records = self._records(lines)
                while last is None or self.count < last:
                    record = next(records, None)
                    if record is None:
                        break
                    yield record
            if self.damage is not None or (last is not None and self.count >= last):
                return
            number += 1

    def take(
        self, journal: JournalWriter, takings: Takings, *, state: RunState | None = None, last: int | None = None
    ) -> list[Record]:
        """Append what the journal has not taken over yet, and return it, numbered as it now stands there.

        Args:
            journal: The run's.
            takings: What it has taken over.
            state: Takes the records in too.
            last: Number of the last record to take; None takes all there are.
        """
        done = takings.through.get(self.worker, _OPENING)
        fresh = [record for record in self.read_on(last) if record.seq > done]
        if not fresh:
            return []
        first, end = fresh[0].seq, fresh[-1]
        journal.append(SegmentTaken(worker=self.worker, first=first, last=end.seq, head=end.hash))
        taken = []
        for record in fresh:
            taken.append(record._replace(seq=journal.append(record.event, record.where)))
            if state is not None:
                self._fold(state, taken[-1])
        takings.through[self.worker] = end.seq
        return taken

    def _fold(self, state: RunState, record: Record) -> None:
        if isinstance(record.event, TextStored) and isinstance(state.texts, LentTexts):
            self._texts.add(record)
            state.texts.lend(record.event.sha256, self._texts)
        else:
            state.add(record)


@asynccontextmanager
async def locked_segment(run: Path, worker: str) -> AsyncIterator[Segment]:
    """Give the whole segment of a worker that is gone.

    Raises:
        JournalError: The worker, or another process, still holds the segment's lock after `PATIENCE_S`.
    """
    lock = RunLock(worker_folder(run, worker))
    with anyio.move_on_after(PATIENCE_S):
        while not _free(lock):  # noqa: ASYNC110 - another process's lock tells nobody when it ends
            await anyio.sleep(_PAUSE_S)
    with lock:
        yield Segment(run, worker)


def _free(lock: RunLock) -> bool:
    try:
        with lock:
            return True
    except JournalError:
        return False


async def take_in(run: Path, *, clock: Callable[[], datetime], files: FileLayer) -> None:
    """Take over what earlier workers wrote and the run's journal does not hold yet; its lock is held.

    Raises:
        IntegrityError: A segment or the journal is not what was written.
        JournalError: A worker of an earlier process is still at work, or the disk refuses.
    """
    workers = workers_of(run)
    if not workers:
        return
    takings = Takings()
    journal = JournalWriter(run, clock=clock, files=files, seen=takings.seen)
    try:
        for worker in workers:
            async with locked_segment(run, worker) as segment:
                segment.take(journal, takings)
    finally:
        await journal.close()
