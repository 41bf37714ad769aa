"""While a run goes on: progress on stderr, and what Ctrl-C does."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from consilience.cli.console import clean, counted, note

if TYPE_CHECKING:
    from rich.console import Console

    from consilience.experiments.orders import Progress
    from consilience.models.calls import Stop

EVERY_S = 5.0
BAR_FROM = 140
"""Columns of a terminal that has room for a bar beside the numbers."""
INTERRUPTED = 130
FINISHING = b"\nstopping: what is in flight is finished and recorded; Ctrl-C again stops at once\n"
GONE = b"stopped at once; what was recorded is kept, and the same command resumes the run\n"
SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def watching(title: str, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[Progress], None]]:
    """Show a run's progress on stderr: a live line on a terminal, a plain line every few seconds in a pipe.

    Args:
        title: Which run; says *simulated* where no real model speaks.
        clock: Seconds that only grow.
    """
    from rich.console import Console  # noqa: PLC0415 - only where something is run

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if console.is_interactive:
        yield from _live(console, clean(title))
    else:
        yield _plainly(title, clock)


def _live(console: Console, title: str) -> Iterator[Callable[[Progress], None]]:
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - the same
    from rich.progress import Progress as Display  # noqa: PLC0415 - the same
    from rich.table import Column  # noqa: PLC0415 - the same

    def words(name: str) -> TextColumn:
        """Return a column that a narrow terminal gets on several lines, not cut."""
        return TextColumn(f"{{task.fields[{name}]}}", markup=False, table_column=Column(overflow="fold"))

    display = Display(
        words("title"),
        *([BarColumn(bar_width=20)] if console.width >= BAR_FROM else []),
        words("told"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with display:
        task = display.add_task("", total=None, title=title, told="starting")

        def tell(now: Progress) -> None:
            display.update(task, total=now.items_total, completed=now.items_done, told=told(now))

        yield tell


def _plainly(title: str, clock: Callable[[], float]) -> Callable[[Progress], None]:
    began = clock()
    last = began

    def tell(now: Progress) -> None:
        nonlocal last
        seconds = clock()
        done = now.items_done == now.items_total
        if done or seconds - last >= EVERY_S:
            last = seconds
            note(f"{title}: {told(now)}" + ("" if done else _left(now, seconds - began)))

    return tell


def _left(now: Progress, seconds: float) -> str:
    """Return how long it may still take, once an item has been finished."""
    if not now.items_done:
        return ""
    return f", about {seconds / now.items_done * (now.items_total - now.items_done):.0f} s left"


def told(now: Progress) -> str:
    """Return a run's progress in one line."""
    return (
        f"{now.items_done} of {counted(now.items_total, 'item')}, {counted(now.turns, 'turn')}, "
        f"{now.failures:,} without answer, {counted(now.tokens, 'token')}, {spent(now.spent_nano, now.cap_nano)}"
    )


def spent(nano: int, cap_nano: int | None) -> str:
    """Return what was spent under which cap.

    Example:
        >>> spent(40_000_000, 50_000_000), spent(0, None)
        ('$0.04 of $0.05 spent', '$0.00 spent, no cap')
    """
    from consilience.journal.budget import usd  # noqa: PLC0415 - loads the event loop

    return f"{usd(nano)} spent, no cap" if cap_nano is None else f"{usd(nano)} of {usd(cap_nano)} spent"


@contextmanager
def interruptible(stop: Stop, leave: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Let the first Ctrl-C ask the run to stop and the second end the process at once, as a kill would.

    An exception thrown into a running event loop can leave it waiting for ever; the record survives a kill.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + GONE)
            leave(INTERRUPTED)
        else:
            asked = stop.requested = True
            os.write(2, FINISHING)  # the streams may be in the middle of a write

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
