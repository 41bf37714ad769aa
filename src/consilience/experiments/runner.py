"""Run one arm: fixed beforehand, recorded throughout, resumable at any point."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import Any

import anyio
import polars as pl

from consilience.core.deliberation import Deliberation
from consilience.core.packet import Item
from consilience.errors import BudgetError, ConsilienceError, JournalError, PlanError, StoppedError
from consilience.experiments.answering import pool_of, probe, reveal
from consilience.experiments.diagnostics import Observed, observe_item, panel_diagnostics
from consilience.experiments.engines.base import Hands, Site
from consilience.experiments.manifest import Money, manifest
from consilience.experiments.matching import PROBES, Matching
from consilience.experiments.opening import check_models, make_folder, open_protocol, write_packets
from consilience.experiments.orders import Job, Orders, Progress, RunReport, Shell
from consilience.experiments.plan import SEALED, exposure
from consilience.experiments.predictions import write_predictions
from consilience.experiments.protocol import Frozen
from consilience.experiments.rows import levels_of, prediction_rows, status_of
from consilience.experiments.storage import write_json
from consilience.experiments.tally import Tally
from consilience.experiments.totals import Totals, totals
from consilience.experiments.transcript import transcript
from consilience.journal.budget import Budget
from consilience.journal.events import (
    AttemptLost,
    BatchSubmitted,
    ItemFinished,
    ItemStarted,
    ProtocolNote,
    Record,
    RunResumed,
    RunStarted,
    RunStopped,
    Where,
)
from consilience.journal.lock import RunLock
from consilience.journal.reader import Attempt, AttemptKey, RunState
from consilience.journal.workers import LentTexts, Takings, take_in
from consilience.journal.writer import JournalWriter
from consilience.models.base import HeldModel, descriptions
from consilience.models.batch import DISCOUNT, calls_out
from consilience.protocols import Protocol, Single
from consilience.runtime.briefing import Briefing
from consilience.runtime.collector import seldom
from consilience.runtime.gather import gather
from consilience.runtime.session import ItemSession
from consilience.runtime.turn import Taken, TurnTaker


async def run_arm(job: Job, shell: Shell, orders: Orders) -> RunReport:
    """Run or resume one arm in its folder and return what it left.

    Raises:
        PlanError: A model of the plan is not there, or there is a spend cap and a model without a price.
        ResumeMismatchError: The folder holds a run that asked something else.
        JournalError: The folder cannot be written or another process works on it.
        IntegrityError: The record there is not what was written.
        LeakError: Evidence gives a target away; raised before any call.
    """
    check_models(job, orders)
    make_folder(job.folder)
    with RunLock(job.folder), seldom():
        frozen = open_protocol(job, shell, orders)
        await take_in(job.folder, clock=shell.clock, files=shell.files)
        return await _Run(job, frozen, shell, orders).carry_out()


class _Run:
    """One process's work on one run."""

    def __init__(self, job: Job, frozen: Frozen, shell: Shell, orders: Orders) -> None:
        plan = job.plan
        self.job = job
        self.plan = plan
        self.items = sorted(job.items, key=lambda item: item.question.id)
        self.frozen = frozen
        self.shell = shell
        self.orders = orders
        self.settings = frozen.settings()
        self.prompts = plan.prompts
        self.state = RunState(LentTexts(job.folder))
        self.takings = Takings()
        self.accepted = set(frozen.accepted)
        self.journal = JournalWriter(job.folder, clock=shell.clock, files=shell.files, seen=self._seen)
        self.specs = {name: job.catalogue.spec(name) for name in plan.models}
        self.prices = {name: spec.price for name, spec in self.specs.items()}
        self.budget = Budget(orders.max_spend_nano, spent_nano=self.state.spent_nano)
        self.pool = pool_of(
            plan,
            job.models,
            catalogue=job.catalogue,
            budget=self.budget,
            journal=self.journal,
            limits=orders.limits,
            stop=shell.stop,
        )
        if job.batch is not None:
            self.pool.open_desk(job.batch, noted=self._batch_noted)
        self.pool.batched = orders.batched
        self.taker = TurnTaker(
            self.pool,
            self.journal,
            self.state,
            retry_failed=orders.retry_failed and orders.engine.here,
            watch=self._taken,
            probes=0 if plan.match is None else PROBES,
            tools=orders.tools,
        )
        self.protocol = plan.make_protocol()
        self.hands: Hands
        self.matching: Matching | None = None
        if plan.match is not None and isinstance(self.protocol, Single):
            self.matching = Matching(plan.match, self.protocol)
        self.begun = set(self.state.items_started)
        self.took: dict[str, Totals] = {}
        self.observed: list[Observed] = []
        self.out_items = {at.where.item for at in calls_out(self.state)}
        self.packet_files: dict[str, str] = {}
        self.tally = Tally()
        self.stopped_by: BudgetError | StoppedError | None = None
        self.failure: ConsilienceError | None = None

    async def carry_out(self) -> RunReport:
        try:
            lost = self._lost()
            self.packet_files = write_packets(self.job.folder, self.items)
            if not self._rebuilding:
                await self._open()
            await probe(self.plan.models, self.job.models, self.taker)
            briefings = [self._briefing(item) for item in self.items]
            reveal(self.job.models.values(), briefings)
            async with self.orders.engine.hands(self._site()) as self.hands:
                if self.matching is not None:
                    await self._match(self.matching, briefings)
                await self._all(briefings, self.work)
            if not self._rebuilding:
                self._end()
        finally:
            await self.journal.close()
            for model in self.job.models.values():
                if isinstance(model, HeldModel):
                    await model.close()
        if self.failure is not None:
            raise self.failure
        return self._report(len(lost))

    def _seen(self, record: Record) -> None:
        self.state.add(record)
        self.takings.seen(record)
        if isinstance(record.event, RunResumed):
            self.accepted.update(record.event.accepted)

    async def _open(self) -> None:
        """Record that the run starts or goes on, and charge what an earlier process had in flight."""
        if self.state.started is None:
            event: RunStarted | RunResumed = RunStarted(
                run_id=self.job.run_id,
                protocol_sha256=self.frozen.sha256,
                package_version=self.shell.facts.package_version,
            )
        else:
            event = RunResumed(accepted=list(self.frozen.accepted), torn_bytes=self.journal.torn_bytes)
        self.journal.append(event)
        for at, attempt in self._lost().items():
            charged = attempt.reserved.reserved_nano
            event_lost = AttemptLost(key=attempt.reserved.key, ask=at.ask, attempt=at.attempt, charged_nano=charged)
            self.journal.append(event_lost, at.where)
        await self.journal.durable(self.journal.count)

    def _lost(self) -> dict[AttemptKey, Attempt]:
        """Return the attempts whose outcome nobody will ever know; those in a batch are taken up again.

        Raises:
            PlanError: A batch is still at the vendor and this is no run in batch mode.
        """
        out = calls_out(self.state)
        if out and self.job.batch is None:
            provider, batch_id = next(iter(out.values()))
            raise PlanError(f"batch {batch_id} of this run is still at {provider}", hint="Resume with --batch.")
        return {at: attempt for at, attempt in self.state.lost().items() if at not in out}

    async def _batch_noted(self, provider: str, batch_id: str, calls: Sequence[str]) -> None:
        noted = self.journal.append(BatchSubmitted(provider=provider, batch_id=batch_id, calls=list(calls)))
        await self.journal.durable(noted)

    def _site(self) -> Site:
        folded = (self.journal, self.takings, self.state)
        return Site(self.job, self.shell, self.orders, self.frozen, *folded, self.budget, self.pool)

    def _briefing(self, item: Item) -> Briefing:
        seats = self.plan.seats(item.question.id)
        return Briefing(item, seats=seats, prompts=self.prompts, settings=self.settings)

    async def _all(self, briefings: Sequence[Briefing], work: Callable[[Briefing], Awaitable[None]]) -> None:
        slots = anyio.Semaphore(self.orders.concurrency if self.job.batch is None else len(self.items))

        async def one(briefing: Briefing) -> None:
            async with slots:
                await work(briefing)

        await gather([partial(one, briefing) for briefing in briefings])

    async def work(self, briefing: Briefing) -> None:
        """Carry one item to its end, unless the run is stopping."""
        protocol: Protocol | None = self.protocol
        if self.matching is not None:
            protocol = self.matching.protocol(briefing.item.question.id)
        if protocol is not None:  # else the run stopped before it was known what items may take
            await self._course(briefing, protocol, self._finish)

    async def _match(self, matching: Matching, briefings: Sequence[Briefing]) -> None:
        """Learn from the first samples of every item what one costs, and fix how items are asked."""

        async def sample(briefing: Briefing) -> None:
            probe = matching.probe(briefing.item.question.id)
            if probe is not None:
                await self._course(briefing, probe, learn)

        def learn(item: Item, session: ItemSession, _: Deliberation) -> None:
            taken = [totals([record]) if record.taken.calls else None for record in session.records]
            matching.learn(item.question.id, taken)

        for _ in range(PROBES):
            await self._all(briefings, sample)
        if self.stopped_by is None and self.failure is None:
            matching.settle()

    async def _course(
        self, briefing: Briefing, protocol: Protocol, ended: Callable[[Item, ItemSession, Deliberation], None]
    ) -> None:
        """Ask one item as a protocol does, unless the run is stopping."""
        if self.stopped_by is not None or self.failure is not None:
            return
        session = ItemSession(briefing, self.taker, self.job.answerer)
        item = briefing.item
        item_id = item.question.id
        try:
            if item_id not in self.state.items_finished:
                session.envelope = await self.budget.admit(self._room(briefing, protocol))
                if item_id not in self.begun:
                    self.begun.add(item_id)
                    data = {"packet_sha256": item.packet.digest, "tag": briefing.tag}
                    self.journal.append(ItemStarted(data=data), Where(item_id))
            if item_id not in self.state.items_finished or (self.orders.retry_failed and not self._rebuilding):
                await self.hands.take(item, protocol, session.envelope)
            ended(item, session, await protocol.run(session))
        except (BudgetError, StoppedError) as error:
            if self.stopped_by is None:
                self.stopped_by = error
        except ConsilienceError as error:
            if self.failure is None:
                self.failure = error
            self.shell.stop.requested = True
        finally:
            if session.envelope is not None:
                self.budget.end(session.envelope)

    def _room(self, briefing: Briefing, protocol: Protocol) -> int:
        """Return what must be free of the cap before an item is admitted."""
        if briefing.item.question.id in self.out_items:
            return 0  # it was admitted before, and what its calls at the vendor free is needed to go on
        discount = 1 if self.job.batch is None else DISCOUNT
        ended = self.state.turns.keys()
        foreseen = briefing.foreseen(protocol, self.prices, ended=ended, discount=discount, answerer=self.job.answerer)
        return foreseen.expected_nano or 0

    def _finish(self, item: Item, session: ItemSession, course: Deliberation) -> None:
        item_id = item.question.id
        levels = levels_of(self.plan, item, session.records, course)
        took = self.took[item_id] = totals(session.records)
        sealed = self.plan.split in SEALED
        seen = observe_item(item, course, session.records, arm=self.plan.arm, sealed=sealed)
        self.observed += [] if seen is None else [seen]
        status = status_of(course.final)
        recorded = self.state.items_finished.get(item_id)
        paid = self.pool.paid_nano[item_id] + (0 if recorded is None else recorded.data["paid_nano"])
        told = transcript(item, levels, session.records)
        digests = {
            "packet_file_sha256": self.packet_files[item_id],
            "transcript_sha256": write_json(self.job.folder / "transcripts" / f"{item_id}.json", told),
        }
        live = any(record.taken.live for record in session.records)
        if recorded is None or live or (not self._rebuilding and not digests.items() <= recorded.data.items()):
            if course.stopped is not None:
                self.journal.append(ProtocolNote(note="stopped_early", data=dict(vars(course.stopped))), Where(item_id))
            asked = {} if self.matching is None else self.matching.asked(item_id)
            told_of = {"status": status, "paid_nano": paid, **asked, **digests}
            self.journal.append(ItemFinished(data=told_of), Where(item_id))
        if self.orders.paid_nano is not None:
            paid = self.orders.paid_nano[item_id]
        run = {
            "run_id": self.job.run_id,
            "committee": self.plan.committee,
            "split": self.plan.split,
            "exposure": exposure(item, sorted({record.seat.model for record in session.records}), self.specs),
        }
        predicted = prediction_rows(item, levels, paid_nano=paid, run=run)
        self.tally.item(predicted, status=status, took=took, records=session.records)
        self._tell()

    def _taken(self, taken: Taken) -> None:
        """Tell whoever watches that a turn was taken."""
        self.tally.turn(taken)
        self._tell()

    def _tell(self) -> None:
        self.shell.watch(
            Progress(
                items_done=self.tally.items_done,
                items_total=len(self.items),
                turns=self.tally.turns_taken,
                failures=self.tally.turns_unanswered,
                tokens=self.tally.tokens_seen,
                calls=self.pool.live_calls,
                spent_nano=self.budget.spent_nano,
                cap_nano=self.budget.cap_nano,
            )
        )

    def _end(self) -> None:
        """Record how this process's work ended."""
        if isinstance(self.failure, JournalError):
            return
        if self.failure is not None:
            self.journal.append(RunStopped(reason="error", message=str(self.failure)))
        elif self.stopped_by is not None:
            reason = "spend_cap" if isinstance(self.stopped_by, BudgetError) else "interrupted"
            self.journal.append(RunStopped(reason=reason, message=str(self.stopped_by)))
        else:
            digest = write_predictions(self._predictions, self.job.folder / "predictions.parquet")
            self.journal.finish({**self.tally.recorded(), **self._told_of_panel(), "predictions_sha256": digest})

    @cached_property
    def _predictions(self) -> pl.DataFrame:
        return self.tally.predictions()

    @property
    def _rebuilding(self) -> bool:
        """The run was finished before, so only what is derived from its journal is made again."""
        return self.state.finished and not self.orders.retry_failed and not self.frozen.accepted

    def _report(self, lost: int) -> RunReport:
        write_predictions(self._predictions, self.job.folder / "predictions.parquet")
        told = self._told_of_panel()
        content = manifest(
            self.plan,
            run_id=self.job.run_id,
            facts=self.shell.facts,
            head=self.journal.head,
            counts=self.tally.counts(len(self.items)),
            money=Money(
                spent_nano=self.budget.spent_nano,
                cap_nano=self.budget.cap_nano,
                cap_hit=isinstance(self.stopped_by, BudgetError),
                lost_attempts=self._lost_in_all(),
            ),
            accepted=sorted(self.accepted),
            said_of_models=descriptions(self.job.models),
            panel=told["panel"],
            matched=told["match"],
        )
        write_json(self.job.folder / "manifest.json", content)
        return RunReport(
            run_id=self.job.run_id,
            folder=self.job.folder,
            calls=self.pool.live_calls,
            torn_bytes=self.journal.torn_bytes,
            lost=lost,
            predictions=self._predictions,
            manifest=content,
            panel=panel_diagnostics(self.observed) if self.observed else None,
            stopped_by=self.stopped_by,
        )

    def _told_of_panel(self) -> dict[str, Any]:
        """Return what the finished items tell of the panel, and of the match in cost."""
        return {
            "panel": panel_diagnostics(self.observed).record() if self.observed else None,
            "match": None if self.matching is None else self.matching.record(self.took),
        }

    def _lost_in_all(self) -> int:
        """Return how many attempts ever left without a recorded outcome."""
        lost = [attempt for attempt in self.state.attempts.values() if isinstance(attempt.outcome, AttemptLost)]
        return len(lost) + len(self._lost()) + len(self.taker.given_up)
