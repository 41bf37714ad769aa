"""decisions list, show and resolve as they are typed: outcomes are recorded, and weights come from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_cases import Cli

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
