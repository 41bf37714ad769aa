from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from consilience.errors import (
    FinalModelError,
    IntegrityError,
    JournalError,
    ResumeMismatchError,
    StoppedError,
    TransientModelError,
)
from consilience.experiments.fingerprint import code_hashes
from consilience.experiments.orders import Orders, RunReport
from consilience.journal.events import AttemptReserved, AttemptResponse, RunFinished, RunResumed, TurnAccepted
from consilience.journal.lock import RunLock
from consilience.journal.verify import verify
from consilience.models.base import call_key
from consilience.models.calls import Stop
from consilience.models.request import Request
from consilience.models.scripted import Reply, Scripted
from engine_cases import (
    DEBATE,
    INDEPENDENT,
    LIST_PRICE,
    MODEL,
    PENNY,
    QUICK,
    ROLES,
    carry_out,
    events_of,
    make_item,
    make_items,
    make_plan,
    make_shell,
    panel,
    read,
    reply,
    speak,
)

ITEMS = make_items(3)
PLAN = make_plan(ITEMS)
CALLS = 3 * 5 * 3
RETRY = Orders(limits=QUICK, retry_failed=True)
FREE = ("latency_s", "paid_usd")


def derived(run: Path) -> dict[str, bytes]:
    """Return every file that is made from the journal."""
    names = ["predictions.parquet", "manifest.json", "transcripts", "packets"]
    found = [path for name in names for path in [run / name, *sorted((run / name).glob("*"))] if path.is_file()]
    return {str(path.relative_to(run)): path.read_bytes() for path in found}


def delete_derived(run: Path) -> None:
    for name in ("predictions.parquet", "manifest.json"):
        (run / name).unlink()
    for name in ("transcripts", "packets"):
        shutil.rmtree(run / name)


@dataclass
class StopsAt:
    """Says everything, and asks the run to stop at one of its calls."""

    nth: int
    stop: Stop = field(default_factory=Stop)
    calls: int = 0

    def __call__(self, request: Request) -> Reply:
        self.calls += 1
        self.stop.requested = self.calls == self.nth or self.stop.requested
        return speak(request)


def stopped_run(run: Path, *, at: int = 8) -> RunReport:
    say = StopsAt(at)
    return carry_out(run, PLAN, ITEMS, panel(say), shell=make_shell(stop=say.stop))


def test_a_finished_run_again_makes_no_call_and_writes_no_record(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = carry_out(run, PLAN, ITEMS, panel())
    journal, files = (run / "events-00001.jsonl").read_bytes(), derived(run)
    model = panel()
    again = carry_out(run, PLAN, ITEMS, model)
    assert (first.calls, again.calls, model.requests) == (CALLS, 0, [])
    assert (run / "events-00001.jsonl").read_bytes() == journal
    assert derived(run) == files


def flaky(request: Request) -> Reply:
    """Fail often: the first replies of some seats are refused, cut off, no JSON, or never come."""
    prompt, asks = read(request), "correction>" in request.messages[0].blocks[-1].text
    seat, critique = prompt.seat, prompt.task.startswith("critique")
    if seat == "analyst_01" and critique:
        return reply(abstention="Nothing to say.")
    if seat == "analyst_02" and not asks:
        return "I would say 300,000."
    if seat == "analyst_03" and critique:
        return FinalModelError("refused", hint="Mend it.", status=400)
    return speak(request)


@pytest.mark.parametrize("say", [speak, flaky])
@pytest.mark.parametrize("interrupted", [False, True])
def test_everything_can_be_rebuilt_from_the_journal_without_a_call(
    tmp_path: Path, say: Callable[[Request], Reply], interrupted: bool
) -> None:
    run = tmp_path / "run"
    if interrupted:
        stopped_run(run) if say is speak else None
        model = RefusesFirst(say)
        carry_out(run, PLAN, ITEMS, Scripted(MODEL, model))
    else:
        carry_out(run, PLAN, ITEMS, panel(say))
    files = derived(run)
    assert len(files) == 2 + 2 * len(ITEMS)
    delete_derived(run)
    again = carry_out(run, PLAN, ITEMS, panel(say))
    assert again.calls == 0
    assert derived(run) == files


@dataclass
class RefusesFirst:
    """Fails the first try of every tenth prompt, as an overloaded server does."""

    say: Callable[[Request], Reply]
    seen: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: Request) -> Reply:
        text = repr(request.messages)
        self.seen[text] += 1
        if self.seen[text] == 1 and len(self.seen) % 10 == 0:
            return TransientModelError("overloaded", hint="Wait.", status=529)
        return self.say(request)


