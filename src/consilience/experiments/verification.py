"""Check a whole run folder: the journal, and every other file against what the journal and the protocol say of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from consilience.core.canonical import sha256_hex
from consilience.core.packet import Item
from consilience.errors import IntegrityError, reason
from consilience.experiments.manifest import Counts, Money, RunFacts, manifest
from consilience.experiments.plan import Plan
from consilience.experiments.questions import question_line
from consilience.experiments.storage import json_line
from consilience.journal.events import AttemptLost, Record, RunFinished, RunResumed
from consilience.journal.files import segment_path, segments
from consilience.journal.reader import RunState, Texts
from consilience.journal.verify import Verification, verify

REBUILT = "the run's command rebuilds it"
UNRECORDED = (
    *("package_version", "git_commit", "environment_sha256", "third_party", "said_of_models"),
    *("max_spend_usd", "spend_cap_hit"),
    *("freeze_sha256", "protocol_deviations"),
)
"""What a manifest says of the process that wrote it; the journal does not hold it."""


@dataclass(frozen=True)
class Finding:
    """One file that is not what it should be.

    Attributes:
        file: Its path in the run folder.
        reason: What is wrong.
        derived: The file is made from the record, so nothing is lost: the run's own command makes it again.
    """

    file: str
    reason: str
    derived: bool = False

    def __str__(self) -> str:
        """Return file and reason as one sentence part."""
        return f"{self.file}: {self.reason}"


@dataclass(frozen=True)
class RunVerification:
    """What a check of a run folder found.

    Attributes:
        journal: What the check of the journal found.
        files: Every other file that is not what the record says.
    """

    journal: Verification
    files: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is as it was written."""
        return self.journal.ok and not self.files

    def error(self) -> IntegrityError | None:
        """Return the error to raise: of the journal first, then of other files of the record, then of derived ones."""
        if self.journal.first_bad is not None:
            return self.journal.first_bad.error()
        damaged = [str(finding) for finding in self.files if not finding.derived]
        if damaged:
            return IntegrityError(
                f"the record was changed: {'; '.join(damaged)}", hint="Restore it from a copy of the run."
            )
        if self.files:
            return IntegrityError(
                f"the record is whole, but files made from it are not: {'; '.join(map(str, self.files))}",
                hint="Run the run's own command again: it makes them anew without a call.",
            )
        return None


def verify_run(folder: Path, head: str | None = None) -> RunVerification:
    """Check every file of a run folder.

    The journal is checked by its chain; ``protocol.json`` by the digest in its first record; prices and packets by the
    protocol; transcripts, predictions and manifest by what the journal recorded when items and run were finished. A
    manifest that notes a head which no record has shows that whole records were cut from the end of the journal.
    Predictions and manifest of a run that is not finished are not checked, and no manifest for what it says of
    versions, environment and spend cap.

    Args:
        folder: The run folder.
        head: A head hash noted elsewhere; see `consilience.journal.verify.verify`.

    Raises:
        IntegrityError: Records of the journal contradict each other.

    Example:
        >>> verify_run(Path("no-such-run")).journal.first_bad.reason
        'the file is missing'
    """
    told = _Told(folder)
    journal = verify(folder, head, seen=told.add)
    if not segments(folder):
        return RunVerification(journal, ())
    return RunVerification(journal, tuple(_findings(folder, journal, told)))


class _Told:
    """What the records say about the other files."""

    def __init__(self, folder: Path) -> None:
        self.state = RunState(Texts(folder))
        self.accepted: set[str] = set()
        self.counts: Mapping[str, Any] = {}
        self.manifest = _manifest(folder)
        self.noted = self.manifest is None

    def add(self, record: Record) -> None:
        self.state.add(record)
        self.noted = self.noted or (self.manifest is not None and self.manifest.get("journal_head") == record.hash)
        if isinstance(record.event, RunResumed):
            self.accepted.update(record.event.accepted)
        elif isinstance(record.event, RunFinished):
            self.counts = record.event.counts


