"""Warm one call per prefix, then fan out: parallel first calls all miss the cache and all pay to fill it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

import anyio

WARM_S = 300.0
"""How long the vendors keep a prefix after its last use, at least."""


_NOTHING: AbstractAsyncContextManager[Callable[[], None]] = nullcontext(lambda: None)


class Warmth:
    """Which prefixes are in the vendors' caches, as far as this run knows.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = anyio.current_time) -> None:
        self._clock = clock
        self._used: dict[str, float] = {}
        self._warming: dict[str, anyio.Event] = {}

    def around(self, prefixes: Sequence[str]) -> AbstractAsyncContextManager[Callable[[], None]]:
        """Hold a call until no other call is filling one of its prefixes, then let it fill those that are cold.

        The caller calls what it is given when the call was answered: a failed call has filled nothing.
        """
        return self._filling(prefixes) if prefixes else _NOTHING

    @asynccontextmanager
    async def _filling(self, prefixes: Sequence[str]) -> AsyncIterator[Callable[[], None]]:
        while busy := next((self._warming[prefix] for prefix in prefixes if prefix in self._warming), None):
            await busy.wait()
        mine = [prefix for prefix in prefixes if self._clock() - self._used.get(prefix, -WARM_S) >= WARM_S]
        done = anyio.Event()
        self._warming |= dict.fromkeys(mine, done)
        try:
            yield lambda: self._used.update(dict.fromkeys(prefixes, self._clock()))
        finally:
            for prefix in mine:
                del self._warming[prefix]
            done.set()
