from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consilience.experiments.orders import Orders
from consilience.experiments.questions import read_questions
from consilience.experiments.storage import json_line, write_json
from consilience.experiments.verification import RunVerification, verify_run
from consilience.journal.events import ItemFinished, RunFinished
from consilience.models.calls import Stop
from consilience.models.request import Request
from engine_cases import (
    INDEPENDENT,
    QUICK,
    carry_out,
    events_of,
    make_items,
    make_plan,
    make_shell,
    panel,
    seat_number,
    speak,
)

ITEMS = make_items(2)
PLAN = make_plan(ITEMS, protocol=INDEPENDENT)
FILES = (
    *("protocol.json", "prices.json", "predictions.parquet", "manifest.json"),
    *("packets/item-01.json", "transcripts/item-02.json"),
)
DERIVED = ("predictions.parquet", "manifest.json", "transcripts/item-02.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "run"
    carry_out(run, PLAN, ITEMS, panel())
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def found(checked: RunVerification) -> dict[str, bool]:
    return {finding.file: finding.derived for finding in checked.files}


def edit(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_bytes())
    change(value)
    write_json(path, value)


def test_an_untouched_run_verifies_and_holds_the_digests_of_its_files(run: Path) -> None:
    checked = verify_run(run)
    assert (checked.ok, checked.files, checked.error()) == (True, (), None)
    assert checked.journal.finished
    for record in events_of(run, ItemFinished):
        assert isinstance(record.event, ItemFinished)
        assert {"transcript_sha256", "packet_file_sha256"} <= record.event.data.keys()
    (last,) = events_of(run, RunFinished)
    assert isinstance(last.event, RunFinished)
    assert len(last.event.counts["predictions_sha256"]) == 64


@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_of_every_file_is_found(run: Path, name: str) -> None:
    path = run / name
    whole = path.read_bytes()
    for position in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        checked = verify_run(run)
        if name == "manifest.json" and checked.ok:
            # what only the process that wrote it knew: versions, environment, cap
            assert json.loads(path.read_bytes()).keys() == json.loads(whole).keys()
            continue
        assert not checked.ok, position
        assert found(checked).keys() <= {name, "events-00001.jsonl"}  # the journal, where the head it notes was changed
        error = checked.error()
        assert error is not None
        assert error.exit_code == 6


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_and_what_is_derived_is_told_from_the_record(run: Path, name: str) -> None:
    (run / name).unlink()
    checked = verify_run(run)
    assert found(checked) == {name: name in (*DERIVED, "packets/item-01.json")}
    (finding,) = checked.files
    assert ("the run's command rebuilds it" in finding.reason) == finding.derived


def test_edited_derived_files_are_rebuilt_by_the_runs_own_command(run: Path) -> None:
    journal = (run / "events-00001.jsonl").read_bytes()
    (run / "predictions.parquet").write_bytes(b"PAR1")
    edit(run / "transcripts" / "item-01.json", lambda value: value.update(status="failed"))
    (run / "transcripts" / "item-02.json").unlink()
    edit(run / "manifest.json", lambda value: value.update(spent_usd=0.0, items={"answered": 9}))
    checked = verify_run(run)
    assert found(checked) == dict.fromkeys(
        ("transcripts/item-01.json", "transcripts/item-02.json", "predictions.parquet", "manifest.json"), True
    )
    said = str(checked.error())
    assert "the record is whole" in said
    assert "manifest.json: derived file differs in items, spent_usd" in said
    model = panel()
    carry_out(run, PLAN, ITEMS, model)
    assert (model.requests, verify_run(run).ok) == ([], True)
    assert (run / "events-00001.jsonl").read_bytes() == journal


def test_edited_inputs_are_damage(run: Path) -> None:
    edit(run / "packets" / "item-01.json", lambda value: value["question"].update(text="What is it really worth?"))
    edit(run / "packets" / "item-02.json", lambda value: value["strata"].update(tier="pilot"))
    edit(run / "prices.json", lambda value: value["m"].update(training_cutoff="2030-01-01"))
    checked = verify_run(run)
    assert found(checked) == dict.fromkeys(("prices.json", "packets/item-01.json", "packets/item-02.json"), False)
    assert "the record was changed" in str(checked.error())
    edit(run / "protocol.json", lambda value: value["plan"].update(seed=8))
    assert "protocol.json" in found(verify_run(run))


def test_records_cut_from_the_end_are_found_by_the_manifests_head(run: Path) -> None:
    journal = run / "events-00001.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for kept in (len(lines) - 1, len(lines) // 2, 1):
        journal.write_bytes(b"".join(lines[:kept]))
        checked = verify_run(run)
        assert checked.journal.ok
        assert not checked.journal.finished
        assert found(checked) == {journal.name: False}
        assert "the tail was cut or rewritten" in str(checked.error())


def test_a_damaged_journal_is_named_first(run: Path) -> None:
    journal = run / "events-00001.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    (run / "predictions.parquet").unlink()
    error = verify_run(run).error()
    assert error is not None
    assert "journal record 4" in str(error)
    assert not verify_run(run.parent / "absent").ok


def test_a_run_that_stopped_or_was_killed_after_its_end_is_whole(tmp_path: Path) -> None:
    stop = Stop()

    def say(request: Request) -> str:
        stop.requested = True
        return speak(request)

    stopped = tmp_path / "stopped"
    carry_out(stopped, PLAN, ITEMS, panel(say), shell=make_shell(stop=stop), orders=Orders(limits=QUICK, concurrency=1))
    checked = verify_run(stopped)
    assert (checked.ok, checked.journal.finished) == (True, False)
    old = (stopped / "manifest.json").read_bytes()
    carry_out(stopped, PLAN, ITEMS, panel())
    assert verify_run(stopped).ok
    (stopped / "manifest.json").write_bytes(old)  # as a process leaves it that ends after the last record
    assert "is older than the journal" in str(verify_run(stopped).error())


def test_turns_asked_again_are_recorded_with_new_digests(tmp_path: Path) -> None:
    run = tmp_path / "run"
    carry_out(run, PLAN, ITEMS, panel(lambda request: "no" if seat_number(request) == 1 else speak(request)))
    assert verify_run(run).ok
    before = (run / "transcripts" / "item-01.json").read_bytes()
    carry_out(run, PLAN, ITEMS, panel(), orders=Orders(limits=QUICK, retry_failed=True))
    assert (run / "transcripts" / "item-01.json").read_bytes() != before
    assert verify_run(run).ok


def test_packets_of_a_run_are_lines_of_questions(run: Path) -> None:
    path = run / "packets" / "item-01.json"
    (again,) = read_questions(path)
    assert (again.question, again.packet, again.truth) == (ITEMS[0].question, ITEMS[0].packet, None)
    assert path.read_bytes() == json_line(
        {name: json.loads(path.read_bytes())[name] for name in ("packet", "question", "strata")}
    )
