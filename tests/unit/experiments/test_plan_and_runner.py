from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.core.packet import Item
from consilience.core.role import Role
from consilience.errors import BudgetError, ConfigError, DataError, IntegrityError, LeakError, PlanError
from consilience.experiments.arms import load_budgets, treatment
from consilience.experiments.fingerprint import code_hashes, environment_hash, git_commit
from consilience.experiments.orders import Orders, Progress
from consilience.experiments.plan import Application, Choices, Plan, committee_models, exposure
from consilience.experiments.plan import make_plan as plan_an_arm
from consilience.experiments.recorded import recorded_items
from consilience.experiments.storage import write_json, write_whole
from consilience.journal.events import AttemptReserved, ItemFinished, ItemStarted, RunFinished, RunStarted, RunStopped
from consilience.journal.ledger import ledger_rows
from consilience.journal.reader import read_events
from consilience.models.prices import ModelSpec, load_catalogue
from consilience.models.request import Request
from consilience.models.scripted import Reply
from engine_cases import (
    INDEPENDENT,
    MODEL,
    QUICK,
    ROLES,
    carry_out,
    events_of,
    make_catalogue,
    make_item,
    make_items,
    make_plan,
    make_shell,
    panel,
)

ITEMS = make_items(2)
PLAN = make_plan(ITEMS)
CATALOGUE = load_catalogue()
TOY = Application(name="valuation", roles_for=lambda _panel, _seed: ROLES, reader=lambda _mind: {})


def choices(**changes: Any) -> Choices:
    values: dict[str, Any] = {
        "arm": "G_debate",
        "rounds": (),
        "committee": "mixed_random",
        "tier": "mid",
        "split": "validation",
        "seed": 7,
    }
    return Choices(**(values | changes))


def planned(**changes: Any) -> Plan:
    return plan_an_arm(TOY, ITEMS, choices(**changes), catalogue=CATALOGUE)


def test_a_run_leaves_all_it_should(tmp_path: Path) -> None:
    run = tmp_path / "deep" / "run"
    report = carry_out(run, PLAN, ITEMS, panel())
    assert {path.name for path in run.iterdir()} == {
        *("manifest.json", "protocol.json", "prices.json", "events-00001.jsonl", "predictions.parquet"),
        *("packets", "transcripts", "lock"),
    }
    assert sorted(path.stem for path in (run / "transcripts").iterdir()) == ["item-01", "item-02"]
    types = [record.event.type for record in read_events(run)]
    assert (types[0], types[-1]) == ("run.started", "run.finished")
    assert types.count("item.started") == types.count("item.finished") == 2
    assert types.count("turn.accepted") == types.count("attempt.response") == 30
    manifest = json.loads((run / "manifest.json").read_bytes())
    assert manifest == json.loads(json.dumps(report.manifest))
    assert (manifest["turns"]["answered"], manifest["items"]) == (30, {"answered": 2, "not_run": 0})
    spent = sum(row.cost_nano or 0 for row in ledger_rows(read_events(run)))
    assert (manifest["spent_usd"], manifest["max_spend_usd"]) == (spent / 1e9, None)
    assert manifest["journal_head"] == list(read_events(run))[-1].hash


def test_prediction_rows_hold_cost_and_payment(tmp_path: Path) -> None:
    report = carry_out(tmp_path / "run", PLAN, ITEMS, panel())
    one = report.predictions.unique("item_id")
    assert one["cost_usd"].sum() == pytest.approx(report.manifest["spent_usd"])
    assert one["paid_usd"].to_list() == one["cost_usd"].to_list()
    assert report.predictions["aggregation"].n_unique() * 2 == report.predictions.height
    assert pl.read_parquet(tmp_path / "run" / "predictions.parquet").equals(report.predictions)


