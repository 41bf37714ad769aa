from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.valuation.baselines.levels import ENOUGH, HALF_WIDTHS, TRAILING_DAYS, level_path


def sales(seed: int, n: int, span: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.sort(rng.integers(100, 100 + span, n)), rng.normal(size=n)


@settings(max_examples=60)
@given(seed=st.integers(0, 999), n=st.integers(1, 300), span=st.integers(1, 400), cutoff=st.integers(90, 560))
def test_levels_are_medians_of_what_was_known(seed: int, n: int, span: int, cutoff: int) -> None:
    day, surplus = sales(seed, n, span)
    path = level_path(day, surplus, base=9.0)
    known = surplus[day < cutoff]
    expected = 9.0
    for width in TRAILING_DAYS:
        window = surplus[(day >= cutoff - width) & (day < cutoff)]
        if len(window) >= ENOUGH or width == TRAILING_DAYS[-1]:
            expected = float(np.median(window)) if len(window) else 9.0
            break
    assert path.at_cutoff(np.array([cutoff])).tolist() == [expected]
    assert len(known) or expected == 9.0


@settings(max_examples=60)
@given(seed=st.integers(0, 999), n=st.integers(1, 300), cutoff=st.integers(101, 400), deleted=st.booleans())
def test_what_comes_later_moves_no_level(seed: int, n: int, cutoff: int, deleted: bool) -> None:
    day, surplus = sales(seed, n, 300)
    asked = np.arange(95, cutoff)
    then = np.full(len(asked), cutoff)
    before = level_path(day, surplus, base=0.0)
    late = day >= cutoff
    changed = (day[~late], surplus[~late]) if deleted else (day, np.where(late, 50.0, surplus))
    after = level_path(*changed, base=0.0)
    assert before.at(asked, then).tolist() == after.at(asked, then).tolist()
    assert before.at_cutoff(then).tolist() == after.at_cutoff(then).tolist()


def test_a_planted_centred_window_is_told_apart() -> None:
    # A window that reaches past the cutoff would see this jump; the path must not.
    day = np.repeat(np.arange(100, 200), 5)
    surplus = np.where(day >= 150, 1.0, 0.0)
    path = level_path(day, surplus, base=0.0)
    assert path.at(np.array([149, 140]), np.array([150, 150])).tolist() == [0.0, 0.0]
    assert path.at(np.array([170]), np.array([199])).tolist() == [1.0]
    assert path.at_cutoff(np.array([150, 199])).tolist() == [0.0, 1.0]


def test_a_past_day_is_the_middle_of_its_window_once_that_is_over() -> None:
    day = np.repeat(np.arange(100, 200), 5)
    surplus = (day - 100) / 100
    path = level_path(day, surplus, base=0.0)
    half = HALF_WIDTHS[0]
    assert path.at(np.array([130]), np.array([130 + half + 1])).round(9).tolist() == [0.3]
    assert path.at(np.array([130]), np.array([130 + half])).tolist() == path.at_cutoff(np.array([145])).tolist()


def test_no_sale_at_all_is_the_base() -> None:
    path = level_path(np.array([], dtype=np.int64), np.array([]), base=0.25)
    assert path.at(np.array([5]), np.array([9])).tolist() == [0.25]
