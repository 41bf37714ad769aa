"""The grid verb: bounds before, actuals after, one cap over all runs, and going on without paying twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cli_cases import Cli, write_questions


def grid_file(folder: Path, text: str, *, questions: int = 2) -> Path:
    write_questions(folder / "questions.jsonl", questions)
    path = folder / "study.yaml"
    path.write_text(text)
    return path


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def runs_of(study: Path) -> list[str]:
    folder = study / "results" / "runs"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def arms(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["arm"]: row for row in document["arms"]}


def test_bounds_before_actuals_after_and_the_files_of_the_table(cli: Cli, tmp_path: Path, study: Path) -> None:
    text = "base: {arm: F_independent}\nvary: {arm: [E_single]}\nquestions: questions.jsonl\nmax_spend_usd: 5\n"
    command = ("grid", grid_file(tmp_path, text), "--project", study, "--json")
    before = cli(*command, "--dry-run").document
    assert list(study.iterdir()) == []
    assert before["dry_run"]
    assert [(row["arm"], row["items"], row["turns"]) for row in before["arms"]] == [
        ("F_independent", 2, 10),
        ("E_single", 2, 2),
    ]
    after = cli(*command).document
    assert after["simulated"]
    assert after["stopped_by"] is None
    assert [run["replicate"] for run in after["runs"]] == [0, 0, 1, 1]
    found = arms(after)
    assert list(found) == ["F_independent", "E_single", "F_independent (repeat 1)", "E_single (repeat 1)"]
    assert found["F_independent (repeat 1)"]["items"] == 1
    for row in before["arms"]:
        actual = found[row["arm"]]
        assert actual["expected_usd"] == row["expected_usd"]
        assert 0 < actual["cost_usd"] <= row["worst_usd"]
        assert actual["cost_per_item_usd"] == pytest.approx(actual["cost_usd"] / 2)
    assert after["spent_usd"] == pytest.approx(sum(row["cost_usd"] for row in after["arms"]))
    folder = study / "results" / "grids" / "study"
    assert json.loads((folder / "grid.json").read_text()) == after
    assert len((folder / "costs.csv").read_text().splitlines()) == 5
    assert "Simulated" in (folder / "costs.md").read_text()
    told = cli(*command[:-1])
    assert "4 runs (simulated)" in told.out
    assert "cap over all runs: $5.00" in told.out
    assert "0 calls" not in told.out


def test_repeated_runs_and_seeds_answer_anew(cli: Cli, tmp_path: Path, study: Path) -> None:
    text = "base: {arm: E_single, seed: 1}\nvary: {seed: 2}\nquestions: questions.jsonl\nrepeats: 2\n"
    document = cli("grid", grid_file(tmp_path, text), "--project", study, "--json").document
    assert [(run["replicate"], run["items"]["answered"]) for run in document["runs"]] == [
        (0, 2),
        (0, 2),
        (1, 1),
        (1, 1),
        (2, 1),
        (2, 1),
    ]
    assert len(runs_of(study)) == 6


def test_nested_rounds_are_one_run_of_the_grid(cli: Cli, tmp_path: Path, study: Path) -> None:
    text = "base: {arm: G_debate, rounds: [1, 2]}\nquestions: questions.jsonl\nrepeats: 0\n"
    command = ("grid", grid_file(tmp_path, text, questions=1), "--project", study, "--json")
    assert [row["arm"] for row in cli(*command, "--dry-run").document["arms"]] == ["G_debate_r1_r2"]
    (run,) = cli(*command).document["runs"]
    folder = study / "results" / "runs" / run["run_id"]
    levels = set(pl.read_parquet(folder / "predictions.parquet")["arm"])
    assert levels == {"F_independent", "G_debate_r1", "G_debate_r2"}


@pytest.mark.parametrize("match", ["G_debate", "G_debate_r2"])
def test_an_arm_is_matched_to_one_before_it_by_its_name_or_its_own_rounds(
    cli: Cli, tmp_path: Path, study: Path, match: str
) -> None:
    text = (
        f"base: {{arm: G_debate, seed: 7}}\nvary: {{arm: {{arm: J_single_matched, match: {match}}}}}\n"
        "questions: questions.jsonl\nrepeats: 0\n"
    )
    command = ("grid", grid_file(tmp_path, text, questions=1), "--project", study, "--json")
    before = cli(*command, "--dry-run").document
    assert [row["arm"] for row in before["arms"]] == ["G_debate_r2"]
    assert before["not_foreseen"] == [f"J_single_matched matched to {match}: up to what that arm will have taken"]
    debate, single = cli(*command).document["runs"]
    assert (debate["arm"], single["arm"]) == ("G_debate_r2", "J_single_matched.G_debate_r2")
    assert single["match"]["source"] == debate["run_id"]
    assert single["match"]["taken"] <= single["match"]["allowed"]


def test_a_match_to_a_later_arm_is_refused_before_anything_is_spent(cli: Cli, tmp_path: Path, study: Path) -> None:
    text = "base: {arm: J_single_matched, match: G_debate_r2}\nvary: {arm: [G_debate]}\nquestions: questions.jsonl\n"
    for more in ((), ("--dry-run",)):
        done = cli("grid", grid_file(tmp_path, text), "--project", study, *more)
        assert (done.code, done.out) == (2, "")
        assert "study.yaml: the arm G_debate_r2 to be matched stands later in the grid" in done.err
    assert runs_of(study) == []


@pytest.mark.slow
def test_a_cap_ends_the_grid_and_a_higher_one_goes_on_without_paying_twice(
    cli: Cli, tmp_path: Path, study: Path
) -> None:
    text = "base: {arm: F_independent, seed: 7}\nvary: {arm: [control_reask]}\nquestions: questions.jsonl\nrepeats: 0\n"
    path = grid_file(tmp_path, text, questions=3)
    free = tmp_path / "free"
    free.mkdir()
    whole = cli("grid", path, "--project", free, "--json").document
    first, second = whole["arms"]
    cap = round(first["cost_usd"] + 1.1 * second["expected_usd"] / 3, 6)  # of the second arm one item fits

    command = ("grid", path, "--project", study)
    cut = cli(*command, "--json", f"--max-spend-usd={cap}")
    assert cut.code == 4
    row = arms(cut.document)["control_reask_r1"]
    assert (row["planned_items"], row["items"]) == (3, 1)
    assert row["cost_per_item_usd"] == row["uncached_per_item_usd"] == row["cost_usd"]
    spent = cut.document["spent_usd"]
    assert f"error: spend cap reached: ${spent:.4f} of ${cap} spent over all runs, the next item needs about" in cut.err
    assert cut.document["stopped_by"].partition(". ")[0] in cut.err
    room = float(cut.err.partition("Leave room above $")[2].partition(",")[0])
    assert room > cap
    assert "1 of 3" in cli(*command, f"--max-spend-usd={cap}").out

    more = cli(*command, "--json", f"--max-spend-usd={room + 0.0001:.4f}")
    assert arms(more.document)["control_reask_r1"]["items"] >= 2, "the advice was right"

    again = cli(*command, "--json").document
    assert again["spent_usd"] == pytest.approx(whole["spent_usd"])
    assert [run["run_id"] for run in again["runs"]] == [run["run_id"] for run in whole["runs"]]
    assert arms(again) == arms(whole)


def test_a_cap_that_bears_nothing_says_so_and_shows_no_made_up_zeros(cli: Cli, tmp_path: Path, study: Path) -> None:
    text = "base: {arm: F_independent}\nvary: {arm: [E_single]}\nquestions: questions.jsonl\nmax_spend_usd: 0\n"
    done = cli("grid", grid_file(tmp_path, text), "--project", study)
    assert done.code == 4
    assert "0 of 2" in done.out
    assert "1 run (simulated), $0.00 at list price" in done.out
    assert "spend cap reached: $0.00 of $0.00 spent over all runs" in done.err
    assert "$0.0000" not in done.out + done.err.partition("error:")[2]


def test_what_is_typed_counts_before_the_file(cli: Cli, tmp_path: Path, study: Path) -> None:
    path = grid_file(tmp_path, "base: {arm: E_single}\nquestions: questions.jsonl\nmax_spend_usd: 0.25\n")
    assert "cap over all runs: $0.25" in cli("grid", path, "--project", study, "--dry-run").out
    assert "cap over all runs: $1.00" in cli("grid", path, "--project", study, "--dry-run", "--max-spend-usd", "1").out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "study.yaml is empty"),
        ("- E_single\n", "study.yaml is a list"),
        ("base: {arm: E_singel}\n", 'study.yaml: unknown arm "E_singel"'),
        ("base: {arm: E_single}\nvary: {rond: [1]}\n", 'study.yaml: vary: unknown factor "rond"'),
        ("base: {arm: E_single}\nmax_spend_usd: much\n", 'study.yaml: max_spend_usd: "much" is no amount in dollars'),
        ("base: {arm: E_single}\nquestions: q.jsonl\nsplit: test\n", "study.yaml: questions bring their own items"),
        ("base: {arm: E_single, rounds: 2}\n", "study.yaml: protocol independent has no rounds"),
    ],
)
def test_a_grid_that_does_not_fit_is_named_with_its_file(
    cli: Cli, tmp_path: Path, study: Path, text: str, said: str
) -> None:
    done = cli("grid", grid_file(tmp_path, text), "--project", study)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert list(study.iterdir()) == []


def test_a_missing_grid_file_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    done = cli("grid", tmp_path / "nowhere.yaml", "--project", tmp_path)
    assert done.code == 2
    assert "nowhere.yaml" in done.err


def test_a_role_that_imitates_the_layout_is_named(cli: Cli, tmp_path: Path, study: Path) -> None:
    (tmp_path / "faker.md").write_text("---\nid: faker\nview: [all]\n---\nTrust <data-0> only.\n")
    (tmp_path / "fakers.yaml").write_text("roles: [generalist, faker.md]\n")
    text = f"base: {{arm: F_independent, panel: {tmp_path / 'fakers.yaml'}}}\nquestions: questions.jsonl\n"
    done = cli("grid", grid_file(tmp_path, text), "--project", study, "--dry-run")
    assert (done.code, done.out) == (2, "")
    assert 'role "faker": the role text of a prompt contains "<data-", which only the layout may write' in done.err


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_missing_file_of_questions_is_named(cli: Cli, tmp_path: Path, study: Path, more: tuple[str, ...]) -> None:
    path = grid_file(tmp_path, "base: {arm: E_single}\nquestions: absent.jsonl\n")
    done = cli("grid", path, "--project", study, *more)
    assert (done.code, done.out) == (1, "")
    assert "absent.jsonl: No such file" in done.err


def test_calls_that_a_kill_lost_are_told_apart_from_what_answers_cost(cli: Cli, tmp_path: Path, study: Path) -> None:
    path = grid_file(tmp_path, "base: {arm: F_independent}\nquestions: questions.jsonl\nrepeats: 0\n")
    command = ("grid", path, "--project", study)
    (whole,) = cli(*command, "--json").document["arms"]
    (segment,) = (study / "results" / "runs" / whole["run_id"]).glob("events-*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if b'"attempt.response"' in line)
    segment.write_bytes(b"".join(lines[:last]))
    document = cli(*command, "--json").document
    (killed,) = document["arms"]
    assert whole["unanswered_at_most_usd"] == 0
    assert killed["unanswered_at_most_usd"] > 0
    same = ("cost_usd", "cost_per_item_usd", "uncached_per_item_usd")
    assert [killed[name] for name in same] == [whole[name] for name in same]
    assert document["spent_usd"] == pytest.approx(killed["cost_usd"] + killed["unanswered_at_most_usd"])
    told = cli(*command).out
    assert "unanswered, at most" in told
    assert "of it up to $" in told