def test_progress_is_told_after_every_turn_and_item(tmp_path: Path) -> None:
    told: list[Progress] = []
    report = carry_out(tmp_path / "run", PLAN, ITEMS, panel(), shell=make_shell(watch=told.append))
    assert len(told) == 30 + 2
    assert [one.turns for one in told] == sorted(one.turns for one in told)
    last = told[-1]
    assert (last.items_done, last.items_total, last.turns, last.failures, last.calls) == (2, 2, 30, 0, 30)
    assert last.tokens == sum(report.predictions.filter(pl.col("aggregation") == "median")["tokens"])


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_items_in_flight_are_limited_and_their_number_changes_no_result(tmp_path: Path, concurrency: int) -> None:
    items = make_items(5)
    plan = make_plan(items, protocol=INDEPENDENT)
    orders = Orders(limits=QUICK, concurrency=concurrency)
    report = carry_out(tmp_path / "run", plan, items, panel(), orders=orders)
    open_items = most = 0
    for record in events_of(tmp_path / "run", ItemStarted, ItemFinished):
        open_items += 1 if isinstance(record.event, ItemStarted) else -1
        most = max(most, open_items)
    assert most <= concurrency
    one = carry_out(tmp_path / "one", plan, items, panel(), orders=Orders(limits=QUICK, concurrency=1))
    assert report.predictions.equals(one.predictions)


def test_items_may_come_in_any_order(tmp_path: Path) -> None:
    straight = carry_out(tmp_path / "straight", PLAN, ITEMS, panel())
    turned = carry_out(tmp_path / "turned", make_plan(ITEMS[::-1]), ITEMS[::-1], panel())
    assert turned.predictions.equals(straight.predictions)
    assert make_plan(ITEMS[::-1]).run_id == PLAN.run_id


def test_a_leak_in_the_last_item_stops_before_the_first_call(tmp_path: Path) -> None:
    items = [*ITEMS, make_item(3, truth=412_345.0, notes=("It went for 412,345.",))]
    model = panel()
    with pytest.raises(LeakError, match="item-03"):
        carry_out(tmp_path / "run", make_plan(items), items, model)
    assert model.requests == []
    assert events_of(tmp_path / "run", AttemptReserved) == []


def test_an_error_of_ours_is_recorded_raised_and_stops_what_follows(tmp_path: Path) -> None:
    items = make_items(8)

    def broken(_: Request) -> Reply:
        return IntegrityError("the recorded run holds no call", hint="Look.")

    model = panel(broken)
    with pytest.raises(IntegrityError, match=r"seat analyst_0\d, .*role \w+: the recorded run holds no call"):
        carry_out(tmp_path / "run", make_plan(items), items, model, orders=Orders(limits=QUICK, concurrency=1))
    assert len(model.requests) <= 5
    (stopped,) = events_of(tmp_path / "run", RunStopped)
    assert isinstance(stopped.event, RunStopped)
    assert (stopped.event.reason, "holds no call" in stopped.event.message) == ("error", True)
    assert not (tmp_path / "run" / "predictions.parquet").exists()


def test_results_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "predictions.parquet").mkdir(parents=True)  # in the way
    with pytest.raises(DataError, match="cannot be written"):
        carry_out(run, PLAN, ITEMS, panel())
    (run / "predictions.parquet").rmdir()
    again = carry_out(run, PLAN, ITEMS, panel())
    assert again.stopped_by is None
    assert len(events_of(run, RunFinished)) == 1


def test_replayed_payments_stand_in_the_rows(tmp_path: Path) -> None:
    orders = Orders(limits=QUICK, paid_nano={"item-01": 5_000_000_000, "item-02": 0})
    report = carry_out(tmp_path / "run", PLAN, ITEMS, panel(), orders=orders)
    assert dict(report.predictions.select("item_id", "paid_usd").iter_rows()) == {"item-01": 5.0, "item-02": 0.0}


def test_the_run_starts_with_its_protocol(tmp_path: Path) -> None:
    carry_out(tmp_path / "run", PLAN, ITEMS, panel())
    protocol = json.loads((tmp_path / "run" / "protocol.json").read_bytes())
    (started,) = events_of(tmp_path / "run", RunStarted)
    assert isinstance(started.event, RunStarted)
    assert Plan.model_validate_json(json.dumps(protocol["plan"])) == PLAN
    assert protocol["code"] == code_hashes()
    assert protocol["models"][MODEL]["provider"] == "scripted"
    assert json.loads((tmp_path / "run" / "prices.json").read_bytes()) == protocol["prices"]


