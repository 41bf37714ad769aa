"""The spend cap over real HTTP, with 64 calls at once and faults at three in ten."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapter_cases import ANTHROPIC, HONOURED, OPENAI, PATIENCE, VENDORS, Adapter, reserved_on_disk, run_live
from consilience.errors import BudgetError
from consilience.experiments.orders import Orders
from consilience.fakes.calls import Call
from consilience.fakes.faults import Fault, status
from consilience.fakes.hits import Hit
from consilience.fakes.server import FakeServer, running_fake
from consilience.fakes.settings import Settings
from consilience.journal.verify import verify
from engine_cases import (
    CENT,
    INDEPENDENT,
    LIST_PRICE,
    PENNY,
    ROLES,
    answer_json,
    events_of,
    make_items,
    make_plan,
    money_by_record,
    reply,
)

AT_ONCE = 64
ITEMS = make_items(AT_ONCE)
PLAN = make_plan(ITEMS, protocol=INDEPENDENT, roles=ROLES[:1])
GOOD = reply(answer=answer_json())
TO_THE_CENT = Settings(reasoning_tokens=PLAN.max_output_tokens - len(GOOD) // 4)
"""Every answer takes the whole output limit, so that it costs what was reserved: one cent."""
SHORT = Settings(reasoning_tokens=0)
LIMITS = replace(PATIENCE, concurrency=AT_ONCE)
FREE = (429, 500, 529)
"""Statuses that cost nothing; a call without one may have been billed and is charged as reserved."""


def say(_: Call) -> str:
    return GOOD


class Storm:
    """Three calls in ten go wrong: some before they are billed, some perhaps after."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - draws faults, guards nothing

    def __call__(self, hit: Hit) -> Fault | None:
        if self._chance.random() >= 0.3 or hit.call_index is None:
            return None
        return self._chance.choice([*(status(code) for code in FREE), Fault("drop"), Fault("error_body")])


@pytest.fixture(scope="module")
def running() -> Iterator[FakeServer]:
    with running_fake() as server:
        yield server


def charged_hits(fake: FakeServer) -> int:
    return sum(1 for hit in fake.calls() if hit.status == 200)


@pytest.mark.parametrize("adapter", VENDORS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("cents", [5, 20, AT_ONCE])
def test_a_cap_pays_exactly_its_calls_whatever_goes_wrong(
    adapter: Adapter, cents: int, running: FakeServer, tmp_path: Path
) -> None:
    running.reset(Storm(cents), say, settings=replace(TO_THE_CENT, latency_s=0.4 if cents == AT_ONCE else 0.0))
    run = tmp_path / "run"
    orders = Orders(max_spend_nano=cents * CENT, concurrency=AT_ONCE)
    report = run_live(adapter, running, run, plan=PLAN, items=ITEMS, limits=LIMITS, price=PENNY, orders=orders)
    money = money_by_record(events_of(run))
    assert max(spent + reserved for spent, reserved in money) == cents * CENT
    assert money[-1] == (cents * CENT, 0)
    assert cents < AT_ONCE or max(reserved for _, reserved in money) == AT_ONCE * CENT  # all of them at once
    assert charged_hits(running) == cents
    assert isinstance(report.stopped_by, BudgetError)
    assert (report.manifest["spend_cap_hit"], report.manifest["spent_usd"]) == (True, cents / 100)
    answered = report.manifest["items"]["answered"]
    assert 0 < answered <= cents
    assert sum(report.manifest["items"].values()) == AT_ONCE
    check_record(running, run, calls=report.calls)


def check_record(fake: FakeServer, run: Path, *, calls: int) -> None:
    """Every call that came was reserved, and nothing else was."""
    came = Counter(json.dumps(hit.json, sort_keys=True) for hit in fake.calls())
    reserved = {json.dumps(json.loads(body), sort_keys=True): count for body, count in reserved_on_disk(run).items()}
    assert (calls, dict(came)) == (len(fake.calls()), reserved)
    assert verify(run).records > 0


@pytest.mark.parametrize("adapter", [ANTHROPIC, OPENAI, HONOURED], ids=lambda adapter: adapter.name)
def test_calls_that_cost_less_than_reserved_let_others_follow_and_never_pass_the_cap(
    adapter: Adapter, running: FakeServer, tmp_path: Path
) -> None:
    """The rest of every reservation is free again once the bill is known."""
    running.reset(Storm(7), say, settings=SHORT)
    run, cap = tmp_path / "run", 300_000_000  # a dozen reservations at list price
    orders = Orders(max_spend_nano=cap, concurrency=AT_ONCE)
    report = run_live(adapter, running, run, plan=PLAN, items=ITEMS, limits=LIMITS, price=LIST_PRICE, orders=orders)
    money = money_by_record(events_of(run))
    assert all(spent + reserved <= cap for spent, reserved in money)
    assert money[-1][0] <= cap
    assert money[-1][1] == 0
    assert report.manifest["spent_usd"] == pytest.approx(money[-1][0] / 1e9)
    check_record(running, run, calls=report.calls)
    before = len(running.calls())
    more = Orders(max_spend_nano=100 * cap, concurrency=AT_ONCE)
    rest = run_live(adapter, running, run, plan=PLAN, items=ITEMS, limits=LIMITS, price=LIST_PRICE, orders=more)
    assert rest.stopped_by is None
    assert rest.manifest["items"]["not_run"] == 0
    check_record(running, run, calls=before + rest.calls)
    again = run_live(adapter, running, run, plan=PLAN, items=ITEMS, limits=LIMITS, price=LIST_PRICE, orders=more)
    assert (again.calls, len(running.calls())) == (0, before + rest.calls)


def test_a_cap_of_zero_lets_nothing_leave(running: FakeServer, tmp_path: Path) -> None:
    running.reset(Storm(0), say, settings=TO_THE_CENT)
    orders = Orders(max_spend_nano=0, concurrency=AT_ONCE)
    report = run_live(
        ANTHROPIC, running, tmp_path / "run", plan=PLAN, items=ITEMS, limits=LIMITS, price=PENNY, orders=orders
    )
    assert (report.calls, running.hits, type(report.stopped_by)) == (0, (), BudgetError)
