"""Promises of numeric aggregation over arbitrary panels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.aggregation.intervals import INTERVAL_RULES, IntervalRule, Mixture, fix_crossing, quantile_average_log
from consilience.aggregation.location import FloatArray
from consilience.aggregation.numbers import POINT_RULES, PointRule
from consilience.aggregation.rows import aggregate_estimates
from consilience.core.answers import LEVELS
from consilience.scoring.quantile import pinball

PRICES = st.floats(min_value=1e3, max_value=1e8)
ROWS = st.lists(PRICES, min_size=5, max_size=5).map(sorted)
PANELS = st.lists(ROWS, min_size=1, max_size=12).map(lambda rows: np.array(rows, dtype=np.float64))
POINTS = st.lists(PRICES, min_size=1, max_size=12).map(lambda points: np.array(points, dtype=np.float64))
INTERVALS = list(INTERVAL_RULES)
PROPERTIES = ("order_invariant", "unanimity", "within_range", "unit_equivariant")
BRIEF = settings(max_examples=40, deadline=None)


def names(n: int) -> tuple[str, ...]:
    return tuple(f"seat{i}" for i in range(n))


@pytest.mark.parametrize("rule", list(POINT_RULES), ids=lambda rule: rule.name)
@BRIEF
@given(points=POINTS, seed=st.integers(0, 2**32 - 1))
def test_order_of_seats_changes_no_bit(rule: PointRule, points: FloatArray, seed: int) -> None:
    seats = names(points.size)
    shuffled = np.random.default_rng(seed).permutation(points.size)
    made = rule(points=points, scale="log", seats=seats)
    again = rule(points=points[shuffled], scale="log", seats=tuple(seats[i] for i in shuffled))
    assert again == made
    assert points.min() * (1 - 1e-12) <= made.value <= points.max() * (1 + 1e-12)


@pytest.mark.parametrize("rule", INTERVALS, ids=lambda rule: rule.name)
def test_interval_rules_declare_all_four(rule: IntervalRule) -> None:
    assert all(getattr(rule, name) for name in PROPERTIES)


@pytest.mark.parametrize("rule", INTERVALS, ids=lambda rule: rule.name)
@BRIEF
@given(panel=PANELS, seed=st.integers(0, 2**32 - 1), factor=st.sampled_from((0.092903, 1000.0)))
def test_interval_rules_keep_what_they_declare(rule: IntervalRule, panel: FloatArray, seed: int, factor: float) -> None:
    made = np.array(rule(quantiles=panel, scale="log").quantiles)
    shuffled = panel[np.random.default_rng(seed).permutation(len(panel))]
    assert (np.array(rule(quantiles=shuffled, scale="log").quantiles) == made).all()
    assert (np.diff(made) >= 0).all()
    assert (made >= panel.min(axis=0) * (1 - 1e-9)).all()
    assert (made <= panel.max(axis=0) * (1 + 1e-9)).all()
    alike = np.tile(panel[0], (len(panel), 1))
    assert rule(quantiles=alike, scale="log").quantiles == tuple(panel[0])
    scaled = np.array(rule(quantiles=panel * factor, scale="log").quantiles)
    assert scaled == pytest.approx(made * factor, rel=1e-8)


@BRIEF
@given(centre=st.floats(1e5, 1e6), ratio=st.floats(1.5, 10), width=st.floats(0.01, 0.2))
def test_mixture_is_not_the_average_of_quantiles(centre: float, ratio: float, width: float) -> None:
    shape = np.exp(width * np.array([-1.645, -0.674, 0, 0.674, 1.645]))
    panel = np.array([centre * shape, centre * ratio * shape])
    pooled = np.log(Mixture()(quantiles=panel, scale="log").quantiles)
    averaged = np.log(quantile_average_log(quantiles=panel))
    # Seats of equal width that disagree: averaging keeps that width, the mixture adds the disagreement.
    assert averaged[4] - averaged[0] == pytest.approx(2 * 1.645 * width, rel=1e-9)
    assert pooled[4] - pooled[0] > 2 * 1.645 * width * (1 + 1e-6)


@BRIEF
@given(panel=PANELS)
def test_every_row_is_sound(panel: FloatArray) -> None:
    seats = names(len(panel))
    for row in aggregate_estimates(seats=seats, points=panel[:, 2], quantiles=panel, scale="log"):
        assert row.q05 <= row.q25 <= row.q50 <= row.q75 <= row.q95
        assert sum(row.weights.values()) == pytest.approx(1.0, rel=1e-9)


@BRIEF
@given(row=st.lists(PRICES, min_size=5, max_size=5), outcome=PRICES)
def test_sorting_crossed_quantiles_never_costs(row: list[float], outcome: float) -> None:
    raw = np.array(row)
    fixed, crossed = fix_crossing(quantiles=raw)
    assert crossed == (row != sorted(row))
    y = np.array([outcome])
    losses = [
        sum(float(pinball(quantile=q[i : i + 1], outcome=y, level=level)[0]) for i, level in enumerate(LEVELS))
        for q in (raw, fixed)
    ]
    assert losses[1] <= losses[0] * (1 + 1e-12)
