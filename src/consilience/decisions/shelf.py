"""The decisions of a project, each checked against what was written and against its run before it is believed.

A decision's file is made from its run and is no record by itself. A log that only grows holds the hash of every file as
it was written, and the run holds rules, ballots and outcome. What differs from either is named and never counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import AwareDatetime

from consilience.core.canonical import sha256_hex, tagged_hash
from consilience.decisions.log import Decided, Resolved, decided_of, latest
from consilience.decisions.reading import ballot_turns, voted
from consilience.errors import ConsilienceError, IntegrityError, reason
from consilience.experiments.chained import ChainedLine, ChainedLog
from consilience.experiments.protocol import read_frozen
from consilience.experiments.verification import verify_run
from consilience.protocols.escalation import Escalation

WRITTEN: Final = "written.jsonl"
COUNT: Final = "written_last.json"
DECISION: Final = "decision.json"
AGAIN: Final = "Decide again with the same words: it is made anew from its run. What is no decision, take away."


class Written(ChainedLine):
    """The files of one decision, as they were written.

    Attributes:
        at: When.
        run_id: The decision.
        journal_head: Of its run at that time.
        sha256: By the file's name.
    """

    at: AwareDatetime
    run_id: str
    journal_head: str
    sha256: dict[str, str]


@dataclass(frozen=True)
class Shelf:
    """What a project's decisions are.

    Attributes:
        decisions: Those that are as they were written and as their runs say, oldest first.
        faults: Why each other one is not believed, by run id; one that was taken away too.
    """

    decisions: tuple[Decided, ...]
    faults: Mapping[str, str]

    def error(self) -> IntegrityError | None:
        """Return the error that names all that is not believed; None where there is nothing."""
        if not self.faults:
            return None
        told = "; ".join(f"{name}: {why}" for name, why in self.faults.items())
        return IntegrityError(f"not counted: {told}", hint=AGAIN)

    def homeless(self, outcomes: Sequence[Resolved]) -> tuple[str, ...]:
        """Return the decisions of which an outcome is recorded and which are not among those believed."""
        known = {one.run_id for one in self.decisions}
        return tuple(name for name in latest(outcomes) if name not in known)

    def settled(self, outcomes: Sequence[Resolved]) -> Shelf:
        """Return the shelf without the decisions that changed after their outcome was recorded."""
        known = latest(outcomes)
        changed = {
            one.run_id: "it was decided anew after its outcome was recorded: resolve it again with --correct"
            for one in self.decisions
            if one.run_id in known and known[one.run_id].decision_sha256 != one.sha256
        }
        kept = tuple(one for one in self.decisions if one.run_id not in changed)
        return Shelf(kept, {**self.faults, **changed})


def _log(folder: Path) -> ChainedLog[Written]:
    path = folder / WRITTEN
    return ChainedLog(path, path.with_name(COUNT), Written, "decision", "written", "The decision is not counted")


def record_written(folder: Path, run_id: str, head: str, files: Mapping[str, bytes], *, at: AwareDatetime) -> None:
    """Record the files of a decision, unless they are recorded so already.

    Raises:
        IntegrityError: The log was changed.
        DataError: It cannot be written.
    """
    hashes = {name: sha256_hex(data) for name, data in files.items()}
    with _log(folder).opened() as log:
        before = {one.run_id: one for one in log.lines}.get(run_id)
        if before is not None and (before.journal_head, before.sha256) == (head, hashes):
            return
        log.append(
            Written(
                at=at,
                run_id=run_id,
                journal_head=head,
                sha256=hashes,
                torn_bytes=log.torn_bytes,
                previous_sha256=log.previous_sha256,
            )
        )


def read_shelf(folder: Path, runs: Path) -> Shelf:
    """Return the decisions under ``results/decisions``, each checked; one that is not believed keeps no other from it.

    Args:
        folder: The decisions.
        runs: The project's runs.

    Raises:
        DataError: The log of what was written cannot be read.
        IntegrityError: That log was changed.

    Example:
        >>> read_shelf(Path("no-such-folder"), Path("no-such-folder"))
        Shelf(decisions=(), faults={})
    """
    written = {one.run_id: one for one in _log(folder).read()}
    found: list[Decided] = []
    faults: dict[str, str] = {}
    for path in sorted(folder.glob(f"*/{DECISION}")):
        name = path.parent.name
        try:
            found.append(_believed(path, runs / name, written.get(name)))
        except ConsilienceError as error:
            faults[name] = error.message
    there = {one.run_id for one in found} | set(faults)
    faults |= {name: "it was decided, and its folder is gone" for name in written if name not in there}
    return Shelf(tuple(sorted(found, key=lambda one: (one.at, one.run_id))), faults)


def _believed(path: Path, run: Path, written: Written | None) -> Decided:
    """Return a decision that is as it was written and as its run says.

    Raises:
        IntegrityError: It is not.
    """
    told, decided = decided_of(path)
    _require(written is not None, "consilience decide did not write it")
    for name, digest in written.sha256.items() if written is not None else ():
        try:
            data = (path.parent / name).read_bytes()
        except OSError as error:
            raise IntegrityError(f"{name} cannot be read: {reason(error)}", hint=AGAIN) from error
        _require(sha256_hex(data) == digest, f"{name} was changed after it was written")
    _require((run / "protocol.json").is_file(), f"its run is not in {run.parent}")
    verified = verify_run(run)
    damage = verified.error()
    if damage is not None:
        raise IntegrityError(f"its run: {damage.message}", hint=damage.hint)
    _require(verified.journal.head == told["audit"]["journal_head"], "its run went on after it was written")
    try:
        _compare(told, decided, run)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"it cannot be compared with its run: {reason(error)}", hint=AGAIN) from error
    return decided


def _compare(told: Mapping[str, Any], decided: Decided, run: Path) -> None:
    """Raise where rules, ballots or outcome are not those of the run.

    Raises:
        IntegrityError: They are not.
    """
    plan = read_frozen(run).plan
    protocol = plan.make_protocol()
    ladder = protocol if isinstance(protocol, Escalation) else None
    rules = {} if ladder is None else json.loads(json.dumps(dict(vars(ladder))))
    audit = told["audit"]
    kept = (audit["rules"], audit["rules_sha256"]) == (rules, tagged_hash("decision rules", rules))
    _require(kept, "its rules are not those of its run")
    (transcript,) = [json.loads(path.read_bytes()) for path in sorted((run / "transcripts").glob("*.json"))]
    _require(audit["ballots"] == ballot_turns(transcript), "its ballots are not those of its run")
    seats = {seat.label: seat for seat in plan.seats(audit["question"]["id"])}
    cast = voted(ladder, [label for label, seat in seats.items() if seat.part is None], transcript, decided.options)
    votes = tuple((seats[label].role.id, option) for label, option in cast.items())
    _require(votes == decided.ballots, "its votes are not those of its run")
    if ladder is not None:
        course = tuple(transcript["course"][name] for name in ("outcome", "winner", "step"))
        _require(course == (decided.outcome, decided.winner, decided.step), "its outcome is not that of its run")
    _require(plan.simulated is decided.simulated, "it is not told whether real models spoke")


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise IntegrityError(why, hint=AGAIN)


def named(shelf: Shelf, name: str) -> Decided | None:
    """Return a decision that is believed; None where there is none of the name.

    Raises:
        IntegrityError: It is there, and not believed.
    """
    if name in shelf.faults:
        raise IntegrityError(f"decision {name} is not believed: {shelf.faults[name]}", hint=AGAIN)
    return next((one for one in shelf.decisions if one.run_id == name), None)
