"""Read a journal: stream its records with the chain checked, and fold them into what resume and replay need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from consilience.core.canonical import canonical_json, sha256_hex, tagged_hash
from consilience.errors import IntegrityError, reason
from consilience.journal.events import (
    AttemptError,
    AttemptLost,
    AttemptReserved,
    AttemptResponse,
    BatchSubmitted,
    Event,
    ItemFinished,
    ItemStarted,
    Record,
    RunFinished,
    RunStarted,
    TextStored,
    ToolReturned,
    TurnAccepted,
    TurnFailed,
    Where,
    from_json,
)
from consilience.journal.files import segment_path, segments

HEAD = b'{"hash":"'
MIDDLE = b'","event":'
TAIL = b"}\n"
_BODY = len(HEAD) + 64 + len(MIDDLE)


def genesis(run_id: str) -> str:
    """Return the hash before the first record of a run."""
    return tagged_hash("journal", run_id)


def chain(previous: str, event: bytes) -> str:
    """Return SHA-256(previous hash as 64 hex digits ‖ canonical JSON of the event), as hex."""
    return hashlib.sha256(previous.encode("ascii") + event).hexdigest()


@dataclass(frozen=True)
class Damage:
    """The first place where a journal is not what was written.

    Attributes:
        file: Name of the journal file.
        record: 1-based number of the record in the run.
        offset: Byte offset of the record in the file.
        reason: What is wrong.
        kind: ``torn`` where the last record was cut off, as a process that ends while writing leaves it; ``head`` where
            all records are good but none has a head that was noted; else ``changed``.
    """

    file: str
    record: int
    offset: int
    reason: str
    kind: Literal["changed", "torn", "head"] = "changed"

    def error(self) -> IntegrityError:
        """Return the error to raise for it."""
        if self.kind == "head":
            return IntegrityError(
                f"{self.reason} ({self.record - 1:,} records in all)",
                hint="Was it noted of this run? Then restore the run from a copy.",
            )
        return IntegrityError(
            f"journal record {self.record} ({self.file}, byte {self.offset}): {self.reason}",
            hint="The run ended while this was written; nothing before it was changed, and its own command resumes it."
            if self.kind == "torn"
            else "The run was changed after it was written: restore it from a copy, or start a new run.",
        )


class Scan:
    """One pass over the records of a run, checking bytes, order and chain.

    Iterating ends at the first damage, which is then in ``damage``, or before a torn last record, whose length is then
    in ``torn_bytes``: a process killed while writing leaves one, a journal being written may show one.

    Attributes:
        head: Hash of the last good record; None before the first.
        count: Number of good records.
        damage: The first damage, or None.
        torn_bytes: Bytes after the last line end of the last file.
        segment: Number of the last file read; 0 without any.
        size: Bytes of whole records in that file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.head: str | None = None
        self.count = 0
        self.damage: Damage | None = None
        self.torn_bytes = 0
        self.segment = 0
        self.size = 0

    def __iter__(self) -> Iterator[Record]:
        present = segments(self._folder)
        try:
            for number in range(1, max(present, default=0) + 1):
                self.segment, self.size = number, 0
                with segment_path(self._folder, number).open("rb") as lines:
                    yield from self._records(lines)
                if self.torn_bytes and number != present[-1]:
                    self.damage = self.here("the record is cut off")
                if self.damage is not None:
                    return
        except FileNotFoundError:
            self.damage = self.here("the file is missing")
        except OSError as error:
            self.damage = self.here(f"the file cannot be read: {reason(error)}")

    def _records(self, lines: BinaryIO) -> Iterator[Record]:
        for line in lines:
            if not line.endswith(b"\n"):
                self.torn_bytes = len(line)
                return
            record = self._record(line)
            if isinstance(record, str):
                self.damage = self.here(record)
                return
            self.head, self.count = record.hash, record.seq
            self.size += len(line)
            yield record

    def here(self, what: str, *, kind: Literal["changed", "torn", "head"] = "changed") -> Damage:
        """Return a damage at the place the scan has reached."""
        path = segment_path(self._folder, self.segment)
        return Damage(file=path.name, record=self.count + 1, offset=self.size, reason=what, kind=kind)

    def _record(self, line: bytes) -> Record | str:
        """Return the next record, or what is wrong with it."""
        body = line[_BODY : -len(TAIL)]
        digest = line[len(HEAD) : len(HEAD) + 64].decode("latin-1")
        if line != HEAD + digest.encode("latin-1") + MIDDLE + body + TAIL:
            return "the record is not framed as written"
        try:
            values = json.loads(body.decode("ascii"))
            previous = genesis(str(values.get("run_id"))) if self.head is None else self.head
            if chain(previous, body) != digest:
                return "the hash does not fit the record and the one before it"
            seq, at, where, event = from_json(values)
        except IntegrityError as error:
            return error.message
        except (ValueError, AttributeError, RecursionError):
            return "the event is not the JSON that was written"
        record = Record(seq, at, where, event, digest, self.segment, self.size)
        return self._out_of_order(record) or record

    def _out_of_order(self, record: Record) -> str | None:
        if record.seq != self.count + 1:
            return f"the record is numbered {record.seq}"
        if (record.seq == 1) != isinstance(record.event, RunStarted):
            return "a journal starts once, with run.started"
        event, before = record.event, (self.count, self.head)
        if isinstance(event, RunFinished) and (event.events, event.head) != before:
            return "run.finished names another count or head"
        return None


