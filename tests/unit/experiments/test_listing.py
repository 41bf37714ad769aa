"""What a list says of runs: no file of any shape ends it, and what is wrong is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from consilience.errors import IntegrityError
from consilience.experiments.listing import Progress, listed, listed_runs
from consilience.experiments.protocol import read_frozen
from consilience.experiments.verification import verify_run
from consilience.models.request import Request
from engine_cases import carry_out, make_items, make_plan, panel, read, speak

NESTED = "[" * 100_000
SHAPES: tuple[Any, ...] = (NESTED, "[]", "5", "null", '"x"', "", '{"items": [1, 2]}', '{"items": {"a": "x"}}')


def finished(folder: Path, say: Any = speak) -> Path:
    items = make_items(2)
    carry_out(folder, make_plan(items), items, panel(say))
    return folder


def test_a_finished_run_is_told_from_its_manifest_and_the_same_from_its_journal(tmp_path: Path) -> None:
    def sometimes(request: Request) -> str:
        return "no json" if str(read(request).task).startswith("critique") else speak(request)

    folder = finished(tmp_path / "run", sometimes)
    noted = listed(folder)
    assert (noted.state, noted.items, noted.items_done, noted.noted, noted.problem) == ("finished", 2, 2, True, None)
    assert noted.failures == {"unreadable": 10}
    assert noted.models == ("m",)
    (folder / "manifest.json").unlink()
    told = listed(folder)
    assert (told.noted, told.max_spend_usd) == (False, None)
    for name in ("state", "items_done", "failures"):
        assert getattr(told, name) == getattr(noted, name)
    assert told.spent_usd == pytest.approx(noted.spent_usd)


def test_how_far_a_run_is_can_be_told_by_another(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    other = Progress("stopped", 1, 0.5, {"failed": 3})
    assert listed(folder, lambda _: other).state == "finished"  # its manifest is up to date
    (folder / "manifest.json").unlink()
    told = listed(folder, lambda _: other)
    assert (told.state, told.items_done, told.spent_usd, told.failures) == ("stopped", 1, 0.5, {"failed": 3})


@pytest.mark.parametrize("content", SHAPES)
@pytest.mark.parametrize("name", ["manifest.json", "protocol.json"])
def test_a_file_of_another_shape_is_named_and_ends_no_list(tmp_path: Path, name: str, content: str) -> None:
    bad = finished(tmp_path / "bad")
    finished(tmp_path / "good")
    (bad / name).write_text(content)
    told = {run["run_id"]: run for run in listed_runs(tmp_path)}
    assert told["good"]["state"] == "finished"
    if name == "manifest.json" or not content.startswith("{"):
        assert told["bad"]["state"] == "damaged"
        assert name in told["bad"]["problem"]
    json.dumps(told)


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    (folder / "events-00002.jsonl").mkdir()
    told = listed(folder)
    assert told.state == "damaged"
    assert "the journal" in str(told.problem)


@pytest.mark.parametrize("name", ["manifest.json", "protocol.json"])
def test_what_is_nested_without_end_is_damage_and_no_defect(tmp_path: Path, name: str) -> None:
    folder = finished(tmp_path / "run")
    (folder / name).write_text(NESTED)
    error = verify_run(folder).error()
    assert error is not None
    assert name in error.message
    if name == "protocol.json":
        with pytest.raises(IntegrityError, match="cannot be read"):
            read_frozen(folder)
