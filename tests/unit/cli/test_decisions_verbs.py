"""decisions list, show and resolve as they are typed: outcomes are recorded, and weights come from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli_cases import Cli
from consilience.decisions.shelf import record_written

ASK = ["decide", "--question", "Ship?", "--option", "ship", "--option", "wait", "--quick", "0", "--full-share", "0.2"]


@pytest.fixture
def here(cli: Cli, tmp_path: Path) -> Cli:
    """Call ``consilience`` in a project of its own."""
    (tmp_path / "project").mkdir()
    return lambda *arguments: cli(*arguments, "--project", tmp_path / "project")


def test_a_decision_is_listed_resolved_shown_and_corrected(here: Cli) -> None:
    assert "no decision" in here("decisions", "list").out
    document = here(*ASK, "--json").document
    run, winner = document["run_id"], document["options"][document["winner"]]
    assert "outcome not known: 1" in here("decisions", "list").out
    assert "No outcome is recorded." in here("decisions", "show", run).out
    done = here("decisions", "resolve", run, "--outcome", winner, "--note", "seen on Monday")
    assert (done.code, done.out.strip()) == (0, f"{run}: {winner}")
    listed = here("decisions", "list")
    assert "simulated: the winner was right in 1 of 1, 100 % (95 % 21 to 100)" in listed.out
    assert here("decisions", "resolve", run, "--outcome", winner, "--note", "again").code != 0
    assert here("decisions", "resolve", run, "--unknowable", "--note", "nobody looked", "--correct").code == 0
    shown = here("decisions", "show", run)
    assert "seen on Monday" in shown.out
    assert "corrected: unknowable. nobody looked" in shown.out
    assert "Minority report" in shown.out
    assert "no decision with a winner has a known outcome" in here("decisions", "list").out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["nothing", "--outcome", "ship", "--note", "x"], "no decision"),
        (["RUN", "--outcome", "shop", "--note", "x"], "ship"),
        (["RUN", "--note", "x"], "--outcome"),
        (["RUN", "--outcome", "ship", "--unknowable", "--note", "x"], "one of them"),
        (["RUN", "--outcome", "ship", "--note", " "], "note"),
        (["RUN", "--outcome", "ship", "--note", "x", "--correct"], "--correct"),
    ],
)
def test_what_cannot_be_recorded_is_refused(here: Cli, typed: list[str], said: str) -> None:
    run = here(*ASK, "--json").document["run_id"]
    done = here("decisions", "resolve", *(run if word == "RUN" else word for word in typed))
    assert done.code in {1, 2}
    assert said in done.err
    assert "No outcome is recorded." in here("decisions", "show", run).out


def test_earned_weights_decide_once_outcomes_are_known(here: Cli, tmp_path: Path) -> None:
    case = tmp_path / "case.yaml"
    case.write_text(
        json.dumps(
            {"question": "Ship?", "options": ["ship", "wait"], "method": "weighted", "weights": "earned", "quick": 0}
        ),
        encoding="utf-8",
    )
    refused = here("decide", case)
    assert (refused.code, "no voter has earned a weight yet" in refused.err) == (2, True)
    document = here(*ASK, "--method", "plurality", "--json").document
    votes = [vote["option"] for vote in document["votes"]]
    most = max(set(votes), key=votes.count)
    here("decisions", "resolve", document["run_id"], "--outcome", document["options"][most], "--note", "seen")
    weights = here("decisions", "list", "--json").document["weights"]["simulated"]
    assert {one["role"] for one in weights} == {vote["role"] for vote in document["votes"]}
    assert sum(one["right"] for one in weights) == votes.count(most)
    decided = here("decide", case, "--json").document
    assert len(set(decided["audit"]["rules"]["weights"])) == 1  # every voter has few ballots: all weigh alike
    assert decided["audit"]["rules"]["weights"][0] == weights[0]["weight"]


def test_a_decision_changed_by_hand_is_named(here: Cli, tmp_path: Path) -> None:
    document = here(*ASK, "--json").document
    here("decisions", "resolve", document["run_id"], "--outcome", "ship", "--note", "seen")
    path = tmp_path / "project" / "results" / "decisions" / document["run_id"] / "decision.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"simulated": true', '"simulated": false'), "utf-8")
    done = here("decisions", "list")
    assert (done.code, document["run_id"] in done.err) == (6, True)
    path.write_text("[]", encoding="utf-8")
    assert here("decisions", "list").code == 6


def edit(old: str, new: str, name: str = "decision.json") -> Callable[[Path, Path], None]:
    def act(decision: Path, _: Path) -> None:
        text = (decision / name).read_text(encoding="utf-8")
        assert old in text
        (decision / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return act


def written_by_hand(decision: Path, _: Path) -> None:
    """Tell of another decision in the words of this one, and take this one's run away."""
    copy = decision.with_name("_ask-decide-mine")
    shutil.copytree(decision, copy)
    told = (copy / "decision.json").read_text(encoding="utf-8")
    (copy / "decision.json").write_text(told.replace(decision.name, copy.name), encoding="utf-8")
    shutil.rmtree(decision)


