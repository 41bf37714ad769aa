from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from consilience.errors import (
    AccountError,
    ConsilienceError,
    FinalModelError,
    JournalError,
    ModelError,
    StoppedError,
    TransientModelError,
)
from consilience.experiments.arms import load_budgets
from consilience.journal.budget import Budget
from consilience.journal.events import AttemptError, AttemptReserved, BatchSubmitted, RunStarted, Where
from consilience.journal.ledger import ledger_rows
from consilience.journal.reader import AttemptKey, fold, read_events
from consilience.journal.writer import JournalWriter
from consilience.models import anthropic_batch, openai_batch
from consilience.models.anthropic import Anthropic
from consilience.models.anthropic import completion_of as anthropic_completion
from consilience.models.base import Model
from consilience.models.batch import (
    UNKNOWN_POLLS,
    UNREACHED_POLLS,
    BatchDesk,
    Line,
    Outcome,
    calls_out,
    custom_id,
)
from consilience.models.calls import Asked, Call, Limits, Pending, Stop
from consilience.models.openai import OpenAI
from consilience.models.openai import completion_of as openai_completion
from consilience.models.pool import ModelPool
from consilience.models.prices import Price
from consilience.models.request import Block, Completion, Contract, Message, Request, Usage
from engine_cases import LIST_PRICE, QUICK

assert anthropic_batch.AnthropicBatches.name == "anthropic"
assert openai_batch.OpenAIBatches.name == "openai"

DONE = Completion("{}", "end", Usage(10, 0, 0, 0, 20, 0), "r", None, "m", {})
BODY = {"model": "m"}
QUIET, POLL = 0.5, 5.0
Step = bool | ModelError


def gone(status: int) -> FinalModelError:
    return FinalModelError("no", hint="Look.", status=status)


def hiccup(retry_after_s: float | None = None) -> TransientModelError:
    return TransientModelError("hiccup", hint="Wait.", status=503, retry_after_s=retry_after_s)


@dataclass
class Vendor:
    """A batch endpoint in memory: polls go by a script, then the batch has ended.

    Attributes:
        polls: What each poll says: ended or not, or an error.
        refuse: What submissions end in, one by one; beyond the end they are accepted.
        whole: Why a batch failed as a whole.
        edit: Changes the result lines.
    """

    name: str = "v"
    polls: list[Step] = field(default_factory=list)
    refuse: list[ModelError] = field(default_factory=list)
    whole: ModelError | None = None
    edit: Callable[[list[Line]], list[Line]] = lambda lines: lines[::-1]
    batches: list[tuple[str, ...]] = field(default_factory=list)
    polled: int = 0

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        await anyio.lowlevel.checkpoint()
        if self.refuse:
            raise self.refuse.pop(0)
        self.batches.append(tuple(bodies))
        return str(len(self.batches) - 1)

    async def ended(self, batch_id: str) -> bool:
        del batch_id
        await anyio.lowlevel.checkpoint()
        self.polled += 1
        step = self.polls.pop(0) if self.polls else True
        if isinstance(step, ModelError):
            raise step
        return step

    async def lines(self, batch_id: str, model: str) -> Sequence[Line] | ModelError:
        del model
        await anyio.lowlevel.checkpoint()
        return self.whole or self.edit([Line(name, replace(DONE, text=name)) for name in self.batches[int(batch_id)]])


