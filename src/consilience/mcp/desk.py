"""Who carries out what assistants ask: each run in a thread of its own, found again by whoever asks the same.

A run belongs to nobody: an answer that takes long goes on, and the same words attach to it. When the last that waited
for a run gives up, or the server ends, what is in flight is finished and recorded, and asking again goes on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import anyio

from consilience.api.running import carried_out, facts_of
from consilience.core.canonical import tagged_hash
from consilience.errors import ConfigError, explained
from consilience.experiments.listing import is_simulated
from consilience.experiments.orders import Progress
from consilience.journal.lock import is_held
from consilience.mcp.arguments import GetTrace, ListRuns, Paid, read_arguments
from consilience.mcp.documents import DETAILS, error_document, running_document, shown
from consilience.mcp.errands import Errand, Project, errand_of
from consilience.mcp.records import runs_told, trace_told
from consilience.mcp.tools import TOOLS
from consilience.models.calls import Stop
from consilience.registry import nearest

PATIENCE_S: Final = 45.0
"""An answer that takes longer returns its run id; clients commonly give up after 60 seconds."""
TICK_S: Final = 0.1
"""Progress is told this often at most, however many turns are taken."""
RUNS_AT_ONCE: Final = 8
READERS: Final = 4

T = TypeVar("T")
Tell = Callable[[Progress], Awaitable[None]]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reply:
    """What a tool gives back.

    Attributes:
        document: JSON values.
        failed: There is no answer, but an error.
    """

    document: dict[str, Any]
    failed: bool = False


@dataclass
class _UnderWay:
    """A run that is carried out, or was and nobody has fetched its answer."""

    run_id: str
    simulated: bool
    stop: Stop = field(default_factory=Stop)
    progress: Progress | None = None
    waiting: int = 0
    promised: bool = False
    future: Future[dict[str, Any]] = field(default_factory=Future)

    def watch(self, now: Progress) -> None:
        self.progress = now


class Desk:
    """Answers calls of tools until it is closed, which ends every run.

    Args:
        project: Where assistants work.
        patience_s: Seconds after which a call returns the id of its run.
    """

    def __init__(self, project: Project, *, patience_s: float = PATIENCE_S) -> None:
        self._project = project
        self._patience_s = patience_s
        self._by_run: dict[str, _UnderWay] = {}
        self._by_words: dict[str, _UnderWay] = {}
        self._runners = ThreadPoolExecutor(RUNS_AT_ONCE, thread_name_prefix="consilience-run")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="consilience-read")

    async def close(self) -> None:
        """Let every run finish what is in flight, and wait for it."""
        for under_way in self._by_run.values():
            under_way.stop.requested = True
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(partial(self._runners.shutdown, cancel_futures=True))
            await anyio.to_thread.run_sync(partial(self._readers.shutdown, cancel_futures=True))

    async def call(self, tool: str, said: Mapping[str, Any], tell: Tell) -> Reply:
        """Answer one call of a tool; whatever goes wrong is told as an error with its class.

        Args:
            tool: Its name.
            said: Its arguments.
            tell: Is told of progress.
        """
        known = {each.name: each for each in TOOLS}
        read = await self._tried(partial(_read, tool, said, known))
        if (failed := _failed(read)) is not None:
            return failed
        arguments = read.result()
        if isinstance(arguments, Paid):
            return await self._paid(tool, arguments, tell)
        results = self._project.results
        if isinstance(arguments, GetTrace):
            told = await self._tried(partial(trace_told, results, arguments))
        elif isinstance(arguments, ListRuns):
            told = await self._tried(partial(runs_told, results, arguments))
        else:
            raise TypeError(f"nobody answers {type(arguments).__name__}")
        return _failed(told) or Reply(shown(told.result()))

    async def _tried(self, work: Callable[[], T]) -> Future[T]:
        """Do something in a thread; the future holds what it gave or raised."""
        future = self._readers.submit(work)
        await anyio.to_thread.run_sync(partial(wait, [future]), abandon_on_cancel=True)
        return future

    async def _paid(self, tool: str, arguments: Paid, tell: Tell) -> Reply:
        words = tagged_hash("mcp-call", {"tool": tool, **arguments.model_dump(mode="json")})
        under_way = self._by_words.get(words)
        if under_way is None or under_way.stop.requested:
            prepared = await self._tried(partial(errand_of, arguments, self._project))
            if (failed := _failed(prepared)) is not None:
                return failed
            errand = prepared.result()
            await self._ended(errand.job.folder.name)
            found = self._begun(errand, words)
            if found is None:
                run_id = errand.job.folder.name
                return Reply(shown(running_document(run_id, None, simulated=is_simulated(errand.job.folder))))
            under_way = found
        return await self._answer(under_way, tell, details=arguments.details)

    async def _ended(self, run_id: str) -> None:
        """Wait for a run that was told to stop, since it gives no answer."""
        stopping = self._by_run.get(run_id)
        if stopping is not None and stopping.stop.requested:
            await anyio.to_thread.run_sync(partial(wait, [stopping.future]), abandon_on_cancel=True)

    def _begun(self, errand: Errand, words: str) -> _UnderWay | None:
        """Return the run of an errand, begun where nobody works on it; None where another process does."""
        run_id = errand.job.folder.name
        there = self._by_run.get(run_id)
        if there is not None and not there.future.done():
            self._by_words[words] = there
            return there
        if is_held(errand.job.folder):
            return None
        new = _UnderWay(run_id, errand.job.plan.simulated)
        new.future = self._runners.submit(_carry, errand, new)
        self._by_run[run_id] = self._by_words[words] = new
        return new

    async def _answer(self, under_way: _UnderWay, tell: Tell, *, details: bool) -> Reply:
        """Wait for a run as long as patience lasts, and return its answer, or that it goes on."""
        under_way.waiting += 1
        told: Progress | None = None
        try:
            with anyio.move_on_after(self._patience_s):
                while not under_way.future.done():
                    pause = partial(wait, [under_way.future], timeout=TICK_S)
                    await anyio.to_thread.run_sync(pause, abandon_on_cancel=True)
                    if under_way.progress is not None and under_way.progress != told:
                        told = under_way.progress
                        await tell(told)
        except anyio.get_cancelled_exc_class():
            if under_way.waiting == 1 and not under_way.promised:  # nobody waits, or was told that it goes on
                under_way.stop.requested = True
            raise
        finally:
            under_way.waiting -= 1
        if not under_way.future.done():
            under_way.promised = True
            said = running_document(under_way.run_id, under_way.progress, simulated=under_way.simulated)
            return Reply(shown(said))
        self._forget(under_way)
        failed = _failed(under_way.future, under_way.run_id)
        if failed is not None:
            return failed
        document = under_way.future.result()
        return Reply(shown({name: value for name, value in document.items() if details or name != DETAILS}))

    def _forget(self, under_way: _UnderWay) -> None:
        """Forget a run whose answer is fetched: from now on its record answers."""
        if self._by_run.get(under_way.run_id) is under_way:
            del self._by_run[under_way.run_id]
        self._by_words = {words: one for words, one in self._by_words.items() if one is not under_way}


def _read(tool: str, said: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    if tool not in known:
        raise ConfigError(f'there is no tool "{tool}"', hint=nearest(tool, known))
    return read_arguments(tool, said, known[tool].arguments)


def _carry(errand: Errand, under_way: _UnderWay) -> dict[str, Any]:
    """Carry a run out in this thread and return what is told of it.

    Raises:
        BudgetError: The spend cap ended it.
        StoppedError: Nobody waited any more, or the server ended.
    """
    facts = facts_of(errand.job)
    run = partial(carried_out, errand.job, errand.orders, facts=facts, watch=under_way.watch, stop=under_way.stop)
    report = anyio.run(run)
    if report.stopped_by is not None:
        raise report.stopped_by
    return errand.told(report)


def _failed(future: Future[Any], run_id: str | None = None) -> Reply | None:
    """Return the error of what was done in a thread, as it is told; None where there is none."""
    error = future.exception()
    if error is None:
        return None
    told = explained(error)
    if told.name == "InternalError":
        log.error("a call ended in a defect", exc_info=error)
    return Reply(shown(error_document(told, run_id=run_id)), failed=True)
