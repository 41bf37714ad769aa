from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio.lowlevel
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from consilience.core.packet import EvidenceItem, Section
from consilience.core.role import Role
from consilience.errors import BudgetError, FinalModelError, LeakError, TransientModelError
from consilience.evidence.figures import figure_of
from consilience.experiments.orders import Orders
from consilience.experiments.predictions import read_predictions
from consilience.journal.events import AttemptLost, AttemptReserved, AttemptResponse
from consilience.journal.verify import verify
from consilience.models.base import Identity
from consilience.models.request import Completion, Request, Usage
from consilience.models.scripted import IDENTITY, Reply, completion, prompt_text
from consilience.protocols import PROTOCOLS
from consilience.valuation.roster import placebo_roles, roles_for
from engine_cases import (
    CENT,
    INDEPENDENT,
    MODEL,
    PENNY,
    QUICK,
    ROLES,
    carry_out,
    cast_for,
    events_of,
    make_item,
    make_items,
    make_plan,
    money_by_record,
    panel,
    question,
    read,
    speak,
)

SLOW = settings(max_examples=settings().max_examples // 5)  # every example is a whole run with its syncs
ITEMS = make_items(4)
FREE = ("latency_s", "paid_usd")


@contextmanager
def a_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name) / "run"


@dataclass
class Weather:
    """A model with bad days: what happens at each call, for what price and after how long, is drawn beforehand."""

    days: list[tuple[str, int, int]]
    calls: int = 0
    id: str = MODEL
    identity: Identity = IDENTITY
    min_cacheable_tokens: int | None = None

    def wire_body(self, request: Request) -> dict[str, Any]:
        return panel().wire_body(request)

    async def complete(self, request: Request) -> Completion:
        what, tokens, steps = self.days[self.calls % len(self.days)]
        self.calls += 1
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        if what == "overloaded":
            raise TransientModelError("overloaded", hint="Wait.", status=529)
        if what == "lost":
            raise TransientModelError("connection lost", hint="Wait.")
        if what == "final":
            raise FinalModelError("refused", hint="Mend it.", status=400)
        limit = request.max_output_tokens
        usage = None if what == "silent" else Usage(5, 0, 0, 0, min(tokens, limit), 0)
        done = completion(request, "No JSON." if what == "wordy" else speak(request), usage=usage)
        stop_reason: Any = {"cut": "max_tokens", "refused": "refusal"}.get(what, "end")
        return Completion(**{**vars(done), "usage": usage, "stop_reason": stop_reason})


WAYS = ("fine", "fine", "fine", "fine", "overloaded", "lost", "final", "silent", "wordy", "cut", "refused")
DAYS = st.lists(st.tuples(st.sampled_from(WAYS), st.integers(0, 2_000), st.integers(0, 6)), min_size=1, max_size=40)


@SLOW
@given(
    days=DAYS,
    cap=st.integers(0, 30 * CENT),
    concurrency=st.integers(1, 4),
    protocol=st.sampled_from([INDEPENDENT, {"debate": {"rounds": 1, "settled_change": 0.0}}]),
)
def test_spent_and_reserved_keep_the_cap_at_every_event_and_a_resumed_run_repeats_no_answer(
    days: list[tuple[str, int, int]], cap: int, concurrency: int, protocol: Any
) -> None:
    plan = make_plan(ITEMS, protocol=protocol, roles=ROLES[:3])
    with a_folder() as run:
        orders = Orders(max_spend_nano=cap, concurrency=concurrency, limits=QUICK)
        report = carry_out(run, plan, ITEMS, Weather(days), orders=orders, price=PENNY)
        money = money_by_record(events_of(run))
        assert all(spent + reserved <= cap for spent, reserved in money)
        spent, reserved = money[-1]
        assert (report.manifest["spent_usd"], reserved) == (spent / 1e9, 0)
        assert report.stopped_by is None or isinstance(report.stopped_by, BudgetError)
        if report.stopped_by is not None:  # neither the dearest call (two cents) nor the next item (three) did fit
            assert spent + 4 * CENT > cap
        first = {(record.where, record.event.ask) for record in events_of(run, AttemptResponse)}  # type: ignore[union-attr]
        rest = carry_out(run, plan, ITEMS, Weather(days), orders=Orders(limits=QUICK), price=PENNY)
        answers = Counter((record.where, record.event.ask) for record in events_of(run, AttemptResponse))  # type: ignore[union-attr]
        assert set(answers.values()) <= {1}
        assert first <= answers.keys()
        assert rest.manifest["items"]["not_run"] == 0
        assert verify(run).finished


