"""Interpolation against scipy, ends, tails, jumps, and what the rules change."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.interpolate import PchipInterpolator

from consilience.errors import DataError
from consilience.forecasting.cdf import Grid, admissible, average, grid_of, interpolate, panel_cdf
from consilience.forecasting.metaculus_rules import cdf_problems
from consilience.forecasting.monotone import slopes
from consilience.forecasting.questions import ForecastQuestion

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
OPEN = Grid(lower=0.0, upper=100.0, open_lower=True, open_upper=True)
CLOSED = Grid(lower=0.0, upper=100.0, open_lower=False, open_upper=False)


def accepted(values: tuple[float, ...], grid: Grid) -> bool:
    opened = {"open_lower": grid.open_lower, "open_upper": grid.open_upper}
    return cdf_problems(values, steps=grid.steps, **opened) == ()


@pytest.mark.parametrize("seed", range(20))
def test_slopes_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    x = np.cumsum(rng.exponential(size=n))
    y = np.cumsum(rng.exponential(size=n) * rng.integers(0, 2, size=n))
    assert slopes(x.tolist(), y.tolist()) == pytest.approx(PchipInterpolator(x, y).derivative()(x), abs=1e-12)


@pytest.mark.parametrize(
    "quantiles", [[10, 30, 50, 70, 90], [3, 4, 5, 40, 96], [60, 61, 61.5, 62, 99], [1, 2, 3, 5, 8]]
)
def test_closed_ends_are_knots_of_the_same_curve(quantiles: list[float]) -> None:
    oracle = PchipInterpolator([0, *quantiles, 100], [0, *LEVELS, 1])
    made = interpolate(quantiles, CLOSED)
    assert made == pytest.approx(oracle(CLOSED.values), abs=1e-12)
    assert (made[0], made[-1]) == (0.0, 1.0)


def test_open_ends_interpolate_the_quantiles_alone_and_fall_off_exponentially() -> None:
    quantiles = [20.0, 30.0, 45.0, 60.0, 80.0]
    oracle = PchipInterpolator(quantiles, LEVELS)
    made = dict(zip(OPEN.values, interpolate(quantiles, OPEN), strict=True))
    inside = [x for x in OPEN.values if 20 <= x <= 80]
    assert [made[x] for x in inside] == pytest.approx(oracle(inside), abs=1e-12)
    slope = float(oracle.derivative()(20.0))
    assert made[10.0] == pytest.approx(0.05 * math.exp(-slope / 0.05 * 10))
    assert 0 < made[0.0] < made[10.0] < 0.05
    assert 0.95 < made[90.0] < made[100.0] < 1


def test_quantiles_beyond_an_open_bound_leave_their_mass_outside() -> None:
    made = interpolate([-50, -10, 0, 10, 30], OPEN)
    assert made[0] == pytest.approx(0.5)
    assert interpolate([-9, -8, -7, -6, -5], OPEN)[0] > 0.999
    assert interpolate([105, 106, 107, 108, 109], OPEN)[-1] < 0.001


def test_a_logarithmic_scale_is_interpolated_in_its_own_coordinates() -> None:
    grid = Grid(lower=1, upper=10_000, open_lower=False, open_upper=False, zero_point=0)
    quantiles = [10, 50, 100, 300, 1000]
    oracle = PchipInterpolator(np.log([1, *quantiles, 10_000]), [0, *LEVELS, 1])
    assert interpolate(quantiles, grid) == pytest.approx(oracle(np.log(grid.values)), abs=1e-9)


@pytest.mark.parametrize(("low", "high", "zero"), [(1, 100, 0), (5, 50, -10), (-3, 4, -3.5), (0, 10, 11), (2, 3, -1e9)])
def test_the_logarithmic_grid_is_that_of_the_formula(low: float, high: float, zero: float) -> None:
    grid = Grid(lower=low, upper=high, open_lower=True, open_upper=True, zero_point=zero, steps=50)
    r = (high - zero) / (low - zero)
    formula = [low + (high - low) * (r ** (i / 50) - 1) / (r - 1) for i in range(51)]
    assert grid.values == pytest.approx(formula, rel=1e-6)
    assert [grid.place(x) for x in grid.values] == pytest.approx([i / 50 for i in range(51)], abs=1e-9)
    outside = [low - 1e6, low - 1, low - 1e-3, low, high, high + 1e-3, high + 1, high + 1e6]
    places = [grid.place(x) for x in outside]
    assert places == sorted(places)
    assert (grid.place(low), grid.place(high)) == (0.0, 1.0)


def test_a_zero_point_of_zero_is_no_missing_one() -> None:
    log = Grid(lower=1, upper=100, open_lower=True, open_upper=True, zero_point=0.0)
    linear = Grid(lower=1, upper=100, open_lower=True, open_upper=True)
    assert log.values[100] == pytest.approx(10)
    assert linear.values[100] == pytest.approx(50.5)
    assert interpolate([-5, 0, 2, 9, 40], log)[0] > 0.25


def test_coinciding_quantiles_are_a_jump() -> None:
    grid = Grid(lower=0.5, upper=6.5, open_lower=False, open_upper=False, steps=6)
    made = interpolate([3, 3, 3, 4, 5], grid)
    assert made[2] <= 0.05
    assert made[3] >= 0.5
    everything = interpolate([3, 3, 3, 3, 3], OPEN)
    assert everything[5] == 0.0
    assert everything[6] == 1.0
    nearly = [3, 3 + 1e-12, 3 + 2e-12, 4, 5]
    assert interpolate(nearly, grid) == pytest.approx(interpolate([3, 3, 3, 4, 5], grid))


@pytest.mark.parametrize("at", [0, 100])
def test_everything_at_a_closed_bound(at: float) -> None:
    made = panel_cdf([[at] * 5], CLOSED)
    assert accepted(made.values, CLOSED)
    assert [adjustment.rule for adjustment in made.adjustments] == ["largest_step"]
    assert abs(made.values[5 if at == 0 else 195] - (1 if at == 0 else 0)) < 0.06


@pytest.mark.parametrize(
    ("quantiles", "told"),
    [
        ([10, 30, 20, 70, 90], "out of order"),
        ([90, 70, 50, 30, 10], "out of order"),
        ([10, 30, 50, 70], "five"),
        ([10, 30, math.nan, 70, 90], "finite"),
        ([-1, 30, 50, 70, 90], "closed bound"),
        ([10, 30, 50, 70, 101], "closed bound"),
    ],
)
def test_what_contradicts_itself_is_refused_and_never_sorted(quantiles: list[float], told: str) -> None:
    with pytest.raises(DataError, match=told):
        interpolate(quantiles, CLOSED)


def test_a_value_out_of_all_proportion_asks_for_the_unit() -> None:
    with pytest.raises(DataError, match="unit"):
        interpolate([1, 2, 3, 4, 1e200], OPEN)


@pytest.mark.parametrize(
    "bad",
    [
        {"lower": 1.0, "upper": 1.0},
        {"lower": 2.0, "upper": 1.0},
        {"zero_point": 0.0},
        {"zero_point": 50.0},
        {"zero_point": 100.0},
        {"lower": 1e17, "upper": 1e17 + 100},
        {"lower": -1e308, "upper": 1e308},
        {"lower": 1e-300, "upper": 1e300, "zero_point": 0.0},
        {"steps": 0},
    ],
)
def test_a_grid_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Grid.model_validate({"lower": 0.0, "upper": 100.0, "open_lower": False, "open_upper": False} | bad)


def test_members_are_averaged_by_index() -> None:
    first, second = interpolate([10, 20, 30, 40, 50], CLOSED), interpolate([50, 60, 70, 80, 90], CLOSED)
    mean = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    assert average([first, second]) == pytest.approx(mean)
    assert panel_cdf([[10, 20, 30, 40, 50], [50, 60, 70, 80, 90]], CLOSED).values == pytest.approx(mean, abs=6e-11)
    for odd in ([], [first, second[:-1]]):
        with pytest.raises(DataError, match="lengths"):
            average(odd)


def test_what_is_accepted_already_is_only_rounded() -> None:
    raw = interpolate([10, 30, 50, 70, 90], CLOSED)
    made = admissible(raw, CLOSED)
    assert made.adjustments == ()
    assert made.values == tuple(round(value, 10) for value in raw)


def test_a_flat_function_gets_the_least_slope_and_says_so() -> None:
    made = panel_cdf([[49, 49.5, 50, 50.5, 51]], OPEN)
    assert [adjustment.rule for adjustment in made.adjustments] == [
        "open_lower_mass",
        "open_upper_mass",
        "least_slope",
        "largest_step",
    ]
    low, high, slope, step = made.adjustments
    assert low.before == pytest.approx(0, abs=1e-9)
    assert (low.after, high.after, slope.before) == (0.001, 0.999, 0.0)
    assert slope.after == pytest.approx(5e-5, abs=1e-9)
    assert slope.weight == pytest.approx(0.01, rel=0.01)
    assert step.before > 0.2
    assert step.after == pytest.approx(0.2, abs=1e-9)
    assert accepted(made.values, OPEN)


def test_a_jump_is_spread_over_its_neighbours_alone() -> None:
    made = panel_cdf([[50.25] * 5], CLOSED)
    rises = [after - before for before, after in pairwise(made.values)]
    steep = [i for i, rise in enumerate(rises) if rise > 1e-3]
    assert steep == [98, 99, 100, 101, 102]
    assert [rises[i] for i in steep] == pytest.approx([0.15125, 0.2, 0.2, 0.2, 0.15125], abs=1e-4)
    assert accepted(made.values, CLOSED)


@pytest.mark.parametrize("at", [0.5, 1e-9, 1 - 1e-9, 0.031])
@pytest.mark.parametrize("opened", [False, True])
def test_spreading_ends_where_moving_the_excess_again_and_again_ends(at: float, opened: bool) -> None:
    grid = Grid(lower=0.0, upper=1.0, open_lower=opened, open_upper=not opened, steps=80)
    raw = average([interpolate([at] * 5, grid), interpolate([0.2, 0.2, 0.2, 0.9, 0.9], grid)])
    made = admissible(raw, grid)
    most, weight = 0.2 * 200 / 80, sum(one.weight or 0 for one in made.adjustments)
    low, high = 0.001 if opened else 0.0, 1.0 if opened else 0.999
    values = [min(max(value, low), high) for value in raw]
    values = [(1 - weight) * value + weight * (low + (high - low) * i / 80) for i, value in enumerate(values)]
    rises = [after - before for before, after in pairwise(values)]
    while max(rises) > most:
        excess = [max(rise - most + 2e-10, 0.0) for rise in rises]
        for i, extra in enumerate(excess):
            rises[i] -= extra
            rises[i - 1 if i else 1] += extra / 2
            rises[i + 1 if i < 79 else 78] += extra / 2
    assert np.diff(made.values) == pytest.approx(rises, abs=1e-9)


@pytest.mark.parametrize("at", [0.5, 1e-12])
def test_a_jump_on_the_largest_grid_is_spread_without_delay(at: float) -> None:
    grid = Grid(lower=0.0, upper=1.0, open_lower=False, open_upper=False, steps=10_000)
    made = panel_cdf([[at] * 5], grid)  # moving the excess step by step would take an hour
    assert accepted(made.values, grid)
    assert made.adjustments[-1].rule == "largest_step"


@pytest.mark.parametrize(
    "raw", [[0.0] * 201, [0.0, *[0.5] * 198, 0.4, 1.0], [0.0, 1.0], [-0.1, *[0.5] * 199, 1.0], [0.0, *[2.0] * 199, 1.0]]
)
def test_what_is_no_distribution_function_is_refused(raw: list[float]) -> None:
    with pytest.raises(DataError, match="no distribution function"):
        admissible(raw, CLOSED)


def test_a_grid_is_that_of_the_question() -> None:
    asked = ForecastQuestion(text="?", kind="numeric", lower=1, upper=9, open_upper=True, zero_point=0)
    assert grid_of(asked) == Grid(lower=1, upper=9, open_lower=False, open_upper=True, zero_point=0, steps=200)
    with pytest.raises(DataError, match="no range"):
        grid_of(ForecastQuestion(text="?", kind="numeric"))
    with pytest.raises(DataError, match="too narrow"):
        grid_of(ForecastQuestion(text="?", kind="numeric", lower=1e17, upper=1e17 + 64))
