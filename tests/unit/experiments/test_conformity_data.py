"""Conformity from runs: simulated analysts have a known λ, and their record gives it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from consilience.cli import main
from consilience.errors import DataError, PlanError
from consilience.experiments.conformity_data import Conformity, Moved, conformity, read_fresh, read_moves
from consilience.experiments.protocol import read_frozen
from consilience.inference.conformity import Coefficient, Revision
from consilience.inference.effective import Undefined
from consilience.models.simulated import persona
from consilience.reports.pulls import read_pulls

pytestmark = pytest.mark.slow

ARMS = ("control_reask", "control_peers", "control_displaced", "control_evidence", "G_debate", "G_fullview")
N = 8


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("conformity")
    town = str(root / "town.parquet")
    commands = [
        ["data", "synth", "--sales", "500", "--output", town],
        ["data", "build", "--adapter", "synthetic", "--input", town],
        ["data", "splits"],
        ["data", "subsample"],
        *(["run-arm", "--arm", arm, "--n", str(N), "--run-id", f"_{arm}"] for arm in ARMS),
    ]
    for command in commands:
        assert main(["--project", str(root), *command]) == 0
    return root / "results" / "runs"


def coefficient(fit: Revision | Undefined) -> Coefficient:
    assert isinstance(fit, Revision)
    assert isinstance(fit.lam, Coefficient)
    return fit.lam


def all_moves(study: Path, *arms: str) -> list[Moved]:
    return [move for arm in arms for move in read_moves(study / f"_{arm}")]


def known(study: Path) -> dict[str, float]:
    """Return λ of each role of the panel, from its system prompt."""
    frozen = read_frozen(study / "_control_peers")
    seats = frozen.plan.seats(next(iter(frozen.plan.items)))
    system = frozen.plan.prompts.system
    return {seat.role.id: persona(system(seat), seed=frozen.plan.seed).anchoring for seat in seats}


def test_the_record_gives_back_the_known_pull_of_every_role(study: Path) -> None:
    moves = all_moves(study, "control_reask", "control_peers", "control_displaced", "G_debate")
    made = conformity(moves)
    assert {one.arm for one in made} == {"control_peers_r1", "control_displaced_r1", "G_debate_r2"}
    truth = known(study)
    assert {one.role for one in made} == set(truth)
    for one in made:
        assert coefficient(one.controlled).value == pytest.approx(truth[one.role], abs=2e-3)
        if one.arm == "control_displaced_r1":
            assert coefficient(one.displaced).value == pytest.approx(truth[one.role], abs=2e-3)
        else:
            assert isinstance(one.displaced, Undefined)
        assert json.dumps(one.record(), allow_nan=False)


def test_moves_hold_what_was_shown(study: Path) -> None:
    peers, alone, moved = (read_moves(study / f"_control_{arm}") for arm in ("peers", "reask", "displaced"))
    assert len(peers) == len(alone) == len(moved) == 12 * N
    assert all(one.shown == pytest.approx(one.consensus, abs=1e-5) for one in peers)
    assert all(one.shown is None and one.after == one.before for one in alone)
    assert {round(abs(one.displaced), 9) for one in moved} == {0.1}
    assert {one.displaced > 0 for one in moved} == {True, False}
    assert all(one.shown == pytest.approx(one.consensus + one.displaced, abs=1e-5) for one in moved)
    assert all(one.informed for one in read_moves(study / "_control_evidence"))


def test_without_a_control_arm_the_pull_is_not_told(study: Path) -> None:
    for one in conformity(all_moves(study, "control_peers")):
        assert one.controlled == Undefined("there are no revisions without the others shown")
        assert isinstance(one, Conformity)
        assert one.record()["controlled"] == {"undefined": "there are no revisions without the others shown"}
    assert conformity(all_moves(study, "control_reask")) == ()


def test_fresh_answers_on_the_whole_evidence_let_it_pull(study: Path) -> None:
    fresh = read_fresh(study / "_G_fullview")
    assert len(fresh) == 12 * N
    made = conformity(all_moves(study, "control_reask", "control_peers", "control_evidence"), evidence=fresh)
    assert len(made) == 12
    for one in made:
        assert isinstance(one.controlled, Revision)
        assert one.controlled.n == 3 * N
    pulled = {one.role: one.controlled.zeta for one in made if isinstance(one.controlled, Revision)}
    values = [zeta.value for zeta in pulled.values() if isinstance(zeta, Coefficient)]
    assert len(values) >= 6
    assert sum(values) > 0
    # A role that sees everything from the start gives the same answer on the whole evidence.
    assert {zeta.reason for zeta in pulled.values() if isinstance(zeta, Undefined)} <= {
        "every member stood there already"
    }
    with pytest.raises(PlanError, match="own views"):
        read_fresh(study / "_control_peers")


def test_a_report_reads_the_pulls_of_all_runs_and_passes_over_the_others(study: Path) -> None:
    (made,) = read_pulls(study / f"_{arm}" for arm in ARMS)
    assert made.controls == ("control_evidence_r1", "control_reask_r1")
    assert made.evidence == "G_fullview_r2"
    fresh = read_fresh(study / "_G_fullview")
    assert made.fits == conformity(all_moves(study, *sorted(ARMS)), evidence=fresh)
    (bare,) = read_pulls([study / "_control_reask", study / "_control_peers"])
    assert bare.evidence is None
    assert bare.controls == ("control_reask_r1",)
    assert read_pulls([study / "_control_reask"]) == ()


def test_what_cannot_be_put_together_is_refused(study: Path) -> None:
    moves = all_moves(study, "control_reask")
    other = Moved(**{**vars(moves[0]), "family": "probability"})
    with pytest.raises(DataError, match="cannot be put together"):
        conformity([*moves, other])
