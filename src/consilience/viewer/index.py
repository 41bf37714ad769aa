"""Where the records of a run stand, and its running sums: one pass over the bytes, gone on with as the journal grows.

The viewer shows single items of large runs, so it keeps places and sums, never the records themselves. Whether a record
is what was written is not its question: `consilience.experiments.verification` answers that.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Final, NamedTuple

from pydantic_core import from_json

from consilience.core.canonical import canonical_json
from consilience.errors import IntegrityError
from consilience.journal.events import (
    AttemptError,
    AttemptLost,
    AttemptReserved,
    AttemptResponse,
    ItemFinished,
    ItemStarted,
    Record,
    RunFinished,
    TextStored,
    TurnAccepted,
    TurnFailed,
)
from consilience.journal.events import (
    from_json as event_from_json,
)
from consilience.journal.files import segment_path, segments
from consilience.journal.reader import HEAD, MIDDLE, TAIL

_BODY: Final = len(HEAD) + 64 + len(MIDDLE)
_TEXT_END: Final = b'"type":"text.stored"}}\n'
_TEXT_HASH: Final = re.compile(rb'"sha256":"([0-9a-f]{64})","text":"')
_SHIFT: Final = 40
_PLACE: Final = (1 << _SHIFT) - 1
_TRY: Final = ("item", "round", "seat", "kind", "sample", "ask", "attempt")
_NO_USAGE: Final[Mapping[str, int | None]] = {}
_SETTLES: Final = frozenset({AttemptResponse.type, AttemptError.type, AttemptLost.type})


@dataclass
class Spent:
    """What the attempts of one role or model took so far.

    Attributes:
        attempts: Attempts that left.
        errors: Of these, ended in an error.
        lost: Of these, without an outcome when the process that made them ended.
        cost_nano: Charged, in nano-dollars; attempts without outcome at their reservation.
        unknown: Attempts whose charge is unknown, which are not in ``cost_nano``.
        tokens: By bucket, as far as reported.
    """

    attempts: int = 0
    errors: int = 0
    lost: int = 0
    cost_nano: int = 0
    unknown: int = 0
    tokens: Counter[str] = field(default_factory=Counter)

    def charge(self, nano: int | None) -> None:
        """Add what an attempt counts for."""
        self.cost_nano += nano or 0
        self.unknown += nano is None


class _Pending(NamedTuple):
    """An attempt on its way: what it is charged until it has an outcome, and to whom."""

    reserved_nano: int | None
    role: str
    model: str


@dataclass
class Sums:
    """What the records so far add up to.

    Attributes:
        records: Whole records.
        started: Items that were admitted.
        finished: Items that have a result.
        turns: Ended turns by status.
        by_role: What every role took.
        by_model: What every model took.
        last_at: When the last record was written; None without any.
        ended: The last record is ``run.finished``.
    """

    records: int = 0
    started: int = 0
    finished: int = 0
    turns: Counter[str] = field(default_factory=Counter)
    by_role: dict[str, Spent] = field(default_factory=dict)
    by_model: dict[str, Spent] = field(default_factory=dict)
    last_at: str | None = None
    ended: bool = False

    @property
    def all(self) -> Spent:
        """What all attempts took together."""
        whole = Spent()
        for one in self.by_model.values():
            for name in ("attempts", "errors", "lost", "cost_nano", "unknown"):
                setattr(whole, name, getattr(whole, name) + getattr(one, name))
            whole.tokens.update(one.tokens)
        return whole


def _try_of(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the coordinates of an attempt."""
    return tuple(map(event.get, _TRY))