def test_a_plan_names_its_run_and_any_change_names_another() -> None:
    base = planned()
    assert base.run_id == planned().run_id
    assert base.run_id.startswith("_G_debate_r2-validation-")
    others = [
        planned(seed=8),
        planned(rounds=(4,)),
        planned(tier="small"),
        planned(committee="all_openai"),
        planned(arm="F_independent"),
        planned(split="test"),
        plan_an_arm(TOY, ITEMS[:1], choices(), catalogue=CATALOGUE),
    ]
    assert len({base.run_id, *(plan.run_id for plan in others)}) == len(others) + 1
    assert base.simulated
    assert planned(rounds=(1,)).arm == "G_debate_r1"
    assert base.make_protocol() == treatment("G_debate").make_protocol()


@pytest.mark.parametrize(
    ("changes", "error", "why"),
    [
        ({"arm": "G_debat"}, ConfigError, 'unknown arm "G_debat".*Did you mean "G_debate"'),
        ({"tier": "large"}, ConfigError, 'unknown tier "large"'),
        ({"committee": "all_google"}, ConfigError, 'unknown committee "all_google"'),
        ({"arm": "F_independent", "rounds": (2,)}, PlanError, "protocol independent has no rounds"),
        ({"rounds": (0,)}, PlanError, "0 rounds"),
        ({"rounds": (1_000_000,)}, PlanError, "a debate of 1000000 rounds is more than the 20"),
    ],
)
def test_what_cannot_work_is_refused_when_the_plan_is_made(changes: dict[str, Any], error: Any, why: str) -> None:
    with pytest.raises(error, match=why):
        planned(**changes)


def test_items_that_cannot_be_asked_are_refused_when_the_plan_is_made() -> None:
    with pytest.raises(PlanError, match="no items"):
        plan_an_arm(TOY, [], choices(), catalogue=CATALOGUE)
    with pytest.raises(PlanError, match="two items are called item-01"):
        plan_an_arm(TOY, [make_item(1), make_item(1)], choices(), catalogue=CATALOGUE)

    alike = [make_item(1), make_item(1)]
    upper = alike[1].model_dump() | {"question": alike[1].question.model_copy(update={"id": "ITEM-01"})}
    alike[1] = Item(**(upper | {"packet": alike[1].packet.model_copy(update={"item_id": "ITEM-01"})}))
    with pytest.raises(PlanError, match="differ only in case"):
        plan_an_arm(TOY, alike, choices(), catalogue=CATALOGUE)


def test_another_text_of_a_question_is_another_run_but_truth_and_strata_are_not_asked(tmp_path: Path) -> None:
    base = planned().run_id

    def run_id(**changes: Any) -> str:
        first = ITEMS[0].model_copy(update=changes)
        return plan_an_arm(TOY, [first, ITEMS[1]], choices(), catalogue=CATALOGUE).run_id

    other = ITEMS[0].question.model_copy(update={"text": "What would it fetch?"})
    unit = ITEMS[0].question.model_copy(update={"unit": "CAD"})
    assert len({base, run_id(question=other), run_id(question=unit)}) == 3
    assert run_id(truth=5.0, strata={"tier": "pilot"}, cluster="c") == base
    carry_out(tmp_path / "run", PLAN, ITEMS, panel())
    path = tmp_path / "run" / "packets" / "item-01.json"
    write_json(path, json.loads(path.read_bytes()) | {"question": other.model_dump(mode="json")})
    with pytest.raises(IntegrityError, match="is not the question and packet that were asked"):
        recorded_items(tmp_path / "run", PLAN)


def test_committees_draw_on_their_vendors_models() -> None:
    for committee, models in (
        ("mixed_random", ("claude-sonnet-5-5", "gpt-6.1-sol")),
        ("all_anthropic", ("claude-sonnet-5-5",)),
        ("gpt-6-luna", ("gpt-6-luna",)),
    ):
        assert committee_models(committee, tier="mid", catalogue=CATALOGUE) == models
    lonely = CATALOGUE.model_copy(update={"tiers": {"mid": ("gpt-6.1-sol",)}})
    with pytest.raises(PlanError, match="tier mid has no model of anthropic"):
        committee_models("all_anthropic", tier="mid", catalogue=lonely)


