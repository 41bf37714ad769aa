from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import polars as pl
import pytest

import consilience.models.pool
from batch_cases import CALLS, CANARY, CLAUDE, DEBATE_PLAN, GPT, HASTY, ITEMS, STAGES, run_live
from consilience.errors import AccountError, BudgetError, PlanError, StoppedError
from consilience.experiments.foresight import foresee
from consilience.experiments.orders import Orders, RunReport
from consilience.experiments.predictions import read_predictions
from consilience.experiments.replay import replay_run
from consilience.fakes.faults import BatchScript, Fault, LineFault, status
from consilience.fakes.server import FakeServer, running_fake
from consilience.fakes.settings import Settings
from consilience.journal.events import (
    AttemptLost,
    AttemptReserved,
    BatchSubmitted,
    RunStopped,
    TurnFailed,
)
from consilience.journal.ledger import LedgerRow, ledger_rows
from consilience.journal.reader import read_events
from consilience.journal.verify import verify
from consilience.models.calls import Stop
from consilience.models.prices import Catalogue, ModelSpec, load_catalogue
from consilience.valuation.pipeline import VALUATION
from engine_cases import CENT, INDEPENDENT, PENNY, ROLES, events_of, make_items, make_plan, make_shell, money_by_record

RUNNER = Path(__file__).with_name("batch_runner.py")
FREE = ("latency_s", "paid_usd")
SUBMISSIONS = {"anthropic": "/v1/messages/batches", "openai": "/v1/batches"}
ASK = {"anthropic": CLAUDE, "openai": GPT}
APPLICATIONS = {"valuation": VALUATION}
ONE_ROUND = {name: make_plan(make_items(4), protocol=INDEPENDENT, models=(model,)) for name, model in ASK.items()}
HALF_CENT = CENT // 2


@pytest.fixture(scope="module")
def running() -> Iterator[FakeServer]:
    with running_fake() as server:
        yield server


@pytest.fixture
def fake(running: FakeServer) -> FakeServer:
    running.reset()
    return running