def test_a_stopped_run_is_resumed_with_the_missing_calls_only(tmp_path: Path) -> None:
    whole = carry_out(tmp_path / "whole", PLAN, ITEMS, panel())
    for at in (1, 6, 20, CALLS):
        run = tmp_path / str(at)
        first = stopped_run(run, at=at)
        assert isinstance(first.stopped_by, StoppedError) == (first.calls < CALLS)
        rest = carry_out(run, PLAN, ITEMS, panel())
        assert first.calls + rest.calls == CALLS
        assert rest.predictions.drop(FREE).equals(whole.predictions.drop(FREE))
        assert rest.manifest["spent_usd"] == whole.manifest["spent_usd"]
        assert verify(run).finished


ROLE = ROLES[1].model_copy(update={"text": "Read the market with care."})


@pytest.mark.parametrize(
    ("changes", "price", "named"),
    [
        ({"roles": (ROLES[0], ROLE, *ROLES[2:])}, LIST_PRICE, "plan.roles.1.text"),
        ({"preamble": "Judge well."}, LIST_PRICE, "plan.preamble"),
        ({"tasks": PLAN.tasks | {"revision": "Again, ${seat}, round ${round}."}}, LIST_PRICE, "plan.tasks.revision"),
        ({"seed": 8}, LIST_PRICE, "plan.seed"),
        ({"max_output_tokens": 1_000}, LIST_PRICE, "plan.max_output_tokens"),
        (
            {"protocol": {"debate": {"rounds": 2, "settled_change": 0.0}}},
            LIST_PRICE,
            "plan.levels.test, plan.protocol.debate.rounds",
        ),
        ({"models": ("n",)}, LIST_PRICE, "models.m, models.n, plan.models.0, prices.m, prices.n"),
        ({}, PENNY, "prices.m.price.cache_write"),
    ],
)
def test_a_run_that_would_ask_something_else_stops_with_the_difference(
    tmp_path: Path, changes: dict[str, Any], price: Any, named: str
) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    before = (run / "events-00001.jsonl").read_bytes()
    plan = make_plan(ITEMS, **changes)
    model = panel(name=plan.models[0])
    with pytest.raises(ResumeMismatchError) as caught:
        carry_out(run, plan, ITEMS, model, price=price, orders=Orders(limits=QUICK, accept=frozenset({"code"})))
    assert f"differs from the recorded run in {named}" in str(caught.value)
    assert str(caught.value).endswith("Start a new run with --run-id.")
    assert (model.requests, (run / "events-00001.jsonl").read_bytes()) == ([], before)


def test_changed_evidence_stops_the_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    changed = [make_item(number, notes=("New.",)) for number in (1, 2, 3)]
    with pytest.raises(ResumeMismatchError, match=r"plan\.items\.item-01"):
        carry_out(run, make_plan(changed), changed, panel())


def test_another_adapter_version_stops_the_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    newer = Scripted(MODEL, speak, identity=replace(panel().identity, adapter_version="2"))
    with pytest.raises(ResumeMismatchError, match=r"models\.m\.adapter_version"):
        carry_out(run, PLAN, ITEMS, newer)


