"""Workers in the test's own process: the same worker and coordinator as on a cluster, on lines that tests can cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from consilience.experiments.engines.asks import Ask, Brief, LostHandError, Problem, Word
from consilience.experiments.engines.base import Hands, Site
from consilience.experiments.engines.crew import crew
from consilience.experiments.engines.hand import Hand
from consilience.models.base import Model


@dataclass(eq=False)
class NearLine:
    """A line to a worker in this process; ``cut`` is what SIGKILL is to one on a cluster."""

    hand: Hand
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    found: Problem | None = None
    gone: bool = False

    async def work(self) -> None:
        with self.scope:
            self.found = await self.hand.work()
        self.ended.set()

    def cut(self) -> None:
        self.gone = True
        self.scope.cancel()

    def _check(self) -> None:
        if self.gone:
            raise LostHandError

    async def hear(self) -> list[Ask]:
        self._check()
        asks = await self.hand.hear()
        self._check()
        return asks

    async def tell(self, words: list[Word]) -> None:
        self._check()
        await self.hand.tell(words)

    async def result(self) -> Problem | None:
        await self.ended.wait()
        return self.found


@dataclass
class NearEngine:
    """An engine whose workers live in this process."""

    models: Callable[[], Mapping[str, Model]]
    workers: int = 2
    lines: list[NearLine] = field(default_factory=list)
    group: TaskGroup | None = None

    @property
    def here(self) -> bool:
        return False

    @asynccontextmanager
    async def hands(self, site: Site) -> AsyncIterator[Hands]:
        brief = Brief(
            run_id=site.job.run_id,
            run=site.job.folder,
            worker="",
            plan=site.job.plan,
            settings=site.frozen.settings(),
            catalogue=site.job.catalogue,
            limits=site.orders.limits,
            protocol_sha256=site.frozen.sha256,
            package_version=site.shell.facts.package_version,
            retry_failed=site.orders.retry_failed,
            models=self.models,
            clock=site.shell.clock,
        )
        async with anyio.create_task_group() as self.group, crew(site, self, brief) as found:
            yield found

    async def open(self) -> int:
        return self.workers

    async def hire(self, brief: Brief, number: int) -> NearLine:  # noqa: ARG002 - any place is this one
        assert self.group is not None
        line = NearLine(Hand(brief))
        self.lines.append(line)
        self.group.start_soon(line.work)
        return line

    async def close(self) -> None:
        self.group = None
