"""Write a journal: append-only, hash-chained, with one fsync for all events that wait (group commit)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from consilience.core.canonical import canonical_json
from consilience.errors import JournalError, reason
from consilience.journal.events import NOWHERE, Event, Record, RunFinished, RunStarted, TextStored, Where, to_json
from consilience.journal.files import FileLayer, RealFiles, segment_path
from consilience.journal.reader import HEAD, MIDDLE, RESERVED_NAMES, TAIL, Scan, chain, genesis, text_sha256

SEGMENT_BYTES = 64 * 2**20
LONG_TEXT_BYTES = 2_048
RECENT_TEXTS = 256
_SURELY_SHORT = LONG_TEXT_BYTES // 4
_PLAIN = frozenset({int, float, bool})


@dataclass(eq=False, slots=True)
class _Batch:
    """Events that become durable together; the first who waits for them leads."""

    led: bool = False
    last: int = 0
    done: anyio.Event = field(default_factory=anyio.Event)


class JournalWriter:
    """The one writer of a run's journal; used from one event loop, by the holder of the run's lock.

    A failed write or fsync poisons it: that and every later call raises, so that nothing is dispatched any more.

    Args:
        folder: The run folder; it exists. A journal in it is checked wholly and continued.
        clock: The time of day, aware, written with each event.
        files: The disk.
        segment_bytes: A file that reached this size is followed by a new one.
        seen: Is given every record already there, in order, such as `RunState.add`.

    Attributes:
        torn_bytes: Length of a torn last record that was cut off and kept aside at opening; else 0.

    Raises:
        IntegrityError: The journal there is not what was written.
        JournalError: The disk refuses.

    Example:
        >>> import tempfile
        >>> from datetime import UTC
        >>> from consilience.journal.reader import read_events
        >>> run = Path(tempfile.mkdtemp())
        >>> async def write() -> None:
        ...     journal = JournalWriter(run, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        ...     started = RunStarted(run_id="r", protocol_sha256="0" * 64, package_version="0")
        ...     await journal.durable(journal.append(started))
        ...     await journal.close()
        >>> anyio.run(write)
        >>> [record.event.type for record in read_events(run)]
        ['run.started']
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], datetime],
        files: FileLayer | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        seen: Callable[[Record], None] | None = None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._files: FileLayer = files if files is not None else RealFiles()
        self._segment_bytes = segment_bytes
        self._texts: set[str] = set()
        self._recent: dict[str, str] = {}
        self._buffer: list[bytes] = []
        self._collecting = _Batch()
        self._flushing: _Batch | None = None
        self._failure: str | None = None
        self._handle: int | None = None
        scan = self._recover(seen)
        self._head: str | None = scan.head
        self._count: int = scan.count
        self._durable: int = scan.count
        self._segment: int = scan.segment
        self._size: int = scan.size
        self.torn_bytes: int = scan.torn_bytes

    @property
    def count(self) -> int:
        """Number of records appended so far, durable or not."""
        return self._count

    @property
    def head(self) -> str | None:
        """Hash of the last appended record; None before the first."""
        return self._head

    def append(self, event: Event, where: Where = NOWHERE) -> int:
        """Append an event to the buffer and return its number, for `durable`. Nothing is on disk yet.

        Raises:
            JournalError: The event is not JSON (NaN is not), or the journal failed or was closed before.
        """
        self._alive()
        previous = self._head
        if previous is None:
            if not isinstance(event, RunStarted):
                raise JournalError(f"a journal starts with run.started, not {event.type}", hint="Append that first.")
            previous = genesis(event.run_id)
        values = to_json(event, where)
        seq = values["seq"] = self._count + 1
        values["at"] = self._clock().isoformat()
        try:
            body = canonical_json(values)
        except (ValueError, TypeError, RecursionError) as error:
            raise JournalError(
                f"event {event.type} of {where.label()} is not JSON: {error}",
                hint="NaN and infinities are banned; unknown is null. Nothing was recorded.",
            ) from error
        digest = self._head = chain(previous, body)
        self._buffer.append(b"".join((HEAD, digest.encode("ascii"), MIDDLE, body, TAIL)))
        self._count = self._collecting.last = seq
        return seq

    async def durable(self, seq: int) -> None:
        """Return when record ``seq`` and all before it are on disk.

        Whoever waits first leads: it lets the tasks that are ready join, then writes and syncs for all. A cancelled
        leader finishes its flush first.

        Raises:
            JournalError: The disk refused; says what failed and what to do.
        """
        if seq <= self._durable:
            return
        self._alive()
        if seq > self._count:
            raise JournalError(f"record {seq} was never appended", hint="Mend the calling code.")
        flushing = self._flushing
        batch = flushing if flushing is not None and seq <= flushing.last else self._collecting
        if batch.led:
            await batch.done.wait()
        else:
            batch.led = True
            with anyio.CancelScope(shield=True):
                await self._lead(batch)
        if seq > self._durable:
            self._alive()

    def store_text(self, text: str) -> str:
        """Return the content hash of a text, appending it the first time only."""
        sha256 = text_sha256(text)
        if sha256 not in self._texts:
            self.append(TextStored(sha256=sha256, text=text))
            self._texts.add(sha256)
        return sha256

    def store_json(self, value: Any) -> dict[str, Any]:
        """Return a reference that stands for a JSON value, such as a schema, storing it the first time only.

        Put it into a body after `intern`; `expand` puts the value back.
        """
        return {"$json": self.store_text(canonical_json(value).decode("ascii"))}

    def intern(self, body: Any) -> Any:
        """Return a JSON value with every string over 2,048 bytes of UTF-8 stored once and replaced by a reference."""
        kind = type(body)
        if kind is str:
            return {"$text": self._known(body)} if _is_long(body) else body
        if kind is dict:
            # Most parts are short scalars: they are passed on here, since a call for each would cost most.
            return {
                f"${name}" if name in RESERVED_NAMES else name: value
                if value is None or type(value) in _PLAIN or (type(value) is str and len(value) <= _SURELY_SHORT)
                else self.intern(value)
                for name, value in body.items()
            }
        if kind is list or kind is tuple:
            return [self.intern(value) for value in body]
        return body

    def _known(self, text: str) -> str:
        """Return the content hash of a text that may come again soon, as views and system prompts do."""
        sha256 = self._recent.get(text)
        if sha256 is None:
            sha256 = self._recent[text] = self.store_text(text)
            if len(self._recent) > RECENT_TEXTS:
                del self._recent[next(iter(self._recent))]
        return sha256

    def finish(self, counts: dict[str, Any]) -> int:
        """Append ``run.finished`` with count and head, so that a cut or rewritten tail shows; return its number."""
        return self.append(RunFinished(events=self._count, head=self._head or "", counts=counts))

    async def close(self) -> None:
        """Write and sync what is buffered and close the file; a journal that failed is only closed.

        Raises:
            JournalError: The disk refused this last flush, or to close the file.
        """
        with anyio.CancelScope(shield=True):
            try:
                if self._failure is None:
                    await self.durable(self._count)
            finally:
                if self._flushing is not None:
                    await self._flushing.done.wait()
                if self._handle is not None:
                    handle, self._handle = self._handle, None
                    self._release(handle)
                self._failure = self._failure or "the journal is closed"

    def _release(self, handle: int) -> None:
        """Give a file back; network disks tell of a failed write only now, unless another failure is told already."""
        try:
            self._files.close(handle)
        except OSError as error:
            if self._failure is None:
                self._failure = f"the journal in {self._folder} cannot be closed: {reason(error)}"
                self._alive()

    def _alive(self) -> None:
        if self._failure is not None:
            raise JournalError(
                self._failure,
                hint="Nothing more is dispatched; mend the cause (free space, permissions) and run the command again.",
            )

    async def _lead(self, batch: _Batch) -> None:
        if self._flushing is not None:
            await self._flushing.done.wait()
        await anyio.lowlevel.checkpoint()
        try:
            if self._failure is None:
                lines, self._buffer = self._buffer, []
                self._flushing, self._collecting = batch, _Batch()
                await anyio.to_thread.run_sync(self._flush, b"".join(lines))
                self._durable = batch.last
        except OSError as error:
            self._failure = f"the journal in {self._folder} cannot be written: {reason(error)}"
        except BaseException:
            self._failure = f"writing the journal in {self._folder} was interrupted"
            self._handle = None  # the worker thread may still be writing: the file is left to it
            raise
        finally:
            self._flushing = None
            batch.done.set()

    def _flush(self, data: bytes) -> None:
        """Write and sync whole records; a new file appears under its name only with its first records on disk."""
        if self._handle is not None and self._size + len(data) <= self._segment_bytes:
            self._files.write(self._handle, data)
            self._files.fsync(self._handle)
            self._size += len(data)
        else:
            self._new_segment(data)
        path = segment_path(self._folder, self._segment)
        if not path.exists():  # an open file can be written on after its folder was deleted
            raise FileNotFoundError(errno.ENOENT, "the file was removed while the run was going on", str(path))

    def _new_segment(self, data: bytes) -> None:
        if self._handle is not None:
            self._files.close(self._handle)
            self._handle = None
        target = segment_path(self._folder, self._segment + 1)
        draft = target.with_suffix(".new")
        self._handle = self._files.open_append(draft)
        self._files.truncate(draft, 0)
        self._files.write(self._handle, data)
        self._files.fsync(self._handle)
        self._files.replace(draft, target)
        self._files.fsync_dir(self._folder)
        if self._segment == 0:
            self._files.fsync_dir(self._folder.parent)
        self._segment += 1
        self._size = len(data)

    def _recover(self, seen: Callable[[Record], None] | None) -> Scan:
        """Check what is there, cut off a torn last record, and open the last file."""
        scan = Scan(self._folder)
        for record in scan:
            if isinstance(record.event, TextStored):
                self._texts.add(record.event.sha256)
            if seen is not None:
                seen(record)
        if scan.damage is not None:
            raise scan.damage.error()
        if not scan.segment:
            return scan
        try:
            if scan.torn_bytes:
                self._keep_torn(scan)
            # What a killed process wrote may stand in the page cache only; it is folded and used, so it is synced now.
            self._handle = self._files.open_append(segment_path(self._folder, scan.segment))
            self._files.fsync(self._handle)
        except OSError as error:
            if self._handle is not None:
                with suppress(OSError):  # what failed first is told
                    self._files.close(self._handle)
            raise JournalError(
                f"the journal in {self._folder} cannot be opened for writing: {reason(error)}",
                hint="Mend the cause (free space, permissions) and run the command again.",
            ) from error
        return scan

    def _keep_torn(self, scan: Scan) -> None:
        path = segment_path(self._folder, scan.segment)
        with path.open("rb") as lines:
            lines.seek(scan.size)
            torn = lines.read()
        number = 1
        while (aside := path.with_suffix(f".torn-{number}")).exists():
            number += 1
        handle = self._files.open_append(aside)
        try:
            self._files.write(handle, torn)
            self._files.fsync(handle)
        finally:
            self._files.close(handle)
        self._files.fsync_dir(self._folder)
        self._files.truncate(path, scan.size)


def _is_long(text: str) -> bool:
    if len(text) > LONG_TEXT_BYTES:
        return True
    return len(text) * 4 > LONG_TEXT_BYTES and len(text.encode("utf-8", "surrogatepass")) > LONG_TEXT_BYTES
