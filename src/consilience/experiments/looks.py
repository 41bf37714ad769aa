"""The look log: which look at a judged split this is, kept in ``looks.jsonl`` before anything is shown."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from consilience.core.canonical import sha256_hex
from consilience.errors import DataError, IntegrityError, PlanError, reason
from consilience.experiments.storage import json_line, write_json
from consilience.journal.files import RealFiles

LOOKS: Final = "looks.jsonl"
LAST: Final = "looks_last.json"
"""Beside the log: how many looks it holds and the hash of the last, so that looks taken out at its end are missed."""
COUNTED: Final = ("test", "holdout")
"""Splits that are looked at once, after the freeze; others are looked at as often as one likes."""


class Look(BaseModel):
    """One look at a judged split.

    Attributes:
        at: When.
        split: Which split.
        simulated: Every run was simulated or synthetic; such looks are counted on their own.
        number: Which look at this split it is, from 1.
        run_ids: Runs whose numbers were shown.
        tables_sha256: Hash of the tables shown.
        freeze_sha256: Head of the freeze in force; None where there was none.
        reason: Why a split was looked at once more; None where nothing was asked.
        torn_bytes: Bytes of an unfinished line that this one took the place of.
        previous_sha256: Hash of the line before; None for the first.
        unfrozen: Earlier looks at this split without a freeze; None in lines of before they were counted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    split: str
    simulated: bool
    number: int = Field(ge=1)
    run_ids: tuple[str, ...]
    tables_sha256: str
    freeze_sha256: str | None
    reason: str | None
    torn_bytes: int = Field(ge=0)
    previous_sha256: str | None
    unfrozen: int | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class Glance:
    """What is about to be shown.

    Attributes:
        split: Split of the items.
        simulated: Every run is simulated or synthetic.
        run_ids: Runs whose numbers are shown.
        tables_sha256: Hash of the tables.
    """

    split: str
    simulated: bool
    run_ids: tuple[str, ...]
    tables_sha256: str