class JournalIndex(Mapping[str, str]):
    """The index of one run's journal; as a mapping it holds the long texts by content hash.

    Args:
        folder: The run folder.
        only: Item whose records alone are indexed, which reads a whole journal several times faster; the sums are then
            of this item, too. None indexes all.
    """

    def __init__(self, folder: Path, *, only: str | None = None) -> None:
        self._needle = None if only is None else b'"item":' + canonical_json(only)
        self._folder = folder
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self.sums = Sums()
        self._items: dict[str, array[int]] = {}
        self._texts: dict[bytes, int] = {}
        self._pending: dict[tuple[Any, ...], _Pending] = {}
        self._read: dict[int, int] = {}
        self._files: dict[int, int] = {}

    def refresh(self) -> None:
        """Take in what was written since the last time; a record cut off at the end waits for its rest.

        Raises:
            IntegrityError: A line is no record.
        """
        with self._lock:
            known = {number: segment_path(self._folder, number).stat() for number in segments(self._folder)}
            if any(
                number not in known
                or known[number].st_ino != inode
                or known[number].st_size < self._read.get(number, 0)
                for number, inode in self._files.items()
            ):
                self._forget()  # the run was begun anew in this folder, or its journal was cut
            for number, told in known.items():
                self._files[number] = told.st_ino
                with segment_path(self._folder, number).open("rb") as lines:
                    lines.seek(self._read.get(number, 0))
                    self._take(number, lines)

    def _take(self, number: int, lines: BinaryIO) -> None:
        offset = lines.tell()
        for line in lines:
            if not line.endswith(b"\n"):
                return
            self._add(line, (number << _SHIFT) | offset)
            offset += len(line)
            self._read[number] = offset

    def _add(self, line: bytes, place: int) -> None:
        self.sums.records += 1
        if line.endswith(_TEXT_END):
            found = _TEXT_HASH.search(line, 0, 400)
            if found is not None:
                self._texts[bytes.fromhex(found[1].decode())] = place
                return
        if self._needle is not None and self._needle not in line:
            return
        try:
            event = from_json(line[_BODY : -len(TAIL)])
            kind, item = event["type"], event.get("item")
            self.sums.last_at = event["at"]
            self._count(kind, event)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IntegrityError(
                f"{segment_path(self._folder, place >> _SHIFT).name}, byte {place & _PLACE}: this is no record",
                hint="consilience verify on the run names what was changed.",
            ) from error
        if item is not None:
            if item not in self._items:
                self._items[item] = array("Q")
            self._items[item].append(place)

    def _count(self, kind: str, event: Mapping[str, Any]) -> None:
        sums = self.sums
        sums.ended = kind == RunFinished.type
        if kind == AttemptReserved.type:
            self._leave(event)
        elif kind in _SETTLES:
            self._settle(kind, event)
        elif kind in {TurnAccepted.type, TurnFailed.type}:
            sums.turns[str(event["outcome"]["status"])] += 1
        elif kind == ItemStarted.type:
            sums.started += 1
        elif kind == ItemFinished.type:
            sums.finished += 1

    def _leave(self, event: Mapping[str, Any]) -> None:
        pending = _Pending(event["reserved_nano"], str(event["role"]), str(event["model"]))
        self._pending[_try_of(event)] = pending
        for spent in self._spenders(pending):
            spent.attempts += 1
            spent.charge(pending.reserved_nano)

    def _settle(self, kind: str, event: Mapping[str, Any]) -> None:
        pending = self._pending.pop(_try_of(event))
        nano = event["cost_nano" if kind == AttemptResponse.type else "charged_nano"]
        usage = event["completion"].get("usage") if kind == AttemptResponse.type else None
        for spent in self._spenders(pending):
            spent.cost_nano -= pending.reserved_nano or 0
            spent.unknown -= pending.reserved_nano is None
            spent.charge(nano)
            spent.errors += kind == AttemptError.type
            spent.lost += kind == AttemptLost.type
            for name, count in (usage or _NO_USAGE).items():
                if count:
                    spent.tokens[name] += count

    def _spenders(self, pending: _Pending) -> tuple[Spent, Spent]:
        by_role, by_model = self.sums.by_role, self.sums.by_model
        if pending.role not in by_role:
            by_role[pending.role] = Spent()
        if pending.model not in by_model:
            by_model[pending.model] = Spent()
        return by_role[pending.role], by_model[pending.model]

    def items(self) -> Any:
        """Return hash and text of every long text."""
        return super().items()

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Items that have a record, in the order of their first."""
        return tuple(self._items)

    def records(self, item: str) -> list[Record]:
        """Return the records of an item, in order; none where it has none.

        Raises:
            IntegrityError: A record is not one that this version could have written.
        """
        found = []
        for place in self._items.get(item, ()):
            line = self._line(place)
            seq, at, where, event = event_from_json(json.loads(line[_BODY : -len(TAIL)]))
            digest = line[len(HEAD) : len(HEAD) + 64].decode("latin-1")
            found.append(Record(seq, at, where, event, digest, place >> _SHIFT, place & _PLACE))
        return found

    def _line(self, place: int) -> bytes:
        with segment_path(self._folder, place >> _SHIFT).open("rb") as lines:
            lines.seek(place & _PLACE)
            return lines.readline()

    def __getitem__(self, sha256: str) -> str:
        place = self._texts[bytes.fromhex(sha256)]
        *_, event = event_from_json(json.loads(self._line(place)[_BODY : -len(TAIL)]))
        if not isinstance(event, TextStored):
            raise KeyError(sha256)
        return event.text

    def __iter__(self) -> Any:
        return (digest.hex() for digest in self._texts)

    def __len__(self) -> int:
        return len(self._texts)
