from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest
import ruamel.yaml

from cli_cases import Cli, Done
from consilience.config import parse_yaml
from consilience.core.canonical import sha256_hex

SKEPTIC = "prompts/valuation/roles/skeptic.md"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "study").mkdir()
    return tmp_path / "study"


def run(cli: Cli, project: Path, arm: str) -> Done:
    return cli(*("run-arm", "--arm", arm, "--synthetic", "--split", "test", "--n", 3, "--project", project, "--json"))


@pytest.mark.slow
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


@pytest.mark.slow
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
    for verb in ("evaluate", "report"):
        refused = cli(verb, "--include-simulated", "--project", project)
        assert (refused.code, refused.out) == (2, "")
        assert "this study is not frozen" in refused.err
    assert not (project / "results" / "report.html").exists()
    for number in (1, 2):
        seen = cli("evaluate", "--include-simulated", "--again", "curious", "--project", project)
        assert f"This is look {number} at test (simulated); no freeze existed" in seen.out
    looks = project / "results" / "looks.jsonl"
    first, second = looks.read_bytes().splitlines(keepends=True)
    looks.write_bytes(first + second[:-5])
    counted = {"looks": 1, "sha256": sha256_hex(first.rstrip())}  # as it stands when the second is cut off
    (project / "results" / "looks_last.json").write_text(json.dumps(counted))
    assert cli("freeze", "--project", project).code == 0
    seen = cli("evaluate", "--include-simulated", "--project", project)
    assert "This is look 2 at test" in seen.out
    assert "earlier looks at it without a freeze: 1" in seen.out
    assert "of a look that was never shown were cut off" in seen.out
    assert "ran before the freeze" in seen.out


@pytest.mark.slow
def test_validation_is_looked_at_freely(cli: Cli, demo_project: Path) -> None:
    for _ in range(2):
        told = cli("evaluate", "--include-simulated", "--project", demo_project, "--json").document
        assert told["look"] is None
    assert not (demo_project / "results" / "looks.jsonl").exists()


@pytest.mark.slow
def test_a_run_told_otherwise_than_the_freeze_is_labelled(cli: Cli, project: Path, questions: Path) -> None:
    where = ("--questions", questions, "--project", project)
    (project / "own.yaml").write_text("roles: [outside_view, inside_view]\n")
    assert cli("freeze", "--project", project).code == 0
    own = ("--panel", project / "own.yaml", "--labels", "role", "--rounds", 3)
    bent = cli("run-arm", "--arm", "G_debate", *own, *where, "--json")
    named = [
        "override: labels role instead of neutral",
        "override: panel own.yaml instead of default",
        "override: rounds 3 instead of 2",
    ]
    assert bent.document["protocol_deviations"] == named
    assert f"protocol deviation: {named[0]}" in bent.err
    kept = cli("run-arm", "--arm", "E_single", "--tier", "small", "--seed", 3, *where, "--json")
    assert kept.document["protocol_deviations"] == []
    told = cli("evaluate", "--include-simulated", "--questions", questions, "--project", project)
    assert f"Protocol deviation of run {bent.document['run_id']}: {', '.join(named)}." in told.out
    asked = cli("ask", "How much?", "--kind", "estimate", "--protocol", "debate", "--rounds", 1, "--project", project)
    assert "protocol deviation" not in asked.err


@pytest.mark.slow
def test_changed_truths_are_named_by_check_and_beside_the_tables(cli: Cli, demo_project: Path) -> None:
    where = ("--project", demo_project)
    told = ("--include-simulated", *where)
    assert cli("freeze", *where).code == 0
    assert "of the truths" not in cli("evaluate", *told).out
    analytic = demo_project / "data" / "processed" / "analytic.parquet"
    pl.read_parquet(analytic).with_columns(pl.col("price") * 1.01).write_parquet(analytic)
    checked = cli("freeze", "--check", *where)
    assert (checked.code, checked.out) == (6, "data/processed/analytic.parquet changed\n")
    said = "Protocol deviation of the truths: data/processed/analytic.parquet changed."
    assert said in cli("evaluate", *told).out
    assert said in cli("evaluate", *told, "--json").document["warnings"]
    assert said in cli("report", *told).out
    assert said in (demo_project / "results" / "report.html").read_text(encoding="utf-8")
    bent = cli("run-arm", "--arm", "E_single", "--split", "validation", "--n", 2, *where, "--json")
    assert bent.document["protocol_deviations"] == ["data/processed/analytic.parquet changed"]


@pytest.mark.slow
def test_a_report_shows_the_latest_look_and_says_what_reason_it_did_not_need(cli: Cli, project: Path) -> None:
    told = ("--include-simulated", "--project", project)
    assert run(cli, project, "E_single").code == 0
    assert cli("evaluate", *told, "--again", "curious").code == 0
    head = cli("freeze", "--project", project, "--json").document["sha256"]
    early = cli("report", *told)
    assert "This is look 1 at test (simulated); no freeze existed, so nothing was fixed before it" in early.out
    assert "This is look 2" in cli("evaluate", *told).out
    again = cli("report", *told, "--again", "to be sure")
    assert f"This is look 2 at test (simulated) under freeze {head[:12]}" in again.out
    assert "--again was not needed and is not kept: these tables were shown before, in look 2" in again.err
    looks = project / "results" / "looks.jsonl"
    assert b"to be sure" not in looks.read_bytes()
    looks.unlink()
    missed = cli("evaluate", *told, "--again", "the log is gone")
    assert (missed.code, missed.out) == (6, "")
    assert "does not hold the 2 looks that were made" in missed.err


@pytest.mark.slow
def test_a_reason_for_what_may_be_looked_at_freely_is_not_needed(cli: Cli, demo_project: Path) -> None:
    told = cli("evaluate", "--include-simulated", "--again", "why not", "--project", demo_project)
    assert told.code == 0
    assert "--again was not needed: validation may be looked at freely" in told.err


@pytest.mark.slow
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
    writer = ruamel.yaml.YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.width = False, 40
    vars(writer)["sort_base_mapping_type_on_output"] = False
    for path in (package / "configs" / "panels.yaml", package / "configs" / "treatments.yaml"):
        said = parse_yaml(path.read_text(), where=path.name)
        with path.open("w") as file:
            writer.dump({key: dict(reversed(said[key].items())) for key in reversed(said)}, file)
    same = freeze("--check")
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    text = (package / SKEPTIC).read_bytes()
    (package / SKEPTIC).write_bytes(text.replace(b"the ", b"one ", 1))
    changed = freeze("--check")
    assert (changed.returncode, changed.stdout) == (6, f"{SKEPTIC} changed\n")
    (package / SKEPTIC).write_bytes(text)
    roster = package / "valuation" / "roster.py"
    roster.write_text(roster.read_text().replace('    "hedonic",\n', "", 1))
    lines = freeze("--check").stdout.splitlines()
    assert {"valuation/roster.py changed", "panel valuation/default: hedonic is gone"} <= set(lines)
