"""What the vendors read from their caches, told from the bytes they received."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapter_cases import CANARY, PATIENCE, VENDORS, Adapter, run_live
from consilience.core.packet import Item
from consilience.core.role import Role
from consilience.core.turn import Turn
from consilience.experiments.casting import cast
from consilience.experiments.orders import Job, Orders, RunReport
from consilience.experiments.plan import Choices, Plan, make_plan
from consilience.experiments.runner import run_arm
from consilience.fakes.calls import simulated_responder
from consilience.fakes.hits import Hit
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import Settings
from consilience.models.prices import load_catalogue
from consilience.models.request import Completion
from consilience.runtime.briefing import Briefing
from consilience.runtime.briefing import Settings as CallSettings
from consilience.valuation.analysts import read_property
from consilience.valuation.pipeline import VALUATION, Project, load_items, synthetic_project
from engine_cases import INDEPENDENT, make_items, make_shell
from engine_cases import make_plan as small_plan

SEED = 7
STEP = 128
TAG = "0" * 32
CATALOGUE = load_catalogue()


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    """Five sales of the synthetic town."""
    project = Project(tmp_path_factory.mktemp("town"))
    synthetic_project(project, seed=SEED)
    return load_items(project, split="validation", n=5)


def debate(fake: FakeServer, folder: Path, houses: Sequence[Item], committee: str) -> RunReport:
    """Let twelve roles debate five houses for two rounds."""
    fake.reset(responder=simulated_responder(read_property, seed=SEED))
    choices = Choices(
        arm="G_debate", rounds=(2,), committee=committee, tier="mid", split="validation", seed=SEED, live=True
    )
    plan = make_plan(VALUATION, houses, choices, catalogue=CATALOGUE)
    environ = {
        "ANTHROPIC_API_KEY": CANARY,
        "OPENAI_API_KEY": CANARY,
        "ANTHROPIC_BASE_URL": fake.base_url,
        "OPENAI_BASE_URL": fake.openai_base_url,
    }
    models = cast(plan.models, catalogue=CATALOGUE, environ=environ, reader=read_property, seed=SEED)
    job = Job(plan, houses, "debate", folder, models, CATALOGUE)
    return anyio.run(run_arm, job, make_shell(), Orders(limits=PATIENCE))


def read_tokens(hit: Hit) -> int:
    usage = hit.usage or {}
    if "cache_read_input_tokens" in usage:
        return int(usage["cache_read_input_tokens"])
    return int(usage["input_tokens_details"]["cached_tokens"])


def written_tokens(hit: Hit) -> int:
    usage = hit.usage or {}
    if "cache_creation_input_tokens" in usage:
        return int(usage["cache_creation_input_tokens"])
    return int(usage["input_tokens_details"]["cache_write_tokens"])


def texts(adapter: Adapter, hit: Hit) -> tuple[str, str, str]:
    """Return schema, system and view as they came; the schema stands before everything else."""
    body = hit.json
    form = body["output_config"]["format"] if adapter.endpoint == "messages" else body["text"]["format"]
    content = (body["messages"] if adapter.endpoint == "messages" else body["input"])[0]["content"]
    assert len(content) == 2
    return json.dumps({"schema": form["schema"]}), adapter.system(body), content[0]["text"]


def share(report: RunReport) -> str:
    return f"{report.manifest['cached_share']:.1%} of the input cached, ${report.manifest['spent_usd']:.4f}"


@pytest.mark.parametrize("adapter", VENDORS, ids=lambda adapter: adapter.name)
@pytest.mark.slow
def test_critiques_and_revisions_reuse_system_and_view(
    adapter: Adapter, fake: FakeServer, tmp_path: Path, houses: list[Item]
) -> None:
    report = debate(fake, tmp_path / "run", houses, f"all_{adapter.name}")
    by_seat: dict[tuple[str, str, str], list[Hit]] = defaultdict(list)
    for hit in fake.calls():
        by_seat[texts(adapter, hit)].append(hit)
    assert len(by_seat) == 12 * 5  # one schema, one system, one view per seat and house, to the byte
    assert {len(hits) for hits in by_seat.values()} == {5}
    for prefix, (_, *later) in by_seat.items():
        whole = sum(map(len, prefix)) // 4
        least = whole if adapter.endpoint == "messages" else whole // STEP * STEP
        assert [read_tokens(hit) >= least for hit in later] == [True] * 4, share(report)
    cold = [hits[0] for hits in by_seat.values() if read_tokens(hits[0]) == 0]
    assert len(cold) == 12, "each seat's system prompt is filled once, for the first house, and read for the others"
    assert report.manifest["cached_share"] > 0.7, share(report)


@pytest.mark.slow
def test_the_second_breakpoint_pays(
    fake: FakeServer, tmp_path: Path, houses: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = debate(fake, tmp_path / "both", houses, "all_anthropic")
    layout = Plan.settings

    def system_only(self: Plan, *, run_secret: str) -> CallSettings:
        return replace(layout(self, run_secret=run_secret), reuse_view=frozenset())

    monkeypatch.setattr(Plan, "settings", system_only)
    one = debate(fake, tmp_path / "one", houses, "all_anthropic")
    said = f"with both breakpoints {share(both)}; with the system's alone {share(one)}"
    assert both.calls == one.calls == 300, said
    assert both.predictions["point"].equals(one.predictions["point"]), said
    assert both.manifest["cached_share"] > one.manifest["cached_share"] + 0.2, said
    assert both.manifest["spent_usd"] < 0.9 * one.manifest["spent_usd"], said


def test_a_lone_estimate_pays_no_surcharge_for_a_view_that_nobody_reads_again(
    fake: FakeServer, tmp_path: Path, houses: list[Item]
) -> None:
    choices = Choices(
        arm="E_single", rounds=(), committee="all_anthropic", tier="mid", split="validation", seed=SEED, live=True
    )
    plan = make_plan(VALUATION, houses[:1], choices, catalogue=CATALOGUE)
    run_live(VENDORS[0], fake, tmp_path / "run", plan=plan, items=houses[:1])
    (hit,) = fake.calls()
    assert (written_tokens(hit), "cache_control" in hit.body.decode()) == (0, False)


# Warm one call, then fan out

ITEMS = make_items(8)
WORDY = small_plan(ITEMS, protocol=INDEPENDENT, roles=[Role(id="market", view=("M",), text="Read the market. " * 500)])


@pytest.mark.parametrize("adapter", VENDORS, ids=lambda adapter: adapter.name)
def test_of_parallel_calls_with_one_prefix_one_writes_and_the_rest_read(
    adapter: Adapter, fake: FakeServer, tmp_path: Path
) -> None:
    fake.reset(settings=Settings(latency_s=0.05))
    limits = replace(PATIENCE, concurrency=8)
    orders = Orders(concurrency=8, limits=limits)
    report = run_live(adapter, fake, tmp_path / "run", plan=WORDY, items=ITEMS, orders=orders)
    assert report.manifest["items"]["answered"] == 8
    first, *others = fake.calls()
    assert (read_tokens(first), written_tokens(first) > 1_024) == (0, True)
    assert all(read_tokens(hit) > 1_024 for hit in others)
    if adapter.endpoint == "messages":
        assert [written_tokens(hit) for hit in others] == [0] * 7
    assert max(hit.time for hit in others) - min(hit.time for hit in others) < 7 * 0.05  # these left together


@pytest.mark.parametrize("adapter", VENDORS, ids=lambda adapter: adapter.name)
def test_without_warming_parallel_calls_all_write(adapter: Adapter, fake: FakeServer) -> None:
    """This is what the pool spares: the fake fills its caches as late as the vendors do."""
    fake.reset(settings=Settings(latency_s=0.3))
    model: Any = adapter.make(fake)
    plan = WORDY.model_copy(update={"models": (model.id,)})
    briefing = Briefing(
        ITEMS[0], seats=plan.seats(ITEMS[0].question.id), prompts=plan.prompts, settings=plan.settings(run_secret=TAG)
    )
    request = briefing.request(briefing.seats[0].label, Turn(kind="estimate", round=0), None)
    answered: list[Completion] = []

    async def one(replicate: int) -> None:
        answered.append(await model.complete(replace(request, replicate=replicate)))

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for replicate in range(8):
                group.start_soon(partial(one, replicate))
        await model.close()

    anyio.run(run)
    assert [done.usage is not None and done.usage.cache_write_5m > 1_024 for done in answered] == [True] * 8
