"""One agent matched in cost to a panel, through the engine: how often it is asked, what is left over, and resuming."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.core.role import Role
from consilience.errors import ConfigError, FinalModelError, IntegrityError, PlanError, StoppedError
from consilience.experiments.matching import Match, SampleCost, check_match, match_of, share_out
from consilience.experiments.orders import Orders, RunReport
from consilience.experiments.predictions import write_predictions
from consilience.journal.events import RunFinished
from consilience.models.calls import Stop
from consilience.models.request import Request
from consilience.models.scripted import Reply, Scripted
from consilience.protocols import Debate, Single
from consilience.protocols.single import MOST_SAMPLES
from engine_cases import (
    QUICK,
    answer_json,
    carry_out,
    events_of,
    make_items,
    make_plan,
    make_shell,
    panel,
    read,
    reply,
    speak,
)

ITEMS = make_items(3)
IDS = [item.question.id for item in ITEMS]
ALONE = (Role(id="generalist", view=("all",), text="Judge everything."),)
SINGLE = {"single": {"samples": 12, "refine": True}}
FREE = ("latency_s", "paid_usd")


def number_of(request: Request) -> int:
    return int(read(request).view["P"][0]["floor_area_m2"]) - 100


def talk(request: Request) -> Reply:
    """Answer at a length, and so at a cost, that depends on the item."""
    task = read(request).task
    words = "So. " * (40 * number_of(request))
    if task.startswith("self_critique"):
        entry = {"target_role": "analyst_01", "agrees": True, "points": [], "evidence_ids": [], "suggested_value": None}
        return reply(critiques=[entry])
    point = 300_000 + 1_000 * request.replicate
    return reply(answer=answer_json(point=point, reasoning_summary=words))


def matched(
    folder: Path, match: Match, say: Callable[[Request], Reply] = talk, **changes: Any
) -> tuple[RunReport, Scripted]:
    model = panel(say)
    plan = make_plan(ITEMS, protocol=SINGLE, roles=ALONE, match=match)
    return carry_out(folder, plan, ITEMS, model, **changes), model


def tokens(amount: int) -> Match:
    return match_of(f"tokens:{amount}", IDS, run_folder=Path)


def turns(folder: Path, item: str) -> dict[str, int]:
    """Return how often an item was asked what, by its transcript."""
    told = json.loads((folder / "transcripts" / f"{item}.json").read_bytes())
    kinds = [turn["kind"] for turn in told["turns"]]
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


def of_items(report: RunReport, column: str) -> dict[str, Any]:
    return dict(report.predictions.unique("item_id").select("item_id", column).iter_rows())


def test_so_many_samples_are_taken_as_the_tokens_bear_and_the_rest_is_told(tmp_path: Path) -> None:
    allowed = 9_000
    report, model = matched(tmp_path / "run", tokens(allowed))
    took = of_items(report, "tokens")
    told = report.manifest["match"]
    assert (told["unit"], told["source"], told["items"]) == ("tokens", f"tokens:{allowed}", 3)
    assert (told["allowed"], told["taken"]) == (3 * allowed, sum(took.values()))
    assert told["residual"] == told["allowed"] - told["taken"]
    assert (told["refined"], told["capped_items"]) == (3, [])
    asked = [turns(tmp_path / "run", item) for item in IDS]
    assert [(one["self_critique"], one["self_refine"]) for one in asked] == [(1, 1)] * 3
    samples = [one["estimate"] for one in asked]
    assert told["samples"] == [min(samples), max(samples)]
    assert samples == sorted(samples, reverse=True)  # later items speak longer here
    assert samples[0] > samples[-1] > 2
    assert len(model.requests) == report.calls == sum(samples) + 2 * 3
    assert report.manifest["turns"]["answered"] == report.calls
    assert abs(told["residual"]) < 2 * took["item-03"] / samples[-1]
    (finished,) = events_of(tmp_path / "run", RunFinished)
    assert isinstance(finished.event, RunFinished)
    assert finished.event.counts["match"] == told


def test_the_number_of_samples_is_what_the_first_ones_let_expect(tmp_path: Path) -> None:
    match = tokens(9_000)
    matched(tmp_path / "run", match)
    costs = {}
    for item in IDS:
        told = json.loads((tmp_path / "run" / "transcripts" / f"{item}.json").read_bytes())
        first, second = (sum(turn["asks"][0]["tokens"].values()) for turn in told["turns"][:2])
        costs[item] = SampleCost(first, second)
    expected = share_out(match, costs, Single(samples=12))
    assert [turns(tmp_path / "run", item)["estimate"] for item in IDS] == [
        expected[item].protocol.samples for item in IDS
    ]


def test_a_run_is_matched_item_by_item_in_money(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    debate = carry_out(runs / "debate", make_plan(ITEMS), ITEMS, panel())
    match = match_of("debate", IDS, run_folder=lambda name: runs / name)
    costs = of_items(debate, "cost_usd")
    assert (match.unit, match.source, match.label) == ("usd", "debate", "test")
    assert match.allowance == {item: round(cost * 1e9) for item, cost in costs.items()}
    report, _ = matched(tmp_path / "single", match)
    told = report.manifest["match"]
    assert told["allowed"] == pytest.approx(debate.manifest["spent_usd"])
    assert told["taken"] == pytest.approx(report.manifest["spent_usd"])
    assert told["residual"] == pytest.approx(told["allowed"] - told["taken"])
    per_turn = report.manifest["spent_usd"] / report.calls
    assert abs(told["residual"]) < 2 * per_turn
    assert report.calls > 3 * 4


def test_of_nested_rounds_the_whole_course_is_matched(tmp_path: Path) -> None:
    nested = {"debate": {"rounds": 2, "settled_change": 0.0, "nested": [1, 2]}}
    debate = carry_out(tmp_path / "nested", make_plan(ITEMS, protocol=nested), ITEMS, panel())
    match = match_of("nested", IDS, run_folder=lambda name: tmp_path / name)
    assert match.label == "test_r2"
    assert sum(match.allowance.values()) / 1e9 == pytest.approx(debate.manifest["spent_usd"])


def test_too_little_for_one_sample_is_one_sample_all_the_same(tmp_path: Path) -> None:
    report, _ = matched(tmp_path / "run", tokens(1))
    assert [turns(tmp_path / "run", item) for item in IDS] == [{"estimate": 1}] * 3
    told = report.manifest["match"]
    assert (told["samples"], told["refined"]) == ([1, 1], 0)
    assert told["residual"] == 3 - told["taken"] < 0


def test_an_item_whose_first_sample_fails_is_asked_like_the_others(tmp_path: Path) -> None:
    def say(request: Request) -> Reply:
        if number_of(request) == 2 and request.replicate == 0:
            return FinalModelError("gone", hint="Stop.", status=404)
        return talk(request)

    report, _ = matched(tmp_path / "run", tokens(9_000), say)
    assert turns(tmp_path / "run", "item-02")["estimate"] > 2
    frame = report.predictions.filter(pl.col("item_id") == "item-02")
    by_rule = {row["aggregation"]: row for row in frame.to_dicts()}
    assert by_rule["self_refine"]["status"] == "failed"
    assert by_rule["samples_median"]["n_answered"] == by_rule["samples_median"]["n_seats"] - 1
    assert report.manifest["turns"]["failed"] == 1


def test_where_all_first_samples_fail_one_is_all_there_is(tmp_path: Path) -> None:
    report, _ = matched(tmp_path / "run", tokens(9_000), lambda _: FinalModelError("gone", hint="Stop.", status=404))
    assert report.calls == 3
    by_rule = dict(report.predictions.select("aggregation", "status").iter_rows())
    assert by_rule.pop("self_refine") == "not_asked"
    assert set(by_rule.values()) == {"failed"}
    assert report.manifest["match"]["samples"] == [1, 1]


STOPS = [1, 2, 3, 4, 6, 9, 15, 22]


@pytest.mark.parametrize("at", STOPS)
def test_a_matched_run_that_was_stopped_goes_on_to_the_same_rows(tmp_path: Path, at: int) -> None:
    match = tokens(9_000)
    whole, asked = matched(tmp_path / "whole", match)
    stop, calls = Stop(), [0]

    def stopping(request: Request) -> Reply:
        calls[0] += 1
        stop.requested = stop.requested or calls[0] == at
        return talk(request)

    one = Orders(limits=QUICK, concurrency=1)
    first, _ = matched(tmp_path / "run", match, stopping, shell=make_shell(stop=stop), orders=one)
    assert isinstance(first.stopped_by, StoppedError)
    rest, _ = matched(tmp_path / "run", match)
    assert first.calls + rest.calls == len(asked.requests)
    assert rest.predictions.drop(FREE).equals(whole.predictions.drop(FREE))
    assert rest.manifest["match"] == whole.manifest["match"]
    assert rest.manifest["spent_usd"] == whole.manifest["spent_usd"]
    assert rest.manifest["turns"] == whole.manifest["turns"]


def test_a_finished_matched_run_again_calls_nobody_and_tells_the_same(tmp_path: Path) -> None:
    first, _ = matched(tmp_path / "run", tokens(9_000))
    again, model = matched(tmp_path / "run", tokens(9_000))
    assert (again.calls, model.requests) == (0, [])
    assert again.predictions.equals(first.predictions)
    assert again.manifest == first.manifest


def test_another_allowance_is_another_run() -> None:
    plans = [make_plan(ITEMS, protocol=SINGLE, roles=ALONE, match=match) for match in (None, tokens(9), tokens(10))]
    assert len({plan.run_id for plan in plans}) == 3


# What is refused


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tokens:0", "allows nothing"),
        ("tokens:1.5", "1.5 is no number of tokens"),
        ("tokens:-3", "-3 is no number of tokens"),
        ("usd:0", "--match usd"),
        ("usd:cheap", "--match usd"),
    ],
)
def test_amounts_that_are_none_are_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        match_of(text, IDS, run_folder=Path)


def test_a_run_that_lacks_an_item_or_a_cost_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    report = carry_out(folder, make_plan(ITEMS[:2]), ITEMS[:2], panel(speak))
    with pytest.raises(PlanError, match=r"item item-03 is not among its items.*if run was stopped, finish it first"):
        match_of("run", IDS, run_folder=lambda name: tmp_path / name)
    carry_out(tmp_path / "unpriced", make_plan(ITEMS[:2]), ITEMS[:2], panel(speak), price=None)
    with pytest.raises(PlanError, match="item item-01 has an unknown cost there"):
        match_of("unpriced", IDS[:2], run_folder=lambda name: tmp_path / name)
    dearer = report.predictions.with_columns(pl.col("cost_usd") * 3)
    write_predictions(dearer, folder / "predictions.parquet")
    with pytest.raises(IntegrityError, match=r"predictions\.parquet"):
        match_of("run", IDS[:2], run_folder=lambda name: tmp_path / name)


def test_samples_that_cost_nothing_match_no_price(tmp_path: Path) -> None:
    match = Match(unit="usd", source="usd:1", label="usd1", allowance=dict.fromkeys(IDS, 10**9))
    with pytest.raises(PlanError, match="samples cost nothing, so no number of them matches a price"):
        matched(tmp_path / "run", match, price="free")


def test_only_a_single_agent_is_matched() -> None:
    with pytest.raises(PlanError, match="protocol debate takes the turns it declares"):
        check_match(tokens(9), Debate(), IDS)
    with pytest.raises(PlanError, match="allows nothing for item item-09"):
        check_match(tokens(9), Single(), [*IDS, "item-09"])


def test_more_samples_than_are_allowed_are_cut_and_told() -> None:
    made = share_out(tokens(10**7), {item: SampleCost(10, 10) for item in IDS}, Single())
    assert {(one.protocol.samples, one.capped) for one in made.values()} == {(MOST_SAMPLES, True)}


def test_a_first_sample_that_fills_a_cache_is_told_apart_from_those_that_read_it() -> None:
    match = Match(unit="tokens", source="tokens:100", label="tokens100", allowance={"a": 100})
    made = share_out(match, {"a": SampleCost(40, 10)}, Single(refine=False))
    assert made["a"].protocol.samples == 1 + 6
    made = share_out(match, {"a": SampleCost(40, 10)}, Single())
    assert (made["a"].protocol.samples, made["a"].protocol.refine) == (1 + 4, True)


def test_a_run_without_results_is_to_be_finished_first(tmp_path: Path) -> None:
    folder = tmp_path / "begun"
    stop = Stop()
    stop.requested = True
    carry_out(folder, make_plan(ITEMS), ITEMS, panel(speak), shell=make_shell(stop=stop))
    for name in ("predictions.parquet", "manifest.json"):
        (folder / name).unlink()
    with pytest.raises(PlanError, match=r"--match begun: that run has no results yet. Finish begun first"):
        match_of("begun", IDS, run_folder=lambda name: tmp_path / name)