def test_a_mixed_committee_is_balanced_and_recorded(tmp_path: Path) -> None:
    items = make_items(6)
    names = ("m", "n")
    plan = make_plan(items, models=names, protocol=INDEPENDENT)
    carry_out(tmp_path / "run", plan, items, {name: panel(name=name) for name in names})
    drawn = []
    for item in items:
        transcript = json.loads((tmp_path / "run" / "transcripts" / f"{item.question.id}.json").read_bytes())
        assert [one["role"] for one in transcript["committee"]] == [role.id for role in ROLES]
        models = tuple(one["model"] for one in transcript["committee"])
        assert models == tuple(seat.model for seat in plan.seats(item.question.id))
        assert sorted((models.count("m"), models.count("n"))) == [2, 3]
        drawn.append(models)
    assert len(set(drawn)) > 1


@pytest.mark.parametrize(
    ("day", "cutoffs", "said"),
    [
        (date(2024, 1, 1), (date(2025, 1, 1),), "before"),
        (date(2025, 1, 1), (date(2025, 1, 1),), "before"),
        (date(2025, 1, 2), (date(2025, 1, 1),), "after"),
        (date(2025, 1, 2), (date(2025, 1, 1), date(2026, 1, 1)), "before"),
        (date(2025, 1, 2), (date(2025, 1, 1), None), "unknown"),
        (date(2024, 1, 1), (date(2025, 1, 1), None), "before"),
        (None, (date(2025, 1, 1),), "unknown"),
    ],
)
def test_exposure_compares_the_items_day_with_every_training_cutoff(day: Any, cutoffs: Any, said: str) -> None:
    specs = {f"m{n}": ModelSpec(provider="local", training_cutoff=cutoff) for n, cutoff in enumerate(cutoffs)}
    item = make_item(valuation_date=day, cutoff=date(2026, 1, 1), sections={})
    assert exposure(item, list(specs), specs) == said


def test_budgets_and_hashes_are_there() -> None:
    assert load_budgets().limits.attempts == 5
    assert load_budgets().limits.concurrency == 6
    assert all(len(digest) == 64 for digest in (*code_hashes().values(), environment_hash()))


def test_outside_a_checkout_the_commit_is_unknown(tmp_path: Path) -> None:
    assert git_commit(tmp_path) is None
    assert git_commit(tmp_path / "absent") is None


def test_files_are_put_in_place_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "a.json"
    write_json(path, {"b": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"b": float("nan")})

    def fill(target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match=r"a\.json cannot be written: No space left"):
        write_whole(path, fill)
    assert path.read_bytes() == b'{"b":1}\n'
    assert [one.name for one in path.parent.iterdir()] == ["a.json"]


def test_the_exit_code_of_a_cap_is_four() -> None:
    assert BudgetError("", hint="").exit_code == 4
    assert make_catalogue(("m",), price=None).spec("m").price is None


def test_seats_that_see_one_section_are_named_and_dropped_on_demand() -> None:
    narrow = Role(id="narrow", view=("P",), text="Judge the subject.")
    wide = Role(id="wide", view=("P", "C"), text="Compare.")
    app = Application(name="valuation", roles_for=lambda _panel, _seed: (narrow, wide), reader=lambda _mind: {})
    named = plan_an_arm(app, ITEMS, choices(arm="F_independent"), catalogue=CATALOGUE)
    assert (named.narrow, named.dropped) == (("narrow",), ())
    assert "narrow sees no more than one section of the evidence" in named.warnings()
    dropped = plan_an_arm(app, ITEMS, choices(arm="F_independent", drop_empty_seats=True), catalogue=CATALOGUE)
    assert ([role.id for role in dropped.roles], dropped.dropped) == (["wide"], ("narrow",))
    assert dropped.run_id != named.run_id
    blind = Application(name="valuation", roles_for=lambda _panel, _seed: (narrow,), reader=lambda _mind: {})
    with pytest.raises(PlanError, match="every seat would be dropped"):
        plan_an_arm(blind, ITEMS, choices(drop_empty_seats=True), catalogue=CATALOGUE)
