"""One course of a debate gives the rows of all its rounds, equal to those of runs of their own, for what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.core.deliberation import Deliberation, Stopped
from consilience.errors import FinalModelError, PlanError
from consilience.experiments.arms import arm_label
from consilience.experiments.orders import RunReport
from consilience.experiments.plan import Application, Choices, Plan, make_plan
from consilience.journal.events import TurnAccepted
from consilience.models.prices import load_catalogue
from consilience.models.request import Request
from consilience.models.scripted import Reply
from consilience.protocols import Debate
from engine_cases import ROLES, answer_json, carry_out, events_of, make_items, panel, read, reply, seat_number, speak

ITEMS = make_items(2)
CATALOGUE = load_catalogue()
TOY = Application(name="valuation", roles_for=lambda _panel, _seed: ROLES, reader=lambda _mind: {})
ROUNDS = (1, 2, 4)
LEVELS = {"F_independent": (), "G_debate_r1": (1,), "G_debate_r2": (2,), "G_debate_r4": (4,)}
OWN = ("run_id", "paid_usd")
"""Columns in which a run of its own differs by right."""


def planned(arm: str = "G_debate", rounds: tuple[int, ...] = ROUNDS, *, own: str | None = None) -> Plan:
    choices = Choices(arm=arm, rounds=rounds, committee="gpt-6-luna", tier="mid", split="validation", seed=7, panel=own)
    return make_plan(TOY, ITEMS, choices, catalogue=CATALOGUE)


def run(folder: Path, plan: Plan, say: Callable[[Request], Reply] = speak) -> RunReport:
    return carry_out(folder, plan, ITEMS, panel(say, name=plan.models[0]))


def settles(request: Request) -> Reply:
    """Move in the first round and never again."""
    prompt = read(request)
    if prompt.task.startswith("critique"):
        return reply(critiques=[])
    step = 0.05 if prompt.committee is None else 0.02
    return reply(answer=answer_json(point=round(300_000 * (1 + step * seat_number(request)))))


def loses(request: Request) -> Reply:
    """Lose a seat's first revision and another one's critiques."""
    prompt = read(request)
    if (prompt.seat, prompt.task[:18]) in {("analyst_01", "revision (round 1)"), ("analyst_02", "critique (round 2)")}:
        return FinalModelError("gone", hint="Stop.", status=404)
    return speak(request)


@pytest.mark.parametrize("say", [speak, settles, loses])
@pytest.mark.slow
def test_nested_rows_are_those_of_separate_runs(tmp_path: Path, say: Callable[[Request], Reply]) -> None:
    nested = run(tmp_path / "nested", planned(), say).predictions
    assert nested["arm"].unique(maintain_order=True).to_list() == [*LEVELS]
    for arm, rounds in LEVELS.items():
        alone = run(tmp_path / arm, planned(arm.partition("_r")[0] if rounds else arm, rounds), say).predictions
        assert set(alone["arm"]) == {arm}
        ours = nested.filter(pl.col("arm") == arm).drop(OWN)
        assert ours.sort("item_id", "aggregation").equals(alone.drop(OWN).sort("item_id", "aggregation"))
    assert nested["point"].n_unique() > len(LEVELS)


def test_the_one_run_pays_once_for_what_the_arms_cost_separately(tmp_path: Path) -> None:
    report = run(tmp_path / "run", planned())
    assert report.calls == 2 * 5 * 9
    each = report.predictions.unique(["arm", "item_id"])
    assert each["paid_usd"].sum() == pytest.approx(report.manifest["spent_usd"], abs=1e-12)
    per_arm = dict(each.group_by("arm").agg(pl.col("cost_usd").sum()).iter_rows())
    paid = dict(each.group_by("arm").agg(pl.col("paid_usd").sum()).iter_rows())
    assert per_arm["G_debate_r4"] == pytest.approx(report.manifest["spent_usd"])
    assert sum(per_arm.values()) > 1.9 * report.manifest["spent_usd"]
    assert paid["F_independent"] == pytest.approx(per_arm["F_independent"], rel=1e-6)
    assert paid["G_debate_r2"] == pytest.approx(per_arm["G_debate_r2"] - per_arm["G_debate_r1"], rel=1e-6)


def test_rounds_after_a_settled_one_cost_nothing_more(tmp_path: Path) -> None:
    report = run(tmp_path / "run", planned(), settles)
    each = {row["arm"]: row for row in report.predictions.filter(pl.col("item_id") == "item-01").to_dicts()}
    assert report.calls == 2 * 5 * 5
    assert each["G_debate_r4"]["cost_usd"] == each["G_debate_r2"]["cost_usd"] > each["G_debate_r1"]["cost_usd"]
    assert each["G_debate_r4"]["paid_usd"] == 0


def test_a_nested_run_again_is_the_same_without_a_call(tmp_path: Path) -> None:
    first = run(tmp_path / "run", planned())
    again = run(tmp_path / "run", planned())
    assert again.calls == 0
    assert again.predictions.equals(first.predictions)


def test_the_transcript_tells_the_shorter_courses_too(tmp_path: Path) -> None:
    report = run(tmp_path / "run", planned())
    told = json.loads((tmp_path / "run" / "transcripts" / "item-01.json").read_bytes())
    assert [*told["nested"]] == [*LEVELS][:-1]
    medians = report.predictions.filter((pl.col("aggregation") == "median") & (pl.col("item_id") == "item-01"))
    points = dict(medians.select("arm", "point").iter_rows())
    said = {arm: made["median"] for arm, made in told["nested"].items()} | {"G_debate_r4": told["aggregated"]["median"]}
    assert said == points
    assert {record.where.round for record in events_of(tmp_path / "run", TurnAccepted)} == {0, 1, 2, 3, 4}


def test_levels_have_the_labels_of_the_arms_that_they_are() -> None:
    plan = planned()
    assert (plan.arm, plan.levels) == (
        "G_debate_r1_r2_r4",
        {"F_independent": 0, "G_debate_r1": 1, "G_debate_r2": 2, "G_debate_r4": 4},
    )
    assert planned(rounds=(2,)).levels == {"G_debate_r2": 2}
    assert [*planned("G_fullview").levels] == ["G_fullview_r0", "G_fullview_r1", "G_fullview_r2", "G_fullview_r4"]


def test_a_panel_of_ones_own_stands_in_every_label_as_in_those_of_separate_runs(tmp_path: Path) -> None:
    file = tmp_path / "three.yaml"
    file.write_text("roles: [comparables, hedonic, skeptic]\n", encoding="utf-8")
    nested = planned(rounds=(1, 2), own=str(file))
    assert [*nested.levels] == ["F_independent.three", "G_debate.three_r1", "G_debate.three_r2"]
    alone = (planned("F_independent", (), own=str(file)), planned(rounds=(1,), own=str(file)))
    assert [*nested.levels][:2] == [plan.arm for plan in alone]


def test_labels_spell_nested_rounds_out() -> None:
    plan = planned()
    assert plan.make_protocol() == Debate(rounds=4, nested=ROUNDS)
    assert arm_label("G_debate", Debate(rounds=4, nested=(1, 4))) == "G_debate_r1_r4"
    assert plan.run_id != planned(rounds=(4,)).run_id


@pytest.mark.parametrize(
    ("arm", "rounds", "why"),
    [
        ("G_debate", (2, 1), "nested rounds 2, 1 do not increase"),
        ("G_debate", (1, 1), "nested rounds 1, 1 do not increase"),
        ("G_debate", (0, 1), "nested rounds 0, 1"),
        ("delphi", (1, 2), "protocol delphi has no nested rounds"),
        ("control_reask", (1, 2), "protocol reask has no nested rounds"),
        ("F_independent", (1, 2), "protocol independent has no rounds"),
        ("J_single_matched", (2,), "protocol single has no rounds"),
        ("control_closed_book", (2,), "protocol independent has no rounds"),
    ],
)
def test_rounds_that_cannot_be_nested_are_refused(arm: str, rounds: Any, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        planned(arm, rounds)


def test_a_course_is_cut_after_a_round_and_keeps_why_it_stopped_only_when_whole() -> None:
    course = Deliberation(tables=((), (), ()), stopped=Stopped("settled", 2))
    assert [course.after(number).rounds_run for number in (0, 1, 2, 9)] == [0, 1, 2, 2]
    assert [course.after(number).stopped is None for number in (0, 1, 2)] == [True, True, False]
    judged = Deliberation(tables=((),), verdicts=(), variants={"x": None})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="cannot be cut short"):
        judged.after(0)