@pytest.fixture(scope="module")
def whole(running: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    """A debate in batch mode that nobody disturbs."""
    running.reset(settings=Settings(batches=BatchScript(order="reversed")))
    return run_live(tmp_path_factory.mktemp("whole") / "run", running.base_url)


def posts(fake: FakeServer) -> Counter[str]:
    return Counter(hit.path for hit in fake.hits if hit.method == "POST")


def submissions(fake: FakeServer) -> dict[str, int]:
    found = posts(fake)
    return {name: found[path] for name, path in SUBMISSIONS.items()}


def polls(fake: FakeServer, name: str) -> int:
    return sum(hit.path.startswith(f"{SUBMISSIONS[name]}/") for hit in fake.hits)


def behave(fake: FakeServer, **script: Any) -> None:
    fake.reset(settings=Settings(batches=BatchScript(**script)))


def ledger(folder: Path) -> list[LedgerRow]:
    return ledger_rows(read_events(folder))


def predictions(folder: Path) -> pl.DataFrame:
    return read_predictions(folder / "predictions.parquet").drop(FREE)


def assert_whole_record(folder: Path) -> None:
    checked = verify(folder)
    assert (checked.ok, checked.finished) == (True, True)
    assert CANARY.encode() not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_debate_in_batches_costs_exactly_half_and_says_the_same(fake: FakeServer, tmp_path: Path) -> None:
    behave(fake, order="shuffled", pending_polls=2, not_found_polls=1)
    batched = run_live(tmp_path / "batched", fake.base_url)
    assert submissions(fake) == {"anthropic": STAGES, "openai": STAGES}
    assert fake.calls() == ()
    assert batched.manifest["items"] == {"answered": 3, "not_run": 0}
    rows = ledger(tmp_path / "batched")
    assert {row.tier for row in rows} == {"batch"}
    fake.reset()
    plain = run_live(tmp_path / "plain", fake.base_url, batch=False)
    assert (plain.calls, batched.calls, len(fake.calls())) == (CALLS, CALLS, CALLS)
    paid = [row.cost_nano for row in ledger(tmp_path / "plain")]
    assert [2 * (row.cost_nano or 0) for row in rows] == paid
    assert batched.manifest["spent_usd"] * 2 == pytest.approx(plain.manifest["spent_usd"], abs=1e-12)
    costs = ("cost_usd", "paid_usd")
    for name in costs:
        both = (2 * batched.predictions[name], plain.predictions[name])
        assert both[0].to_list() == pytest.approx(both[1].to_list(), abs=1e-12)
    assert batched.predictions.drop(*costs, "latency_s").equals(plain.predictions.drop(*costs, "latency_s"))
    assert_whole_record(tmp_path / "batched")


def test_every_batch_is_recorded_before_it_is_polled_and_lines_come_in_any_order(
    fake: FakeServer, whole: RunReport, tmp_path: Path
) -> None:
    told: list[list[str]] = []

    def poll() -> None:
        recorded = b"".join(path.read_bytes() for path in sorted((tmp_path / "run").glob("events-*.jsonl")))
        told.append([line for line in recorded.decode().split("\n") if '"batch.submitted"' in line])

    behave(fake, order="sent")
    run_live(tmp_path / "run", fake.base_url, taps={"polled": poll})
    assert all(told)
    assert (tmp_path / "run" / "predictions.parquet").exists()
    assert predictions(tmp_path / "run").equals(predictions(whole.folder)), "reversed, sent: the ids join them"
    events = [record.event for record in events_of(tmp_path / "run", BatchSubmitted)]
    calls = [name for event in events if isinstance(event, BatchSubmitted) for name in event.calls]
    assert len(calls) == len(set(calls)) == CALLS


def test_a_run_in_batches_is_replayed_without_a_call_and_a_finished_one_is_rebuilt_without_batch(
    fake: FakeServer, whole: RunReport
) -> None:
    replayed = anyio.run(replay_run, whole.folder, APPLICATIONS, make_shell())
    assert (replayed.identical, replayed.answers) == (True, CALLS)
    again = run_live(whole.folder, fake.base_url, batch=False)
    assert (again.calls, again.lost, fake.hits) == (0, 0, ())
    assert_whole_record(whole.folder)


def test_a_run_partly_in_batches_is_replayed_call_by_call_at_what_it_cost(fake: FakeServer, tmp_path: Path) -> None:
    run, stop = tmp_path / "run", Stop()

    def after_the_first_round(progress: Any) -> None:
        stop.requested = progress.turns >= len(ITEMS) * len(ROLES)

    shell = make_shell(stop=stop, watch=after_the_first_round)
    first = run_live(run, fake.base_url, shell=shell)
    assert isinstance(first.stopped_by, StoppedError)
    rest = run_live(run, fake.base_url, batch=False)
    assert rest.stopped_by is None
    assert {row.tier for row in ledger(run)} == {"batch", "standard"}
    assert anyio.run(replay_run, run, APPLICATIONS, make_shell()).identical


# Lines that go wrong


class Once(dict[int, Any]):
    """What happens to lines of the first batch that has them; later ones are well."""

    def get(self, key: int, default: Any = None) -> Any:
        return self.pop(key, default)


WRONG: dict[int, LineFault | Fault] = {
    0: "missing",
    6: "duplicate",
    12: "expired",
    18: status(400),
    1: status(529),
    7: status(500),
    8: status(429),
}


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_lines_that_go_wrong_are_failed_turns_or_asked_again_and_the_quorum_holds(
    fake: FakeServer, tmp_path: Path, name: str
) -> None:
    behave(fake, lines=Once(WRONG), not_found_polls=2 if name == "anthropic" else 0, pending_polls=3)
    report = run_live(tmp_path, fake.base_url, plan=ONE_ROUND[name], items=make_items(4))
    assert submissions(fake)[name] == 2, "what may heal is asked again, in one next batch"
    assert report.manifest["items"] == {"answered": 4, "not_run": 0}
    assert set(report.predictions["n_answered"]) == {4}
    turns = [record.event for record in events_of(tmp_path, TurnFailed)]
    said = sorted(str(event.error["message"]) for event in turns if isinstance(event, TurnFailed))
    assert len(said) == 4
    assert sum("more than one line for call" in one for one in said) == 1
    assert sum("without a line for call" in one for one in said) == 1
    assert sum("expired in its batch" in one for one in said) == 1, "also from the error file"
    assert sum(f"refused a call of {ASK[name]} with status 400" in one for one in said) == 1
    rows = ledger(tmp_path)
    failed = [row for row in rows if row.status == "error"]
    assert len(rows) == 20 + 3
    assert sorted(row.cost_nano == row.reserved_nano for row in failed) == [False] * 5 + [True] * 2
    assert {row.cost_nano for row in failed if row.cost_nano != row.reserved_nano} == {0}
    again = [row for row in rows if row.attempt == 1]
    assert [(row.status, row.tier) for row in again] == [("answered", "batch")] * 3
    assert_whole_record(tmp_path)
    assert anyio.run(replay_run, tmp_path, APPLICATIONS, make_shell()).identical


def test_retry_failed_asks_again_only_what_failed(fake: FakeServer, tmp_path: Path) -> None:
    behave(fake, lines=Once({0: "missing", 7: "expired"}))
    plan, items = ONE_ROUND["openai"], make_items(4)
    run_live(tmp_path, fake.base_url, plan=plan, items=items)
    again = run_live(tmp_path, fake.base_url, plan=plan, items=items, orders=Orders(limits=HASTY, retry_failed=True))
    assert (again.calls, submissions(fake)["openai"]) == (2, 2)
    assert set(again.predictions["n_answered"]) == {5}


@pytest.mark.parametrize("name", ["anthropic", "openai"])
@pytest.mark.parametrize("fault", ["refusal", "other_model", "surrogate", "out_of_range"])
def test_replies_that_go_wrong_are_read_as_without_batches(
    fake: FakeServer, tmp_path: Path, name: str, fault: Any
) -> None:
    plan, items = make_plan(make_items(1), protocol=INDEPENDENT, models=(ASK[name],)), make_items(1)
    behave(fake, lines={0: Fault(fault)})
    batched = run_live(tmp_path / "batched", fake.base_url, plan=plan, items=items)
    fake.reset(lambda hit: Fault(fault) if b"analyst_01" in hit.body else None)
    plain = run_live(tmp_path / "plain", fake.base_url, batch=False, plan=plan, items=items)
    told = [json.loads((run / "transcripts" / "item-01.json").read_bytes()) for run in (batched.folder, plain.folder)]
    first, second = ([turn["outcome"]["status"] for turn in one["turns"]] for one in told)
    assert sorted(first) == sorted(second)
    assert batched.manifest["items"] == plain.manifest["items"] == {"answered": 1, "not_run": 0}


def test_a_batch_that_fails_as_a_whole_costs_nothing_and_the_quorum_decides(fake: FakeServer, tmp_path: Path) -> None:
    def garbled(bodies: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        last = list(bodies)[-1]
        if bodies[last]["model"] != GPT:
            return bodies
        return {**bodies, last: {**bodies[last], "model": "gpt-6-luna"}}

    plan = make_plan(ITEMS, protocol=INDEPENDENT, models=(CLAUDE, GPT), committee="mixed_random")
    report = run_live(tmp_path, fake.base_url, plan=plan, taps={"bodies": garbled})
    assert report.manifest["items"] == {"answered": 3, "not_run": 0}
    assert set(report.predictions["n_answered"]) == {3}, "three of five speak through the other vendor"
    failed = [row for row in ledger(tmp_path) if row.status == "error"]
    assert {(row.provider, row.cost_nano) for row in failed} == {("openai", 0)}
    (said,) = {str(record.event.error["message"]) for record in events_of(tmp_path, TurnFailed)}  # type: ignore[union-attr]
    assert "as a whole: mismatched model. Nothing was charged." in said
    assert_whole_record(tmp_path)


def test_a_batch_that_nobody_may_submit_stops_the_run_with_advice(fake: FakeServer, tmp_path: Path) -> None:
    fake.reset(settings=Settings(keys=frozenset({"another-key"})))
    with pytest.raises(AccountError, match=r"no batch of \d+ calls was made: .*status 401.* Set \w+_API_KEY"):
        run_live(tmp_path, fake.base_url)
    assert {row.cost_nano for row in ledger(tmp_path)} == {0}
    fake.reset()
    assert run_live(tmp_path, fake.base_url).manifest["items"] == {"answered": 3, "not_run": 0}
    assert_whole_record(tmp_path)


def test_a_batch_refused_as_invalid_stops_the_run_with_advice(
    fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consilience.models.pool, "custom_id", lambda at, key: f"{at} {key}")
    with pytest.raises(AccountError, match=r"no batch of 20 calls was made: .*status 400.* or run without --batch"):
        run_live(tmp_path, fake.base_url, plan=ONE_ROUND["anthropic"], items=make_items(4))
    assert (submissions(fake)["anthropic"], {row.cost_nano for row in ledger(tmp_path)}) == (1, {0})


# A process that ends while its batches are with the vendor


def stopped_while_polling(folder: Path, fake: FakeServer, **options: Any) -> RunReport:
    """Stop a run as soon as it polls; its batches stay with the vendor."""
    stop = Stop()

    def poll() -> None:
        stop.requested = True

    return run_live(folder, fake.base_url, shell=make_shell(stop=stop), taps={"polled": poll}, **options)


def test_a_run_stopped_while_it_polls_takes_its_batches_up_again(
    fake: FakeServer, whole: RunReport, tmp_path: Path
) -> None:
    behave(fake, pending_polls=2)
    first = stopped_while_polling(tmp_path, fake)
    assert isinstance(first.stopped_by, StoppedError)
    assert "is left with the vendor. The same command takes it up again." in str(first.stopped_by)
    assert submissions(fake) == {"anthropic": 1, "openai": 1}
    assert first.manifest["lost_attempts"] == 0
    second = stopped_while_polling(tmp_path, fake)
    assert (second.calls, second.lost, submissions(fake)) == (0, 0, {"anthropic": 1, "openai": 1})
    last = run_live(tmp_path, fake.base_url)
    assert (last.calls, last.lost, last.manifest["lost_attempts"]) == (CALLS * 2 // 3, 0, 0)
    assert submissions(fake) == {"anthropic": STAGES, "openai": STAGES}
    assert predictions(tmp_path).equals(predictions(whole.folder))
    assert last.manifest["spent_usd"] == whole.manifest["spent_usd"]
    assert not events_of(tmp_path, AttemptLost)
    assert_whole_record(tmp_path)


def test_a_run_killed_while_it_polls_takes_its_batches_up_again(
    fake: FakeServer, whole: RunReport, tmp_path: Path
) -> None:
    behave(fake, pending_polls=15)
    with subprocess.Popen([sys.executable, str(RUNNER), str(tmp_path), fake.base_url], env=dict(os.environ)) as child:
        pause = threading.Event()
        for _ in range(4_000):
            if min(polls(fake, name) for name in SUBMISSIONS) >= 2 or child.poll() is not None:
                break
            pause.wait(0.005)
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert submissions(fake) == {"anthropic": 1, "openai": 1}
    last = run_live(tmp_path, fake.base_url)
    assert (last.calls, last.lost) == (CALLS * 2 // 3, 0)
    assert submissions(fake) == {"anthropic": STAGES, "openai": STAGES}
    assert predictions(tmp_path).equals(predictions(whole.folder))
    assert_whole_record(tmp_path)


def test_a_run_with_a_batch_at_the_vendor_is_resumed_in_batch_mode_only(fake: FakeServer, tmp_path: Path) -> None:
    behave(fake, pending_polls=2)
    stopped_while_polling(tmp_path, fake)
    before = max(tmp_path.glob("events-*.jsonl")).read_bytes()
    for _ in range(2):  # the lock is given back
        with pytest.raises(
            PlanError, match=r"batch \w+ of this run is still at (anthropic|openai). Resume with --batch"
        ):
            run_live(tmp_path, fake.base_url, batch=False)
    assert max(tmp_path.glob("events-*.jsonl")).read_bytes() == before
    assert run_live(tmp_path, fake.base_url).manifest["items"] == {"answered": 3, "not_run": 0}


class DiedError(BaseException):
    """What no code catches."""


def test_a_batch_submitted_and_not_recorded_is_lost_charged_and_asked_again(
    fake: FakeServer, whole: RunReport, tmp_path: Path
) -> None:
    def die() -> None:
        raise DiedError

    with pytest.raises(BaseExceptionGroup) as caught:
        run_live(tmp_path, fake.base_url, taps={"submitted": die})
    assert caught.value.subgroup(DiedError) is not None
    before = submissions(fake)
    assert max(before.values()) == 1
    last = run_live(tmp_path, fake.base_url)
    lost = [record.event for record in events_of(tmp_path, AttemptLost)]
    assert last.lost == len(lost) == CALLS // 3
    assert all(isinstance(event, AttemptLost) and event.charged_nano for event in lost)
    assert {name: count - before[name] for name, count in submissions(fake).items()} == {"anthropic": 3, "openai": 3}
    assert predictions(tmp_path).equals(predictions(whole.folder))
    charged = sum(event.charged_nano or 0 for event in lost if isinstance(event, AttemptLost))
    assert last.manifest["spent_usd"] == pytest.approx(whole.manifest["spent_usd"] + charged / 1e9)
    assert_whole_record(tmp_path)


def test_the_answer_to_an_overloaded_call_is_taken_up_too(fake: FakeServer, tmp_path: Path) -> None:
    stop = Stop()
    plan, items = ONE_ROUND["anthropic"], make_items(4)
    behave(fake, lines=Once({3: status(529)}), pending_polls=1)

    def poll() -> None:
        stop.requested = submissions(fake)["anthropic"] == 2

    first = run_live(
        tmp_path, fake.base_url, plan=plan, items=items, shell=make_shell(stop=stop), taps={"polled": poll}
    )
    assert isinstance(first.stopped_by, StoppedError)
    last = run_live(tmp_path, fake.base_url, plan=plan, items=items)
    assert (last.calls, submissions(fake)["anthropic"]) == (0, 2)
    assert set(last.predictions["n_answered"]) == {5}
    assert_whole_record(tmp_path)


def test_a_pending_call_that_a_turn_asked_again_overtakes_is_given_up_and_charged(
    fake: FakeServer, tmp_path: Path
) -> None:
    plan, items, stop = make_plan(ITEMS[:1], models=(CLAUDE,)), ITEMS[:1], Stop()
    behave(fake, lines=Once({0: "expired"}), pending_polls=1)

    def poll() -> None:
        stop.requested = submissions(fake)["anthropic"] == 2

    shell = make_shell(stop=stop)
    first = run_live(tmp_path, fake.base_url, plan=plan, items=items, shell=shell, taps={"polled": poll})
    assert isinstance(first.stopped_by, StoppedError)
    pending = [row for row in ledger(tmp_path) if row.status == "lost"]
    assert {row.kind for row in pending} == {"critique"}
    retry = Orders(limits=HASTY, retry_failed=True)
    last = run_live(tmp_path, fake.base_url, plan=plan, items=items, orders=retry)
    assert set(last.predictions["n_answered"]) == {5}
    assert (len(events_of(tmp_path, AttemptLost)), last.manifest["lost_attempts"]) == (len(pending), len(pending))
    assert (last.manifest["turns"]["answered"], last.manifest["turns"]["failed"]) == (15, 0)
    assert_whole_record(tmp_path)
    again = run_live(tmp_path, fake.base_url, plan=plan, items=items, batch=False)
    assert (again.calls, again.stopped_by) == (0, None)


# Money

PENNIES = Catalogue(models={CLAUDE: ModelSpec(provider="anthropic", price=PENNY)}, tiers={})
TWELVE = make_items(12)
ONE_SEAT = make_plan(TWELVE, protocol=INDEPENDENT, roles=ROLES[:1], models=(CLAUDE,))
DEAR = {index: Fault("usage_missing") for index in range(12)}
"""Every answer costs all that was reserved: half a cent."""


def capped(folder: Path, fake: FakeServer, cap: int, **options: Any) -> RunReport:
    orders = Orders(max_spend_nano=cap, limits=HASTY)
    given: dict[str, Any] = {"plan": ONE_SEAT, "items": TWELVE, "catalogue": PENNIES, "orders": orders}
    return run_live(folder, fake.base_url, **(given | options))


def peak(folder: Path) -> int:
    return max(spent + reserved for spent, reserved in money_by_record(events_of(folder)))


def test_a_cap_of_five_halves_of_a_cent_pays_five_calls_and_the_rest_is_resumed(
    fake: FakeServer, tmp_path: Path
) -> None:
    behave(fake, lines=DEAR)
    report = capped(tmp_path, fake, 5 * HALF_CENT)
    assert isinstance(report.stopped_by, BudgetError)
    assert (report.stopped_by.exit_code, report.calls) == (4, 5)
    assert (report.manifest["spent_usd"], report.manifest["spend_cap_hit"]) == (0.025, True)
    reserved = {record.event.reserved_nano for record in events_of(tmp_path, AttemptReserved)}  # type: ignore[union-attr]
    assert (reserved, peak(tmp_path)) == ({HALF_CENT}, 5 * HALF_CENT)
    assert [record.event.reason for record in events_of(tmp_path, RunStopped)] == ["spend_cap"]  # type: ignore[union-attr]
    rest = capped(tmp_path, fake, 12 * HALF_CENT)
    assert (rest.calls, rest.stopped_by, rest.manifest["spent_usd"]) == (7, None, 0.06)
    assert peak(tmp_path) == 12 * HALF_CENT
    assert_whole_record(tmp_path)


def test_what_answers_free_of_the_cap_pays_for_the_next_batch(fake: FakeServer, tmp_path: Path) -> None:
    report = capped(tmp_path, fake, 5 * HALF_CENT)
    assert (report.calls, report.stopped_by) == (12, None)
    assert submissions(fake)["anthropic"] >= 3
    assert peak(tmp_path) <= 5 * HALF_CENT


def test_batches_can_be_taken_up_although_they_hold_all_of_the_cap(fake: FakeServer, tmp_path: Path) -> None:
    behave(fake, pending_polls=2)
    plan = make_plan(TWELVE[:5], protocol=INDEPENDENT, roles=ROLES[:1], models=(CLAUDE,))
    five: dict[str, Any] = {"plan": plan, "items": TWELVE[:5]}
    stop = Stop()

    def poll() -> None:
        stop.requested = True

    capped(tmp_path, fake, 5 * HALF_CENT, shell=make_shell(stop=stop), taps={"polled": poll}, **five)
    assert peak(tmp_path) == 5 * HALF_CENT
    last = capped(tmp_path, fake, 5 * HALF_CENT, **five)
    assert (last.calls, last.stopped_by, last.manifest["items"]) == (0, None, {"answered": 5, "not_run": 0})
    assert round(last.manifest["spent_usd"] * 1e9) == sum(row.cost_nano or 0 for row in ledger(tmp_path))
    assert peak(tmp_path) == 5 * HALF_CENT
    assert_whole_record(tmp_path)


def test_items_are_admitted_at_the_price_of_batches(fake: FakeServer, tmp_path: Path) -> None:
    plan = make_plan(TWELVE[:1], protocol=INDEPENDENT, models=(CLAUDE,))
    report = capped(tmp_path, fake, CENT, plan=plan, items=TWELVE[:1])
    assert (report.calls, report.stopped_by) == (len(ROLES), None)
    assert peak(tmp_path) <= CENT


def test_a_plan_in_batches_is_foreseen_at_half_the_price() -> None:
    whole, half = (foresee(DEBATE_PLAN, ITEMS, catalogue=load_catalogue(), discount=each) for each in (1, 2))
    assert (whole.turns, whole.tokens) == (half.turns, half.tokens) == (CALLS, half.tokens)
    assert 2 * (half.expected_nano or 0) == pytest.approx(whole.expected_nano, abs=CALLS)
    assert 2 * (half.worst_nano or 0) == pytest.approx(whole.worst_nano, abs=CALLS)


def test_a_debate_under_a_cap_never_passes_it(fake: FakeServer, whole: RunReport, tmp_path: Path) -> None:
    cap = round(whole.manifest["spent_usd"] * 1e9) * 2
    report = run_live(tmp_path, fake.base_url, orders=Orders(max_spend_nano=cap, limits=HASTY))
    assert peak(tmp_path) <= cap
    if report.stopped_by is not None:
        assert report.stopped_by.exit_code == 4
        report = run_live(tmp_path, fake.base_url, orders=Orders(limits=HASTY))
    assert report.manifest["items"] == {"answered": 3, "not_run": 0}
    assert DEBATE_PLAN.items.keys() == {item.question.id for item in ITEMS}
    assert_whole_record(tmp_path)