def gone_on(_: Path, run: Path) -> None:
    segment = max(run.glob("events-*.jsonl"))
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[:-1]))


ACTS: list[tuple[Callable[[Path, Path], object], str]] = [
    (edit('"full_share": 0.2', '"full_share": 0.3'), "decision.json was changed"),
    (edit('"method": "majority"', '"method": "plurality"'), "decision.json was changed"),
    (edit("Minority report", "Majority report", "decision.md"), "decision.md was changed"),
    (lambda decision, _: (decision / "decision.html").unlink(), "decision.html cannot be read"),
    (lambda decision, _: (decision / "decision.json").write_text("[]"), "is no decision"),
    (lambda decision, _: shutil.rmtree(decision), "its folder is gone"),
    (lambda _, run: shutil.rmtree(run), "its run is not in"),
    (gone_on, "its run"),
    (written_by_hand, "did not write it"),
]


@pytest.mark.parametrize(("act", "said"), ACTS)
def test_a_decision_that_is_not_its_runs_is_named_and_not_counted_and_keeps_no_other_from_it(
    here: Cli, tmp_path: Path, act: Callable[[Path, Path], object], said: str
) -> None:
    good, bad = (here(*ASK, "--seed", seed, "--json").document["run_id"] for seed in (0, 1))
    for run in (good, bad):
        assert here("decisions", "resolve", run, "--outcome", "ship", "--note", "seen").code == 0
    before = here("decisions", "list", "--json").document["hit_rate"]["simulated"]
    results = tmp_path / "project" / "results"
    act(results / "decisions" / bad, results / "runs" / bad)
    done = here("decisions", "list", "--json")
    assert (done.code, said in done.err) == (6, True)
    assert [one["run_id"] for one in done.document["decisions"]] == [good]
    assert bad in done.document["outcomes_without_decision"]
    rate = done.document["hit_rate"]["simulated"]
    counted = [one["n"] + sum(one["without"].values()) for one in (before, rate)]
    assert counted == [2, 1]
    assert here("decisions", "show", good).code == 0
    assert here("decisions", "resolve", good, "--outcome", "wait", "--note", "seen again", "--correct").code == 0
    assert here("decisions", "show", bad).code == 6
    told = here("decisions", "list").out
    assert "not believed and not counted" in told
    assert "outcomes recorded of decisions that are not counted: 1" in told


def test_rules_and_ballots_are_those_of_the_run_whatever_the_log_of_what_was_written_says(
    here: Cli, tmp_path: Path
) -> None:
    results = tmp_path / "project" / "results"
    run = ""
    for old, new, said in (
        ('"full_share": 0.2', '"full_share": 0.9', "its rules"),
        ('"outcome": "winner"', '"outcome": "tie"', "its outcome"),
        ('"role": "optimist"', '"role": "pessimist"', "its votes"),
    ):
        run = here(*ASK, "--json").document["run_id"]
        folder = results / "decisions" / run
        edit(old, new)(folder, folder)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        head = json.loads(files["decision.json"])["audit"]["journal_head"]
        record_written(folder.parent, run, head, files, at=datetime(2026, 12, 1, tzinfo=UTC))
        done = here("decisions", "list")
        assert (done.code, said in done.err) == (6, True)
    here(*ASK)
    assert here("decisions", "list").code == 0  # decided again with the same words it is made anew


def test_a_decision_made_anew_is_believed_and_written_once(here: Cli, tmp_path: Path) -> None:
    run, again = (here(*ASK, "--json").document["run_id"] for _ in range(2))
    assert run == again
    log = tmp_path / "project" / "results" / "decisions" / "written.jsonl"
    assert [json.loads(line)["run_id"] for line in log.read_text(encoding="utf-8").splitlines()] == [run]