def _manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest; None where it is missing, and an empty one where it is none."""
    try:
        found = json.loads((folder / "manifest.json").read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and "journal_head" in found else {}


def _findings(folder: Path, journal: Verification, told: _Told) -> Iterator[Finding]:
    content = _json(folder / "protocol.json")
    started = told.state.started
    plan: Plan | None = None
    if isinstance(content, str):
        yield Finding("protocol.json", content)
    elif started is not None and _digest(folder / "protocol.json", b"\n") != started.protocol_sha256:
        yield Finding("protocol.json", "is not the one the journal was started with")
    else:
        try:
            plan = Plan.model_validate_json(json_line(content["plan"]))
            yield from _prices(folder, content["prices"])
        except (ValidationError, KeyError) as error:
            yield Finding("protocol.json", f"cannot be read by this version: {reason(error)}")
    if plan is not None:
        yield from _packets(folder, plan, told.state)
    if not journal.ok:
        return
    if told.manifest and not told.noted:
        name = segment_path(folder, segments(folder)[-1]).name
        noted = told.manifest.get("journal_head")
        yield Finding(name, f"no record has the head {noted} that manifest.json notes: the tail was cut or rewritten")
    yield from _derived(folder, journal, told, plan)


def _prices(folder: Path, rows: Any) -> Iterator[Finding]:
    content = _json(folder / "prices.json")
    if isinstance(content, str):
        yield Finding("prices.json", content)
    elif _digest(folder / "prices.json") != sha256_hex(json_line(rows)):
        yield Finding("prices.json", "is not the price rows in protocol.json")


def _packets(folder: Path, plan: Plan, state: RunState) -> Iterator[Finding]:
    for item_id, digest in plan.items.items():
        path = folder / "packets" / f"{item_id}.json"
        at = partial(Finding, f"packets/{path.name}")
        try:
            line = path.read_bytes()
            item = Item.model_validate_json(line)
        except FileNotFoundError:
            yield at(f"is missing; {REBUILT}", derived=True)
        except (OSError, ValueError) as error:
            yield at(f"cannot be read: {reason(error)}")
        else:
            ended = state.items_finished.get(item_id)
            if item.digest != digest:
                yield at("is not the question and packet that were asked")
            elif line != json_line(question_line(item)) or (
                ended is not None and ended.data.get("packet_file_sha256") != sha256_hex(line)
            ):
                yield at("is not as it was written")


def _derived(folder: Path, journal: Verification, told: _Told, plan: Plan | None) -> Iterator[Finding]:
    files = {
        f"transcripts/{item_id}.json": event.data.get("transcript_sha256")
        for item_id, event in told.state.items_finished.items()
    }
    if journal.finished:
        files["predictions.parquet"] = told.counts.get("predictions_sha256")
    for name, digest in files.items():
        found = _digest(folder / name)
        if found is None:
            yield Finding(name, f"is missing; {REBUILT}", derived=True)
        elif found != digest:
            yield Finding(name, f"derived file differs; {REBUILT}", derived=True)
    if journal.finished:
        yield from _manifest_findings(journal, told, plan)


def _manifest_findings(journal: Verification, told: _Told, plan: Plan | None) -> Iterator[Finding]:
    at = partial(Finding, "manifest.json", derived=True)
    if told.manifest is None:
        yield at(f"is missing; {REBUILT}")
    elif not told.manifest:
        yield at(f"is no manifest; {REBUILT}")
    elif told.noted and told.manifest["journal_head"] != journal.head:
        yield at(f"is older than the journal; {REBUILT}")
    elif told.noted and plan is not None:
        wanted = _expected(told, plan, journal.head)
        names = sorted(name for name in wanted.keys() | told.manifest.keys() if _differ(name, wanted, told.manifest))
        if names:
            yield at(f"derived file differs in {', '.join(names)}; {REBUILT}")


def _differ(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    if name in UNRECORDED:
        return name not in found
    return name not in wanted or name not in found or wanted[name] != found[name]


def _expected(told: _Told, plan: Plan, head: str | None) -> dict[str, Any]:
    """Return what a finished run's journal and plan say of its manifest."""
    state, counts = told.state, told.counts
    outcomes = [attempt.outcome for attempt in state.attempts.values()]
    lost = sum(1 for outcome in outcomes if outcome is None or isinstance(outcome, AttemptLost))
    done = counts.get("items", {})
    made = manifest(
        plan,
        run_id="" if state.started is None else state.started.run_id,
        facts=RunFacts("", None, ""),
        head=head,
        counts=Counts(
            turns=counts.get("turns", {}),
            items={**done, "not_run": len(plan.items) - sum(done.values())},
            tokens=counts.get("tokens"),
        ),
        money=Money(spent_nano=state.spent_nano, cap_nano=None, cap_hit=False, lost_attempts=lost),
        accepted=sorted(told.accepted),
        said_of_models=(),
        panel=counts.get("panel"),
        matched=counts.get("match"),
    )
    plain: dict[str, Any] = json.loads(json_line(made))
    return plain


def _json(path: Path) -> Any:
    """Return the value in a file, or in words why there is none; the files read here hold objects."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return f"cannot be read: {reason(error)}"
    return found if isinstance(found, dict) else "holds no object"


def _digest(path: Path, line_end: bytes = b"") -> str | None:
    """Return the SHA-256 of a file's bytes before its line end; None where it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return sha256_hex(data[: len(data) - len(line_end)]) if data.endswith(line_end) else None
