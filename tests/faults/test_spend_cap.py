from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from consilience.errors import BudgetError, PlanError
from consilience.experiments.orders import Orders
from consilience.journal.events import AttemptReserved, AttemptResponse, RunStopped
from consilience.journal.verify import verify
from consilience.models.request import Completion, Request, Usage
from consilience.models.scripted import completion
from engine_cases import (
    CENT,
    INDEPENDENT,
    MODEL,
    PENNY,
    QUICK,
    ROLES,
    answer_json,
    carry_out,
    events_of,
    make_items,
    make_plan,
    money_by_record,
    panel,
    reply,
)

ITEMS = make_items(48)
ONE_TURN = make_plan(ITEMS, protocol=INDEPENDENT, roles=ROLES[:1])
CAP = 5 * CENT


def one_cent(request: Request) -> Completion:
    """Answer at exactly what was reserved: the whole output limit."""
    return completion(request, reply(answer=answer_json()), usage=Usage(1_000, 0, 0, 0, 2_000, 0))


@pytest.mark.parametrize("concurrency", [1, 4, 48])
def test_a_cap_of_five_cents_pays_exactly_five_calls_of_one_cent(tmp_path: Path, concurrency: int) -> None:
    model = panel(one_cent)
    limits = replace(QUICK, concurrency=48)
    orders = Orders(max_spend_nano=CAP, concurrency=concurrency, limits=limits)
    report = carry_out(tmp_path / "run", ONE_TURN, ITEMS, model, orders=orders, price=PENNY)
    assert len(model.requests) == report.calls == 5
    assert {record.event.reserved_nano for record in events_of(tmp_path / "run", AttemptReserved)} == {CENT}  # type: ignore[union-attr]
    assert {record.event.cost_nano for record in events_of(tmp_path / "run", AttemptResponse)} == {CENT}  # type: ignore[union-attr]
    assert max(spent + reserved for spent, reserved in money_by_record(events_of(tmp_path / "run"))) == CAP
    assert isinstance(report.stopped_by, BudgetError)
    assert report.stopped_by.exit_code == 4
    assert "spend cap reached: $0.05 of $0.05 spent" in str(report.stopped_by)
    assert "Raise the cap and run the same command again; what was answered is kept." in str(report.stopped_by)
    assert (report.manifest["spend_cap_hit"], report.manifest["spent_usd"]) == (True, 0.05)
    assert report.manifest["items"] == {"answered": 5, "not_run": 43}
    assert report.predictions["item_id"].n_unique() == 5
    assert [record.event.reason for record in events_of(tmp_path / "run", RunStopped)] == ["spend_cap"]  # type: ignore[union-attr]


def test_the_rest_is_resumed_under_a_larger_cap(tmp_path: Path) -> None:
    run = tmp_path / "run"
    carry_out(run, ONE_TURN, ITEMS, panel(one_cent), orders=Orders(max_spend_nano=CAP, limits=QUICK), price=PENNY)
    same_cap = carry_out(
        run, ONE_TURN, ITEMS, panel(one_cent), orders=Orders(max_spend_nano=CAP, limits=QUICK), price=PENNY
    )
    assert (same_cap.calls, type(same_cap.stopped_by)) == (0, BudgetError)
    assert same_cap.manifest["items"] == {"answered": 5, "not_run": 43}
    larger = Orders(max_spend_nano=48 * CENT, limits=QUICK)
    rest = carry_out(run, ONE_TURN, ITEMS, panel(one_cent), orders=larger, price=PENNY)
    assert (rest.calls, rest.stopped_by) == (43, None)
    assert rest.manifest["items"] == {"answered": 48, "not_run": 0}
    assert rest.manifest["spent_usd"] == 0.48
    assert verify(run).finished


def test_a_cap_of_zero_means_zero(tmp_path: Path) -> None:
    model = panel(one_cent)
    report = carry_out(
        tmp_path / "run", ONE_TURN, ITEMS, model, orders=Orders(max_spend_nano=0, limits=QUICK), price=PENNY
    )
    assert (model.requests, type(report.stopped_by), report.predictions.height) == ([], BudgetError, 0)


def test_free_models_run_under_a_cap_of_zero(tmp_path: Path) -> None:
    report = carry_out(
        tmp_path / "run", ONE_TURN, ITEMS, panel(one_cent), orders=Orders(max_spend_nano=0, limits=QUICK), price="free"
    )
    assert (report.calls, report.stopped_by, report.manifest["spent_usd"]) == (48, None, 0.0)


def test_a_cap_over_a_model_without_a_price_refuses_to_start(tmp_path: Path) -> None:
    model = panel(one_cent)
    with pytest.raises(PlanError, match=r"no price is known of m, so no spend cap can hold"):
        carry_out(tmp_path / "run", ONE_TURN, ITEMS, model, orders=Orders(max_spend_nano=10**12), price=None)
    assert model.requests == []
    assert not (tmp_path / "run").exists()


def test_without_a_price_cost_is_unknown_not_zero(tmp_path: Path) -> None:
    report = carry_out(tmp_path / "run", ONE_TURN, ITEMS, panel(one_cent), price=None)
    assert report.calls == 48
    assert report.predictions["cost_usd"].null_count() == report.predictions.height
    assert report.predictions["paid_usd"].null_count() == report.predictions.height
    assert {record.event.cost_nano for record in events_of(tmp_path / "run", AttemptResponse)} == {None}  # type: ignore[union-attr]


def test_a_charge_above_the_reservation_is_recorded_as_it_is_and_stops_the_run(tmp_path: Path) -> None:
    def dear(request: Request) -> Completion:
        return completion(request, reply(answer=answer_json()), usage=Usage(0, 0, 0, 0, 12_000, 0))

    model = panel(dear)
    orders = Orders(max_spend_nano=CAP, concurrency=1, limits=QUICK)
    report = carry_out(tmp_path / "run", ONE_TURN, ITEMS, model, orders=orders, price=PENNY)
    assert (len(model.requests), report.manifest["spent_usd"]) == (1, 0.06)
    assert isinstance(report.stopped_by, BudgetError)


def test_a_model_that_is_not_in_the_run_is_named(tmp_path: Path) -> None:
    plan = make_plan(ITEMS, models=(MODEL, "n"))
    with pytest.raises(PlanError, match=r'asks model "n", which is not there. Known: m'):
        carry_out(tmp_path / "run", plan, ITEMS, panel(one_cent))
    assert not (tmp_path / "run").exists()
