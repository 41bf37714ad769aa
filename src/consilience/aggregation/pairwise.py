"""Options compared two by two: margins, the Condorcet winner, the Smith set, strongest paths, locked pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

Margins = tuple[tuple[int, ...], ...]

MOST_STATES: Final = 10_000
"""Beyond this many orders of equal pairs ranked pairs gives up and says so; the problem is NP-hard."""


def margins(*, rankings: Sequence[tuple[str, ...]], options: tuple[str, ...]) -> Margins:
    """Return, for the options of row and column, ballots that put the row's first minus those that put it behind.

    Args:
        rankings: Full rankings of all options, best first.
        options: Distinct option ids.

    Example:
        >>> margins(rankings=[("x", "y"), ("x", "y"), ("y", "x")], options=("x", "y"))
        ((0, 1), (-1, 0))
    """
    at = {option: index for index, option in enumerate(options)}
    made = [[0] * len(options) for _ in options]
    for ranking in rankings:
        places = [at[option] for option in ranking]
        for place, better in enumerate(places):
            row = made[better]
            for worse in places[place + 1 :]:
                row[worse] += 1
                made[worse][better] -= 1
    return tuple(tuple(row) for row in made)


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
    while True:
        more = {j for j in range(len(m)) for i in inside if j not in inside and m[j][i] >= 0}
        if not more:
            return tuple(sorted(inside))
        inside |= more


def strongest_paths(m: Margins) -> Margins:
    """Return the strength of the strongest path from row to column: the weakest margin on it; 0 without a path.

    Example:
        >>> strongest_paths(((0, 3, -1), (-3, 0, 5), (1, -5, 0)))
        ((0, 3, 3), (1, 0, 5), (1, 1, 0))
    """
    n = len(m)
    p = [[max(margin, 0) for margin in row] for row in m]
    for k in range(n):
        for i in range(n):
            through = p[i][k]
            if i != k and through:
                for j in range(n):
                    if j not in (i, k):
                        p[i][j] = max(p[i][j], min(through, p[k][j]))
    return tuple(tuple(row) for row in p)


def _locked(reach: tuple[int, ...], edges: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return who reaches whom (a bit mask each) after edges are locked; none of them closes a cycle."""
    now = list(reach)
    for a, b in edges:
        gained = now[b] | 1 << b
        now = [seen | gained if i == a or seen >> a & 1 else seen for i, seen in enumerate(now)]
    return tuple(now)


def ranked_pairs_winners(m: Margins) -> tuple[int, ...] | None:
    """Return every option that ranked pairs elects under some order of equal pairs (Tideman 1987).

    Pairs are locked from the largest margin down, except those that would close a cycle. Options outside the Smith set
    can never win and lock nothing that matters, so only that set is searched, and pairs of one margin that lie on no
    cycle are locked at once. Returns None beyond `MOST_STATES` states.

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
    while waiting and len(won) < len(inside):
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > MOST_STATES:
            return None
        level, reach = state
        if level == len(groups):
            won.update(i for i in inside if not any(reach[j] >> i & 1 for j in inside))
            continue
        open_pairs = [(a, b) for a, b in groups[level] if not reach[b] >> a & 1 and not reach[a] >> b & 1]
        after = _closure(reach, open_pairs)
        free = [(a, b) for a, b in open_pairs if not after[b] >> a & 1]
        if free:
            waiting.append((level, _locked(reach, free)))
        elif open_pairs:
            waiting += [(level, _locked(reach, [pair])) for pair in open_pairs]
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
