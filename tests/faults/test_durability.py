from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from consilience.errors import JournalError
from consilience.experiments.orders import Orders
from consilience.journal.events import AttemptResponse
from consilience.journal.files import RealFiles
from consilience.journal.verify import verify
from consilience.models.base import Identity, call_key
from consilience.models.request import Completion, Request
from consilience.models.scripted import IDENTITY, Scripted
from engine_cases import (
    CENT,
    INDEPENDENT,
    MODEL,
    PENNY,
    QUICK,
    carry_out,
    events_of,
    make_items,
    make_plan,
    make_shell,
    money_by_record,
    panel,
    speak,
)

ITEMS = make_items(3)
PLAN = make_plan(ITEMS)
CALLS = 3 * 5 * 3


@dataclass
class Disk(RealFiles):
    """The disk: keeps what is synced, and refuses from one operation on when asked."""

    refuse: Callable[[str, int], int | None] = lambda _name, _count: None
    counts: dict[str, int] = field(default_factory=dict)
    written: list[bytes] = field(default_factory=list)
    synced: list[bytes] = field(default_factory=list)

    def _enter(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        code = self.refuse(name, self.counts[name])
        if code is not None:
            raise OSError(code, "injected")

    def write(self, handle: int, data: bytes) -> None:
        try:
            self._enter("write")
        except OSError:
            super().write(handle, data[: len(data) // 2])  # a full disk takes a part
            raise
        super().write(handle, data)
        self.written.append(data)

    def fsync(self, handle: int) -> None:
        self._enter("fsync")
        super().fsync(handle)
        self.synced, self.written = [*self.synced, *self.written], []

    def on_disk(self) -> list[dict[str, Any]]:
        """Return the events that are synced."""
        return [json.loads(line)["event"] for data in self.synced for line in data.splitlines()]


@dataclass
class Watching:
    """A model that looks at the disk whenever it is asked."""

    disk: Disk
    model: Scripted
    answered: dict[str, str] = field(default_factory=dict)
    identity: Identity = IDENTITY
    min_cacheable_tokens: int | None = None

    @property
    def id(self) -> str:
        return self.model.id

    def wire_body(self, request: Request) -> dict[str, Any]:
        return self.model.wire_body(request)

    async def complete(self, request: Request) -> Completion:
        key = call_key(self.identity, self.wire_body(request), replicate=request.replicate)
        on_disk = self.disk.on_disk()
        assert key in {event["key"] for event in on_disk if event["type"] == "attempt.reserved"}
        shown = request.messages[0].blocks[-1].text
        responses = {event["key"] for event in on_disk if event["type"] == "attempt.response"}
        if "committee>" in shown:  # this turn uses the answers of the round before: all of them are on disk
            item = request.messages[0].blocks[0].text
            assert {used for used, of in self.answered.items() if of == item + _round_before(shown)} <= responses
        done = await self.model.complete(request)
        self.answered[key] = request.messages[0].blocks[0].text + shown.rpartition("TASK: ")[2].split()[0]
        return done


def _round_before(shown: str) -> str:
    return {"critique": "estimate", "revision": "critique"}[shown.rpartition("TASK: ")[2].split()[0]]


def test_no_request_leaves_and_no_answer_is_used_before_its_record_is_on_disk(tmp_path: Path) -> None:
    disk = Disk()
    watching = Watching(disk, panel())
    report = carry_out(tmp_path / "run", PLAN, ITEMS, watching, shell=make_shell(files=disk))
    assert report.calls == len(watching.answered) == CALLS
    seen: set[str] = set()
    for event in disk.on_disk():  # a turn ends after its answer's record, never before
        if event["type"] == "attempt.response":
            seen.add(event["key"])
        if event["type"] == "turn.accepted":
            assert event["key"] in seen


@pytest.mark.parametrize("operation", ["write", "fsync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_stops_dispatch_and_loses_nothing_that_was_recorded(
    tmp_path: Path, operation: str, code: int
) -> None:
    undisturbed = carry_out(tmp_path / "whole", PLAN, ITEMS, panel())
    for nth in (1, 2, 3, 7, 12):
        run = tmp_path / f"run-{nth}"
        disk = Disk(refuse=lambda name, count, nth=nth: code if name == operation and count >= nth else None)  # type: ignore[misc]
        model = panel()
        with pytest.raises(JournalError, match=r"cannot be written.*injected"):
            carry_out(run, PLAN, ITEMS, model, shell=make_shell(files=disk))
        kept = {event["key"] for event in disk.on_disk() if event["type"] == "attempt.response"}
        sent = {event["key"] for event in disk.on_disk() if event["type"] == "attempt.reserved"}
        assert len(model.requests) <= len(sent)
        resumed = carry_out(run, PLAN, ITEMS, model)  # the disk is well again
        answers = [record.event for record in events_of(run, AttemptResponse)]
        assert kept <= {event.key for event in answers if isinstance(event, AttemptResponse)}
        assert len(answers) == CALLS
        assert resumed.calls <= CALLS - len(kept)
        free = ("latency_s", "paid_usd")
        assert resumed.predictions.drop(free).equals(undisturbed.predictions.drop(free))
        assert verify(run).finished


def test_those_who_wait_for_money_are_told_when_the_disk_fails(tmp_path: Path) -> None:
    """Fifteen calls reserve a cent each under a cap of three: most wait for a settlement, whatever the disk does."""
    for nth in (2, 3, 4):
        disk = Disk(refuse=lambda name, count, nth=nth: errno.ENOSPC if name == "write" and count >= nth else None)  # type: ignore[misc]
        orders = Orders(max_spend_nano=3 * CENT, limits=QUICK)
        with pytest.raises(JournalError, match=r"cannot be written.*injected"):
            carry_out(
                tmp_path / str(nth),
                make_plan(ITEMS, protocol=INDEPENDENT),
                ITEMS,
                panel(speak),
                orders=orders,
                price=PENNY,
                shell=make_shell(files=disk),
            )
        records = events_of(tmp_path / str(nth))
        assert all(spent + held <= 3 * CENT for spent, held in money_by_record(records))


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    model = panel(name=MODEL)
    with pytest.raises(JournalError, match="cannot be made"):
        carry_out(tmp_path / "file" / "run", PLAN, ITEMS, model)
    assert model.requests == []
