"""Faults in the bytes of a run's folder: torn, flipped, gone, in another place."""

from __future__ import annotations

import shutil
from pathlib import Path

from campaigns.ground import CAPPED, FREE, ITEMS, PLAN, Case, Ground, answered_keys, resumed, stopped, whole
from consilience.errors import IntegrityError
from consilience.experiments.verification import verify_run
from consilience.journal.verify import verify
from engine_cases import carry_out, panel

JOURNAL = "events-00001.jsonl"


def _made(ground: Ground, *, at: int | None = None) -> Path:
    """Return a run that is finished, or stopped at a call."""
    run = ground.folder / "made"
    if at is None:
        carry_out(run, PLAN, ITEMS, panel(), orders=CAPPED)
    else:
        stopped(run, at=at)
    return run


def _copied(run: Path, place: Path) -> Path:
    shutil.copytree(run, place)
    return place


def _torn(ground: Ground, run: Path, *, last: int) -> None:
    """Tear a record at every byte: verify names it every time; resume at as many of them as there are tries."""
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    whole_line, before = lines[last], b"".join(lines[:last])
    known = sum(b'"type":"attempt.response"' in line for line in lines[:last])
    cuts = range(1, len(whole_line))
    resume_at = set(cuts[:: max(1, len(cuts) // ground.tries)])
    torn = _copied(run, ground.folder / "torn")
    for cut in cuts:
        (torn / JOURNAL).write_bytes(before + whole_line[:cut])
        found = verify(torn).first_bad
        assert found is not None
        assert (found.file, found.record) == (JOURNAL, last + 1)
        if cut in resume_at:
            resumed(_copied(torn, ground.folder / "resumed"), known=known)
            shutil.rmtree(ground.folder / "resumed")
        ground.tried += 1
    ground.found = f"resumed at {len(resume_at)} of them"


def torn_end(ground: Ground) -> None:
    """The last record of a finished run is torn."""
    run = _made(ground)
    _torn(ground, run, last=len((run / JOURNAL).read_bytes().splitlines()) - 1)


def torn_answer(ground: Ground) -> None:
    """The last record is that of an answer: what is not whole is lost, charged, and asked for once more."""
    run = _made(ground, at=5)
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    _torn(ground, run, last=max(at for at, line in enumerate(lines) if b'"type":"attempt.response"' in line))


def flipped(ground: Ground) -> None:
    """One bit of any file of a finished run is another: it is named, and no call is made on a damaged record."""
    run = _made(ground)
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != "lock")
    sizes = [path.stat().st_size for path in files]
    for place in ground.each():
        (path,) = ground.rng.choices(files, weights=sizes)
        copy = _copied(run, place) / path.relative_to(run)
        content = bytearray(copy.read_bytes())
        content[ground.rng.randrange(len(content))] ^= 1 << ground.rng.randrange(8)
        copy.write_bytes(content)
        checked = verify_run(place)
        assert not checked.ok
        error = checked.error()
        assert error is not None
        assert path.name in str(error)
        model = panel()
        try:
            report = carry_out(place, PLAN, ITEMS, model, orders=CAPPED)
        except IntegrityError:
            assert path.name in {JOURNAL, "protocol.json"}
        else:  # a torn last record, a file that is made anew, or evidence, which is not written over
            assert report.predictions.drop(FREE).equals(whole())
            again = verify_run(place)
            assert again.ok or [finding.file for finding in again.files] == [f"packets/{path.name}"]
        assert model.requests == []


def _damaged(ground: Ground, *, how: str) -> None:
    run = _made(ground)
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    for place in ground.each():
        changed = list(lines)
        at = ground.rng.randrange(1, len(lines) - 2)
        if how == "removed":
            del changed[at]
        elif how == "doubled":
            changed.insert(at, lines[at])
        else:
            changed[at], changed[at + 1] = lines[at + 1], lines[at]
        (_copied(run, place) / JOURNAL).write_bytes(b"".join(changed))
        found = verify(place).first_bad
        assert found is not None
        assert found.record == at + 1 + (how == "doubled")
        model = panel()
        try:
            carry_out(place, PLAN, ITEMS, model, orders=CAPPED)
        except IntegrityError as error:
            assert f"record {found.record} ({JOURNAL}" in str(error)  # noqa: PT017 - which of them is computed
            assert model.requests == []
        else:
            raise AssertionError(f"a record was {how} and the run went on")


def removed(ground: Ground) -> None:
    _damaged(ground, how="removed")


def doubled(ground: Ground) -> None:
    _damaged(ground, how="doubled")


def swapped(ground: Ground) -> None:
    _damaged(ground, how="swapped")


def tail_cut(ground: Ground) -> None:
    """Whole records are cut from the end: it shows as unfinished, against a noted head it is damage."""
    run = _made(ground)
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    head = verify(run).head
    for place in ground.each():
        cut = ground.rng.randrange(2, len(lines))
        (_copied(run, place) / JOURNAL).write_bytes(b"".join(lines[:cut]))
        checked = verify(place)
        assert (checked.ok, checked.finished) == (True, False)
        assert not verify(place, head).ok
        resumed(place, known=len(answered_keys(place)))


LOSES_NOTHING = "exactly the missing calls are made, and nothing else differs"
NAMED = "the record is named and no call is made"
DAMAGED = "test_a_removed_a_repeated_and_a_swapped_record_are_named"

CASES = (
    Case(
        "last record of a finished run torn at every byte",
        f"verify names it; {LOSES_NOTHING}",
        torn_end,
        many=40,
        by="test_the_last_record_torn_at_any_byte_costs_no_call",
    ),
    Case(
        "record of an answer torn at every byte",
        f"verify names it; {LOSES_NOTHING}",
        torn_answer,
        many=40,
        by="test_a_torn_last_record_is_kept_aside_at_every_byte",
    ),
    Case(
        "one bit flipped, in any file of a run",
        "the file or record is named; a damaged record is not gone on with, a derived file is made anew; no call",
        flipped,
        many=400,
        few=4,
    ),
    Case("a record removed", NAMED, removed, many=40, by=DAMAGED),
    Case("a record twice", NAMED, doubled, many=40, by=DAMAGED),
    Case("two records swapped", NAMED, swapped, many=40, by=DAMAGED),
    Case(
        "whole records cut from the end",
        f"unfinished, against a noted head damaged; {LOSES_NOTHING}",
        tail_cut,
        many=40,
        by="test_every_cut_is_found",
    ),
)
