"""What every score of probabilities and choices does for any table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.core.undefined import Undefined
from consilience.scoring.agreement import krippendorff_alpha
from consilience.scoring.calibration import binned_error, smooth_error
from consilience.scoring.probability import brier, corp, murphy, sharpness

CASES = st.lists(st.tuples(st.integers(0, 20).map(lambda i: i / 20), st.integers(0, 1)), min_size=1, max_size=40)


def columns(cases: list[tuple[float, int]]) -> tuple[Any, Any]:
    table = np.array(cases, dtype=np.float64)
    return table[:, 0], table[:, 1]


@given(cases=CASES, bins=st.integers(1, 12))
def test_parts_add_up_and_lie_in_their_ranges(cases: list[tuple[float, int]], bins: int) -> None:
    p, y = columns(cases)
    parts, five = corp(p=p, y=y), murphy(p=p, y=y, bins=bins)
    assert parts.score == pytest.approx(brier(p=p, y=y).mean())
    assert parts.mcb - parts.dsc + parts.unc == pytest.approx(parts.score)
    assert five.rel - five.res + five.unc + five.wbv - five.wbc == pytest.approx(parts.score)
    assert -1e-12 <= parts.dsc <= parts.unc + 1e-12
    assert parts.mcb >= -1e-12


@given(cases=CASES)
def test_yes_and_no_may_change_places(cases: list[tuple[float, int]]) -> None:
    p, y = columns(cases)
    one, other = corp(p=p, y=y), corp(p=1 - p, y=1 - y)
    assert (one.mcb, one.dsc) == pytest.approx((other.mcb, other.dsc), abs=1e-9)
    assert sharpness(p=p) == pytest.approx(sharpness(p=1 - p))
    assert smooth_error(p=p, y=y) == pytest.approx(smooth_error(p=1 - p, y=1 - y), abs=1e-6)


@given(cases=CASES, bins=st.integers(1, 12))
def test_calibration_errors_are_ordered_and_no_less_than_the_bias(cases: list[tuple[float, int]], bins: int) -> None:
    p, y = columns(cases)
    bias = abs(float((p - y).mean()))
    for scheme in ("width", "mass"):
        made = binned_error(p=p, y=y, bins=bins, scheme=scheme)
        assert bias - 1e-9 <= made.ece <= made.rmsce + 1e-9 <= made.mce + 2e-9
        assert isinstance(made.debiased, Undefined) or made.debiased <= made.rmsce + 1e-9


@given(
    votes=st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=12),
    level=st.sampled_from(["nominal", "ordinal", "interval", "ratio"]),
    seed=st.integers(0, 99),
)
def test_alpha_knows_no_order_of_members_or_items(votes: list[list[int]], level: Any, seed: int) -> None:
    values = np.array(votes, dtype=np.float64)
    rng = np.random.default_rng(seed)
    mixed = rng.permuted(rng.permutation(values), axis=1)
    one, other = (krippendorff_alpha(values=each, present=each > 0, level=level) for each in (values, mixed))
    assert one == other if isinstance(one, Undefined) else one == pytest.approx(other, abs=1e-9)
    assert isinstance(one, Undefined) or one <= 1 + 1e-9
