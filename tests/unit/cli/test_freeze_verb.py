from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from cli_cases import Cli, Done

SKEPTIC = "prompts/valuation/roles/skeptic.md"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "study").mkdir()
    return tmp_path / "study"


def run(cli: Cli, project: Path, arm: str) -> Done:
    return cli(*("run-arm", "--arm", arm, "--synthetic", "--split", "test", "--n", 3, "--project", project, "--json"))


def test_a_study_is_frozen_looked_at_once_and_deviations_are_told(cli: Cli, project: Path) -> None:
    where = ("--project", project)
    made = cli("freeze", *where, "--json").document
    assert json.loads((project / "results" / "freeze.json").read_bytes())["sha256"] == made["sha256"]
    checked = cli("freeze", "--check", *where)
    assert (checked.code, checked.out, checked.err) == (0, "", "")
    first = run(cli, project, "E_single")
    assert first.code == 0
    assert "protocol deviation" not in first.err
    assert first.document["freeze_sha256"] == made["sha256"]
    assert first.document["protocol_deviations"] == []

    looks = project / "results" / "looks.jsonl"
    seen = cli("evaluate", "--include-simulated", *where)
    assert f"This is look 1 at test (simulated) under freeze {made['sha256'][:12]}" in seen.out
    noted = looks.read_bytes()
    refused = cli("evaluate", "--include-simulated", *where)
    assert (refused.code, refused.out) == (2, "")
    assert '--again "reason"' in refused.err
    page = project / "results" / "report.html"
    assert cli("report", "--include-simulated", *where).code == 0
    assert "This is look 1 at test" in page.read_text(encoding="utf-8")
    assert looks.read_bytes() == noted

    # the file says what holds anyway, and is still not as it was frozen
    (project / "consilience.yaml").write_text("tier: mid\n")
    bent = run(cli, project, "F_independent")
    assert "protocol deviation: consilience.yaml changed" in bent.err
    assert bent.document["protocol_deviations"] == ["consilience.yaml changed"]
    run_id = bent.document["run_id"]
    assert cli("verify", run_id, *where).code == 0
    page.unlink()
    assert cli("report", "--include-simulated", *where).code == 2
    assert not page.exists()
    again = cli("report", "--include-simulated", "--again", "an arm was added", *where)
    assert f"Protocol deviation of run {run_id}: consilience.yaml changed." in again.out
    written = page.read_text(encoding="utf-8")
    assert f"Protocol deviation of run {run_id}" in written
    assert "Frozen protocol" in written
    assert "because: an arm was added" in written
    told = cli("evaluate", "--include-simulated", "--again", "the same once more", *where, "--json").document
    assert told["look"]["number"] == 3
    assert {one["run_id"]: one["protocol"] for one in told["protocol"]}[run_id] == "protocol deviation"

    (project / "consilience.yaml").unlink()
    assert run(cli, project, "F_independent").document["protocol_deviations"] == ["consilience.yaml changed"]


def test_a_freeze_is_not_replaced_without_a_reason(cli: Cli, project: Path) -> None:
    where = ("--project", project)
    missing = cli("freeze", "--check", *where)
    assert missing.code == 2
    assert "there is no freeze" in missing.err
    page = project / "prereg.md"
    head = cli("freeze", "--prereg", page, *where, "--json").document["sha256"]
    assert head in page.read_text(encoding="utf-8")
    before = (project / "results" / "freeze.json").read_bytes()
    refused = cli("freeze", *where)
    assert refused.code == 2
    assert "was frozen at" in refused.err
    page.unlink()
    assert cli("freeze", "--prereg", page, *where).out.startswith(f"already frozen as {head}")
    assert head in page.read_text(encoding="utf-8")
    assert (project / "results" / "freeze.json").read_bytes() == before
    again = cli("freeze", "--again", "a typo in a prompt", *where, "--json").document
    assert [past["reason"] for past in again["history"]] == ["a typo in a prompt"]
    assert cli("freeze", "--check", "--again", "x", *where).code == 2
    elsewhere = project / "elsewhere"
    assert cli("freeze", "--results", elsewhere, *where).code == 0
    assert (elsewhere / "freeze.json").is_file()


def test_looks_before_a_freeze_are_noted_and_those_at_validation_are_not(cli: Cli, project: Path) -> None:
    assert run(cli, project, "E_single").code == 0
    for number in (1, 2):
        seen = cli("evaluate", "--include-simulated", "--project", project)
        assert f"This is look {number} at test (simulated); no freeze exists" in seen.out
    looks = project / "results" / "looks.jsonl"
    looks.write_bytes(looks.read_bytes()[:-5])
    assert cli("freeze", "--project", project).code == 0
    seen = cli("evaluate", "--include-simulated", "--project", project)
    assert "This is look 2 at test" in seen.out
    assert "of a look that was never shown were cut off" in seen.out
    assert "ran before the freeze" in seen.out


def test_validation_is_looked_at_freely(cli: Cli, demo_project: Path) -> None:
    for _ in range(2):
        told = cli("evaluate", "--include-simulated", "--project", demo_project, "--json").document
        assert told["look"] is None
    assert not (demo_project / "results" / "looks.jsonl").exists()


def test_check_is_silent_about_form_and_names_the_file_of_a_changed_word(project: Path, tmp_path: Path) -> None:
    package = tmp_path / "src" / "consilience"
    shutil.copytree(str(files("consilience")), package, ignore=shutil.ignore_patterns("__pycache__"))

    def freeze(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "consilience", "freeze", "--project", str(project), *arguments],
            env=os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert freeze().returncode == 0
    budgets = package / "configs" / "budgets.yaml"
    lines = [line.split(" #")[0] for line in budgets.read_text().splitlines() if not line.startswith("#")]
    blocks = "\n".join(lines).replace("\n", "\0").replace("\0 ", "\n ").split("\0")  # a key with what is below it
    budgets.write_bytes(b"# in another order\r\n" + "\r\n".join(reversed(blocks)).encode())
    for path in (package / SKEPTIC, package / "core" / "contracts.py", package / "configs" / "models.yaml"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    same = freeze("--check")
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    text = (package / SKEPTIC).read_bytes()
    (package / SKEPTIC).write_bytes(text.replace(b"the ", b"one ", 1))
    changed = freeze("--check")
    assert (changed.returncode, changed.stdout) == (6, f"{SKEPTIC} changed\n")
