"""An arm that declares adjusted comparables gets them; every other arm sees the plain packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_cases import Cli, write_questions
from consilience.cli.running import Wanted, items_of, items_unwritten
from consilience.errors import ConfigError
from consilience.experiments.arms import treatment
from consilience.valuation.pipeline import Project, build_items


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Project]:
    root = tmp_path_factory.mktemp("study")
    return Project(root), Project(root / "data" / "synthetic")


def test_only_the_arm_that_declares_them_sees_adjusted_comparables(places: tuple[Project, Project]) -> None:
    project, town = places
    wanted = Wanted(split="validation", n=4, questions=None, synthetic=True)
    before = items_unwritten(wanted.by("G_adjusted_comps"), project=project, town=town)
    assert not town.analytic.exists()
    plain = items_of(wanted.by("G_debate"), project=project, town=town)
    shown = items_of(wanted.by("G_adjusted_comps"), project=project, town=town)
    assert before == shown == items_unwritten(wanted.by("G_adjusted_comps"), project=project, town=town)
    for ours, theirs in zip(shown, plain, strict=True):
        assert ours.question == theirs.question
        assert ours.digest != theirs.digest
        assert all("adjusted_price" in item.content for item in ours.packet.sections["C"].items)
        assert all("adjusted_price" not in item.content for item in theirs.packet.sections["C"].items)
    with pytest.raises(ConfigError, match='unknown form of packets "adjusted_comps"'):
        build_items(town, [shown[0].question.id], packets="adjusted_comps")


def test_the_arm_differs_from_the_debate_in_its_packets_alone() -> None:
    ours, theirs = treatment("G_adjusted_comps"), treatment("G_debate")
    assert ours.model_copy(update={"packets": theirs.packets}) == theirs


def test_a_simulated_run_of_it_works_and_questions_of_ones_own_are_refused(cli: Cli, tmp_path: Path) -> None:
    command = ("run-arm", "--arm", "G_adjusted_comps", "--rounds", "1", "--synthetic", "--n", "2")
    document = cli(*command, "--project", tmp_path, "--json").document
    assert document["run_id"].startswith("_G_adjusted_comps_r1")
    questions = write_questions(tmp_path / "q.jsonl", 2)
    done = cli("run-arm", "--arm", "G_adjusted_comps", "--questions", questions, "--project", tmp_path)
    assert done.code == 2
    assert "brings its own packets" in done.err
