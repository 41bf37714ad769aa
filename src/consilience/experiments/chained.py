"""Logs that only grow: each line holds the hash of the line before, and a count beside them misses the last."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from consilience.core.canonical import sha256_hex
from consilience.errors import DataError, IntegrityError, reason
from consilience.experiments.storage import json_line, write_json
from consilience.journal.files import RealFiles


class ChainedLine(BaseModel):
    """What every line of such a log holds.

    Attributes:
        torn_bytes: Bytes of an unfinished line that this one took the place of.
        previous_sha256: Hash of the line before; None for the first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    torn_bytes: int = Field(ge=0)
    previous_sha256: str | None


Line = TypeVar("Line", bound=ChainedLine)


@dataclass(frozen=True)
class Opened(Generic[Line]):
    """A log that one process holds, so that nothing is appended between reading and appending.

    Attributes:
        log: The log.
        handle: Open file.
        lines: Every line so far.
        torn_bytes: Bytes of an unfinished line at the end, which the next line takes the place of.
        previous_sha256: Hash of the last line; None where there is none.
    """

    log: ChainedLog[Line]
    handle: int
    lines: tuple[Line, ...]
    torn_bytes: int
    previous_sha256: str | None

    def append(self, line: Line) -> None:
        """Append a line, made with ``torn_bytes`` and ``previous_sha256``, and return when it is on disk.

        Raises:
            DataError: It could not be read again, since a text is no Unicode; nothing is changed.
        """
        files, data = RealFiles(), json_line(line.model_dump(mode="json"))
        try:
            type(line).model_validate_json(data)
        except ValidationError as error:
            raise DataError(
                f"this {self.log.noun} could not be read again: {reason(error)}", hint="Write it in plain text (UTF-8)."
            ) from error
        os.ftruncate(self.handle, os.fstat(self.handle).st_size - self.torn_bytes)
        files.write(self.handle, data)
        files.fsync(self.handle)
        counted = {f"{self.log.noun}s": len(self.lines) + 1, "sha256": sha256_hex(data.rstrip(b"\n"))}
        write_json(self.log.count, counted)
        files.fsync_dir(self.log.path.parent)


@dataclass(frozen=True)
class ChainedLog(Generic[Line]):
    """One log with the count beside it.

    Attributes:
        path: The log.
        count: How many lines it holds, and the hash of the last.
        line: What a line is.
        noun: What a line is called, such as ``look``.
        made: What was done to it, such as ``made``.
        unwritten: What follows where it cannot be written.
    """

    path: Path
    count: Path
    line: type[Line]
    noun: str
    made: str
    unwritten: str

    def read(self) -> tuple[Line, ...]:
        """Return the lines so far, oldest first; a last line that was cut off before it was counted is none.

        Raises:
            DataError: The log cannot be read.
            IntegrityError: A line was changed or taken out, the last ones too; it is named.
        """
        counted = self._counted()  # before the log, which may grow meanwhile
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {reason(error)}", hint="Check its permissions.") from error
        return self._lines(data, counted)

    @contextmanager
    def opened(self) -> Iterator[Opened[Line]]:
        """Hold the log for one process: of two that append at once the second waits.

        Raises:
            DataError: It cannot be read or written.
            IntegrityError: A line was changed or taken out, the last ones too; it is named.
        """
        handle: int | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            fcntl.flock(handle, fcntl.LOCK_EX)
            data = os.pread(handle, os.fstat(handle).st_size, 0)
            lines = self._lines(data, self._counted())
            torn = len(data) - (data.rfind(b"\n") + 1)
            previous = sha256_hex(data.split(b"\n")[-2]) if lines else None
            yield Opened(self, handle, lines, torn, previous)
        except OSError as error:
            raise DataError(
                f"the {self.noun} log {self.path} cannot be written: {reason(error)}",
                hint=f"{self.unwritten}; check permissions and free space.",
            ) from error
        finally:
            if handle is not None:
                os.close(handle)

    def _lines(self, data: bytes, counted: tuple[int, str] | None) -> tuple[Line, ...]:
        found: list[Line] = []
        previous: str | None = None
        *lines, _ = data.split(b"\n")
        for number, line in enumerate(lines, start=1):
            try:
                one = self.line.model_validate_json(line)
            except ValidationError as error:
                raise IntegrityError(
                    f"line {number} of {self.path} is no {self.noun}: {reason(error)}",
                    hint="Restore the log from a copy.",
                ) from error
            if one.previous_sha256 != previous:
                raise IntegrityError(
                    f"line {number} of {self.path} does not follow the line before it",
                    hint="A line was changed or taken out; restore the log from a copy.",
                )
            previous = sha256_hex(line)
            found.append(one)
        self._miss(lines, counted)
        return tuple(found)

    def _counted(self) -> tuple[int, str] | None:
        """Return how many lines were counted and the hash of the last; None where none was."""
        try:
            counted = json.loads(self.count.read_bytes())
            return int(counted[f"{self.noun}s"]), str(counted["sha256"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise IntegrityError(
                f"{self.count} is no count of {self.noun}s: {reason(error)}", hint="Restore it from a copy."
            ) from error

    def _miss(self, lines: Sequence[bytes], counted: tuple[int, str] | None) -> None:
        """Raise where the log does not hold the lines that were counted; it may hold one more, cut short there.

        Raises:
            IntegrityError: Lines are missing, or the last counted one was changed.
        """
        if counted is None:
            return
        count, head = counted
        if not 0 < count <= len(lines) or sha256_hex(lines[count - 1]) != head:
            at = min(count, len(lines) + 1)
            raise IntegrityError(
                f"{self.path} does not hold the {count} {self.noun}s that were {self.made}: "
                f"line {at} was changed, cut or taken away",
                hint="Restore the log from a copy.",
            )
