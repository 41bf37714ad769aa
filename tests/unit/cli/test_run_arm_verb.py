from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_cases import Cli, run_of


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_a_run_is_resumed_by_the_same_command(cli: Cli, tmp_path: Path, questions: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    command = ("run-arm", "--arm", "F_independent", "--questions", questions, "--seed", 7, "--project", study)
    first = cli(*command)
    again = cli(*command)
    assert (first.code, again.code) == (0, 0)
    assert "15 calls;" in first.out
    assert "0 calls;" in again.out
    table = first.out.partition("_F_independent")[0]
    assert table == again.out.partition("_F_independent")[0]
    assert "(simulated)" in first.out
    assert "3 of 3 items, 15 turns" in first.err
    run = run_of(study, "F_independent")
    kept = files(study / "results" / "runs" / run)
    assert {"manifest.json", "protocol.json", "prices.json", "predictions.parquet", "packets/q0.json"} <= kept


def test_json_holds_manifest_and_predictions(cli: Cli, tmp_path: Path, questions: Path) -> None:
    done = cli("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path, "--json")
    found = done.document
    assert found["simulated"] is True
    assert found["calls"] == 3
    assert found["stopped_by"] is None
    assert [row["item_id"] for row in found["predictions"]] == ["q0", "q1", "q2"]


def test_a_dry_run_writes_and_spends_nothing(cli: Cli, tmp_path: Path, questions: Path) -> None:
    before = files(tmp_path)
    command = ("run-arm", "--arm", "G_debate", "--rounds", 1, "--questions", questions, "--project", tmp_path)
    done = cli(*command, "--dry-run", "--json")
    assert files(tmp_path) == before
    found = done.document
    assert found["turns"] == 3 * 5 * 3
    assert 0 < found["expected_cost_usd"] < found["worst_cost_usd"]
    told = cli(*command, "--dry-run", "--max-spend-usd", "0.01").out
    assert "does not bear the expected cost" in told
    assert "nothing was written" in told
    ran = cli(*command, "--json").document
    assert ran["run_id"] == found["run_id"]
    assert ran["spent_usd"] < found["worst_cost_usd"]


def test_a_dry_run_of_the_town_leaves_no_town(cli: Cli, tmp_path: Path) -> None:
    done = cli("run-arm", "--arm", "E_single", "--synthetic", "--n", 3, "--dry-run", "--project", tmp_path)
    assert done.code == 0
    assert files(tmp_path) == set()


def test_a_dry_run_draws_the_subsample_that_the_run_will_store(cli: Cli, demo_project: Path) -> None:
    stored = demo_project / "data" / "processed" / "llm_subsamples.parquet"
    stored.unlink()
    command = ("run-arm", "--arm", "E_single", "--n", 3, "--seed", 5, "--project", demo_project, "--json")
    foreseen = cli(*command, "--dry-run").document
    assert not stored.exists()
    assert cli(*command).document["run_id"] == foreseen["run_id"]
    assert stored.exists()


def test_the_cap_stops_with_4_keeps_what_was_answered_and_can_be_raised(
    cli: Cli, tmp_path: Path, questions: Path
) -> None:
    command = ("run-arm", "--arm", "F_independent", "--questions", questions, "--project", tmp_path)
    whole = cli(*command, "--run-id", "_whole", "--json").document
    stopped = cli(*command, "--concurrency", 1, "--max-spend-usd", "0.05", "--json")
    found = stopped.document
    assert stopped.code == 4
    assert "spend cap reached" in stopped.err
    assert "run the same command again" in stopped.err
    assert found["spend_cap_hit"] is True
    assert 0 < found["spent_usd"] <= 0.05
    assert found["stopped_by"]["error"] == "BudgetError"
    resumed = cli(*command, "--json").document
    assert found["calls"] + resumed["calls"] == whole["calls"]
    same = ("item_id", "point", "q05", "q25", "q50", "q75", "q95", "status", "cost_usd")
    assert [[row[name] for name in same] for row in resumed["predictions"]] == [
        [row[name] for name in same] for row in whole["predictions"]
    ]


def test_a_cap_of_zero_is_zero_wherever_it_is_said(
    cli: Cli, tmp_path: Path, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path)
    by_flag = cli(*command, "--max-spend-usd", "0")
    assert by_flag.code == 4
    assert "0 calls; $0.00 of $0.00 spent" in by_flag.out
    (tmp_path / "consilience.yaml").write_text("max_spend_usd: 0\n")
    assert cli(*command).code == 4
    monkeypatch.setenv("CONSILIENCE_MAX_SPEND_USD", "1")
    assert cli(*command).code == 0


def test_a_chosen_id_is_marked_simulated_and_the_user_is_told(cli: Cli, tmp_path: Path, questions: Path) -> None:
    command = ("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path)
    done = cli(*command, "--run-id", "mine")
    assert "its id is _mine" in done.err
    assert run_of(tmp_path, "mine") == "_mine"
    other = cli(*command, "--run-id", "mine", "--seed", 1)
    assert other.code == 1
    assert "differs from the recorded run" in other.err


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (("--run-id", "../escape"), "../escape"),
        (("--model", "gpt-6-lunar"), 'Did you mean "gpt-6-luna"'),
        (("--model", "gpt-6-luna", "--committee", "all_openai"), "--committee"),
        (("--committee", "mixed_randon"), 'Did you mean "mixed_random"'),
        (("--tier", "middle"), 'Did you mean "mid"'),
        (("--accept", "prompts"), "prompts"),
        (("--split", "test"), "--questions"),
        (("--max-spend-usd", "lots"), "lots"),
        (("--rounds", "2"), "--rounds"),
    ],
)
def test_wrong_choices_are_usage_errors(
    extra: tuple[str, ...], named: str, cli: Cli, tmp_path: Path, questions: Path
) -> None:
    done = cli("run-arm", "--arm", "E_single", "--questions", questions, *extra, "--project", tmp_path)
    assert done.code == 2
    assert named in done.err
    assert not (tmp_path / "results").exists()


def test_one_model_takes_all_seats(cli: Cli, tmp_path: Path, questions: Path) -> None:
    command = ("run-arm", "--arm", "F_independent", "--questions", questions, "--project", tmp_path)
    found = cli(*command, "--model", "gpt-6-luna", "--json").document
    assert found["models"] == ["simulated:gpt-6-luna"]
    assert found["panel_warnings"] == [] or "differ" in found["panel_warnings"][0]


def test_missing_tables_say_which_verb_makes_them(cli: Cli, tmp_path: Path) -> None:
    done = cli("run-arm", "--arm", "E_single", "--project", tmp_path)
    assert done.code == 1
    assert "analytic.parquet" in done.err
    assert "consilience data build" in done.err


def test_the_town_is_kept_apart_from_the_users_table(cli: Cli, demo_project: Path) -> None:
    table = demo_project / "data" / "processed" / "analytic.parquet"
    before = table.read_bytes()
    command = ("run-arm", "--arm", "E_single", "--synthetic", "--n", 2, "--run-id", "_t", "--project", demo_project)
    assert "2 calls;" in cli(*command).out
    assert "0 calls;" in cli(*command).out
    assert table.read_bytes() == before
    assert json.loads((demo_project / "results" / "runs" / "_t" / "manifest.json").read_text())["simulated"] is True