def read_looks(path: Path) -> tuple[Look, ...]:
    """Return the looks so far, oldest first; a last line that was cut off by an earlier end showed nothing.

    Raises:
        DataError: The log cannot be read.
        IntegrityError: A line was changed or taken out, the last ones too; it is named.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}", hint="Check its permissions.") from error
    return _looks(data, path)


def _looks(data: bytes, path: Path) -> tuple[Look, ...]:
    found: list[Look] = []
    previous: str | None = None
    *lines, _ = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            look = Look.model_validate_json(line)
        except ValidationError as error:
            raise IntegrityError(
                f"line {number} of {path} is no look: {reason(error)}", hint="Restore the log from a copy."
            ) from error
        if look.previous_sha256 != previous:
            raise IntegrityError(
                f"line {number} of {path} does not follow the line before it",
                hint="A line was changed or taken out; restore the log from a copy.",
            )
        previous = sha256_hex(line)
        found.append(look)
    _miss(lines, path)
    return tuple(found)


def _miss(lines: Sequence[bytes], path: Path) -> None:
    """Raise where the log does not hold the looks that were counted beside it; it may hold one more, cut short there.

    Raises:
        IntegrityError: Looks are missing.
    """
    last = path.with_name(LAST)
    try:
        counted = json.loads(last.read_bytes())
        count, head = int(counted["looks"]), str(counted["sha256"])
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{last} is no count of looks: {reason(error)}", hint="Restore it from a copy.") from error
    if not 0 < count <= len(lines) or sha256_hex(lines[count - 1]) != head:
        raise IntegrityError(
            f"{path} does not hold the {count} looks that were made: it was changed, cut or taken away",
            hint="Restore the log from a copy.",
        )


def seen_before(looks: Sequence[Look], glance: Glance) -> Look | None:
    """Return the latest look that showed the very same tables of the same runs, if there was one."""
    same = (
        look for look in reversed(looks) if (look.run_ids, look.tables_sha256) == (glance.run_ids, glance.tables_sha256)
    )
    return next(same, None)


def note_look(
    path: Path, glance: Glance, *, at: datetime, freeze_sha256: str | None, again: str | None, repeated: bool = False
) -> Look:
    """Note a look on disk before it is shown, and return it.

    A split of `COUNTED` is looked at once, after the freeze, whichever freeze it was: a new freeze brings no new look.
    Without a freeze nothing was fixed beforehand, so that even the first look needs a reason; it is told ever after.

    Args:
        path: ``looks.jsonl``.
        glance: What is about to be shown.
        at: Now, with time zone.
        freeze_sha256: Head of the freeze in force; None where the study is not frozen.
        again: Why the split is looked at once more.
        repeated: Tables that were shown before are no new look: that look is returned and nothing is written.

    Raises:
        PlanError: The study is not frozen, or the split was looked at under a freeze, and no reason was given; nothing
            is changed.
        DataError: The log cannot be read or written; nothing may be shown.
        IntegrityError: A line of the log was changed or taken out, or the log itself.
    """
    why = (again or "").strip() or None
    with _locked(path) as handle:
        data = _whole(handle)
        looks = _looks(data, path)
        shown = seen_before(looks, glance) if repeated else None
        if shown is not None:
            return shown
        own = [look for look in looks if (look.split, look.simulated) == (glance.split, glance.simulated)]
        judged = [look for look in own if look.freeze_sha256 is not None]
        if judged and why is None:
            last = judged[-1]
            raise PlanError(
                f"{glance.split} was looked at under the freeze before: look {last.number} on "
                f"{last.at:%Y-%m-%d %H:%M} UTC, runs {', '.join(last.run_ids)}",
                hint='It is looked at once. --again "reason" looks once more; the reason is kept in the log.',
            )
        if freeze_sha256 is None and why is None:
            raise PlanError(
                f"{glance.split} is looked at after the freeze, and this study is not frozen{_before(own)}",
                hint='Fix it first: consilience freeze. --again "reason" looks nevertheless; the look is counted, '
                "and told after the freeze.",
            )
        kept = data.rfind(b"\n") + 1
        look = Look(
            at=at,
            **vars(glance),
            number=len(own) + 1,
            freeze_sha256=freeze_sha256,
            reason=why,
            torn_bytes=len(data) - kept,
            previous_sha256=sha256_hex(data.split(b"\n")[-2]) if looks else None,
            unfrozen=len(own) - len(judged),
        )
        os.ftruncate(handle, kept)
        files = RealFiles()
        line = json_line(look.model_dump(mode="json"))
        files.write(handle, line)
        files.fsync(handle)
        write_json(path.with_name(LAST), {"looks": len(looks) + 1, "sha256": sha256_hex(line.rstrip(b"\n"))})
        files.fsync_dir(path.parent)
    return look


def _before(looks: Sequence[Look]) -> str:
    """Return how often a split was looked at so far, as the end of a sentence."""
    return f"; looks at it so far: {len(looks)}" if looks else ""


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open the log for one process at a time: two looks at once would both be the first."""
    handle: int | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    except OSError as error:
        raise DataError(
            f"the look log {path} cannot be written: {reason(error)}",
            hint="Nothing is shown before its look is noted; check permissions and free space.",
        ) from error
    finally:
        if handle is not None:
            os.close(handle)


def _whole(handle: int) -> bytes:
    return os.pread(handle, os.fstat(handle).st_size, 0)


def look_text(look: Look) -> str:
    """Return which look this is, in one sentence.

    Example:
        >>> from datetime import timezone
        >>> look = Look(at=datetime(2026, 1, 2, tzinfo=timezone.utc), split="test", simulated=False, number=2,
        ...     run_ids=("r",), tables_sha256="0", freeze_sha256=None, reason=None, torn_bytes=0, previous_sha256=None)
        >>> look_text(look)
        'This is look 2 at test; no freeze existed, so nothing was fixed before it'
    """
    word = f"{look.split} (simulated)" if look.simulated else look.split
    said = f"This is look {look.number} at {word}"
    if look.freeze_sha256 is None:
        said += "; no freeze existed, so nothing was fixed before it"
    else:
        said += f" under freeze {look.freeze_sha256[:12]}"
    if look.unfrozen:
        said += f"; earlier looks at it without a freeze: {look.unfrozen}"
    return said if look.reason is None else f"{said}, because: {look.reason}"
