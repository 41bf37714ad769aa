"""Every arm run on one house by simulated analysts: its course can be told again from its journal alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import polars as pl
import pytest

from consilience.aggregation.answers import rule_names
from consilience.config import load_packaged
from consilience.core.packet import Item
from consilience.errors import IntegrityError
from consilience.experiments.arms import Treatments
from consilience.experiments.casting import cast
from consilience.experiments.general import GENERAL
from consilience.experiments.matching import match_of
from consilience.experiments.orders import Job, Orders, RunReport
from consilience.experiments.plan import Application, Choices, Plan, make_plan, shown_items
from consilience.experiments.recorded import recorded_course, recorded_items
from consilience.experiments.replay import recompute, replay_run
from consilience.experiments.rows import aggregate
from consilience.experiments.runner import run_arm
from consilience.journal.reader import fold
from consilience.models.prices import load_catalogue
from consilience.protocols import PROTOCOLS
from consilience.valuation.pipeline import VALUATION, Project, load_items, synthetic_project
from engine_cases import QUICK, make_item, make_shell

CATALOGUE = load_catalogue()
ARMS = {
    arm: declared
    for arm, declared in load_packaged("configs/treatments.yaml", Treatments).treatments.items()
    if "estimate" in PROTOCOLS[next(iter(declared.protocol))].kinds
}
NUMBERS = ("point", "q05", "q25", "q50", "q75", "q95")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    project = Project(tmp_path_factory.mktemp("town"))
    synthetic_project(project, seed=7)
    return load_items(project, split="validation", n=1)


def run(
    folder: Path, arm: str, items: list[Item], *, application: Application = VALUATION, **changes: Any
) -> tuple[RunReport, Plan]:
    shown = shown_items(application, items, arm=arm, seed=7)
    values: dict[str, Any] = {"rounds": (), "committee": "mixed_random", "tier": "mid", "split": None, "seed": 7}
    plan = make_plan(application, shown, Choices(**{"arm": arm, **values, **changes}), catalogue=CATALOGUE)
    models = cast(plan.models, catalogue=CATALOGUE, environ={}, reader=application.reader, seed=7)
    job = Job(plan, shown, plan.run_id, folder, models, CATALOGUE)
    return anyio.run(run_arm, job, make_shell(), Orders(limits=QUICK)), plan


def check(folder: Path, report: RunReport, plan: Plan) -> None:
    """Compare the whole frame of a run's longest arm, and one rule recomputed, with what the journal alone tells."""
    frame = report.predictions.filter(pl.col("arm") == [*plan.levels][-1])
    state = fold(folder)
    for item in recorded_items(folder, plan):
        course = anyio.run(recorded_course, state, plan, item)
        told = {row.rule: row.cells for row in aggregate(item.question, course)}
        ours = frame.filter(pl.col("item_id") == item.question.id)
        answered = ours.filter(pl.col("status") == "answered")
        assert set(answered["aggregation"]) == set(told)
        for row in answered.to_dicts():
            assert {name: row[name] for name in told[row["aggregation"]]} == told[row["aggregation"]]
        first = rule_names(item.question.kind)[0]
        again = anyio.run(partial(recompute, folder, aggregation=first))
        kept = frame.filter(pl.col("aggregation") == first)
        numbers = [name for name in again.columns if name in kept.columns]
        assert again.select(numbers).equals(kept.select(numbers))


def test_there_are_arms_to_check() -> None:
    assert len(ARMS) >= 17
    assert {"G_debate", "H_skeptic", "J_single_matched", "delphi", "control_displaced"} <= set(ARMS)


@pytest.mark.parametrize("arm", sorted(ARMS))
@pytest.mark.slow
def test_every_arm_is_told_again_from_its_journal(tmp_path: Path, house: list[Item], arm: str) -> None:
    report, plan = run(tmp_path / "run", arm, house)
    if arm == "control_closed_book":
        assert set(report.predictions["status"]) == {"no_quorum"}  # a simulated analyst remembers no price
    else:
        assert report.predictions.filter(pl.col("aggregation") == "median")["status"].to_list() == ["answered"]
    check(tmp_path / "run", report, plan)
    replayed = anyio.run(replay_run, tmp_path / "run", {"valuation": VALUATION}, make_shell())
    assert (replayed.identical, replayed.finished) == (True, True)


def test_nested_rounds_are_told_again(tmp_path: Path, house: list[Item]) -> None:
    report, plan = run(tmp_path / "run", "G_debate", house, rounds=(1, 2))
    check(tmp_path / "run", report, plan)
    assert anyio.run(replay_run, tmp_path / "run", {"valuation": VALUATION}, make_shell()).identical


@pytest.mark.parametrize("amount", ["tokens:1", "tokens:30000", "usd:0.2"])
def test_a_matched_agent_is_told_again_with_as_many_samples_as_it_had(
    tmp_path: Path, house: list[Item], amount: str
) -> None:
    match = match_of(amount, [item.question.id for item in house], run_folder=Path)
    report, plan = run(tmp_path / "run", "J_single_matched", house, match=match)
    assert report.predictions["n_seats"].max() != 12
    check(tmp_path / "run", report, plan)
    assert anyio.run(replay_run, tmp_path / "run", {"valuation": VALUATION}, make_shell()).identical


@pytest.mark.parametrize("arm", ["adversarial", "H_skeptic", "J_single_matched", "delphi"])
def test_probabilities_are_told_again_too(tmp_path: Path, arm: str) -> None:
    item = make_item(kind="probability")
    report, plan = run(tmp_path / "run", arm, [item], application=GENERAL)
    assert report.predictions.filter(pl.col("aggregation") == "median")["status"].to_list() == ["answered"]
    check(tmp_path / "run", report, plan)


def test_a_turn_that_is_not_on_record_is_named(tmp_path: Path, house: list[Item]) -> None:
    _, plan = run(tmp_path / "run", "G_debate", house)
    state = fold(tmp_path / "run")
    state.turns.pop(next(where for where in state.turns if where.kind == "revision"))
    (item,) = recorded_items(tmp_path / "run", plan)
    with pytest.raises(IntegrityError, match=r"the record holds no turn at .*revision"):
        anyio.run(recorded_course, state, plan, item)