def read_events(folder: Path) -> Iterator[Record]:
    """Yield the records of a run in order; a torn last record is left out.

    Raises:
        IntegrityError: A record is not what was written; those before it have been yielded.
    """
    scan = Scan(folder)
    yield from scan
    if scan.damage is not None:
        raise scan.damage.error()


class Texts(Mapping[str, str]):
    """Long texts by content hash, read from the journal when asked for, so that memory stays flat.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, record: Record) -> None:
        """Note where the text of a ``text.stored`` record stands."""
        if isinstance(record.event, TextStored):
            self._places[record.event.sha256] = (record.segment, record.offset)

    def __getitem__(self, sha256: str) -> str:
        segment, offset = self._places[sha256]
        path = segment_path(self._folder, segment)
        with path.open("rb") as lines:
            lines.seek(offset)
            line = lines.readline()
        text = str(json.loads(line[_BODY : -len(TAIL)])["text"])
        if text_sha256(text) != sha256:
            raise IntegrityError(
                f"text {sha256} ({path.name}, byte {offset}) is not what was written",
                hint="Run `consilience verify` on the run.",
            )
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def text_sha256(text: str) -> str:
    """Return the content hash of a text: SHA-256 of its JSON bytes, defined for lone surrogates too."""
    return sha256_hex(canonical_json(text))


def expand(body: Any, texts: Mapping[str, str]) -> Any:
    """Return a JSON value with the references that `JournalWriter.intern` and `store_json` made put back.

    Raises:
        IntegrityError: A text is not in the journal.

    Example:
        >>> expand({"prompt": {"$text": "ab"}, "n": 1}, {"ab": "long"})
        {'prompt': 'long', 'n': 1}
    """
    if isinstance(body, dict):
        if len(body) == 1:
            ((name, sha256),) = body.items()
            if name in {"$text", "$json"}:
                if sha256 not in texts:
                    raise IntegrityError(f"text {sha256} is not in the journal", hint="Restore the missing files.")
                return texts[sha256] if name == "$text" else json.loads(texts[sha256])
        return {name[1:] if name in _ESCAPED else name: expand(value, texts) for name, value in body.items()}
    if isinstance(body, list):
        return [expand(value, texts) for value in body]
    return body


RESERVED_NAMES = ("$text", "$json", "$$text", "$$json")
_ESCAPED = {f"${name}" for name in RESERVED_NAMES}


class AttemptKey(NamedTuple):
    """Coordinates of one attempt."""

    where: Where
    ask: int
    attempt: int


@dataclass(slots=True)
class Attempt:
    """One attempt with its outcome, if it has one.

    Attributes:
        record: Number of its reservation's record.
        reserved: The reservation, with an empty body (bodies are for transcripts, which read the events).
        outcome: Response, error, or lost; None while in flight, or when the process died.
    """

    record: int
    reserved: AttemptReserved
    outcome: AttemptResponse | AttemptError | AttemptLost | None = None

    @property
    def charged_nano(self) -> int | None:
        """Nano-USD the attempt counts for: what it cost, else its reservation; None when unknown."""
        if isinstance(self.outcome, AttemptResponse):
            return self.outcome.cost_nano
        return self.reserved.reserved_nano if self.outcome is None else self.outcome.charged_nano


@dataclass
class RunState:
    """The fold of a run's events: add records in order, then ask.

    Attributes:
        texts: Long texts by content hash.
        started: The first event; None for an empty run.
        finished: The last record is ``run.finished``.
        items_started: ``item.started`` by item.
        items_finished: ``item.finished`` by item.
        attempts: Every attempt by coordinates.
        turns: Latest terminal event by turn coordinates.
        turn_ends: Numbers of all terminal records by turn coordinates; a turn asked again has several.
        answers: Latest response by key.
        batches: Provider and batch id by custom id of the call.
        tools: Number of the record and event of each tool that returned, by turn coordinates and step; the latest.

    Example:
        >>> state = RunState(Texts(Path("run")))
        >>> state.spent_nano, state.lost()
        (0, {})
    """

    texts: Texts
    started: RunStarted | None = None
    finished: bool = False
    items_started: dict[str, ItemStarted] = field(default_factory=dict)
    items_finished: dict[str, ItemFinished] = field(default_factory=dict)
    attempts: dict[AttemptKey, Attempt] = field(default_factory=dict)
    turns: dict[Where, TurnAccepted | TurnFailed] = field(default_factory=dict)
    turn_ends: dict[Where, list[int]] = field(default_factory=dict)
    answers: dict[str, AttemptResponse] = field(default_factory=dict)
    batches: dict[str, tuple[str, str]] = field(default_factory=dict)
    tools: dict[tuple[Where, int], tuple[int, ToolReturned]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take the next record in.

        Raises:
            IntegrityError: An attempt is reserved twice, or has an outcome twice or without reservation.
        """
        self.finished = isinstance(record.event, RunFinished)
        match record.event:
            case RunStarted() as event:
                self.started = event
            case TextStored():
                self.texts.add(record)
            case BatchSubmitted() as event:
                self.batches |= dict.fromkeys(event.calls, (event.provider, event.batch_id))
            case ItemStarted() as event:
                self.items_started[record.where.item or ""] = event
            case ItemFinished() as event:
                self.items_finished[record.where.item or ""] = event
            case AttemptReserved() as event:
                self._reserve(record, event)
            case ToolReturned() as event:
                self.tools[record.where, event.step] = (record.seq, event)
            case AttemptResponse() | AttemptError() | AttemptLost() as event:
                self._settle(record, event)
            case TurnAccepted() | TurnFailed() as event:
                self.turns[record.where] = event
                self.turn_ends.setdefault(record.where, []).append(record.seq)
            case _:
                pass

    def _reserve(self, record: Record, event: AttemptReserved) -> None:
        at = AttemptKey(record.where, event.ask, event.attempt)
        if at in self.attempts:
            raise _contradiction(record, event, "was reserved before")
        bare = AttemptReserved(**{**event.__dict__, "body": {}})
        self.attempts[at] = Attempt(record.seq, bare)

    def _settle(self, record: Record, event: AttemptResponse | AttemptError | AttemptLost) -> None:
        attempt = self.attempts.get(AttemptKey(record.where, event.ask, event.attempt))
        if attempt is None or attempt.reserved.key != event.key:
            raise _contradiction(record, event, "was never reserved")
        if attempt.outcome is not None:
            raise _contradiction(record, event, "has an outcome already")
        attempt.outcome = event
        if isinstance(event, AttemptResponse):
            self.answers[event.key] = event

    @property
    def spent_nano(self) -> int:
        """Nano-USD charged so far; attempts without outcome at their reservation, unknown costs not counted."""
        return sum(attempt.charged_nano or 0 for attempt in self.attempts.values())

    def lost(self) -> dict[AttemptKey, Attempt]:
        """Return the attempts that were reserved and have no outcome."""
        return {at: attempt for at, attempt in self.attempts.items() if attempt.outcome is None}

    def next_attempt(self, where: Where, ask: int) -> int:
        """Return the index that the next try of this ask takes."""
        tries = 0
        while AttemptKey(where, ask, tries) in self.attempts:
            tries += 1
        return tries


def _contradiction(record: Record, event: Event, what: str) -> IntegrityError:
    return IntegrityError(
        f"journal record {record.seq} ({event.type}, {record.where.label()}): the attempt {what}",
        hint="The run was written by a faulty version or two processes: start a new run.",
    )


def fold(folder: Path) -> RunState:
    """Return the state of a recorded run.

    Raises:
        IntegrityError: A record is not what was written, or contradicts an earlier one.
    """
    state = RunState(Texts(folder))
    for record in read_events(folder):
        state.add(record)
    return state
