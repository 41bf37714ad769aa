from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from cli_cases import Cli, run_of
from consilience.aggregation.answers import rule_names
from consilience.cli.demo import BASELINES, demo_baselines
from consilience.cli.runs import RULES
from consilience.journal.lock import RunLock

DEMO_ARMS = [
    *("E_single", "F_independent", "G_debate_r2", "H_skeptic_r2", "I_placebo_r2"),
    "J_single_matched.G_debate_r2",
]


def test_a_run_is_found_by_id_and_by_path(cli: Cli, demo_project: Path) -> None:
    run = run_of(demo_project, "E_single")
    by_id = cli("verify", run, "--project", demo_project)
    by_path = cli("verify", demo_project / "results" / "runs" / run)
    assert by_id.code == by_path.code == 0
    assert by_id.out == by_path.out
    wrong = cli("verify", run[:-1] + "x", "--project", demo_project)
    assert wrong.code == 2
    assert f'Did you mean "{run}"' in wrong.err
    for other in ("..", ".", demo_project, demo_project / "data"):
        done = cli("verify", other, "--project", demo_project)
        assert done.code == 2
        assert "is no run folder" in done.err


def test_verify_names_the_changed_record_and_exits_6(cli: Cli, demo_project: Path) -> None:
    run = run_of(demo_project, "E_single")
    noted = cli("verify", run, "--project", demo_project, "--json").document
    assert noted["ok"] is True
    assert noted["finished"] is True
    assert cli("verify", run, "--head", noted["head"], "--project", demo_project).code == 0
    assert cli("verify", run, "--head", noted["head"].upper(), "--project", demo_project).code == 0
    unknown = cli("verify", run, "--head", "0" * 64, "--project", demo_project)
    assert unknown.code == 6
    assert "error: no record has the noted head 000" in unknown.err
    assert "none has the noted head" in unknown.out
    wrong = cli("verify", run, "--head", "abc", "--project", demo_project)
    assert wrong.code == 2
    assert '"abc" is no head' in wrong.err
    journal = demo_project / "results" / "runs" / run / "events-00001.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[9] = lines[9].replace(b'"seq":10', b'"seq":11')
    journal.write_bytes(b"".join(lines))
    done = cli("verify", run, "--project", demo_project, "--json")
    assert done.code == 6
    assert "journal record 10 (events-00001.jsonl" in done.err
    assert done.document["first_bad"]["record"] == 10
    assert cli("replay", run, "--project", demo_project).code == 6
    assert cli("ledger", run, "--project", demo_project).code == 6
    page = demo_project / "page.html"
    refused = cli("report", "--include-simulated", "--output", page, "--project", demo_project)
    assert refused.code == 6
    assert not page.exists()
    evaluated = cli("evaluate", "--include-simulated", "--project", demo_project)
    assert (evaluated.code, evaluated.out) == (6, "")
    assert evaluated.err == refused.err
    assert f"run {run}: journal record 10 (events-00001.jsonl" in evaluated.err


def test_a_changed_prediction_is_not_evaluated_but_lost_transcripts_are_no_hindrance(
    cli: Cli, demo_project: Path
) -> None:
    folder = demo_project / "results" / "runs" / run_of(demo_project, "F_independent")
    shutil.rmtree(folder / "transcripts")
    assert cli("evaluate", "--include-simulated", "--project", demo_project).code == 0
    shutil.copy(
        folder.parent / run_of(demo_project, "E_single") / "predictions.parquet", folder / "predictions.parquet"
    )
    refused = cli("evaluate", folder.name, "--include-simulated", "--project", demo_project)
    assert refused.code == 6
    assert "predictions.parquet" in refused.err


def test_a_changed_manifest_is_refused_in_the_words_of_verify(cli: Cli, demo_project: Path) -> None:
    run = run_of(demo_project, "F_independent")
    path = demo_project / "results" / "runs" / run / "manifest.json"
    whole = path.read_bytes()
    for bent in (whole.replace(b'"turns":{"abstained":0', b'"turns":{"abstained":1'), b"{}\n", None):
        if bent is None:
            path.unlink()
        else:
            assert bent != whole
            path.write_bytes(bent)
        said = cli("verify", run, "--project", demo_project)
        assert said.code == 6
        for verb in ("evaluate", "report"):
            refused = cli(verb, "--include-simulated", "--project", demo_project)
            assert (refused.code, refused.out) == (6, "")
            assert refused.err.removeprefix(f"error: run {run}: ") == said.err.removeprefix("error: ")
            assert "manifest.json" in refused.err


