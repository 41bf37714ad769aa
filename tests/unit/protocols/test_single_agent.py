"""One agent sampled on one prompt, then criticised and refined by itself."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.core.outcomes import Outcome
from consilience.core.role import Role
from consilience.core.turn import Turn
from consilience.errors import FinalModelError, PlanError
from consilience.experiments.orders import RunReport
from consilience.journal.events import AttemptReserved
from consilience.models.base import plain_body
from consilience.models.request import Request
from consilience.models.scripted import Reply, Scripted
from consilience.protocols import Single
from engine_cases import answer_json, carry_out, events_of, make_item, make_plan, panel, read, reply
from protocol_cases import LOST, answered, critic, deliberate, seated, turns_of

SAMPLES = 5
ALONE = (Role(id="generalist", view=("all",), text="Judge everything."),)
NUMBERS = ("point", "q05", "q25", "q50", "q75", "q95")
POINTS = (300_000, 420_000, 310_000, 305_000, 360_000)
REFINED = 333_000
ANSWERS: dict[str, tuple[dict[str, Any], ...]] = {
    "estimate": tuple({"point": point, "reasoning_summary": f"mark-{n}"} for n, point in enumerate(POINTS)),
    "probability": tuple({"p_yes": p} for p in (0.1, 0.2, 0.4, 0.5, 0.9)),
    "choice": tuple({"choice": f"o{n}"} for n in (0, 1, 1, 2, 1)),
    "distribution": ({},) * SAMPLES,
}


def task_of(request: Request) -> str:
    return read(request).task.split()[0]


def speak(request: Request) -> Reply:
    kind = read(request).kind
    task = task_of(request)
    if task == "estimate":
        return reply(answer=answer_json(kind, **ANSWERS[kind][request.replicate % 1_000]))
    if task == "self_critique":
        return reply(critiques=[entry("analyst_01")])
    return reply(answer=answer_json(kind, **({"point": REFINED} if kind == "estimate" else {})))


def entry(target: str) -> dict[str, Any]:
    points = ["Comparable C02 is nearer."]
    return {"target_role": target, "agrees": False, "points": points, "evidence_ids": ["C02"], "suggested_value": 9.0}


def sampled(
    folder: Path, say: Callable[[Request], Reply] = speak, *, kind: str = "estimate", **changes: Any
) -> tuple[RunReport, Scripted]:
    item, model = make_item(kind=kind), panel(say)
    plan = make_plan([item], protocol={"single": {"samples": SAMPLES}}, roles=ALONE, **changes)
    return carry_out(folder, plan, [item], model), model


def row(report: RunReport, rule: str) -> dict[str, Any]:
    (found,) = report.predictions.filter(pl.col("aggregation") == rule).to_dicts()
    return found


def lost_at(task: str, replicate: int = 0) -> Callable[[Request], Reply]:
    def say(request: Request) -> Reply:
        if (task_of(request), request.replicate) == (task, replicate):
            return FinalModelError("gone", hint="Stop.", status=404)
        return speak(request)

    return say


def test_samples_are_one_prompt_told_apart_by_their_replicate_alone(tmp_path: Path) -> None:
    report, model = sampled(tmp_path / "run")
    asked = [request for request in model.requests if task_of(request) == "estimate"]
    assert len({json.dumps(plain_body(request)) for request in asked}) == 1
    assert sorted(request.replicate for request in asked) == list(range(SAMPLES))
    events = [record.event for record in events_of(tmp_path / "run", AttemptReserved)]
    keys = [event.key for event in events if isinstance(event, AttemptReserved)]
    assert len(set(keys)) == len(keys) == report.calls == SAMPLES + 2


def test_a_repetition_asks_the_same_prompts_under_keys_of_its_own(tmp_path: Path) -> None:
    _, first = sampled(tmp_path / "first")
    _, again = sampled(tmp_path / "again", replicate=1)
    assert [plain_body(request) for request in again.requests] == [plain_body(request) for request in first.requests]
    assert [request.replicate for request in again.requests] == [1_000 + one.replicate for one in first.requests]
    plans = [make_plan([make_item()], replicate=replicate) for replicate in (0, 1)]
    assert plans[0].run_id != plans[1].run_id


def test_the_critique_is_of_the_first_sample_and_by_itself_alone(tmp_path: Path) -> None:
    _, model = sampled(tmp_path / "run")
    (critique,) = [read(request) for request in model.requests if task_of(request) == "self_critique"]
    (refine,) = [read(request) for request in model.requests if task_of(request) == "self_refine"]
    for prompt in (critique, refine):
        assert prompt.committee is None
        assert prompt.own_answer is not None
        assert (prompt.own_answer["point"], prompt.own_answer["reasoning"]) == (POINTS[0], "mark-0")
    assert critique.critiques == ()
    said = {name: value for name, value in entry("analyst_01").items() if name != "target_role"}
    assert refine.critiques == ({**said, "suggested_value": 9},)
    bytes_after = json.dumps([plain_body(request) for request in model.requests if task_of(request) != "estimate"])
    assert not [number for number in range(1, SAMPLES) if f"mark-{number}" in bytes_after]


@pytest.mark.parametrize("target", ["analyst_02", "sample_001", "generalist"])
def test_a_self_critique_of_anybody_else_is_refused(tmp_path: Path, target: str) -> None:
    def say(request: Request) -> Reply:
        return reply(critiques=[entry(target)]) if task_of(request) == "self_critique" else speak(request)

    report, model = sampled(tmp_path / "run", say)
    assert not [request for request in model.requests if task_of(request) == "self_refine"]
    refined = row(report, "self_refine")
    assert (refined["status"], refined["point"], refined["n_answered"], refined["n_seats"]) == (
        "unreadable",
        None,
        0,
        1,
    )
    assert row(report, "samples_median")["status"] == "answered"


def test_rows_over_samples_are_what_the_plain_rules_give(tmp_path: Path) -> None:
    report, _ = sampled(tmp_path / "run")
    for rule in ("mean", "median"):
        plain, named = row(report, rule), row(report, f"samples_{rule}")
        assert plain | {"aggregation": named["aggregation"]} == named
        assert (named["n_answered"], named["n_seats"]) == (SAMPLES, SAMPLES)
    assert row(report, "samples_median")["point"] == pytest.approx(statistics.median(POINTS))
    logs = [math.log(point) for point in POINTS]
    assert row(report, "samples_mean")["point"] == pytest.approx(math.exp(statistics.fmean(logs)))
    refined = row(report, "self_refine")
    whole = answer_json(point=REFINED)
    assert [refined[name] for name in NUMBERS] == pytest.approx([whole[name] for name in NUMBERS])
    assert (refined["status"], refined["n_answered"], refined["n_seats"]) == ("answered", 1, 1)
    assert refined["cost_usd"] == pytest.approx(report.manifest["spent_usd"])


@pytest.mark.parametrize(
    ("kind", "rules"),
    [
        ("probability", {"samples_mean", "samples_median"}),
        ("distribution", {"samples_linear_pool"}),
        ("choice", {"samples_plurality"}),
    ],
)
def test_every_kind_has_its_rows(tmp_path: Path, kind: str, rules: set[str]) -> None:
    report, _ = sampled(tmp_path / "run", kind=kind)
    frame = report.predictions
    assert {rule for rule in frame["aggregation"] if "sample" in rule} == rules
    assert row(report, "self_refine")["status"] == "answered"
    for rule in rules:
        plain = row(report, rule.removeprefix("samples_"))
        assert row(report, rule) == plain | {"aggregation": rule}


def test_a_failed_first_sample_leaves_the_refined_row_without_answer(tmp_path: Path) -> None:
    report, model = sampled(tmp_path / "run", lost_at("estimate"))
    assert {task_of(request) for request in model.requests} == {"estimate"}
    refined = row(report, "self_refine")
    assert (refined["status"], refined["point"], refined["n_answered"]) == ("failed", None, 0)
    median = row(report, "samples_median")
    assert (median["status"], median["n_answered"], median["n_seats"]) == ("answered", SAMPLES - 1, SAMPLES)
    assert median["point"] == pytest.approx(math.sqrt(310_000 * 360_000))


@pytest.mark.parametrize("task", ["self_critique", "self_refine"])
def test_a_failed_step_leaves_the_samples(tmp_path: Path, task: str) -> None:
    report, _ = sampled(tmp_path / "run", lost_at(task))
    assert (row(report, "self_refine")["status"], row(report, "self_refine")["point"]) == ("failed", None)
    assert row(report, "samples_median")["n_answered"] == SAMPLES


def test_another_failed_sample_is_one_answer_fewer(tmp_path: Path) -> None:
    report, _ = sampled(tmp_path / "run", lost_at("estimate", 1))
    assert (row(report, "samples_median")["n_answered"], row(report, "self_refine")["point"]) == (4, REFINED)


def test_without_most_of_the_samples_there_is_no_answer_over_them(tmp_path: Path) -> None:
    def say(request: Request) -> Reply:
        lost = task_of(request) == "estimate" and request.replicate > 1
        return FinalModelError("gone", hint="Stop.", status=404) if lost else speak(request)

    report, _ = sampled(tmp_path / "run", say)
    assert (row(report, "samples_median")["status"], row(report, "samples_median")["point"]) == ("no_quorum", None)
    assert row(report, "self_refine")["point"] == REFINED


def test_samples_alone_are_not_refined() -> None:
    def say(_: str, turn: Turn) -> Outcome:
        return critic("analyst_01") if turn.yields == "critiques" else answered()

    course, session = deliberate(Single(samples=3, refine=False), say, seats=1)
    assert (course.sampled, dict(course.variants), len(session.asked)) == (True, {}, 1)
    assert session.turns() == turns_of(Single(samples=3, refine=False).plan(seated(1)))
    assert [standing.seat for standing in course.final] == ["sample_001", "sample_002", "sample_003"]
    course, session = deliberate(Single(samples=3), say, seats=1)
    assert [len(stage) for stage in session.asked] == [3, 1, 1]
    assert course.variants["self_refine"].answered_round == 1


def test_a_lost_sample_is_told_in_its_place() -> None:
    course, _ = deliberate(Single(samples=2), lambda _, turn: answered() if turn.sample else LOST, seats=1)
    assert [standing.answer is None for standing in course.final] == [True, False]
    assert course.variants["self_refine"].outcome == LOST


@pytest.mark.parametrize("samples", [0, -1, 1_001])
def test_a_number_of_samples_out_of_range_is_refused(samples: int) -> None:
    with pytest.raises(PlanError, match=f"{samples} samples of a single agent"):
        Single(samples=samples)
