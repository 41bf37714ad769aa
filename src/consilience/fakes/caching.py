"""Prompt caches, kept and billed as the vendors say: which part of a prompt is read, written, or neither."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from consilience.fakes.calls import Call, Ttl

TTL_SECONDS: dict[Ttl, int] = {"5m": 300, "1h": 3_600, "30m": 1_800, "12h": 43_200}
LOOK_BACK = 20
IMPLICIT_MINIMUM = 1_024
IMPLICIT_STEP = 128
CHARS_PER_TOKEN = 4


class PrefixStore:
    """The prefixes a vendor remembers, by digest, until they expire; reading one renews it.

    Args:
        clock: Tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[bytes, tuple[float, int]] = {}

    def __contains__(self, digest: bytes) -> bool:
        entry = self._entries.get(digest)
        return entry is not None and entry[0] > self._clock()

    def write(self, digest: bytes, ttl: Ttl) -> None:
        """Remember a prefix."""
        seconds = TTL_SECONDS[ttl]
        self._entries[digest] = (self._clock() + seconds, seconds)

    def renew(self, digest: bytes) -> None:
        """Let a prefix that was read live on."""
        seconds = self._entries[digest][1]
        self._entries[digest] = (self._clock() + seconds, seconds)


@dataclass(frozen=True)
class Charge:
    """Prompt tokens in disjoint buckets, and what the answer will leave in the cache.

    Attributes:
        plain: Neither read from nor written to the cache.
        read: Read from the cache.
        written: Written to the cache, by time to live.
        entries: Prefixes to remember once the answer has begun.
        renewed: The prefix that was read.
    """

    plain: int
    read: int = 0
    written: dict[Ttl, int] = field(default_factory=dict)
    entries: tuple[tuple[bytes, Ttl], ...] = ()
    renewed: bytes | None = None

    def commit(self, store: PrefixStore) -> None:
        """Put into the cache what this call wrote; calls that were under way meanwhile have missed it."""
        if self.renewed is not None:
            store.renew(self.renewed)
        for digest, ttl in self.entries:
            store.write(digest, ttl)


def _ends(call: Call) -> Iterator[tuple[int, bytes, Ttl | None]]:
    """Yield tokens up to the end of each segment, the digest of everything up to there, and the breakpoint."""
    digest = hashlib.sha256(f"{call.model}\x00{call.cache_domain}\x00{call.head}".encode())
    chars = len(call.head)
    for segment in call.segments:
        digest.update(f"\x00{segment.role}\x00".encode())
        digest.update(segment.text.encode("utf-8", "surrogatepass"))
        chars += len(segment.text)
        yield chars // CHARS_PER_TOKEN, digest.digest(), segment.ttl


def charge_explicit(call: Call, store: PrefixStore, *, minimum: int) -> Charge:
    """Return what a Messages call pays: cached up to explicit breakpoints only.

    A breakpoint whose prefix is shorter than ``minimum`` tokens counts for nothing. At each, the vendor looks for an
    entry that ends there or at one of the 20 blocks before.
    """
    ends = list(_ends(call))
    marks = [index for index, (tokens, _, ttl) in enumerate(ends) if ttl is not None and tokens >= minimum]
    found = [index for mark in marks for index in range(max(0, mark - LOOK_BACK), mark + 1) if ends[index][1] in store]
    hit = max(found, default=None)
    covered = read = 0 if hit is None else ends[hit][0]
    written: dict[Ttl, int] = {}
    entries: list[tuple[bytes, Ttl]] = []
    for mark in marks:
        tokens, digest, ttl = ends[mark]
        if ttl is None or tokens <= covered:
            continue
        written[ttl] = written.get(ttl, 0) + tokens - covered
        entries.append((digest, ttl))
        covered = tokens
    return Charge(
        plain=call.total_tokens - covered,
        read=read,
        written=written,
        entries=tuple(entries),
        renewed=None if hit is None else ends[hit][1],
    )


def charge_implicit(call: Call, store: PrefixStore) -> Charge:
    """Return what a Responses or Chat Completions call pays: prefixes are cached by the vendor's own choice.

    From 1,024 tokens on, in steps of 128, and at explicit breakpoints exactly.
    """
    places: list[tuple[int, bytes, Ttl]] = [
        (tokens, digest, ttl) for tokens, digest, ttl in _ends(call) if ttl is not None and tokens >= IMPLICIT_MINIMUM
    ]
    if call.implicit_ttl is not None:
        places += [(tokens, digest, call.implicit_ttl) for tokens, digest in _steps(call)]
    places.sort()
    hit = max((place for place in places if place[1] in store), default=None)
    read = 0 if hit is None else hit[0]
    written: dict[Ttl, int] = {}
    if places and places[-1][0] > read:
        written[places[-1][2]] = places[-1][0] - read
    return Charge(
        plain=call.total_tokens - read - sum(written.values()),
        read=read,
        written=written,
        entries=tuple((digest, ttl) for tokens, digest, ttl in places if tokens > read),
        renewed=None if hit is None else hit[1],
    )


def _steps(call: Call) -> Iterator[tuple[int, bytes]]:
    digest = hashlib.sha256(f"{call.model}\x00{call.cache_domain}\x00steps".encode())
    whole = call.head + "".join(segment.text for segment in call.segments)
    size = IMPLICIT_STEP * CHARS_PER_TOKEN
    for start in range(0, len(whole) - size + 1, size):
        digest.update(whole[start : start + size].encode("utf-8", "surrogatepass"))
        tokens = (start + size) // CHARS_PER_TOKEN
        if tokens >= IMPLICIT_MINIMUM:
            yield tokens, digest.digest()