@dataclass
class Record:
    """A finished run's journal, to be cut anywhere."""

    lines: list[bytes] = field(default_factory=list)
    protocol: bytes = b""
    calls: int = 0
    predictions: Any = None


WHOLE = Record()
PLAN = make_plan(ITEMS[:2], roles=ROLES[:3])


def whole() -> Record:
    """Run once, with refusals, corrections and failed tries in it."""
    if not WHOLE.lines:
        with a_folder() as run:
            model = panel(moody)
            WHOLE.predictions = carry_out(run, PLAN, ITEMS[:2], model).predictions
            WHOLE.calls = len(model.requests)
            WHOLE.lines = (run / "events-00001.jsonl").read_bytes().splitlines(keepends=True)
            WHOLE.protocol = (run / "protocol.json").read_bytes()
    return WHOLE


def moody(request: Request) -> Reply:
    prompt = read(request)
    corrected = "correction>" in request.messages[0].blocks[-1].text
    if prompt.seat == "analyst_02" and not corrected and not prompt.task.startswith("critique"):
        return "No JSON."
    if prompt.seat == "analyst_03" and prompt.task.startswith("critique"):
        return completion(request, "", stop_reason="refusal")
    if prompt.seat == "analyst_01" and request.max_output_tokens == PLAN.max_output_tokens:
        return completion(request, "{", stop_reason="max_tokens")
    return speak(request)


@SLOW
@given(at=st.floats(0, 1), torn=st.integers(0, 400))
def test_a_journal_cut_anywhere_is_completed_by_the_missing_calls(at: float, torn: int) -> None:
    record = whole()
    keep = max(1, round(at * len(record.lines)))
    assume(keep < len(record.lines) or torn == 0)
    tail = record.lines[keep][: min(torn, len(record.lines[keep]) - 1)] if keep < len(record.lines) else b""
    with a_folder() as run:
        run.mkdir()
        (run / "protocol.json").write_bytes(record.protocol)
        (run / "events-00001.jsonl").write_bytes(b"".join(record.lines[:keep]) + tail)
        kept = events_of(run)
        answered = sum(isinstance(one.event, AttemptResponse) for one in kept)
        lost = sum(isinstance(one.event, AttemptReserved) for one in kept) - answered
        report = carry_out(run, PLAN, ITEMS[:2], panel(moody))
        assert (report.calls, report.lost, report.torn_bytes) == (record.calls - answered, lost, len(tail))
        assert len(events_of(run, AttemptLost)) == lost
        assert report.predictions.drop(FREE).equals(record.predictions.drop(FREE))
        assert read_predictions(run / "predictions.parquet").equals(report.predictions)
        assert verify(run).finished


ROSTERS = {"few": ROLES, "default": roles_for("default12"), "all": roles_for("all20"), "placebo": placebo_roles(12)}
TRUTHS = st.integers(101_003, 9_876_543).filter(lambda value: value % 1_000 != 0)


def written(truth: int) -> list[str]:
    return [
        str(truth),
        f"{truth:,}",
        f"${truth:,}",
        f"{truth:,}".replace(",", " "),
        f"{truth}.0",
        f"{truth / 1e6:.6f}M",
    ]


