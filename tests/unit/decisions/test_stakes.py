"""Whether a panel is justified: every combination of what was said, counted plainly; unknown is never no."""

from __future__ import annotations

from itertools import product

import pytest

from consilience.decisions.necessity import Stakes, necessity

AXES = ("irreversible", "uncertain", "perspectives")


@pytest.mark.parametrize("said", list(product((True, False, None), repeat=3)))
def test_every_combination_is_counted_and_unknown_is_not_no(said: tuple[bool | None, ...]) -> None:
    found = necessity(Stakes(**dict(zip(AXES, said, strict=True))))
    worlds = [
        world
        for world in product((True, False), repeat=3)
        if all(s in {None, w} for s, w in zip(said, world, strict=True))
    ]
    verdicts = {2 * a + 2 * b + c >= 3 for a, b, c in worlds}
    assert found.justified == (verdicts.pop() if len(verdicts) == 1 else None)
    assert found.score == sum(points for points, value in zip((2, 2, 1), said, strict=True) if value)


@pytest.mark.parametrize(
    ("stakes", "n"),
    [
        (Stakes(), 0),
        (Stakes(checkable=True), 1),
        (Stakes(latency_ms=499.9), 1),
        (Stakes(latency_ms=500), 0),
        (Stakes(low_stakes=True, checkable=True, latency_ms=0), 3),
        (Stakes(low_stakes=False, checkable=False), 0),
    ],
)
def test_hints_are_given_where_their_reason_was_said(stakes: Stakes, n: int) -> None:
    assert len(necessity(stakes).hints) == n