@dataclass
class Bench:
    """A desk whose time passes only in its own sleeps."""

    desk: BatchDesk
    stop: Stop
    vendor: Vendor
    noted: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    at_sleep: Callable[[int], None] = lambda _: None

    async def pass_time(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at_sleep(len(self.slept))
        for _ in range(3):  # let everybody who is ready go first
            await anyio.lowlevel.checkpoint()

    async def note(self, provider: str, batch_id: str, calls: Sequence[str]) -> None:
        assert self.vendor.polled == 0 or len(self.noted) > 0, "recorded before it is polled"
        self.noted.append((provider, batch_id, tuple(calls)))


def bench(vendor: Vendor, *, most_calls: int = 100) -> Bench:
    stop = Stop()

    async def note(provider: str, batch_id: str, calls: Sequence[str]) -> None:
        await made.note(provider, batch_id, calls)

    async def sleep(seconds: float) -> None:
        await made.pass_time(seconds)

    desk = BatchDesk(
        {"v": vendor},
        noted=note,
        quiet_s=QUIET,
        poll_s=POLL,
        most_calls=most_calls,
        sleep=sleep,
        stopping=lambda: stop.requested,
    )
    made = Bench(desk, stop, vendor)
    return made


Found = dict[str, Outcome | ConsilienceError]


def complete(bench: Bench, *names: str, bodies: Mapping[str, Any] | None = None) -> Found:
    """Return what came of calls that come together; errors raised are among it."""
    return _together({name: partial(bench.desk.complete, "v", (bodies or {}).get(name, BODY), name) for name in names})


def attach(bench: Bench, *names: str) -> Found:
    """Return what came of calls of an earlier process's batch."""
    return _together({name: partial(bench.desk.attach, "v", "m", "0", name) for name in names})


def _together(jobs: Mapping[str, Callable[[], Awaitable[Outcome]]]) -> Found:
    found: Found = {}

    async def one(name: str, job: Callable[[], Awaitable[Outcome]]) -> None:
        try:
            found[name] = await job()
        except ConsilienceError as error:
            found[name] = error

    async def run() -> None:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                for name, job in jobs.items():
                    group.start_soon(one, name, job)

    anyio.run(run)
    return found


def texts(found: Found) -> dict[str, str]:
    return {name: one.text for name, one in found.items() if isinstance(one, Completion)}


def test_calls_that_come_together_are_one_batch_and_joined_on_their_ids() -> None:
    desk = bench(Vendor())
    assert texts(complete(desk, "a", "b", "c")) == {"a": "a", "b": "b", "c": "c"}
    assert desk.vendor.batches == [("a", "b", "c")]
    assert desk.noted == [("v", "0", ("a", "b", "c"))]
    assert desk.slept == [QUIET, QUIET]


def test_a_call_that_comes_while_others_are_awaited_joins_them_and_one_that_comes_later_does_not() -> None:
    desk = bench(Vendor(polls=[False, True]))
    found: Found = {}

    async def late(name: str, sleeps: int) -> None:
        while len(desk.slept) < sleeps:
            await anyio.lowlevel.checkpoint()
        found[name] = await desk.desk.complete("v", BODY, name)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for name, sleeps in (("a", 0), ("b", 1), ("c", 4)):
                group.start_soon(late, name, sleeps)

    anyio.run(run)
    assert texts(found) == {"a": "a", "b": "b", "c": "c"}
    assert desk.vendor.batches == [("a", "b"), ("c",)]


def test_every_model_has_a_batch_of_its_own_and_no_batch_is_too_large() -> None:
    names = [f"{model}{number}" for model in "xy" for number in range(5)]
    desk = bench(Vendor(), most_calls=3)
    found = complete(desk, *names, bodies={name: {"model": name[0]} for name in names})
    assert texts(found) == {name: name for name in names}
    assert sorted(map(len, desk.vendor.batches)) == [2, 2, 3, 3]
    assert all(len({name[0] for name in batch}) == 1 for batch in desk.vendor.batches)


def test_polls_come_at_growing_intervals_up_to_a_minute() -> None:
    desk = bench(Vendor(polls=[False] * 40))
    assert texts(complete(desk, "a")) == {"a": "a"}
    waited = sum(desk.slept) - QUIET
    expected = sum(min(60.0, POLL * 1.1**poll) for poll in range(40))
    assert waited == pytest.approx(expected)
    assert max(desk.slept) <= 1.0, "a request to stop is heeded within a second"


def test_a_batch_just_created_may_be_unknown_for_a_while() -> None:
    desk = bench(Vendor(polls=[*[gone(404)] * UNKNOWN_POLLS, False]))
    assert texts(complete(desk, "a")) == {"a": "a"}
    assert desk.vendor.polled == UNKNOWN_POLLS + 2


def test_polls_that_fail_and_may_heal_neither_lose_the_batch_nor_submit_it_again() -> None:
    desk = bench(Vendor(polls=[hiccup(), hiccup(30.0), False, *[hiccup()] * (UNREACHED_POLLS - 1)]))
    assert texts(complete(desk, "a", "b")) == {"a": "a", "b": "b"}
    assert len(desk.vendor.batches) == 1
    assert sum(desk.slept[: 2 + 5 + 30]) == pytest.approx(1.0 + 5 + 30), "Retry-After is obeyed"


@pytest.mark.parametrize(
    ("polls", "error", "said"),
    [
        ([hiccup()] * UNREACHED_POLLS, StoppedError, "is left with the vendor after 30 polls in vain: hiccup"),
        ([gone(404)] * (UNKNOWN_POLLS + 1), AccountError, "cannot be read: no"),
        ([gone(401)], AccountError, "Use the key of the account that submitted it"),
    ],
)
@pytest.mark.parametrize("attached", [False, True])
def test_a_batch_that_cannot_be_read_is_no_outcome_of_its_calls(
    polls: list[Step], error: type[ConsilienceError], said: str, attached: bool
) -> None:
    desk = bench(Vendor(polls=list(polls), batches=[("a", "b")]))
    found = attach(desk, "a", "b") if attached else complete(desk, "a", "b")
    assert [type(one) for one in found.values()] == [error, error]
    assert all(said in str(one) for one in found.values())


def test_when_the_run_is_stopped_the_batch_is_left_with_the_vendor() -> None:
    desk = bench(Vendor(polls=[False] * 100))

    def stop_at_the_sixth(sleep: int) -> None:
        desk.stop.requested = sleep >= 6

    desk.at_sleep = stop_at_the_sixth
    found = complete(desk, "a", "b")
    assert [type(one) for one in found.values()] == [StoppedError, StoppedError]
    assert "batch 0 is left with the vendor. The same command takes it up again." in str(found["b"])
    assert (len(desk.slept), len(desk.noted)) == (6, 1)


def test_when_the_run_is_stopped_before_a_batch_was_submitted_nothing_leaves() -> None:
    desk = bench(Vendor())
    desk.stop.requested = True
    found = complete(desk, "a", "b")
    assert [type(one) for one in found.values()] == [StoppedError, StoppedError]
    assert (desk.vendor.batches, desk.noted) == ([], [])


def test_a_submission_that_may_heal_is_everybodys_error_and_one_that_is_refused_concerns_the_run() -> None:
    desk = bench(Vendor(refuse=[hiccup(), gone(400), AccountError("key", hint="Set a key.", status=401)]))
    assert [str(one) for one in complete(desk, "a", "b").values()] == ["hiccup. Wait."] * 2
    refused = complete(desk, "a", "b")
    assert {type(one) for one in refused.values()} == {AccountError}
    assert str(refused["b"]) == "no batch of 2 calls was made: no. Mend what it names, or run without --batch."
    assert str(complete(desk, "a")["a"]) == "no batch of 1 calls was made: key. Set a key."
    assert desk.noted == []


def test_lines_that_are_missing_or_doubled_are_errors_of_unknown_cost_and_strange_lines_are_nobodys() -> None:
    def edit(lines: list[Line]) -> list[Line]:
        a, _, c, d = lines
        return [c, a, c, Line("stranger", DONE), d, c]

    found = complete(bench(Vendor(edit=edit)), "a", "b", "c", "d")
    assert texts(found) == {"a": "a", "d": "d"}
    assert "without a line for call b" in str(found["b"])
    assert "more than one line for call c" in str(found["c"])
    assert {type(found[name]) for name in "bc"} == {FinalModelError}
    assert [found[name].status for name in "bc"] == [None, None]  # type: ignore[union-attr]


def test_a_batch_that_failed_as_a_whole_is_every_calls_error() -> None:
    found = complete(bench(Vendor(whole=gone(400))), "a", "b")
    assert {str(one) for one in found.values()} == {"no. Look."}


def test_a_record_that_cannot_be_written_strands_nobody() -> None:
    desk = bench(Vendor())

    async def full(*_: Any) -> None:
        raise JournalError("disk full", hint="Make room.")

    desk.desk._noted = full
    found = complete(desk, "a", "b")
    assert {type(one) for one in found.values()} == {JournalError}


def test_calls_of_an_earlier_process_find_their_lines_whenever_they_ask() -> None:
    desk = bench(Vendor(polls=[False], batches=[("a", "b", "c")], edit=lambda lines: lines[:2]))
    found = attach(desk, "b", "c")
    assert texts(found) == {"b": "b"}
    assert "without a line for call c" in str(found["c"])
    assert texts(attach(desk, "a")) == {"a": "a"}
    assert "without a line for call d" in str(attach(desk, "d")["d"]), "it does not wait for ever"
    assert (desk.vendor.polled, desk.noted) == (2, [])


# The pool around it: money, record, tries

REQUEST = Request(
    model="claude-sonnet-5-5",
    system=(Block("Judge.", cache=False),),
    messages=(Message("user", (Block("What is it worth?", cache=False),)),),
    tools=(),
    contract=Contract(name="c", schema={}, sha256="0", size=2),
    max_output_tokens=100,
    effort="medium",
    sampling=None,
    replicate=0,
)
GOLDEN_ANTHROPIC = {
    "model": "claude-sonnet-5-5",
    "stop_reason": "end_turn",
    "content": [],
    "usage": {
        "input_tokens": 3,
        "cache_creation_input_tokens": 12_304,
        "cache_creation": {"ephemeral_5m_input_tokens": 12_304, "ephemeral_1h_input_tokens": 0},
        "cache_read_input_tokens": 0,
        "output_tokens": 550,
    },
}
GOLDEN_OPENAI = {
    "model": "gpt-6.1-sol",
    "status": "completed",
    "output": [],
    "usage": {
        "input_tokens": 10_000,
        "input_tokens_details": {"cached_tokens": 4_000, "cache_write_tokens": 5_000},
        "output_tokens": 200,
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
PRICE_ANTHROPIC = {"input": "3", "cached_input": "0.3", "cache_write": "3.75", "cache_write_1h": "6", "output": "15"}
PRICE_OPENAI = {"input": "5", "cached_input": "0.5", "cache_write": "6.25", "cache_write_1h": "10", "output": "30"}


def where(number: int = 0) -> Where:
    return Where(f"item-{number}", 0, "analyst_01", "estimate", 0)


def asked(number: int = 0, **changes: Any) -> Asked:
    return replace(Asked(where(number), "skeptic", 0, 0, None), **changes)


@dataclass
class Pool:
    """A pool in batch mode over two vendors, with its money and record."""

    pool: ModelPool
    budget: Budget
    stop: Stop


def with_pool(
    folder: Path,
    vendors: Mapping[str, Vendor],
    use: Callable[[Pool], Awaitable[Any]],
    *,
    prices: Mapping[str, Any] | None = None,
    limits: Limits = QUICK,
) -> Any:
    folder.mkdir(exist_ok=True)
    models: dict[str, Model] = {
        "claude-sonnet-5-5": Anthropic("claude-sonnet-5-5", "a-secret-key", "http://127.0.0.1:9"),
        "gpt-6.1-sol": OpenAI("gpt-6.1-sol", "a-secret-key", "http://127.0.0.1:9/v1"),
    }

    async def run() -> Any:
        journal = JournalWriter(folder, clock=lambda: datetime(2026, 11, 1, tzinfo=UTC))
        journal.append(RunStarted(run_id="r", protocol_sha256="0" * 64, package_version="0"))
        budget, stop = Budget(None), Stop()
        pool = ModelPool(
            models,
            prices=prices or dict.fromkeys(models, LIST_PRICE),
            budget=budget,
            journal=journal,
            limits=replace(limits, batch_quiet_s=0.0, batch_poll_s=0.0),
            jitter=lambda: 0.5,
            stop=stop,
        )

        async def noted(provider: str, batch_id: str, calls: Sequence[str]) -> None:
            event = BatchSubmitted(provider=provider, batch_id=batch_id, calls=list(calls))
            await journal.durable(journal.append(event))

        pool.open_desk(vendors, noted=noted)
        try:
            return await use(Pool(pool, budget, stop))
        finally:
            await journal.close()
            assert (budget.in_flight, budget.reserved_nano) == (0, 0)

    return anyio.run(run)


def answering(completion: Completion, **changes: Any) -> Vendor:
    return Vendor(edit=lambda lines: [Line(line.custom_id, completion) for line in lines], **changes)


@pytest.mark.parametrize(
    ("model", "provider", "price", "golden", "bill"),
    [
        ("claude-sonnet-5-5", "anthropic", PRICE_ANTHROPIC, GOLDEN_ANTHROPIC, 54_399_000),
        ("gpt-6.1-sol", "openai", PRICE_OPENAI, GOLDEN_OPENAI, 44_250_000),
    ],
)
def test_the_golden_bills_are_halved_to_the_nano_dollar(
    tmp_path: Path, model: str, provider: str, price: dict[str, str], golden: dict[str, Any], bill: int
) -> None:
    read = anthropic_completion if provider == "anthropic" else openai_completion
    vendor = answering(read(golden, request_id="r", latency_s=None))
    prices = {model: Price.model_validate(price)}
    request = replace(REQUEST, model=model)
    call = with_pool(tmp_path, {provider: vendor}, lambda at: at.pool.call(request, asked()), prices=prices)
    assert isinstance(call, Call)
    assert call.cost_nano == bill // 2
    assert call.completion.latency_s is not None
    (row,) = ledger_rows(read_events(tmp_path))
    assert (row.tier, row.cost_nano, row.provider) == ("batch", bill // 2, provider)


def test_usage_that_is_not_reported_is_charged_at_the_halved_reservation(tmp_path: Path) -> None:
    vendor = answering(replace(DONE, usage=None))
    call = with_pool(tmp_path, {"anthropic": vendor}, lambda at: at.pool.call(REQUEST, asked()))
    (row,) = ledger_rows(read_events(tmp_path))
    assert (call.estimated, call.cost_nano) == (True, row.reserved_nano)


def test_two_calls_of_the_same_bytes_are_two_lines_of_one_batch(tmp_path: Path) -> None:
    vendor = Vendor()

    async def use(at: Pool) -> list[str]:
        found: list[str] = []

        async def one(number: int) -> None:
            found.append((await at.pool.call(REQUEST, asked(number))).key)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                for number in range(2):
                    group.start_soon(one, number)
        return found

    keys = with_pool(tmp_path, {"anthropic": vendor}, use)
    assert len(set(keys)) == 1
    assert [len(set(batch)) for batch in vendor.batches] == [2]


def test_a_stop_before_the_batch_is_submitted_costs_nothing(tmp_path: Path) -> None:
    vendor = Vendor()

    async def use(at: Pool) -> int:
        durable = at.pool._journal.durable

        async def stopping(seq: int) -> None:
            await durable(seq)
            at.stop.requested = True

        at.pool._journal.durable = stopping  # type: ignore[method-assign]
        with pytest.raises(StoppedError):
            await at.pool.call(REQUEST, asked())
        return at.budget.spent_nano

    assert with_pool(tmp_path, {"anthropic": vendor}, use) == 0
    (failed,) = [record.event for record in read_events(tmp_path) if isinstance(record.event, AttemptError)]
    assert (failed.charged_nano, failed.error["type"]) == (0, "StoppedError")
    assert vendor.batches == []


def test_an_overloaded_line_is_asked_again_in_another_batch_and_a_lost_one_is_charged(tmp_path: Path) -> None:
    lines: list[Any] = [hiccup(), TransientModelError("lost", hint="Wait."), DONE]
    vendor = Vendor(edit=lambda found: [Line(found[0].custom_id, lines.pop(0))])
    call = with_pool(tmp_path, {"anthropic": vendor}, lambda at: at.pool.call(REQUEST, asked()))
    assert (len(vendor.batches), call.retries) == (3, 2)
    rows = ledger_rows(read_events(tmp_path))
    assert [row.cost_nano for row in rows] == [0, rows[1].reserved_nano, call.cost_nano]
    assert [row.tier for row in rows] == ["batch"] * 3


def test_a_try_left_in_a_batch_is_taken_up_with_its_money(tmp_path: Path) -> None:
    first = Vendor(polls=[False] * 1_000)

    async def leave(at: Pool) -> None:
        async def stop() -> None:
            while first.polled < 3:
                await anyio.lowlevel.checkpoint()
            at.stop.requested = True

        async with anyio.create_task_group() as group:
            group.start_soon(stop)
            with pytest.raises(StoppedError, match="batch 0 is left with the vendor"):
                await at.pool.call(REQUEST, asked())

    with_pool(tmp_path / "one", {"anthropic": first}, leave)
    state = fold(tmp_path / "one")
    ((at, batch),) = calls_out(state).items()
    reserved = state.attempts[at].reserved
    assert (at, batch) == (AttemptKey(where(), 0, 0), ("anthropic", "0"))
    assert first.batches == [(custom_id(at, reserved.key),)]
    assert state.spent_nano == reserved.reserved_nano

    async def take_up(pool: Pool) -> tuple[Call, int]:
        pending = Pending("0", 0, reserved.reserved_nano)
        pool.budget.spent_nano = state.spent_nano
        event = replace(reserved, body={})
        pool.pool._journal.append(event, where())
        call = await pool.pool.call(REQUEST, asked(tries_before=1, pending=pending))
        return call, pool.budget.spent_nano

    second = Vendor(batches=list(first.batches))
    call, spent = with_pool(tmp_path / "two", {"anthropic": second}, take_up)
    assert (call.retries, len(second.batches)) == (0, 1)
    assert spent == call.cost_nano
    assert not [record for record in read_events(tmp_path / "two") if isinstance(record.event, BatchSubmitted)]
    (found,) = [record.event for record in read_events(tmp_path / "two") if isinstance(record.event, AttemptReserved)]
    assert found.key == call.key


def test_the_limits_that_ship_wait_half_a_second_and_poll_every_five() -> None:
    limits = load_budgets().limits
    assert (limits.batch_quiet_s, limits.batch_poll_s) == (0.5, 5.0)