@settings(max_examples=settings().max_examples // 3)
@given(
    truth=TRUTHS,
    way=st.integers(0, 5),
    place=st.sampled_from(
        ["strata", "cluster", "note", "title", "question", "remark", "nested", "list", "name", "number", "role", "task"]
    ),
    code=st.sampled_from("PCMG"),
    roster=st.sampled_from(sorted(ROSTERS)),
    protocol=st.sampled_from(PROTOCOLS.names()),
)
def test_a_planted_secret_stands_in_no_prompt(
    truth: int, way: int, place: str, code: str, roster: str, protocol: str
) -> None:
    """Wherever the truth is planted: either nothing is asked at all, or no prompt of any role and round shows it."""
    words = f"It went for {written(truth)[way]}."
    item = plant(place, words, truth, code)
    if "estimate" not in PROTOCOLS[protocol].kinds:
        item = item.model_copy(update={"question": question("probability", text=item.question.text)})
    roles = tuple(ROSTERS[roster])
    if place == "role":
        roles = (*roles[:-1], Role(id="leaky", view=("all",), text=words))
    roles, parts = cast_for(protocol, roles)
    plan = make_plan([item], protocol={protocol: {}}, roles=roles, parts=parts)
    if place == "task":
        kind = next(iter(plan.tasks))
        plan = plan.model_copy(update={"tasks": plan.tasks | {kind: f"{kind} {words} ${{seat}} ${{round}}"}})
    model = panel()
    figure = figure_of(float(truth))
    assert figure is not None
    with a_folder() as run:
        try:
            carry_out(run, plan, [item], model)
        except LeakError:
            assert model.requests == []
            assert place not in {"strata", "cluster"}
            return
    assert model.requests
    legitimate = place == "number" and code != "P"  # a comparable may have sold for the same amount
    for request in model.requests:
        assert legitimate or not figure.occurs_in(prompt_text(request))


def plant(place: str, words: str, truth: int, code: str) -> Any:
    base = make_item(truth=float(truth))
    sections = dict(base.packet.sections)
    contents: dict[str, dict[str, Any]] = {
        "remark": {"remark": words},
        "nested": {"a": {"b": [{"c": words}]}},
        "list": {"tags": ["x", words]},
        "name": {words: 1},
        "number": {"level": truth},
    }
    if place in contents:
        planted = EvidenceItem(id="Z9", content=contents[place])
        sections[code] = Section(code=code, title="Section", items=(*sections[code].items, planted))
    elif place == "title":
        sections[code] = sections[code].model_copy(update={"title": words})
    changes: dict[str, Any] = {"notes": (words,)} if place == "note" else {}
    item = make_item(truth=float(truth), sections=sections, **changes)
    if place == "question":
        return item.model_copy(update={"question": item.question.model_copy(update={"text": words})})
    if place == "strata":
        return item.model_copy(update={"strata": {"price": words}})
    return item.model_copy(update={"cluster": words}) if place == "cluster" else item


@SLOW
@given(
    offsets=st.lists(st.integers(-2_000, 2_000), min_size=12, max_size=12),
    roster=st.sampled_from(sorted(ROSTERS)),
    truth=TRUTHS,
)
def test_members_that_guess_the_exact_price_stop_nothing(offsets: list[int], roster: str, truth: int) -> None:
    item = make_item(truth=float(truth))
    roles = tuple(ROSTERS[roster])

    def guess(request: Request) -> str:
        told = speak(request)
        point = truth + (offsets[len(told) % 12] if read(request).seat != "analyst_01" else 0)
        return told.replace('"So."', f'"Worth {point:,}."')

    model = panel(guess)
    with a_folder() as run:
        report = carry_out(run, make_plan([item], roles=roles), [item], model)
    assert (report.stopped_by, report.calls) == (None, 3 * len(roles))
    assert any(f"{truth:,}" in prompt_text(request) for request in model.requests)