def test_changed_code_stops_the_run_unless_accepted_and_is_then_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    now = code_hashes() | {"runtime": "f" * 64}
    with monkeypatch.context() as patch:
        patch.setattr("consilience.experiments.protocol.code_hashes", lambda: now)
        with pytest.raises(ResumeMismatchError, match=r"in code\.runtime\. Resume with --accept code"):
            carry_out(run, PLAN, ITEMS, panel())
        accepting = Orders(limits=QUICK, accept=frozenset({"code"}))
        report = carry_out(run, PLAN, ITEMS, panel(), orders=accepting)
    assert report.manifest["deviations"] == ["code.runtime"]
    assert [record.event.accepted for record in events_of(run, RunResumed)] == [["code.runtime"]]  # type: ignore[union-attr]
    files = derived(run)
    delete_derived(run)
    assert carry_out(run, PLAN, ITEMS, panel()).manifest["deviations"] == ["code.runtime"]  # the record remembers
    assert derived(run) == files


def test_code_accepted_after_the_end_is_recorded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    carry_out(run, PLAN, ITEMS, panel())
    now = code_hashes() | {"core": "f" * 64}
    monkeypatch.setattr("consilience.experiments.protocol.code_hashes", lambda: now)
    report = carry_out(run, PLAN, ITEMS, panel(), orders=Orders(limits=QUICK, accept=frozenset({"code"})))
    assert (report.calls, report.manifest["deviations"]) == (0, ["code.core"])
    assert [record.event.accepted for record in events_of(run, RunResumed)] == [["code.core"]]  # type: ignore[union-attr]
    assert verify(run).finished


@pytest.mark.parametrize("tail", [b"{", b'{"hash":"ab', b"x" * 5_000, b"\xff\x00"])
def test_a_torn_tail_is_dropped_and_said(tmp_path: Path, tail: bytes) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    with (run / "events-00001.jsonl").open("ab") as journal:
        journal.write(tail)
    report = carry_out(run, PLAN, ITEMS, panel())
    assert report.torn_bytes == len(tail)
    assert [record.event.torn_bytes for record in events_of(run, RunResumed)] == [len(tail)]  # type: ignore[union-attr]
    assert (run / "events-00001.torn-1").read_bytes() == tail
    assert verify(run).finished


