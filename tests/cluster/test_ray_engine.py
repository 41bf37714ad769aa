"""The Ray engine on two nodes on this machine: same bytes, one cap, and a killed worker repeats no call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from adapter_cases import ANTHROPIC, CANARY, PATIENCE, reserved_on_disk, run_live
from consilience.errors import BudgetError
from consilience.experiments.engines.ray import RayEngine
from consilience.experiments.orders import Orders
from consilience.experiments.verification import verify_run
from consilience.fakes.calls import Call
from consilience.fakes.server import FakeServer, running_fake
from consilience.fakes.settings import Settings
from consilience.journal.events import AttemptLost, AttemptReserved, AttemptResponse
from consilience.journal.workers import worker_folder, workers_of
from consilience.models.anthropic import Anthropic
from consilience.models.base import Model
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

pytestmark = pytest.mark.ray

TESTS = Path(__file__).resolve().parents[1]
APART = ["latency_s", "paid_usd"]
ITEMS = make_items(12)
PLAN = make_plan(ITEMS, protocol=INDEPENDENT, roles=ROLES[:3])
GOOD = reply(answer=answer_json())
TO_THE_CENT = Settings(reasoning_tokens=PLAN.max_output_tokens - len(GOOD) // 4, latency_s=0.05)
DEBATED = ("--arm", "G_debate", "--rounds", "1", "--synthetic", "--n", "4", "--json")
CLAUDE = "claude-sonnet-5-5"


def claude(base_url: str) -> dict[str, Model]:
    return {CLAUDE: Anthropic(CLAUDE, CANARY, base_url)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS), str(TESTS / "cluster")])
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray's word for: this machine's address is the loopback's
    import ray  # noqa: PLC0415 - only where this suite runs
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - the same

    node = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    two = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    two.add_node(**node)
    ray.init(address=two.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield two
    finally:
        ray.shutdown()
        two.shutdown()


@pytest.fixture(scope="module")
def running() -> Iterator[FakeServer]:
    with running_fake() as server:
        yield server


@dataclass
class Killer:
    """Answers calls, and kills the first worker's process at one of them."""

    run: Path
    at: int
    heard: int = 0
    killed: int | None = None

    def __call__(self, _: Call) -> str:
        self.heard += 1
        if self.heard == self.at:
            holder = json.loads((worker_folder(self.run, "00001") / "lock").read_bytes())
            self.killed = int(holder["pid"])
            os.kill(self.killed, signal.SIGKILL)
        return GOOD


def carried(running: FakeServer, run: Path, *, price: Any = LIST_PRICE, **changes: Any) -> Any:
    engine = RayEngine(partial(claude, running.base_url), workers=2)
    orders = Orders(concurrency=8, engine=engine, **changes)
    return run_live(ANTHROPIC, running, run, plan=PLAN, items=ITEMS, limits=PATIENCE, price=price, orders=orders)


def check_record(running: FakeServer, run: Path) -> None:
    """Every call that came was reserved, and nothing else was."""
    came = Counter(json.dumps(hit.json, sort_keys=True) for hit in running.calls())
    reserved = {json.dumps(json.loads(body), sort_keys=True): count for body, count in reserved_on_disk(run).items()}
    assert dict(came) == reserved


def test_two_nodes_give_what_one_process_gives(cluster: Any, running: FakeServer, tmp_path: Path) -> None:
    running.reset((), lambda _: GOOD, settings=Settings(reasoning_tokens=0))
    shared = carried(running, tmp_path / "ray")
    check_record(running, tmp_path / "ray")
    running.reset((), lambda _: GOOD, settings=Settings(reasoning_tokens=0))
    alone = run_live(ANTHROPIC, running, tmp_path / "local", plan=PLAN, items=ITEMS)
    assert len(cluster.list_all_nodes()) == 2
    assert shared.predictions.drop(APART).equals(alone.predictions.drop(APART))
    assert shared.calls == alone.calls == len(ITEMS) * 3
    assert verify_run(tmp_path / "ray").error() is None


@pytest.mark.parametrize("cents", [7, 20])
def test_one_cap_holds_on_both_nodes(cluster: Any, running: FakeServer, tmp_path: Path, cents: int) -> None:
    running.reset((), lambda _: GOOD, settings=TO_THE_CENT)
    report = carried(running, tmp_path, price=PENNY, max_spend_nano=cents * CENT)
    assert cluster is not None
    assert isinstance(report.stopped_by, BudgetError)
    money = money_by_record(events_of(tmp_path))
    assert max(spent + reserved for spent, reserved in money) == cents * CENT
    assert money[-1] == (cents * CENT, 0)
    assert len(running.calls()) == cents
    assert len(workers_of(tmp_path)) == 2
    check_record(running, tmp_path)


@pytest.mark.parametrize("at", [3, 17])
def test_a_killed_worker_costs_no_answer_twice(cluster: Any, running: FakeServer, tmp_path: Path, at: int) -> None:
    killer = Killer(tmp_path / "ray", at)
    running.reset((), killer, settings=replace(TO_THE_CENT, latency_s=0.1))
    cap = 60 * CENT
    report = carried(running, tmp_path / "ray", price=PENNY, max_spend_nano=cap)
    assert cluster is not None
    assert killer.killed is not None
    assert report.stopped_by is None
    assert len(workers_of(tmp_path / "ray")) == 3
    records = events_of(tmp_path / "ray")
    answered = Counter(one.event.key for one in records if isinstance(one.event, AttemptResponse))
    lost = Counter(one.event.key for one in records if isinstance(one.event, AttemptLost))
    reserved = Counter(one.event.key for one in records if isinstance(one.event, AttemptReserved))
    assert set(answered.values()) == {1}
    assert reserved == answered + lost
    came = Counter(json.dumps(hit.json, sort_keys=True) for hit in running.calls())
    assert sum(came.values()) <= sum(reserved.values())
    assert len([body for body, times in came.items() if times > 1]) <= len(lost)
    assert max(spent + held for spent, held in money_by_record(records)) <= cap
    running.reset((), lambda _: GOOD, settings=TO_THE_CENT)
    alone = run_live(ANTHROPIC, running, tmp_path / "local", plan=PLAN, items=ITEMS, price=PENNY)
    assert report.predictions.drop(APART).equals(alone.predictions.drop(APART))
    assert verify_run(tmp_path / "ray").error() is None


def run_arm(project: Path, address: str, *flags: str) -> dict[str, Any]:
    project.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "consilience", "--project", str(project), "run-arm", *DEBATED, *flags],
        env={**os.environ, "RAY_ADDRESS": address},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_command_gives_the_same_predictions_on_two_nodes(cluster: Any, tmp_path: Path) -> None:
    alone = run_arm(tmp_path / "a", "", "--engine", "local")
    shared = run_arm(tmp_path / "b", cluster.address, "--engine", "ray", "--workers", "3")
    assert alone["run_id"] == shared["run_id"]
    assert len(workers_of(Path(shared["folder"]))) == 3
    one, other = (pl.read_parquet(Path(each["folder"]) / "predictions.parquet") for each in (alone, shared))
    assert one.drop(APART).equals(other.drop(APART))
    assert verify_run(Path(shared["folder"])).error() is None
    again = run_arm(tmp_path / "b", cluster.address, "--engine", "ray")
    assert again["calls"] == 0
