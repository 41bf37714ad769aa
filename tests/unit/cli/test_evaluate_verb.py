"""``evaluate`` of every kind of answer, with repetitions, and ``calibrate`` before it."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli_cases import Cli, question, run_of

KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "probability": ({"kind": "probability"}, 1),
    "choice": ({"kind": "choice", "options": [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]}, "a"),
    "estimate": ({"kind": "estimate", "scale": "log", "unit": "EUR"}, 100.0),
}


def mixed(path: Path) -> Path:
    """Write two questions of each kind."""
    lines = []
    for number in range(2):
        for kind, (asked, truth) in KINDS.items():
            told = question(number) | {"truth": truth}
            name = f"{kind}-{number}"
            told["question"] = {"id": name, "text": "What?"} | asked
            told["packet"] |= {"item_id": name}
            lines.append(json.dumps(told) + "\n")
    path.write_text("".join(lines))
    return path


def dated(path: Path, *, year: int, n: int = 60) -> Path:
    """Write estimates of which the evidence tells less than it seems to: truths lie far around it."""
    lines = []
    for number in range(n):
        told = question(number)
        item = f"q{year}-{number:02d}"
        told["question"]["id"] = told["packet"]["item_id"] = item
        told["packet"]["cutoff"] = (date(year, 1, 1) + timedelta(days=number)).isoformat()
        told["truth"] = (91 + 7 * number) * math.exp(0.8 * math.sin(number * 12.9))
        lines.append(json.dumps(told) + "\n")
    path.write_text("".join(lines))
    return path


@pytest.mark.slow
def test_every_kind_of_answer_is_scored_apart(cli: Cli, tmp_path: Path) -> None:
    questions = mixed(tmp_path / "questions.jsonl")
    for arm in ("E_single", "F_independent"):
        assert cli("run-arm", "--arm", arm, "--questions", questions, "--project", tmp_path).code == 0
    command = ("evaluate", "--include-simulated", "--questions", questions, "--project", tmp_path)
    told = cli(*command, "--json").document
    assert [row["n_items"] for row in told["arms"]] == [2, 2]
    assert {row["arm"] for row in told["probabilities"]["results"]} == {"E_single", "F_independent"}
    chosen = {(row["arm"], row["primary"]): row for row in told["choices"]["results"]}
    assert chosen["F_independent", True]["n"] == 2
    shown = cli(*command).out
    for word in ("MdAPE", "Brier", "Accuracy"):
        assert word in shown


@pytest.mark.slow
def test_the_document_holds_the_whole_evaluation(cli: Cli, demo_project: Path) -> None:
    command = ("evaluate", "--include-simulated", "--project", demo_project)
    told = cli(*command, "--json").document
    declared = {(row["arm"], row["against"]): row for row in told["contrasts"]["declared"]}
    assert declared["G_debate_r2", "J_single_matched.G_debate_r2"]["matched"] == "own"
    assert declared["F_independent", "D_avm"]["holm"] >= declared["F_independent", "D_avm"]["p"]
    assert {row["stratum"] for row in told["strata"]} >= {"property_class", "price_tercile", "radius_km", "prior_sale"}
    assert {row["arm"] for row in told["panels"]} == {"F_independent", "G_debate_r2", "H_skeptic_r2", "I_placebo_r2"}
    assert all(row["rounds"][0]["member_error"] > 0 for row in told["panels"])
    assert [row["arm"] for row in told["scores"]] == [row["arm"] for row in told["arms"]]
    assert all(row["intervals"]["wis"]["low"] is not None for row in told["scores"])
    shown = cli(*command).out
    for word in ("G_debate_r2 − J_single_matched.G_debate_r2", "Holm", "WIS5", "other pairs compared for exploration"):
        assert word in shown


def test_errors_of_a_panel_on_a_judged_split_are_worked_out_when_it_is_looked_at(cli: Cli, tmp_path: Path) -> None:
    for arm in ("E_single", "F_independent"):
        asked = ("run-arm", "--arm", arm, "--synthetic", "--split", "test", "--n", 3, "--project", tmp_path)
        assert cli(*asked).code == 0
    panel = run_of(tmp_path, "F_independent")
    manifest = json.loads((tmp_path / "results" / "runs" / panel / "manifest.json").read_bytes())
    assert manifest["panel"]["families"][0]["rounds"][0]["crowd"] is None
    assert cli("freeze", "--project", tmp_path).code == 0
    told = cli("evaluate", "--include-simulated", "--project", tmp_path, "--json").document
    (row,) = told["panels"]
    assert row["rounds"][0]["member_error"] >= row["rounds"][0]["mean_error"] > 0
    assert row["faithfulness"][0]["answers"] == 36


@pytest.mark.slow
def test_repetitions_are_no_arms_but_tell_how_much_a_run_differs(cli: Cli, demo_project: Path) -> None:
    single = run_of(demo_project, "E_single")
    plan = json.loads((demo_project / "results" / "runs" / single / "protocol.json").read_bytes())["plan"]
    again = ("--committee", plan["committee"], "--seed", plan["seed"], "--replicate", 1, "--project", demo_project)
    made = cli("run-arm", "--arm", "E_single", "--split", "validation", "--n", 24, *again, "--json").document
    asked = ("evaluate", "--include-simulated", "--project", demo_project, "--json")
    for runs in ((), (single, made["run_id"])):
        told = cli(*asked, *runs).document
        assert [row["arm"] for row in told["run_to_run"]] == ["E_single"]
        assert told["run_to_run"][0]["n_items"] == 3
        assert told["run_to_run"][0]["components"]["within"] >= 0
        assert made["run_id"] not in [*told["run_ids"], *told["apart"]]
    alone = cli(*asked, made["run_id"]).document
    assert [row["n_items"] for row in alone["arms"] if row["arm"] == "E_single"] == [3]


@pytest.mark.slow
def test_intervals_are_calibrated_on_validation_and_applied_to_later_items_only(cli: Cli, tmp_path: Path) -> None:
    early, late = dated(tmp_path / "early.jsonl", year=2024), dated(tmp_path / "late.jsonl", year=2025)
    where = ("--project", tmp_path)

    def run(questions: Path, split: str) -> str:
        asked = ("run-arm", "--arm", "E_single", "--questions", questions, "--split", split, *where, "--json")
        name: str = cli(*asked).document["run_id"]
        return name

    fitted, later = run(early, "validation"), run(late, "test")
    made = cli("calibrate", fitted, "--questions", early, *where, "--json")
    assert (made.code, made.err) == (0, "")
    path = tmp_path / "results" / "calibration.json"
    assert json.loads(path.read_bytes())["sha256"] == made.document["sha256"]
    assert [one["cqr"]["alpha"] for one in made.document["intervals"]] == [0.5, 0.1]
    again = cli("calibrate", fitted, "--questions", early, *where)
    assert "90 % interval" in again.out
    assert "it is applied to later splits only" in again.out

    reading = ("--include-simulated", "--calibration", path, "--again", "a trial", *where)
    asked = ("evaluate", later, "--questions", late, *reading)
    shown = cli(*asked)
    assert "as stated" in shown.out
    assert "calibrated" in shown.out
    told = cli(*asked, "--json").document
    (arm,) = told["scores"]
    assert arm["calibrated"]["coverage90"]["value"] > arm["intervals"]["coverage90"]["value"]
    assert told["calibration_sha256"] == made.document["sha256"]
    assert f"calibrated ({made.document['sha256'][:12]})" in shown.out
    journal = tmp_path / "results" / "runs" / fitted / "events-00001.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    bent = cli(*asked)
    assert bent.code == 6
    assert f"was fitted on run {fitted} with head" in bent.err
    journal.write_bytes(whole)
    gone = journal.parent.rename(tmp_path / "elsewhere")
    assert f"Run {fitted}, which the calibration was fitted on, is not in this project" in cli(*asked).out
    gone.rename(journal.parent)
    assert cli("freeze", *where).code == 0
    assert "Protocol deviation of the calibration" not in cli(*asked).out
    other = tmp_path / "other.json"
    path.rename(other)
    assert "results/calibration.json is gone" in cli("freeze", "--check", *where).out
    assert cli("freeze", "--again", "without it", *where).code == 0
    other.rename(path)
    assert f"{made.document['sha256'][:12]} is applied, none was frozen" in cli(*asked).out
    inside = cli("evaluate", fitted, "--questions", early, "--include-simulated", "--calibration", path, *where)
    assert inside.code == 2
    assert "in-sample use" in inside.err
    refused = cli("calibrate", later, "--questions", late, *where)
    assert refused.code == 2
    assert "calibrations are fitted on validation" in refused.err


@pytest.mark.slow
def test_yes_no_runs_alone_are_shown_with_cost_and_difference_and_the_report_counts_them(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "questions.jsonl"
    lines = []
    for number in range(4):
        told = question(number) | {"truth": number % 2}
        told["question"] = {"id": f"q{number}", "text": "Will it?", "kind": "probability"}
        lines.append(json.dumps(told) + "\n")
    path.write_text("".join(lines))
    for arm in ("E_single", "F_independent"):
        assert cli("run-arm", "--arm", arm, "--questions", path, "--project", tmp_path).code == 0
    where = ("--include-simulated", "--questions", path, "--project", tmp_path)
    shown = cli("evaluate", *where)
    assert shown.code == 0, shown.err
    for word in ("Cost per item", "Brier less that of E_single [95 %]", "Adjusted p", "descriptive only", "G = 4"):
        assert word in shown.out
    made = cli("report", *where)
    assert made.out.startswith("2 arms (simulated) in ")
    page = (tmp_path / "results" / "report.html").read_text(encoding="utf-8")
    assert "Brier less that of E_single" in page
    assert "Cost per item" in page
    assert (tmp_path / "results" / "report" / "tables" / "yes_no.csv").is_file()


@pytest.mark.slow
def test_other_questions_are_refused_and_other_truths_are_told(cli: Cli, tmp_path: Path, questions: Path) -> None:
    for arm in ("E_single", "F_independent"):
        assert cli("run-arm", "--arm", arm, "--questions", questions, "--project", tmp_path).code == 0
    told = ("--include-simulated", "--questions", questions, "--project", tmp_path)
    assert "first judged by" not in cli("evaluate", *told).out
    assert "first judged by" not in cli("evaluate", *told).out
    whole = questions.read_text()
    questions.write_text(whole.replace("1234.5", "4321.5"))
    for verb in ("evaluate", "report"):
        shown = cli(verb, *told)
        assert shown.code == 0
        for arm in ("E_single", "F_independent"):
            assert f"The truths of run {run_of(tmp_path, arm)} are not those it was first judged by" in shown.out
    assert "not those it was first judged by" in (tmp_path / "results" / "report.html").read_text(encoding="utf-8")
    questions.write_text(whole)
    assert "first judged by" not in cli("evaluate", *told).out
    questions.write_text(whole.replace("How much?", "How little?"))
    refused = cli("evaluate", *told)
    assert (refused.code, refused.out) == (1, "")
    assert f"asks item q0 otherwise than run {run_of(tmp_path, 'E_single')} did; not the same: text" in refused.err