def test_the_last_record_torn_at_any_byte_costs_no_call(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    done = carry_out(whole, PLAN, ITEMS, panel())
    lines = (whole / "events-00001.jsonl").read_bytes().splitlines(keepends=True)
    for cut in (1, 70, len(lines[-1]) - 1):
        run = tmp_path / str(cut)
        shutil.copytree(whole, run)
        (run / "events-00001.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
        report = carry_out(run, PLAN, ITEMS, panel())
        assert (report.calls, report.torn_bytes) == (0, cut)
        assert report.predictions.equals(done.predictions)
        assert isinstance(events_of(run)[-1].event, RunFinished)


def test_a_changed_byte_stops_the_run_and_names_the_record(tmp_path: Path) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    path = run / "events-00001.jsonl"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    model = panel()
    with pytest.raises(IntegrityError, match=r"journal record \d+ \(events-00001.jsonl, byte \d+\)"):
        carry_out(run, PLAN, ITEMS, model)
    assert model.requests == []


def test_a_changed_protocol_file_is_noticed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    path = run / "protocol.json"
    written = path.read_text()
    for old, new in (('"run_secret":"a secret"', '"run_secret":"another"'), ('"arm":"test"', '"arm":"tesu"')):
        path.write_text(written.replace(old, new))
        with pytest.raises(IntegrityError, match=r"with another protocol\.json"):
            carry_out(run, PLAN, ITEMS, panel())
    path.unlink()
    with pytest.raises(IntegrityError, match=r"protocol\.json cannot be read"):
        carry_out(run, PLAN, ITEMS, panel())


@pytest.mark.parametrize("left", ["manifest.json", "predictions.parquet", "transcripts", "traces"])
@pytest.mark.parametrize("journal", [None, b"", b'{"hash":"0'])
def test_a_run_whose_journal_is_gone_is_never_started_over(tmp_path: Path, left: str, journal: bytes | None) -> None:
    run, path = tmp_path / "run", tmp_path / "run" / "events-00001.jsonl"
    carry_out(run, PLAN, ITEMS, panel())
    (run / "traces").mkdir()
    (run / "traces" / "a.json").write_text("{}")
    for other in {"manifest.json", "predictions.parquet", "transcripts", "traces"} - {left}:
        shutil.rmtree(run / other, ignore_errors=True)
        (run / other).unlink(missing_ok=True)
    path.unlink()
    if journal is not None:
        path.write_bytes(journal)
    before, model = sorted(run.rglob("*")), panel()
    with pytest.raises(IntegrityError, match=f"but {left} is there") as told:
        carry_out(run, PLAN, ITEMS, model)
    assert (told.value.exit_code, model.requests) == (6, [])
    assert "copy" in (told.value.hint or "")
    assert sorted(run.rglob("*")) == before


def test_a_journal_that_was_emptied_early_is_not_started_over(tmp_path: Path) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    for name in ("manifest.json", "predictions.parquet"):
        (run / name).unlink()
    shutil.rmtree(run / "transcripts", ignore_errors=True)
    (run / "events-00001.jsonl").write_bytes(b"")
    with pytest.raises(IntegrityError, match="holds no record"):
        carry_out(run, PLAN, ITEMS, panel())


def test_a_run_killed_before_its_first_record_starts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    carry_out(run, PLAN, ITEMS, panel())
    for name in ("manifest.json", "predictions.parquet", "events-00001.jsonl"):
        (run / name).unlink()
    shutil.rmtree(run / "transcripts")
    (run / "events-00001.new").write_bytes(b"{")
    assert {path.name for path in run.iterdir()} >= {"protocol.json", "packets", "lock"}
    assert carry_out(run, PLAN, ITEMS, panel()).calls == CALLS


def test_two_processes_on_one_run_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with RunLock(run), pytest.raises(JournalError, match=r"another process works on the run .* pid \d+"):
        carry_out(run, PLAN, ITEMS, panel())


def test_the_secret_of_the_first_process_stays(tmp_path: Path) -> None:
    run = tmp_path / "run"
    stopped_run(run)
    report = carry_out(run, PLAN, ITEMS, panel(), shell=make_shell(run_secret="other"))  # noqa: S106 - made up
    assert report.stopped_by is None
    assert b'"run_secret":"a secret"' in (run / "protocol.json").read_bytes()


@dataclass
class Ailing:
    """One seat gives no estimate until it is well."""

    way: str
    well: bool = False
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        prompt = read(request)
        self.asked.append(f"{prompt.seat} {prompt.task.split()[0]}")
        if self.well or prompt.seat != "analyst_02" or not prompt.task.startswith("estimate"):
            return speak(request)
        if self.way == "abstained":
            return reply(abstention="I cannot tell.")
        if self.way == "unreadable":
            return "I would say 300,000."
        return TransientModelError("overloaded", hint="Wait.", status=529)


TRIES = {"abstained": 1, "unreadable": 3, "failed": 3}


@pytest.mark.parametrize("way", TRIES)
def test_a_turn_without_answer_is_an_outcome_and_is_asked_again_only_when_told(tmp_path: Path, way: str) -> None:
    plan, run, say = make_plan(ITEMS, protocol=INDEPENDENT), tmp_path / "run", Ailing(way)
    first = carry_out(run, plan, ITEMS, panel(say))
    assert first.manifest["turns"][way] == 3
    assert len(say.asked) == 3 * (4 + TRIES[way])
    assert set(first.predictions["n_answered"]) == {4}
    say.well = True
    say.asked.clear()
    assert carry_out(run, plan, ITEMS, panel(say)).calls == 0
    again = carry_out(run, plan, ITEMS, panel(say), orders=RETRY)
    assert say.asked == ["analyst_02 estimate"] * 3
    assert again.manifest["turns"]["answered"] == 15
    assert set(again.predictions["n_answered"]) == {5}
    attempts = [
        (record.event.ask, record.event.attempt)
        for record in events_of(run, AttemptReserved)
        if isinstance(record.event, AttemptReserved) and record.where.seat == "analyst_02"
    ]
    assert len(set(attempts)) == TRIES[way] + 1  # new tries, none overwritten
    files = derived(run)
    delete_derived(run)
    assert carry_out(run, plan, ITEMS, panel(say)).calls == 0
    assert derived(run) == files


@pytest.mark.parametrize("way", TRIES)
def test_a_healed_turn_in_a_debate_asks_again_what_it_changes(tmp_path: Path, way: str) -> None:
    whole = carry_out(tmp_path / "whole", PLAN, ITEMS, panel())
    run, say = tmp_path / "run", Ailing(way)
    before = carry_out(run, PLAN, ITEMS, panel(say))
    paid = dict(before.predictions.select("item_id", "paid_usd").iter_rows())
    say.well = True
    again = carry_out(run, PLAN, ITEMS, panel(say), orders=RETRY)
    columns = [name for name in whole.predictions.columns if name not in {"paid_usd", "latency_s"}]
    assert again.predictions.select(columns).equals(whole.predictions.select(columns))
    assert all(row["paid_usd"] > paid[row["item_id"]] for row in again.predictions.iter_rows(named=True))
    files = derived(run)
    delete_derived(run)
    assert carry_out(run, PLAN, ITEMS, panel(say)).calls == 0
    assert derived(run) == files


def test_a_retry_cut_short_goes_on_as_a_retry_and_repeats_nothing(tmp_path: Path) -> None:
    run, say = tmp_path / "run", Ailing("failed")
    carry_out(run, PLAN, ITEMS, panel(say))
    stop = StopsAt(9)
    first = carry_out(run, PLAN, ITEMS, panel(stop), orders=RETRY, shell=make_shell(stop=stop.stop))
    assert isinstance(first.stopped_by, StoppedError)
    with pytest.raises(ResumeMismatchError, match="go on with --retry-failed"):
        carry_out(run, PLAN, ITEMS, panel())
    rest = carry_out(run, PLAN, ITEMS, panel(), orders=RETRY)
    answered = Counter(
        (record.where, record.event.key)
        for record in events_of(run, AttemptResponse)
        if isinstance(record.event, AttemptResponse)
    )
    assert set(answered.values()) == {1}
    assert rest.stopped_by is None
    whole = carry_out(tmp_path / "whole", PLAN, ITEMS, panel())
    assert rest.predictions.drop(FREE).equals(whole.predictions.drop(FREE))


def test_a_retry_with_nothing_to_retry_makes_no_call(tmp_path: Path) -> None:
    run = tmp_path / "run"
    whole = carry_out(run, PLAN, ITEMS, panel())
    again = carry_out(run, PLAN, ITEMS, panel(), orders=RETRY)
    assert (again.calls, again.predictions.equals(whole.predictions)) == (0, True)
    assert verify(run).finished


def test_answers_cut_off_between_correction_and_end_are_used(tmp_path: Path) -> None:
    """A turn stopped after its first, refused reply goes on with the correction."""
    plan = make_plan(ITEMS[:1], protocol=INDEPENDENT, roles=ROLES[:1])
    run, stop = tmp_path / "run", Stop()

    def wordy(_: Request) -> Reply:
        stop.requested = True
        return "No JSON."

    first = carry_out(run, plan, ITEMS[:1], panel(wordy), shell=make_shell(stop=stop))
    assert (first.calls, type(first.stopped_by)) == (1, StoppedError)
    model = panel()
    rest = carry_out(run, plan, ITEMS[:1], model)
    assert rest.calls == 1
    assert "No JSON." in model.requests[0].messages[0].blocks[-1].text
    assert [record.event.asks for record in events_of(run, TurnAccepted)] == [2]  # type: ignore[union-attr]
    keys = {call_key(model.identity, model.wire_body(request), replicate=0) for request in model.requests}
    assert keys < {record.event.key for record in events_of(run, AttemptReserved)}  # type: ignore[union-attr]


def test_debates_of_one_two_and_four_rounds_make_their_calls(tmp_path: Path) -> None:
    for rounds in (1, 2, 4):
        plan = make_plan(ITEMS[:1], protocol={"debate": DEBATE["debate"] | {"rounds": rounds}})
        report = carry_out(tmp_path / str(rounds), plan, ITEMS[:1], panel())
        assert report.calls == 5 * (1 + 2 * rounds)
