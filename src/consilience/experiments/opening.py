"""A run's folder before anything is asked: what must be there, what is fixed, and whether it is the run meant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from consilience.core.canonical import sha256_hex
from consilience.core.packet import Item
from consilience.errors import IntegrityError, JournalError, PlanError, reason
from consilience.experiments.orders import Job, Orders, Shell
from consilience.experiments.protocol import Frozen, compare, freeze, protocol_of, read_frozen
from consilience.experiments.questions import question_line
from consilience.experiments.storage import write_json
from consilience.journal.events import RunStarted
from consilience.journal.files import segment_path, segments
from consilience.journal.reader import Scan
from consilience.registry import nearest

AFTER_THE_RECORD: Final = ("manifest.json", "predictions.parquet", "transcripts", "traces")
"""What a run folder holds only once something was asked and recorded."""


def check_models(job: Job, orders: Orders) -> None:
    """Raise where a run could not begin.

    Raises:
        PlanError: A model of the plan is not there, or there is a spend cap and a model without a price.
    """
    missing = [name for name in job.plan.models if name not in job.models]
    if missing:
        raise PlanError(f'the plan asks model "{missing[0]}", which is not there', hint=nearest(missing[0], job.models))
    unpriced = [name for name in job.plan.models if job.catalogue.spec(name).price is None]
    if unpriced and orders.max_spend_nano is not None:
        raise PlanError(
            f"no price is known of {', '.join(unpriced)}, so no spend cap can hold",
            hint="Add its price (or `price: free`) to the models, or run without a cap.",
        )


def make_folder(folder: Path) -> None:
    """Make the run's folder.

    Raises:
        JournalError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        blocking = [path for path in (folder, *folder.parents) if path.exists() and not path.is_dir()]
        why = f"{blocking[0]} is a file" if blocking else error.strerror
        hint = "Move the file away, or" if blocking else "Check permissions and free space, or"
        raise JournalError(
            f"the run folder {folder} cannot be made: {why}", hint=f"{hint} choose another project with --project."
        ) from error


def open_protocol(job: Job, shell: Shell, orders: Orders) -> Frozen:
    """Fix the protocol of a new run, or return the recorded one if this process would ask the same.

    Raises:
        ResumeMismatchError: The folder holds a run that asked something else.
        IntegrityError: The recorded protocol cannot be read or is not the one that the journal was begun with, or the
            journal of a run that had begun is gone.
    """
    check_record(job.folder)
    now = protocol_of(job.plan, job.models, catalogue=job.catalogue, run_secret=shell.run_secret)
    if not segments(job.folder):
        freeze(job.folder, now)
        return now
    recorded = read_frozen(job.folder)
    _check_start(job, recorded)  # first: what differs from a damaged record says nothing about the user's settings
    return compare(recorded, now, accept=orders.accept)


def check_record(folder: Path) -> None:
    """Raise where a run had begun and its journal holds no record: started over, all of it would be paid for again.

    Protocol, prices, packets, the lock and a journal file still under its draft name precede the first record. All
    else follows it, and a journal file has its name only with records in it, so an empty one was emptied.

    Raises:
        IntegrityError: The journal is missing or empty, and the folder says that there was one.
    """
    numbers = segments(folder)
    try:
        first = b"" if not numbers else _first_line(segment_path(folder, numbers[0]))
        left = [name for name in AFTER_THE_RECORD if _holds_something(folder / name)]
    except OSError as error:
        raise JournalError(
            f"the run folder {folder} cannot be read: {reason(error)}", hint="Mend the cause and run the command again."
        ) from error
    begun = bool(left) or (bool(numbers) and not first)
    if begun and not first.endswith(b"\n"):
        told = f", but {left[0]} is there" if left else ""
        raise IntegrityError(
            f"the journal in {folder} {'holds no record' if numbers else 'is missing'}{told}: what was answered and "
            "paid is no longer on record",
            hint="Restore events-*.jsonl from a copy of the run; to ask all of it anew, and pay anew, take another "
            "--run-id or move the folder away.",
        )


def _holds_something(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _first_line(path: Path) -> bytes:
    with path.open("rb") as lines:
        return lines.readline()


def _check_start(job: Job, frozen: Frozen) -> None:
    first = next(iter(Scan(job.folder)), None)
    started = None if first is None else first.event
    if isinstance(started, RunStarted) and (started.run_id, started.protocol_sha256) != (job.run_id, frozen.sha256):
        raise IntegrityError(
            f"the journal in {job.folder} was started as run {started.run_id} with another protocol.json",
            hint="Restore protocol.json from a copy of the run, or use the run's own id.",
        )


def write_packets(folder: Path, items: Sequence[Item]) -> dict[str, str]:
    """Write the packets that are not there yet, and return the SHA-256 of each file by item."""
    digests: dict[str, str] = {}
    for item in items:
        path = folder / "packets" / f"{item.question.id}.json"
        if not path.exists():
            write_json(path, question_line(item))
        digests[item.question.id] = sha256_hex(path.read_bytes())
    return digests
