"""The look log: which look at a judged split this is, kept in ``looks.jsonl`` before anything is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import AwareDatetime, Field

from consilience.errors import PlanError
from consilience.experiments.chained import ChainedLine, ChainedLog

LOOKS: Final = "looks.jsonl"
LAST: Final = "looks_last.json"
"""Beside the log: how many looks it holds and the hash of the last, so that looks taken out at its end are missed."""
COUNTED: Final = ("test", "holdout")
"""Splits that are looked at once, after the freeze; others are looked at as often as one likes."""


class Look(ChainedLine):
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
        unfrozen: Earlier looks at this split without a freeze; None in lines of before they were counted.
    """

    at: AwareDatetime
    split: str
    simulated: bool
    number: int = Field(ge=1)
    run_ids: tuple[str, ...]
    tables_sha256: str
    freeze_sha256: str | None
    reason: str | None
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
    return _log(path).read()


def _log(path: Path) -> ChainedLog[Look]:
    return ChainedLog(path, path.with_name(LAST), Look, "look", "made", "Nothing is shown before its look is noted")


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
    with _log(path).opened() as log:
        looks = log.lines
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
        look = Look(
            at=at,
            **vars(glance),
            number=len(own) + 1,
            freeze_sha256=freeze_sha256,
            reason=why,
            torn_bytes=log.torn_bytes,
            previous_sha256=log.previous_sha256,
            unfrozen=len(own) - len(judged),
        )
        log.append(look)
    return look


def _before(looks: Sequence[Look]) -> str:
    """Return how often a split was looked at so far, as the end of a sentence."""
    return f"; looks at it so far: {len(looks)}" if looks else ""


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
