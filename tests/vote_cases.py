"""Random elections that every interpreter makes alike, and how winners are written down in one character.

The script that asks the oracle runs in another environment, so nothing here imports the package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

PROFILES = 10_000
NAMES = "abcde"
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
"""A set of up to five options as one character: the digit to base 32 whose bit i says that option i is in it."""

Profile = list[tuple[int, ...]]

APART: Profile = [*[(1, 2, 0, 3)] * 2, *[(2, 1, 0, 3)] * 2, *[(0, 3, 1, 2)] * 3, *[(3, 0, 1, 2)] * 4]
"""Eleven voters whose run-off option 3 wins whichever tied loser goes first, and option 0 if both go at once."""


def numbers(seed: str) -> Iterator[int]:
    """Yield whole numbers below 2**32 that depend on the seed alone."""
    block = 0
    while True:
        digest = hashlib.sha256(f"{seed}/{block}".encode()).digest()
        yield from (int.from_bytes(digest[at : at + 4], "big") for at in range(0, 32, 4))
        block += 1


def profile(index: int) -> Profile:
    """Return the rankings of one election: 2 to 5 options, 1 to 14 voters, often few distinct rankings, for ties."""
    draw = numbers(f"votes-{index}")
    options = 2 + next(draw) % 4
    voters = 1 + next(draw) % 14
    kinds = [_ranking(options, draw) for _ in range(1 + next(draw) % 8)]
    return [kinds[next(draw) % len(kinds)] if next(draw) % 4 else _ranking(options, draw) for _ in range(voters)]


def approvals(index: int) -> Profile:
    """Return approval sets for the voters of the same election; some approve nothing."""
    draw = numbers(f"approvals-{index}")
    rankings = profile(index)
    return [ranking[: next(draw) % (len(ranking) + 1)] for ranking in rankings]


def _ranking(options: int, draw: Iterator[int]) -> tuple[int, ...]:
    left = list(range(options))
    return tuple(left.pop(next(draw) % len(left)) for _ in range(options))


def written(winners: list[int]) -> str:
    """Return a set of options as a character."""
    return ALPHABET[sum(1 << option for option in winners)]


def digest_of_profiles() -> str:
    """Return what all elections hash to, so that a change of theirs is seen."""
    told = hashlib.sha256()
    for index in range(PROFILES):
        told.update(repr((profile(index), approvals(index))).encode())
    return told.hexdigest()
