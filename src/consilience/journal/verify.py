"""Say whether a journal is byte for byte what was written, and if not, where it first differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from consilience.journal.events import Record, RunFinished
from consilience.journal.files import segment_path
from consilience.journal.reader import Damage, Scan


@dataclass(frozen=True)
class Verification:
    """What a check of a whole journal found.

    A changed, missing or reordered byte breaks the chain and is found. Whole records cut from the end, or a tail
    rewritten with fresh hashes, break no chain: the first shows as ``finished`` False, both show against a noted head.

    Attributes:
        ok: No damage was found; an unfinished run is not damaged.
        records: Good records before the first bad one.
        head: Hash of the last good record; None without any.
        finished: The last record is ``run.finished``.
        first_bad: Where the journal first differs; None when ok.
    """

    ok: bool
    records: int
    head: str | None
    finished: bool
    first_bad: Damage | None


def verify(folder: Path, head: str | None = None, *, seen: Callable[[Record], None] = lambda _: None) -> Verification:
    """Check every byte of a run's journal.

    Args:
        folder: The run folder.
        head: A head hash noted elsewhere, such as in a report. It must be the hash of some record: a run may have gone
            on after it was noted, but nothing up to it may have changed or gone.
        seen: Is given every good record, in order.

    Example:
        >>> verify(Path("no-such-run")).first_bad.reason
        'the file is missing'
    """
    scan = Scan(folder)
    finished = False
    noted = head is None
    for record in scan:
        finished = isinstance(record.event, RunFinished)
        noted = noted or record.hash == head
        seen(record)
    bad = scan.damage
    if bad is None and scan.torn_bytes:
        bad = scan.here(f"the last record is torn: {scan.torn_bytes} bytes without a line end", kind="torn")
    if bad is None and not scan.count:
        first = segment_path(folder, 1)
        what = "the file is empty" if first.exists() else "the file is missing"
        bad = Damage(file=first.name, record=1, offset=0, reason=what)
    if bad is None and not noted:
        bad = scan.here(
            f"no record has the noted head {head}: the tail was cut or rewritten after it was noted", kind="head"
        )
    return Verification(ok=bad is None, records=scan.count, head=scan.head, finished=finished, first_bad=bad)
