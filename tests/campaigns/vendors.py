"""Faults of the vendor at any rate, and one run of ten thousand turns."""

from __future__ import annotations

import gc
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from adapter_cases import ANTHROPIC, HONOURED, OPENAI, PATIENCE, Adapter, run_live
from campaigns.ground import ITEMS, PLAN, Case, Ground, check_money
from campaigns.processes import say
from consilience.core.canonical import canonical_json
from consilience.errors import ConsilienceError
from consilience.experiments.orders import Orders
from consilience.experiments.verification import verify_run
from consilience.fakes.faults import Fault, status
from consilience.fakes.hits import Hit
from consilience.fakes.server import FakeServer, running_fake
from consilience.journal.events import AttemptReserved
from consilience.journal.verify import verify
from consilience.models.request import Request
from engine_cases import CENT, INDEPENDENT, PENNY, carry_out, events_of, make_items, make_plan, panel, speak

HEALING = (
    *(status(code) for code in (408, 409, 429, 500, 502, 503, 529)),
    *(status(429, retry_after=said) for said in ("0", "300", "soon", "-1", "1e9", "Wed, 21 Oct 2015 07:28:00 GMT")),
    *(Fault(kind) for kind in ("drop", "error_body", "broken_body", "hang", "trickle")),
)
SPOILT = tuple(
    Fault(kind)
    for kind in (
        *("truncated", "refusal", "context_stop", "content_filter", "other_model", "usage_missing", "usage_none"),
        *("out_of_range", "surrogate", "surrogate_escape", "empty", "invalid_json", "failed"),
    )
)
RATES = (0.05, 0.1, 0.2, 0.3, 0.5)
SHORT = replace(PATIENCE, attempt_s=3.0, total_s=30.0, backoff_cap_s=0.0)
CAPPED = Orders(max_spend_nano=400 * CENT, limits=SHORT)


@dataclass
class Storm:
    """Things go wrong at a rate; tells which bodies were answered well."""

    rate: float
    chance: random.Random
    kinds: tuple[Fault, ...] = HEALING + SPOILT
    well: Counter[bytes] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)

    def __call__(self, hit: Hit) -> Fault | None:
        if hit.call_index is None:
            return None
        if self.chance.random() >= self.rate:
            self.well[canonical_json(hit.json)] += 1
            return None
        fault = self.chance.choice(self.kinds)
        if fault.kind in {"hang", "trickle"} and self.chance.random() < 0.9:  # they cost time
            fault = status(503)
        self.struck[fault.kind] += 1
        return fault


def check_calls(fake: FakeServer, run: Path) -> None:
    """Every call that came was reserved, nothing else was, and nothing that was answered well was asked again."""
    came = Counter(canonical_json(hit.json) for hit in fake.calls())
    reserved = len(events_of(run, AttemptReserved))
    assert reserved == came.total()
    assert [hit.refused for hit in fake.calls() if hit.refused] == []


