"""What a case of a campaign is, and the ground it is tried on."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from consilience.experiments.orders import Orders
from consilience.experiments.verification import verify_run
from consilience.journal.events import AttemptLost, AttemptReserved, AttemptResponse
from consilience.models.request import Request
from consilience.models.scripted import Scripted
from engine_cases import (
    CENT,
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

ITEMS = make_items(2)
PLAN = make_plan(ITEMS)
CALLS = 2 * 5 * 3
FREE = ("latency_s", "paid_usd")
CAP = 2_000 * CENT  # lost attempts are charged as reserved, and a campaign loses many
CAPPED = Orders(max_spend_nano=CAP, limits=QUICK)


@dataclass
class Ground:
    """Where a case is tried.

    Attributes:
        folder: An empty folder.
        tries: How often it is to be tried, at least.
        seed: Decides all that is drawn.
        tried: How often it was.
        found: What is worth a word in the table.
    """

    folder: Path
    tries: int
    seed: int
    tried: int = 0
    found: str = ""
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)  # noqa: S311 - draws faults, guards nothing

    def each(self) -> Iterator[Path]:
        """Yield a path for every try, and clear it up afterwards."""
        for _ in range(self.tries):
            place = self.folder / f"{self.tried:05d}"
            yield place
            self.tried += 1
            shutil.rmtree(place, ignore_errors=True)


@dataclass(frozen=True)
class Case:
    """One thing that goes wrong.

    Attributes:
        name: What is done.
        holds: What must hold.
        carry: Tries it.
        many: Tries in the campaign.
        few: Tries in the default suite; 0 where a test there proves it already.
        by: That test.
        seed: Decides all that is drawn.
    """

    name: str
    holds: str
    carry: Callable[[Ground], None]
    many: int
    few: int = 0
    by: str = ""
    seed: int = 2026


@cache
def whole() -> pl.DataFrame:
    """Return the predictions of a run that nobody disturbs."""
    with TemporaryDirectory() as folder:
        return carry_out(Path(folder) / "run", PLAN, ITEMS, panel(), orders=CAPPED).predictions.drop(FREE)


def stopped(run: Path, *, at: int) -> None:
    """Leave a run that was asked to stop at one of its calls."""
    left, shell = [at], make_shell()

    def say(request: Request) -> Any:
        left[0] -= 1
        shell.stop.requested = shell.stop.requested or left[0] <= 0
        return speak(request)

    carry_out(run, PLAN, ITEMS, panel(say), orders=CAPPED, shell=shell)


def answered_keys(run: Path) -> list[str]:
    return [record.event.key for record in events_of(run, AttemptResponse)]  # type: ignore[union-attr]


def resumed(run: Path, *, known: int, lost: int | None = None, orders: Orders = CAPPED) -> Scripted:
    """Resume a run and check that exactly what is missing was called, under the cap, and that nothing else differs.

    Args:
        run: Its folder.
        known: Answers that its record holds.
        lost: Attempts whose answer the record does not hold; None where that is not known beforehand.
        orders: How.
    """
    model = panel()
    report = carry_out(run, PLAN, ITEMS, model, orders=orders)
    assert report.stopped_by is None
    assert len(model.requests) == report.calls == CALLS - known
    assert lost is None or report.lost == lost
    check_whole(run)
    assert report.predictions.drop(FREE).equals(whole())
    return model


def check_whole(run: Path, *, cap: int = CAP) -> None:
    """A finished run's record: every answer once, every call reserved, under the cap at every event, and verified."""
    keys = answered_keys(run)
    assert len(keys) == len(set(keys)) == CALLS
    lost = len(events_of(run, AttemptLost))
    assert len(events_of(run, AttemptReserved)) == CALLS + lost
    check_money(run, cap=cap)
    checked = verify_run(run)
    assert checked.ok, checked.error()
    assert checked.journal.finished


def check_money(run: Path, *, cap: int = CAP) -> None:
    assert all(spent + held <= cap for spent, held in money_by_record(events_of(run)))