def test_a_torn_tail_is_cut_off_not_changed(cli: Cli, demo_project: Path) -> None:
    run = run_of(demo_project, "E_single")
    journal = demo_project / "results" / "runs" / run / "events-00001.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    done = cli("verify", run, "--project", demo_project, "--json")
    assert done.code == 6
    assert done.document["first_bad"]["kind"] == "torn"
    assert "its own command resumes it" in done.err
    assert "restore" not in done.err
    assert "cut off" in cli("verify", run, "--project", demo_project).out


@pytest.mark.parametrize("began", [None, b"", b'{"hash":"0'])
def test_a_run_without_a_record_has_nothing_recorded_yet(began: bytes | None, cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "runs" / "_early"
    folder.mkdir(parents=True)
    (folder / "lock").write_text("")
    if began is not None:
        (folder / "events-00001.jsonl").write_bytes(began)
    for verb in (("verify",), ("replay",), ("ledger",), ("recompute", "--aggregation", "mean")):
        done = cli(*verb, "_early", "--project", tmp_path)
        assert done.code == 1
        assert "nothing was recorded yet" in done.err
    assert cli("runs", "--project", tmp_path, "--json").document["runs"][0]["state"] == "not recorded"


def test_a_journal_that_went_missing_is_damage(cli: Cli, demo_project: Path) -> None:
    run = run_of(demo_project, "E_single")
    (demo_project / "results" / "runs" / run / "events-00001.jsonl").unlink()
    done = cli("verify", run, "--project", demo_project)
    assert done.code == 6
    assert "the file is missing" in done.err


@pytest.fixture
def killed(cli: Cli, tmp_path: Path, questions: Path) -> Path:
    """A run that a cap stopped, that was resumed, and whose process was then killed before its end."""
    command = ("run-arm", "--arm", "F_independent", "--questions", questions, "--run-id", "_k", "--project", tmp_path)
    assert cli(*command, "--max-spend-usd", "0.02", "--concurrency", 1).code == 4
    folder = tmp_path / "results" / "runs" / "_k"
    older = {name: (folder / name).read_bytes() for name in ("manifest.json", "predictions.parquet")}
    assert cli(*command).code == 0
    journal = folder / "events-00001.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    for name, content in older.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_killed_run_is_listed_from_its_journal(cli: Cli, killed: Path, tmp_path: Path) -> None:
    (total,) = cli("ledger", "_k", "--project", tmp_path, "--json").document["totals"]
    (listed,) = cli("runs", "--project", tmp_path, "--json").document["runs"]
    assert listed["spent_usd"] == pytest.approx(total["cost_nano"] / 1e9)
    assert (listed["state"], listed["items_done"], listed["items"]) == ("stopped", 3, 3)
    (killed / "manifest.json").unlink()
    (bare,) = cli("runs", "--project", tmp_path, "--json").document["runs"]
    assert bare == {**listed, "max_spend_usd": None}
    with RunLock(killed):
        assert cli("runs", "--project", tmp_path, "--json").document["runs"][0]["state"] == "running"
    journal = killed / "events-00001.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"seq":3', b'"seq":4', 1))
    (bad,) = cli("runs", "--project", tmp_path, "--json").document["runs"]
    assert (bad["state"], bad["spent_usd"], bad["arm"]) == ("damaged", None, "F_independent")
    assert "damaged" in cli("runs", "--project", tmp_path).out


@pytest.mark.usefixtures("killed")
def test_older_predictions_of_an_unfinished_run_are_no_damage(cli: Cli, tmp_path: Path) -> None:
    done = cli("replay", "_k", "--project", tmp_path)
    assert done.code == 1
    assert "_k is not finished; predictions are older than the record" in done.err
    assert "own command" in done.err


def test_verify_tells_derived_files_from_damage_and_finds_a_cut(cli: Cli, demo_project: Path) -> None:
    run = run_of(demo_project, "F_independent")
    folder = demo_project / "results" / "runs" / run
    predictions = folder / "predictions.parquet"
    predictions.write_bytes(predictions.read_bytes() + b" ")
    done = cli("verify", run, "--project", demo_project, "--json")
    assert (done.code, done.document["ok"], done.document["first_bad"]) == (6, False, None)
    (finding,) = done.document["files"]
    assert (finding["file"], finding["derived"]) == ("predictions.parquet", True)
    assert "derived file differs; the run's command rebuilds it" in done.err
    journal = folder / "events-00001.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-40]))
    cut = cli("verify", run, "--project", demo_project)
    assert cut.code == 6
    assert "the tail was cut or rewritten" in cut.err


def test_replay_makes_no_call_and_gives_the_same_bytes(cli: Cli, demo_project: Path) -> None:
    run = run_of(demo_project, "F_independent")
    found = cli("replay", run, "--project", demo_project, "--json").document
    assert (found["calls"], found["identical"], found["answers"]) == (0, True, 288)
    said = cli("replay", run, "--project", demo_project).out
    assert "(simulated)" in said
    assert "0 calls" in said
    predictions = demo_project / "results" / "runs" / run / "predictions.parquet"
    predictions.write_bytes(predictions.read_bytes() + b" ")
    changed = cli("replay", run, "--project", demo_project)
    assert changed.code == 6
    assert "NOT" in changed.out


def test_recompute_takes_another_rule(cli: Cli, demo_project: Path) -> None:
    run = run_of(demo_project, "F_independent")
    found = cli("recompute", run, "--aggregation", "mean", "--project", demo_project, "--json").document
    assert found["calls"] == 0
    assert len(found["predictions"]) == 24
    assert len(cli("recompute", run, "--aggregation", "mean", "--project", demo_project).out.splitlines()) == 26
    assert {kind: tuple(rule_names(kind)) for kind in RULES} == RULES
    unknown = cli("recompute", run, "--aggregation", "medain", "--project", demo_project)
    assert unknown.code == 2
    assert 'Did you mean "median"' in unknown.err


def test_the_ledger_sums_and_exports(cli: Cli, demo_project: Path, tmp_path: Path) -> None:
    run = run_of(demo_project, "F_independent")
    command = ("ledger", run, "--project", demo_project)
    (total,) = cli(*command, "--json").document["totals"]
    by_role = cli(*command, "--by", "role", "--json").document["totals"]
    assert total["attempts"] == 288
    assert len(by_role) == 12
    assert sum(row["cost_nano"] for row in by_role) == total["cost_nano"]
    said = cli(*command, "--by", "model").out
    assert "not an invoice" in said
    assert "simulated:" in said
    for suffix, read in (("jsonl", _jsonl), ("csv", _csv)):
        path = tmp_path / f"ledger.{suffix}"
        assert cli(*command, "--export", path).code == 0
        assert len(read(path)) == 288
    assert cli(*command, "--export", tmp_path / "ledger.xlsx").code == 2
    assert 'Did you mean "role"' in cli(*command, "--by", "rolle").err


def _jsonl(path: Path) -> list[object]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_runs_are_listed_with_their_state(cli: Cli, demo_project: Path, tmp_path: Path) -> None:
    folder = demo_project / "results" / "runs"
    (folder / "_empty").mkdir()
    journal = folder / run_of(demo_project, "G_debate") / "events-00001.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    listed = {run["run_id"]: run for run in cli("runs", "--project", demo_project, "--json").document["runs"]}
    states = {name.split("-")[0]: run["state"] for name, run in listed.items()}
    assert states == {
        "_E_single": "finished",
        "_F_independent": "finished",
        "_G_debate_r2": "stopped",
        "_H_skeptic_r2": "finished",
        "_I_placebo_r2": "finished",
        "_J_single_matched.G_debate_r2": "finished",
        "_ask": "finished",  # the forecast, and the decision
        "_empty": "not recorded",
    }
    assert listed["_empty"]["spent_usd"] is None
    assert "(simulated)" in cli("runs", "--project", demo_project).out
    assert "no runs" in cli("runs", "--project", tmp_path).out


@pytest.mark.slow
def test_evaluate_shows_every_arm_with_cost_and_difference(cli: Cli, demo_project: Path) -> None:
    refused = cli("evaluate", "--project", demo_project)
    assert refused.code == 1
    assert "--include-simulated" in refused.err
    done = cli("evaluate", "--include-simulated", "--project", demo_project)
    assert done.out.count("(simulated)") == 2 * len([*BASELINES, *DEMO_ARMS])  # once more with its coverage
    assert "baseline" in done.out
    found = cli("evaluate", "--include-simulated", "--project", demo_project, "--json").document
    assert [row["arm"] for row in found["arms"]] == sorted([*BASELINES, *DEMO_ARMS])
    matched = ("evaluate", "--include-simulated", "--baseline", DEMO_ARMS[-1], "--project", demo_project, "--json")
    assert cli(*matched).document["baseline_arm"] == DEMO_ARMS[-1]
    assert all((row["cost_usd"] > 0) is (row["arm"] in DEMO_ARMS) for row in found["arms"])
    single = run_of(demo_project, "E_single")
    unknown = cli("evaluate", single, "--primary", "medain", "--include-simulated", "--project", demo_project)
    assert unknown.code == 2
    assert 'Did you mean "median"' in unknown.err
    alone = cli("evaluate", run_of(demo_project, "F_ind"), "--include-simulated", "--project", demo_project)
    assert alone.code == 2
    assert "E_single" in alone.err


def test_evaluate_reads_the_truths_of_questions(cli: Cli, tmp_path: Path, questions: Path) -> None:
    for arm in ("E_single", "F_independent"):
        cli("run-arm", "--arm", arm, "--questions", questions, "--project", tmp_path)
    command = ("evaluate", "--include-simulated", "--project", tmp_path)
    without = cli(*command)
    assert without.code == 1
    assert "--questions" in without.err
    assert len(cli(*command, "--questions", questions, "--json").document["arms"]) == 2


@pytest.mark.slow
def test_report_writes_a_page_with_the_heads(cli: Cli, demo_project: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = cli("report", "--include-simulated", "--output", page, "--project", demo_project)
    assert done.code == 0
    text = page.read_text()
    head = cli("verify", run_of(demo_project, "E_single"), "--project", demo_project, "--json").document["head"]
    assert head in text
    assert "imulated" in text


def test_the_demo_prints_one_table_and_where_to_look(finished_demo: Path) -> None:
    said = (finished_demo / "said.txt").read_text()
    for arm in (*BASELINES, *DEMO_ARMS):
        assert f"{arm} (simulated)" in said
    assert "every prompt" not in said
    for heading in ("MdAPE", "PPE10", "Coverage of 90 % interval", "Cost per item", f"from {DEMO_ARMS[-1]}"):
        assert heading in said
    assert "no real model spoke" in said
    page = finished_demo / "results" / "demo" / "report.html"
    assert str(page) in said
    assert page.stat().st_size > 5_000


def test_a_demo_without_the_extras_leaves_out_what_needs_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "lightgbm" else object())
    assert demo_baselines() == tuple(name for name in BASELINES if name not in {"C_boosting", "D_avm"})
    assert "left out, since they need more" in capsys.readouterr().err
    monkeypatch.undo()
    assert demo_baselines() == BASELINES


def test_the_data_verbs_tell_what_they_made(cli: Cli, tmp_path: Path) -> None:
    town = cli("data", "synth", "--sales", 400, "--seed", 3, "--project", tmp_path, "--json").document
    built = cli("data", "build", "--adapter", "synthetic", "--input", town["file"], "--project", tmp_path)
    assert "400 sales in CAD" in built.out
    split = cli("data", "splits", "--group-parcels", "--project", tmp_path, "--json").document
    assert sum(split["counts"].values()) == 400
    days = ("--boundaries", "2022-06-01,2023-01-01,2023-06-01")
    assert cli("data", "splits", *days, "--project", tmp_path).code == 0
    far = cli("data", "splits", "--boundaries", "2998-01-01,2999-01-01,3000-01-01", "--project", tmp_path)
    assert far.code == 1
    assert "no sale falls into validation, test, holdout" in far.err
    late = cli("data", "splits", "--boundaries", "2022-06-01,2999-01-01,3000-01-01", "--project", tmp_path, "--json")
    assert late.document["empty"] == ["test", "holdout"]
    assert "warning: no sale falls into test, holdout" in late.err
    assert cli("data", "splits", *days, "--project", tmp_path).code == 0
    drawn = cli("data", "subsample", "--project", tmp_path, "--json").document
    again = cli("data", "subsample", "--seed", 9, "--project", tmp_path, "--json").document
    assert (drawn["drawn_before"], again["drawn_before"]) == (False, True)
    assert drawn["counts"] == again["counts"]
    assert cli("data", "splits", "--boundaries", "2022-06-01,soon", "--project", tmp_path).code == 2
    assert cli("data", "build", "--adapter", "synthetc", "--input", "x", "--project", tmp_path).code == 2
