"""Options compared two by two: margins, the Condorcet winner, the Smith set, strongest paths, locked pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

Margins = tuple[tuple[int, ...], ...]

MOST_STATES: Final = 10_000
"""Beyond this many orders of equal pairs ranked pairs gives up and says so; the problem is NP-hard."""
MOST_WORK: Final = 2_000_000
"""Nor beyond this many steps: a state costs more, the more options there are. Up to seven it never binds."""


def margins(*, rankings: Sequence[tuple[str, ...]], options: tuple[str, ...]) -> Margins:
    """Return, for the options of row and column, ballots that put the row's first minus those that put it behind.

    Args:
        rankings: Full rankings of all options, best first.
        options: Distinct option ids.

    Example:
        >>> margins(rankings=[("x", "y"), ("x", "y"), ("y", "x")], options=("x", "y"))
        ((0, 1), (-1, 0))
    """
    made = np.zeros((len(options), len(options)), dtype=np.int64)
    for ranking in rankings:
        at = {option: place for place, option in enumerate(ranking)}
        places = np.array([at[option] for option in options])
        made += np.sign(places[None, :] - places[:, None])
    return _plain(made)


def _plain(made: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Margins:
    return tuple(tuple(row) for row in made.tolist())


def condorcet_winner(m: Margins) -> int | None:
    """Return the index of the option that beats every other one; None when there is none.

    Example:
        >>> condorcet_winner(((0, 1), (-1, 0)))
        0
    """
    return next((i for i, row in enumerate(m) if all(row[j] > 0 for j in range(len(m)) if j != i)), None)


def smith_set(m: Margins) -> tuple[int, ...]:
    """Return the indices of the smallest set of options of which each beats every option outside.

    Example:
        >>> smith_set(((0, 1, -1, 1), (-1, 0, 1, 1), (1, -1, 0, 1), (-1, -1, -1, 0)))
        (0, 1, 2)
    """
    wins = [sum(margin > 0 for margin in row) - sum(margin < 0 for margin in row) for row in m]
    best = max(wins)
    inside = {i for i, score in enumerate(wins) if score == best}
    new = inside
    while new:
        new = {j for i in new for j in range(len(m)) if j not in inside and m[j][i] >= 0}
        inside |= new
    return tuple(sorted(inside))


def strongest_paths(m: Margins) -> Margins:
    """Return the strength of the strongest path from row to column: the weakest margin on it; 0 without a path.

    Example:
        >>> strongest_paths(((0, 3, -1), (-3, 0, 5), (1, -5, 0)))
        ((0, 3, 3), (1, 0, 5), (1, 1, 0))
    """
    p = np.maximum(np.array(m, dtype=np.int64), 0)
    for k in range(len(m)):
        p = np.maximum(p, np.minimum(p[:, k, None], p[None, k, :]))
        np.fill_diagonal(p, 0)
    return _plain(p)


def _locked(reach: tuple[int, ...], a: int, b: int) -> tuple[int, ...]:
    """Return who reaches whom (a bit mask each) after an edge is locked that closes no cycle."""
    gained = reach[b] | 1 << b
    return tuple(seen | gained if i == a or seen >> a & 1 else seen for i, seen in enumerate(reach))


def ranked_pairs_winners(m: Margins) -> tuple[int, ...] | None:
    """Return every option that ranked pairs elects under some order of equal pairs (Tideman 1987).

    Pairs are locked from the largest margin down, except those that would close a cycle. Options outside the Smith set
    can never win and lock nothing that matters, so only that set is searched, and pairs of one margin that lie on no
    cycle are locked at once. Returns None beyond `MOST_STATES` states or `MOST_WORK` steps.

    Example:
        >>> ranked_pairs_winners(((0, 3, -1), (-3, 0, 5), (1, -5, 0)))
        (0,)
    """
    inside = smith_set(m)
    if len(inside) == 1:
        return inside
    levels = sorted({m[i][j] for i in inside for j in inside if m[i][j] > 0}, reverse=True)
    groups = [[(i, j) for i in inside for j in inside if m[i][j] == level] for level in levels]
    won: set[int] = set()
    seen: set[tuple[int, tuple[int, ...]]] = set()
    waiting: list[tuple[int, tuple[int, ...]]] = [(0, (0,) * len(m))]
    work = 0
    while waiting and len(won) < len(inside):
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        work += len(m) ** 2
        if len(seen) > MOST_STATES or work > MOST_WORK:
            return None
        level, reach = state
        if level == len(groups):
            won.update(i for i in inside if not any(reach[j] >> i & 1 for j in inside))
            continue
        open_pairs = [(a, b) for a, b in groups[level] if not reach[b] >> a & 1 and not reach[a] >> b & 1]
        after = _closure(reach, open_pairs)
        free = [(a, b) for a, b in open_pairs if not after[b] >> a & 1]
        if free:
            waiting.append((level, _closure(reach, free)))
        elif open_pairs:
            work += len(open_pairs) * len(m)
            if work > MOST_WORK:
                return None
            waiting += [(level, _locked(reach, *pair)) for pair in open_pairs]
        else:
            waiting.append((level + 1, reach))
    return tuple(sorted(won))


def _closure(reach: tuple[int, ...], pairs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return who reaches whom if all pairs were locked, cycles included."""
    now = list(reach)
    for a, b in pairs:
        now[a] |= 1 << b
    for k in range(len(now)):
        now = [seen | now[k] if seen >> k & 1 else seen for seen in now]
    return tuple(now)
