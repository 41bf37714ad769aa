"""The live adapters against the fake: one seat's turn, or a whole run, over real HTTP and watched at every hit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anthropic
import openai

from consilience.core.canonical import canonical_json
from consilience.core.packet import Item
from consilience.experiments.orders import Orders, RunReport
from consilience.experiments.plan import Plan
from consilience.fakes.faults import Fault
from consilience.fakes.hits import Hit
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import COMPATIBLE_MODEL, Settings
from consilience.journal.events import AttemptReserved, AttemptResponse, TextStored, from_json
from consilience.journal.reader import HEAD, MIDDLE, TAIL, expand
from consilience.journal.verify import verify
from consilience.models.anthropic import Anthropic
from consilience.models.base import Model
from consilience.models.calls import Limits
from consilience.models.compatible import Compatible
from consilience.models.openai import OpenAI
from engine_cases import (
    INDEPENDENT,
    LIST_PRICE,
    ROLES,
    carry_out,
    events_of,
    make_item,
    make_plan,
)

assert anthropic.__version__
assert openai.__version__  # both are imported here, since their first import takes longer than a hang is waited for

CANARY = "sk-canary-0123456789"
PATIENCE = Limits(concurrency=6, attempts=5, attempt_s=20.0, total_s=180.0, backoff_s=0.0, backoff_cap_s=0.0)
Faults = Sequence[Fault | None]


def _anthropic(fake: FakeServer) -> Model:
    return Anthropic("claude-sonnet-5-5", CANARY, fake.base_url)


def _openai(fake: FakeServer) -> Model:
    return OpenAI("gpt-6.1-sol", CANARY, fake.openai_base_url)


def _compatible(fake: FakeServer) -> Model:
    return Compatible(COMPATIBLE_MODEL, fake.openai_base_url, CANARY, "MY_SERVER_KEY")


@dataclass(frozen=True)
class Adapter:
    """An adapter as the suite drives it.

    Attributes:
        name: Of the case.
        endpoint: Where its calls arrive.
        make: Makes it for a fake.
        limit: Field of the output limit.
        probes: Calls that a run makes before its first turn.
        ignore_schema: The server takes schemas and heeds them not.
    """

    name: str
    endpoint: str
    make: Callable[[FakeServer], Model]
    limit: str
    probes: int = 0
    ignore_schema: bool = False

    @property
    def settings(self) -> Settings:
        return Settings(ignore_schema=self.ignore_schema)

    def system(self, body: Mapping[str, Any]) -> str:
        """All system text of a body."""
        if self.endpoint == "messages":
            return "".join(block["text"] for block in body["system"])
        return str(body["instructions"] if self.endpoint == "responses" else body["messages"][0]["content"])

    def user(self, body: Mapping[str, Any]) -> str:
        """All text of the user's one message, its blocks joined by line ends."""
        message = body["input"][0] if self.endpoint == "responses" else body["messages"][-1]
        content = message["content"]
        return content if isinstance(content, str) else "\n".join(block["text"] for block in content)

    def without_user(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A body but for the user's message."""
        name = "input" if self.endpoint == "responses" else "messages"
        return {**body, name: body[name][:-1]}


ANTHROPIC = Adapter("anthropic", "messages", _anthropic, "max_tokens")
OPENAI = Adapter("openai", "responses", _openai, "max_output_tokens")
HONOURED = Adapter("compatible", "chat", _compatible, "max_tokens", probes=1)
IGNORED = Adapter("compatible-prompted", "chat", _compatible, "max_tokens", probes=1, ignore_schema=True)
ADAPTERS = (ANTHROPIC, OPENAI, HONOURED, IGNORED)
VENDORS = (ANTHROPIC, OPENAI)


def reserved_on_disk(folder: Path) -> Counter[bytes]:
    """Return how often each wire body is reserved in the journal as it lies on the disk now."""
    texts: dict[str, str] = {}
    bodies: list[dict[str, Any]] = []
    for path in sorted(folder.glob("events-*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            if not line.endswith(TAIL):
                continue  # being written just now
            event = from_json(json.loads(line[len(HEAD) + 64 + len(MIDDLE) : -len(TAIL)]))[3]
            if isinstance(event, TextStored):
                texts[event.sha256] = event.text
            elif isinstance(event, AttemptReserved):
                bodies.append(event.body)
    return Counter(canonical_json(expand(body, texts)) for body in bodies)


@dataclass
class Watch:
    """A script that looks at the disk at every hit: was this very body reserved, once more than it came before?"""

    folder: Path
    faults: Faults
    came: Counter[bytes] = field(default_factory=Counter)
    unreserved: list[int] = field(default_factory=list)

    def __call__(self, hit: Hit) -> Fault | None:
        index = hit.call_index
        if index is None:
            return None
        body = canonical_json(hit.json)
        self.came[body] += 1
        if reserved_on_disk(self.folder)[body] < self.came[body]:
            self.unreserved.append(index)
        return self.faults[index] if index < len(self.faults) else None


ITEM = make_item()
PLAN = make_plan([ITEM], protocol=INDEPENDENT, roles=ROLES[:1])


@dataclass
class Turn:
    """One seat's turn over HTTP.

    Attributes:
        adapter: Who was asked.
        folder: The run's folder.
        fake: The server.
        report: What the run left.
    """

    adapter: Adapter
    folder: Path
    fake: FakeServer
    report: RunReport

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The turn's own calls, without the probe."""
        return self.fake.calls()[self.adapter.probes :]

    @property
    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.folder / "transcripts" / "item-01.json").read_bytes())
        (turn,) = told["turns"]
        return dict(turn)

    @property
    def outcome(self) -> dict[str, Any]:
        return dict(self.told["outcome"])

    def events(self, *types: type) -> list[Any]:
        """The turn's own events, without the probe's."""
        return [record.event for record in events_of(self.folder, *types) if record.where.kind == "estimate"]

    @property
    def cost_nano(self) -> int:
        """What the turn's answers cost."""
        return sum(event.cost_nano for event in self.events(AttemptResponse))

    @property
    def replies(self) -> list[str]:
        return [str(ask["reply"]) for ask in self.told["asks"]]


def take_turn(
    adapter: Adapter,
    fake: FakeServer,
    folder: Path,
    *faults: Fault | None,
    limits: Limits = PATIENCE,
    price: Any = LIST_PRICE,
) -> Turn:
    """Ask one seat one question while things go wrong, and check what must hold whatever goes wrong."""
    watch = Watch(folder / "run", [None] * adapter.probes + list(faults))
    fake.reset(watch, settings=adapter.settings)
    report = run_live(adapter, fake, folder / "run", limits=limits, price=price)
    turn = Turn(adapter, folder / "run", fake, report)
    check_hits(turn, watch)
    again = run_live(adapter, fake, folder / "run", limits=limits, price=price)
    assert (again.calls, len(fake.calls())) == (0, report.calls)
    assert verify(folder / "run").finished
    return turn


def check_hits(turn: Turn, watch: Watch) -> None:
    """Every hit was reserved beforehand, was one of ours, held no key, and is what the journal says was sent."""
    assert watch.unreserved == []
    assert turn.report.calls == len(turn.fake.calls()) == len(turn.fake.hits)
    assert reserved_on_disk(turn.folder) == watch.came
    assert [hit.refused for hit in turn.fake.hits if hit.refused] == []
    assert [(hit.notes, hit.leaked_key) for hit in turn.fake.hits if hit.notes or hit.leaked_key] == []
    assert {hit.path for hit in turn.fake.calls()} == {
        f"/v1/{turn.adapter.endpoint.replace('chat', 'chat/completions')}"
    }


def run_live(
    adapter: Adapter,
    fake: FakeServer,
    folder: Path,
    *,
    plan: Plan = PLAN,
    items: Sequence[Item] = (ITEM,),
    limits: Limits = PATIENCE,
    price: Any = LIST_PRICE,
    orders: Orders | None = None,
) -> RunReport:
    """Run or resume a plan whose one model is the adapter's."""
    model = adapter.make(fake)
    named = plan.model_copy(update={"models": (model.id,)})
    given = orders or Orders(limits=limits)
    return carry_out(
        folder, named, list(items), model, orders=replace(given, limits=given.limits or limits), price=price
    )
