"""Workers under one coordinator: the same answers, one cap, one journal, and no call twice when one is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from consilience.errors import BudgetError, StoppedError
from consilience.experiments.engines.asks import problem_of, restored
from consilience.experiments.orders import Orders
from consilience.experiments.verification import verify_run
from consilience.journal.events import AttemptLost, AttemptReserved, AttemptResponse, SegmentTaken, TextStored
from consilience.journal.workers import LentTexts, Segment, workers_of
from consilience.models.base import Identity, Model
from consilience.models.request import Completion, Request
from consilience.models.scripted import Scripted
from crew_cases import NearEngine
from engine_cases import (
    CENT,
    DEBATE,
    MODEL,
    PENNY,
    QUICK,
    carry_out,
    events_of,
    make_items,
    make_plan,
    money_by_record,
    panel,
    speak,
)

APART = ["latency_s", "paid_usd"]
ITEMS = make_items(6)
PLAN = make_plan(ITEMS, protocol=DEBATE)


def engine(say: object = speak, **changes: object) -> NearEngine:
    def models() -> dict[str, Model]:
        return {MODEL: panel(say)}  # type: ignore[arg-type]

    return NearEngine(models, **changes)  # type: ignore[arg-type]


def orders(found: NearEngine, **changes: object) -> Orders:
    return Orders(limits=QUICK, engine=found, **changes)  # type: ignore[arg-type]


def silent(_: Request) -> str:
    pytest.fail("the coordinator itself asked")


def test_predictions_and_transcripts_are_those_of_one_process(tmp_path: Path) -> None:
    alone = carry_out(tmp_path / "local", PLAN, ITEMS, panel())
    shared = carry_out(tmp_path / "crew", PLAN, ITEMS, panel(silent), orders=orders(engine()))
    assert shared.predictions.drop(APART).equals(alone.predictions.drop(APART))
    assert shared.calls == alone.calls
    assert shared.predictions["paid_usd"].sum() == pytest.approx(alone.predictions["paid_usd"].sum())
    for item in ITEMS:
        name = f"transcripts/{item.question.id}.json"
        assert (tmp_path / "crew" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
    assert verify_run(tmp_path / "crew").error() is None
    assert len(workers_of(tmp_path / "crew")) == 2
    assert {record.event.worker for record in events_of(tmp_path / "crew", SegmentTaken)} == {"00001", "00002"}  # type: ignore[union-attr]


def test_the_journal_holds_every_record_of_every_segment_once(tmp_path: Path) -> None:
    carry_out(tmp_path, PLAN, ITEMS, panel(silent), orders=orders(engine()))
    kinds = (AttemptReserved, AttemptResponse, TextStored)
    mine = [(record.where, record.event) for record in events_of(tmp_path, *kinds)]
    theirs = [
        (record.where, record.event)
        for worker in workers_of(tmp_path)
        for record in Segment(tmp_path, worker).read_on()
        if isinstance(record.event, kinds)
    ]
    assert sorted(map(repr, mine)) == sorted(map(repr, theirs))


@pytest.mark.parametrize("workers", [1, 3])
def test_one_cap_holds_over_all_workers_and_at_every_record(tmp_path: Path, workers: int) -> None:
    cap = 4 * CENT
    found = engine(workers=workers)
    report = carry_out(tmp_path, PLAN, ITEMS, panel(silent), price=PENNY, orders=orders(found, max_spend_nano=cap))
    assert isinstance(report.stopped_by, BudgetError)
    money = money_by_record(events_of(tmp_path))
    assert max(spent + reserved for spent, reserved in money) <= cap
    assert report.manifest["spend_cap_hit"]
    again = carry_out(tmp_path, PLAN, ITEMS, panel(silent), price=PENNY, orders=orders(engine()))
    assert again.stopped_by is None
    keys = Counter(record.event.key for record in events_of(tmp_path, AttemptReserved))  # type: ignore[union-attr]
    assert set(keys.values()) == {1}
    whole = carry_out(tmp_path / "local", PLAN, ITEMS, panel(), price=PENNY)
    assert again.predictions.drop(APART).equals(whole.predictions.drop(APART))


@pytest.mark.parametrize("at", [1, 7, 20])
def test_a_worker_that_is_lost_costs_no_answer_twice(tmp_path: Path, at: int) -> None:
    heard: Counter[str] = Counter()
    found = engine()

    def say(request: Request) -> str:
        heard[repr(request)] += 1
        if sum(heard.values()) == at:
            found.lines[0].cut()
        return speak(request)

    found.models = lambda: {MODEL: panel(say)}
    report = carry_out(tmp_path / "crew", PLAN, ITEMS, panel(silent), orders=orders(found))
    alone = carry_out(tmp_path / "local", PLAN, ITEMS, panel())
    assert report.stopped_by is None
    assert report.predictions.drop(APART).equals(alone.predictions.drop(APART))
    lost = events_of(tmp_path / "crew", AttemptLost)
    answered = Counter(record.event.key for record in events_of(tmp_path / "crew", AttemptResponse))  # type: ignore[union-attr]
    assert set(answered.values()) == {1}
    assert report.manifest["lost_attempts"] == len(lost)
    assert len(workers_of(tmp_path / "crew")) == 3
    assert verify_run(tmp_path / "crew").error() is None


def test_workers_lost_again_and_again_end_the_run_and_it_can_be_resumed(tmp_path: Path) -> None:
    found = engine(workers=1)

    def say(request: Request) -> str:
        found.lines[-1].cut()
        return speak(request)

    found.models = lambda: {MODEL: panel(say)}
    report = carry_out(tmp_path / "crew", PLAN, ITEMS, panel(silent), orders=orders(found))
    assert isinstance(report.stopped_by, StoppedError)
    again = carry_out(tmp_path / "crew", PLAN, ITEMS, panel())  # the other engine goes on with the same run
    alone = carry_out(tmp_path / "local", PLAN, ITEMS, panel())
    assert again.predictions.drop(APART).equals(alone.predictions.drop(APART))


def test_what_a_killed_coordinator_had_not_taken_in_is_taken_in_by_the_next(tmp_path: Path) -> None:
    carry_out(tmp_path, PLAN, ITEMS, panel(silent), orders=orders(engine()))
    journal = tmp_path / "events-00001.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    taken = [number for number, line in enumerate(lines) if b"segment.taken" in line]
    alone = carry_out(tmp_path.with_name("local"), PLAN, ITEMS, panel())
    for cut in (taken[0], taken[1] + 1, taken[len(taken) // 2] + 2, len(lines) - 1):
        journal.write_bytes(b"".join(lines[:cut]))
        again = carry_out(tmp_path, PLAN, ITEMS, panel(silent))
        assert again.calls == 0
        assert again.predictions.drop(APART).equals(alone.predictions.drop(APART))
        assert verify_run(tmp_path).error() is None


def test_turns_without_answer_are_asked_again_by_workers_where_that_is_ordered(tmp_path: Path) -> None:
    def refuse(_: Request) -> str:
        return "no JSON"

    before = carry_out(tmp_path, PLAN, ITEMS[:6], panel(silent), orders=orders(engine(refuse)))
    assert before.manifest["turns"]["answered"] == 0
    after = carry_out(tmp_path, PLAN, ITEMS, panel(silent), orders=orders(engine(), retry_failed=True))
    assert after.manifest["turns"]["answered"] > 0
    assert after.manifest["turns"]["unreadable"] == 0


@dataclass(frozen=True)
class Busy:
    """A model that takes a while, and counts how many calls it has at once."""

    scripted: Scripted
    seen: list[int]
    min_cacheable_tokens: int | None = None

    @property
    def id(self) -> str:
        return self.scripted.id

    @property
    def identity(self) -> Identity:
        return self.scripted.identity

    def wire_body(self, request: Request) -> dict[str, Any]:
        return self.scripted.wire_body(request)

    async def complete(self, request: Request) -> Completion:
        self.seen.append(self.seen[-1] + 1)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        self.seen.append(self.seen[-1] - 1)
        return await self.scripted.complete(request)


@pytest.mark.parametrize("limit", [1, 4])
def test_rates_hold_over_all_workers(tmp_path: Path, limit: int) -> None:
    seen = [0]
    found = NearEngine(lambda: {MODEL: Busy(panel(), seen)}, workers=3)
    limits = replace(QUICK, concurrency=limit)
    carry_out(tmp_path, PLAN, ITEMS, panel(silent), orders=Orders(limits=limits, engine=found))
    assert max(seen) == limit


def test_an_error_crosses_over_with_all_it_says() -> None:
    for error in (BudgetError("no money", hint="Add some.", needed_nano=3), StoppedError("stop", hint="Go on.")):
        back = restored(problem_of(error))
        assert (type(back), back.message, back.hint) == (type(error), error.message, error.hint)
        assert problem_of(back) == problem_of(error)


def test_lent_texts_are_all_there_is(tmp_path: Path) -> None:
    texts = LentTexts(tmp_path)
    assert (len(texts), list(texts)) == (0, [])