def stormy(ground: Ground) -> None:
    """Everything that a vendor can do wrong, at rates of 5 to 50 %; then the weather clears."""
    with running_fake() as fake:
        struck: Counter[str] = Counter()
        for run in ground.each():
            rate = RATES[ground.tried % len(RATES)]
            adapter: Adapter = (ANTHROPIC, OPENAI, HONOURED)[ground.tried // len(RATES) % 3]
            storm = Storm(rate, ground.rng)
            fake.reset(storm, say)
            carried = {"plan": PLAN, "items": ITEMS, "limits": SHORT, "price": PENNY}
            try:
                report = run_live(adapter, fake, run, orders=CAPPED, **carried)  # type: ignore[arg-type]
            except ConsilienceError as error:  # such as a probe that failed: nothing can be asked then
                assert adapter.probes, error  # noqa: PT017 - others begin in any weather
            else:
                assert report.stopped_by is None
            check_calls(fake, run)
            check_money(run, cap=400 * CENT)
            assert verify(run).ok
            fake._fake.settings = replace(fake._fake.settings, script=Clear(storm))
            mended = replace(CAPPED, retry_failed=True)
            after = run_live(adapter, fake, run, orders=mended, **carried)  # type: ignore[arg-type]
            assert after.manifest["items"] == {"answered": len(ITEMS), "not_run": 0}
            assert set(after.manifest["turns"]) <= {"answered", "abstained", "failed", "unreadable"}
            assert max(storm.well.values()) == 1
            check_calls(fake, run)
            check_money(run, cap=400 * CENT)
            checked = verify_run(run)
            assert (checked.ok, checked.journal.finished) == (True, True)
            before = len(fake.calls())
            again = run_live(adapter, fake, run, orders=CAPPED, **carried)  # type: ignore[arg-type]
            assert (again.calls, len(fake.calls())) == (0, before)
            struck += storm.struck
    ground.found = f"{struck.total():,} faults of {len(struck)} kinds"


@dataclass
class Clear:
    """Nothing goes wrong any more; what was answered well is still counted."""

    storm: Storm

    def __call__(self, hit: Hit) -> Fault | None:
        if hit.call_index is not None:
            self.storm.well[canonical_json(hit.json)] += 1
        return None


def trickling(ground: Ground) -> None:
    """An answer that comes byte by byte is given up within the limit of a try, and asked again."""
    with running_fake() as fake:
        for run in ground.each():
            adapter = (ANTHROPIC, OPENAI)[ground.tried % 2]
            slow = ground.rng.randrange(1, 4)
            fake.reset([Fault("trickle")] * slow, say)
            limits = replace(PATIENCE, attempt_s=2.0, total_s=60.0)
            plan = make_plan(ITEMS[:1], protocol=INDEPENDENT)
            report = run_live(adapter, fake, run, plan=plan, items=ITEMS[:1], limits=limits, price=PENNY)
            assert report.calls >= 5 + slow  # under load a good answer may be too late as well
            assert report.manifest["turns"]["answered"] == 5
            assert len([hit for hit in fake.calls() if hit.fault == "trickle"]) == slow
            assert verify_run(run).ok


TURNS = 10_000
SEATS = 5
WARM = 0.2


def soak(ground: Ground) -> None:
    """Ten thousand turns in one run: memory and handles after a fifth of them are those at the end, near enough."""
    turns = min(TURNS, ground.tries)
    items = make_items(turns // SEATS)
    me = psutil.Process()
    sizes: list[tuple[int, int]] = []

    def say_and_look(request: Request) -> str:
        count[0] += 1
        if count[0] in marks:
            gc.collect()
            sizes.append((me.memory_info().rss, me.num_fds()))
        return speak(request)

    count, marks = [0], {int(turns * WARM), turns - 1}
    model = Forgetful(panel(say_and_look))
    plan = make_plan(items, protocol=INDEPENDENT)
    report = carry_out(ground.folder / "run", plan, items, model, orders=Orders())
    assert report.calls == turns
    (warm, handles), (end, handles_end) = sizes
    per_turn = (end - warm) / (turns * (1 - WARM))
    ground.tried = turns
    ground.found = (
        f"RSS {warm / 2**20:.0f} MiB after {int(turns * WARM):,} turns, {end / 2**20:.0f} MiB at the end "
        f"({per_turn:,.0f} bytes a turn), {handles} and {handles_end} handles"
    )
    assert handles_end <= handles + 2
    assert per_turn < MOST_BYTES_PER_TURN
    assert verify_run(ground.folder / "run").ok


MOST_BYTES_PER_TURN = 8_000


@dataclass
class Forgetful:
    """A scripted model that keeps no request."""

    model: Any
    min_cacheable_tokens: int | None = None

    @property
    def id(self) -> str:
        return str(self.model.id)

    @property
    def identity(self) -> Any:
        return self.model.identity

    def wire_body(self, request: Request) -> dict[str, Any]:
        return dict(self.model.wire_body(request))

    async def complete(self, request: Request) -> Any:
        done = await self.model.complete(request)
        self.model.requests.clear()
        return done


def seats_fail(ground: Ground) -> None:
    """A fifth of the seats never answers: the quorum holds and the result says so; most of them: no answer and why."""
    for run in ground.each():
        failing = ground.rng.sample(range(1, SEATS + 1), 1 if ground.tried % 2 else 3)
        report = carry_out(run, make_plan(ITEMS, protocol=INDEPENDENT), ITEMS, panel(_mute(failing)))
        told = json.loads((run / "transcripts" / "item-01.json").read_bytes())
        missing = [turn for turn in told["turns"] if turn["outcome"]["status"] != "answered"]
        assert len(missing) == len(failing)
        assert report.manifest["turns"]["unreadable"] == len(failing) * len(ITEMS)
        quorum = len(failing) == 1
        assert report.manifest["items"].get("answered", 0) == (len(ITEMS) if quorum else 0)
        assert verify_run(run).ok


def _mute(failing: list[int]) -> Callable[[Request], str]:
    from engine_cases import seat_number  # noqa: PLC0415

    return lambda request: "No." if seat_number(request) in failing else speak(request)


CASES = (
    Case(
        "every fault of a vendor, at rates of 5, 10, 20, 30 and 50 %",
        "counted at the vendor: nothing is asked unreserved, nothing answered well is asked again, the cap holds; "
        "in good weather the rest is answered",
        stormy,
        many=40,
        by="test_a_cap_pays_exactly_its_calls_whatever_goes_wrong",
    ),
    Case(
        "an answer that trickles in byte by byte",
        "the try is given up within its limit and made again",
        trickling,
        many=20,
        few=1,
    ),
    Case(
        "a fifth of the seats fails, or most of them",
        "above the quorum there is an answer and the missing are named; below it there is none",
        seats_fail,
        many=20,
        by="test_a_turn_without_answer_is_an_outcome_and_is_asked_again_only_when_told",
    ),
    Case(
        "10,000 turns in one run",
        f"fewer than {MOST_BYTES_PER_TURN:,} bytes of memory a turn, and no handle is kept",
        soak,
        many=TURNS,
        by="test_64_waiters_share_a_few_syncs",
    ),
)
