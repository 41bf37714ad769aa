"""How fast a model may be called: concurrency that gives way to 429s, requests and tokens per minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

SUSTAINED = 2
"""So many 429s in a row are no accident."""
MINUTE = 60.0
TOO_MANY = 429


@dataclass
class Aimd:
    """Additive increase, multiplicative decrease of a concurrency limit (Chiu & Jain 1989).

    Attributes:
        most: The configured limit, never passed.
        limit: The limit in force, at least 1.
        cuts: How often it was halved; a call notes the number when it leaves.

    Example:
        >>> aimd = Aimd(8)
        >>> aimd.limited(since=0); aimd.limited(since=0); aimd.limited(since=0); aimd.limited(since=0)
        >>> aimd.limit
        4.0
    """

    most: int
    limit: float = 0.0
    cuts: int = 0
    _in_a_row: int = 0

    def __post_init__(self) -> None:
        self.limit = float(self.most)

    @property
    def slots(self) -> int:
        """How many calls may be in flight."""
        return int(self.limit)

    def limited(self, *, since: int) -> None:
        """Note a 429: when they are sustained, halve the limit and count anew.

        Args:
            since: `cuts` when the call left; what left before the last cut says nothing about the limit in force, or
                one burst would cut it to one.
        """
        if since < self.cuts:
            return
        self._in_a_row += 1
        if self._in_a_row >= SUSTAINED:
            self.limit = max(1.0, self.limit / 2)
            self.cuts += 1
            self._in_a_row = 0

    def answered(self) -> None:
        """Note an answer: creep back by one slot per round of answers."""
        self._in_a_row = 0
        self.limit = min(float(self.most), self.limit + 1 / self.limit)


@dataclass
class Window:
    """Amounts over the last minute, against a limit.

    Attributes:
        limit: Most per minute; None for no limit.

    Example:
        >>> window = Window(2)
        >>> window.add(1, now=0.0); window.add(1, now=10.0)
        >>> window.wait(1, now=30.0)
        30.0
    """

    limit: int | None
    _entries: deque[tuple[float, int]] = field(default_factory=deque)
    _sum: int = 0

    def wait(self, amount: int, *, now: float) -> float:
        """Return the seconds until ``amount`` more fits; an amount above the limit fits when the window is empty."""
        if self.limit is None:
            return 0.0
        self._forget(now)
        left = self._sum + amount - self.limit
        for at, used in self._entries:
            if left <= 0:
                return 0.0
            left -= used
            if left <= 0 or at == self._entries[-1][0]:
                return at + MINUTE - now
        return 0.0

    def add(self, amount: int, *, now: float) -> None:
        """Note an amount used now."""
        if self.limit is not None:
            self._entries.append((now, amount))
            self._sum += amount

    def _forget(self, now: float) -> None:
        while self._entries and self._entries[0][0] <= now - MINUTE:
            self._sum -= self._entries.popleft()[1]


@dataclass(frozen=True)
class Rates:
    """Limits of one model; None takes the general limit, or none.

    Attributes:
        concurrency: Calls in flight.
        requests_per_minute: Calls per minute.
        tokens_per_minute: Expected tokens per minute.
    """

    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def throttle(self, concurrency: int) -> Throttle:
        """Return the slots of a model with these limits, of which the first may be the general one."""
        return Throttle(
            self.concurrency or concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
        )


class Throttle:
    """The slots of one model.

    Args:
        concurrency: Most calls in flight.
        requests_per_minute: Limit, or None.
        tokens_per_minute: Limit on expected tokens, or None.
        clock: Monotonic seconds; the event loop's own when None.
    """

    def __init__(
        self,
        concurrency: int,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self.aimd = Aimd(concurrency)
        self.in_flight = 0
        self._requests = Window(requests_per_minute)
        self._tokens = Window(tokens_per_minute)
        self._unlimited = requests_per_minute is None and tokens_per_minute is None
        self._clock = clock
        self._waiting: deque[anyio.Event] = deque()

    def slot(self, tokens: int) -> Slot:
        """Return the right to one call of about so many tokens, to be held with ``async with``."""
        return Slot(self, tokens)

    async def enter(self) -> None:
        """Take a slot, waiting in turn for it."""
        if not self._waiting and self.in_flight < self.aimd.slots:
            self.in_flight += 1
            return
        turn = anyio.Event()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self.leave()
            else:
                self._waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Give a slot back, and every free one to whoever has waited longest."""
        self.in_flight -= 1
        while self._waiting and self.in_flight < self.aimd.slots:
            self.in_flight += 1
            self._waiting.popleft().set()

    async def keep_rates(self, tokens: int) -> None:
        """Wait until a call of so many tokens fits into the last minute, and count it."""
        if self._unlimited:
            return
        now = self._clock()
        while (pause := max(self._requests.wait(1, now=now), self._tokens.wait(tokens, now=now))) > 0:
            await anyio.sleep(pause)
            now = self._clock()
        self._requests.add(1, now=now)
        self._tokens.add(tokens, now=now)


class Slot:
    """One slot of a throttle, waited for in turn. What it gives is told what the call came to: a status, or None.

    Args:
        throttle: Whose slot.
        tokens: What the call will take, about.
    """

    __slots__ = ("_cuts", "_throttle", "_tokens")

    def __init__(self, throttle: Throttle, tokens: int) -> None:
        self._throttle = throttle
        self._tokens = tokens
        self._cuts = 0

    async def __aenter__(self) -> Callable[[int | None], None]:
        await self._throttle.enter()
        try:
            await self._throttle.keep_rates(self._tokens)
        except BaseException:
            self._throttle.leave()
            raise
        self._cuts = self._throttle.aimd.cuts
        return self._heard

    async def __aexit__(self, *_: object) -> None:
        self._throttle.leave()

    def _heard(self, status: int | None) -> None:
        if status == TOO_MANY:
            self._throttle.aimd.limited(since=self._cuts)
        elif status is None:
            self._throttle.aimd.answered()
