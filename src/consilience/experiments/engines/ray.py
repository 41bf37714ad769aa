"""The Ray engine: workers on the nodes of a cluster, each with its own segment, under one coordinator.

Only this module knows Ray. The coordinator is the process of the command itself, which holds the run's lock.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from consilience.errors import ConfigError, PlanError
from consilience.experiments.engines.asks import Ask, Brief, LostHandError, Problem, Word
from consilience.experiments.engines.base import Hands, Site
from consilience.experiments.engines.crew import crew
from consilience.experiments.engines.hand import Hand
from consilience.models.base import Model

T = TypeVar("T")
R = TypeVar("R")


def ray_module() -> Any:
    """Return Ray, with its statistics about usage turned off.

    Raises:
        ConfigError: It is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # noqa: PLC0415 - heavy, and an extra
    except ImportError as error:
        raise ConfigError("Ray is not installed", hint='Install it: pip install "consilience[ray]".') from error
    return ray


def joined(ray: Any) -> bool:
    """Join the cluster that ``RAY_ADDRESS`` names, or one that runs on this machine, or start one here.

    Returns:
        Whether this process was not connected before, so that it has to let go again.
    """
    if ray.is_initialized():
        return False
    ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    return True


def spread(work: Callable[[T], R], parts: Iterable[T]) -> list[R]:
    """Return what a function gives for each part, in order, as tasks on the cluster; one CPU each.

    As many parts are handed out as the cluster has CPUs, and the next when one is done, so that only those are held.

    Args:
        work: A function that every node can import.
        parts: What it is given, such as `consilience.valuation.partitions.parts_of` makes.

    Raises:
        ConfigError: Ray is not installed.
    """
    ray = ray_module()
    ours = joined(ray)
    try:
        task = ray.remote(num_cpus=1)(work)
        at_once = max(1, int(ray.cluster_resources().get("CPU", 1)))
        out: dict[Any, int] = {}
        found: dict[int, R] = {}

        def wait() -> None:
            done, _ = ray.wait([*out], num_returns=1)
            found[out.pop(done[0])] = ray.get(done[0])

        for number, part in enumerate(parts):
            while len(out) >= at_once:
                wait()
            out[task.remote(part)] = number
        while out:
            wait()
    finally:
        if ours:
            ray.shutdown()
    return [found[number] for number in range(len(found))]


@dataclass(frozen=True)
class RayEngine:
    """Turns are taken by workers on a Ray cluster; every node sees the results folder under the same path.

    Attributes:
        models: Makes who speaks, by model id, in each worker; keys cross in memory only.
        workers: How many; None takes one per CPU of the cluster.
    """

    models: Callable[[], Mapping[str, Model]]
    workers: int | None = None

    @property
    def here(self) -> bool:
        """Whether the coordinator itself takes turns that are not on record."""
        return False

    @asynccontextmanager
    async def hands(self, site: Site) -> AsyncIterator[Hands]:
        """Give the workers of a run, started when there is work.

        Raises:
            PlanError: The run calls in batches, or takes turns in steps of its own, which one process must do.
        """
        job = site.job
        if job.batch is not None or job.answerer is not None:
            raise PlanError("batches and turns in several steps are one process's work", hint="Leave --engine ray out.")
        brief = Brief(
            run_id=job.run_id,
            run=job.folder.resolve(),
            worker="",
            plan=job.plan,
            settings=site.frozen.settings(),
            catalogue=job.catalogue,
            limits=site.orders.limits,
            protocol_sha256=site.frozen.sha256,
            package_version=site.shell.facts.package_version,
            retry_failed=site.orders.retry_failed,
            models=self.models,
            clock=site.shell.clock,
        )
        async with crew(site, _Cluster(ray_module(), self.workers), brief) as found:
            yield found


class _Cluster:
    """Where workers come from: the nodes of a cluster in turn."""

    def __init__(self, ray: Any, workers: int | None) -> None:
        self._ray = ray
        self._workers = workers
        self._ours = False
        self._actors: list[Any] = []

    async def open(self) -> int:
        """Join the cluster; return how many workers there are to be."""
        self._ours = joined(self._ray)
        return self._workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    async def hire(self, brief: Brief, number: int) -> RayLine:
        """Start a worker on the node whose turn it is, or on another where that one is gone."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 - heavy

        nodes = sorted(node["NodeID"] for node in self._ray.nodes() if node["Alive"])
        where = NodeAffinitySchedulingStrategy(nodes[number % len(nodes)], soft=True)
        kind = self._ray.remote(num_cpus=0, max_restarts=0, max_concurrency=1000)(RemoteHand)
        actor = kind.options(scheduling_strategy=where).remote()
        self._actors.append(actor)
        return RayLine(self._ray, actor, brief)

    async def close(self) -> None:
        """End what is left of the workers, and let go of the cluster where this process joined it."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._ours:
            self._ray.shutdown()


class RayLine:
    """The coordinator's line to one worker on the cluster.

    Args:
        ray: The module.
        actor: The worker.
        brief: What it is made of.
    """

    def __init__(self, ray: Any, actor: Any, brief: Brief) -> None:
        self._gone = ray.exceptions.RayActorError
        self._actor = actor
        self._result = actor.work.remote(brief)

    async def hear(self) -> list[Ask]:
        """Return what the worker asks, waiting for it."""
        found: list[Ask] = await self._answer(self._actor.hear.remote())
        return found

    async def tell(self, words: list[Word]) -> None:
        """Give it answers and work."""
        await self._answer(self._actor.tell.remote(words))

    async def result(self) -> Problem | None:
        """Return what came of a worker that ended."""
        found: Problem | None = await self._answer(self._result)
        return found

    async def _answer(self, reference: Any) -> Any:
        try:
            return await reference
        except self._gone as error:
            raise LostHandError from error


class RemoteHand:
    """A worker as Ray runs it."""

    def __init__(self) -> None:
        import anyio  # noqa: PLC0415 - this class is made where the worker is

        self._hand: Hand | None = None
        self._made = anyio.Event()

    async def work(self, brief: Brief) -> Problem | None:
        """Take turns until dismissed."""
        self._hand = Hand(brief)
        self._made.set()
        return await self._hand.work()

    async def hear(self) -> list[Ask]:
        """Return what is to be asked of the coordinator."""
        return await (await self._there()).hear()

    async def tell(self, words: list[Word]) -> None:
        """Take answers and work in."""
        await (await self._there()).tell(words)

    async def _there(self) -> Hand:
        await self._made.wait()
        if self._hand is None:
            raise LostHandError
        return self._hand
