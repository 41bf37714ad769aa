"""``fit-weights`` and ``recompute --weights`` on the demo's runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_cases import Cli, run_of


@pytest.mark.slow
def test_weights_are_fitted_frozen_and_applied_to_another_split_only(cli: Cli, demo_project: Path) -> None:
    panel = run_of(demo_project, "F_independent")
    command = ("fit-weights", panel, run_of(demo_project, "G_debate"), run_of(demo_project, "E_single"))
    done = cli(*command, "--project", demo_project, "--json")
    assert (done.code, done.err) == (0, "")
    path = demo_project / "results" / "aggregation_weights.json"
    assert done.document["file"] == str(path)
    assert {**json.loads(path.read_bytes()), "file": str(path), "calls": 0} == done.document
    assert [found["arm"] for found in done.document["panels"]] == ["F_independent", "G_debate_r2"]
    assert all(len(found["numbers"]["roles"]) == 12 for found in done.document["panels"])
    said = cli(*command, "--project", demo_project).out
    assert "(simulated), 0 calls" in said
    assert "F_independent: stacks rest on 24 items of 24 that every role answered" in said

    inside = cli("recompute", panel, "--aggregation", "stacking", "--weights", path, "--project", demo_project)
    assert inside.code == 2
    assert "in-sample use" in inside.err
    asked = ("run-arm", "--arm", "F_independent", "--split", "test", "--n", 4, "--project", demo_project, "--json")
    later = cli(*asked).document
    assert done.document["sha256"] in later["weights_source"]
    path.rename(demo_project / "kept.json")
    before = cli(*asked).document
    assert before["weights_source"] == "none: fitted rules use equal weights"
    assert before["run_id"] != later["run_id"]
    again = ("--aggregation", "stacking", "--project", demo_project, "--json")
    made = [
        cli("recompute", before["run_id"], *again).document,
        cli("recompute", before["run_id"], *again, "--weights", demo_project / "kept.json").document,
        cli("recompute", later["run_id"], *again).document,
    ]
    assert [one["weights_sha256"] for one in made] == [None, *[done.document["sha256"]] * 2]
    plain, weighted, own = ([row["point"] for row in one["predictions"]] for one in made)
    assert len(weighted) == 4
    assert all(one != other for one, other in zip(plain, weighted, strict=True))
    assert own == weighted
    (demo_project / "kept.json").rename(path)

    refused = cli("fit-weights", later["run_id"], "--project", demo_project)
    assert refused.code == 2
    assert "weights are fitted on validation only" in refused.err
    other = cli("fit-weights", panel, "--project", demo_project)
    assert other.code == 1
    assert "holds other weights" in other.err
    assert cli("fit-weights", panel, "--out", demo_project / "w.json", "--project", demo_project).code == 0


def test_what_is_mistyped_is_named(cli: Cli, tmp_path: Path) -> None:
    done = cli("fit-weights", "_run", "--recalibration", "plat", "--project", tmp_path)
    assert done.code == 2
    assert 'Did you mean "platt"' in done.err
    absent = cli("recompute", "_run", "--aggregation", "mean", "--weights", tmp_path / "w", "--project", tmp_path)
    assert absent.code == 2
    assert "holds no weights" in absent.err
