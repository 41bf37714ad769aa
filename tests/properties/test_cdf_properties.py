"""Whatever the bounds, the ends, the scale, the number of steps and the quantiles: what is built is accepted."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from consilience.forecasting.cdf import Grid, admissible, average, interpolate, panel_cdf
from consilience.forecasting.metaculus_rules import cdf_problems

SIZES = st.floats(-1e12, 1e12)
SHARES = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 0.5, 0.5 + 1e-10, 1 - 1e-9, 1 - 1e-12, 1.0]),
)
BEYOND = st.one_of(SHARES, st.floats(-2, 3), st.floats(-1e15, 1e15))


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    lower, width = draw(SIZES), draw(st.floats(1e-6, 1e12))
    zero = None
    if draw(st.booleans()):
        gap = width * draw(st.floats(1e-9, 1e3))
        zero = draw(st.sampled_from([lower - gap, lower + width + gap, 0.0]))
        assume(abs(lower - zero) > 1e-12 * width)
    try:
        return Grid(
            lower=lower,
            upper=lower + width,
            open_lower=draw(st.booleans()),
            open_upper=draw(st.booleans()),
            zero_point=zero,
            steps=draw(st.one_of(st.integers(1, 200), st.just(200))),
        )
    except ValidationError:
        assume(False)
        raise


@st.composite
def answers(draw: st.DrawFn, grid: Grid) -> list[float]:
    width = grid.upper - grid.lower
    values = [grid.lower + width * draw(BEYOND) for _ in range(5)]
    if draw(st.booleans()):  # all near one another
        values = [values[0] + width * draw(st.floats(0, 1e-8)) for _ in range(5)]
    low = -1e300 if grid.open_lower else grid.lower
    high = 1e300 if grid.open_upper else grid.upper
    return sorted(min(max(value, low), high) for value in values)


def problems(values: tuple[float, ...], grid: Grid) -> list[str]:
    opened = {"open_lower": grid.open_lower, "open_upper": grid.open_upper}
    return [problem.message for problem in cdf_problems(values, steps=grid.steps, **opened)]


@given(data=st.data())
def test_every_cdf_that_is_built_is_accepted(data: st.DataObject) -> None:
    grid = data.draw(grids())
    members = [data.draw(answers(grid)) for _ in range(data.draw(st.integers(1, 3)))]
    made = panel_cdf(members, grid)
    assert problems(made.values, grid) == []
    raw = average([interpolate(quantiles, grid) for quantiles in members])
    assert all(before <= after for before, after in pairwise(raw))
    if problems(tuple(round(value, 10) for value in raw), grid) == []:
        assert made.adjustments == ()
    again = admissible(made.values, grid)
    assert again.values == made.values
    assert again.adjustments == ()


@given(data=st.data())
def test_the_function_passes_through_the_quantiles(data: st.DataObject) -> None:
    """The share at a grid point lies between the levels of the quantiles on both sides of it."""
    grid = data.draw(grids())
    quantiles = data.draw(answers(grid))
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    slack = (grid.upper - grid.lower) * 1e-6 + 4 * math.ulp(max(abs(grid.lower), abs(grid.upper)))
    for x, p in list(zip(grid.values, interpolate(quantiles, grid), strict=True))[1:-1]:
        assert p >= max((level for level, q in zip(levels, quantiles, strict=True) if q <= x - slack), default=0) - 1e-9
        assert p <= min((level for level, q in zip(levels, quantiles, strict=True) if q >= x + slack), default=1) + 1e-9


@given(data=st.data(), steps=st.integers(1, 200))
def test_any_distribution_function_becomes_one_that_is_accepted(data: st.DataObject, steps: int) -> None:
    lower, upper = data.draw(st.booleans()), data.draw(st.booleans())
    grid = Grid(lower=0.0, upper=1.0, open_lower=lower, open_upper=upper, steps=steps)
    raw = sorted(data.draw(st.lists(SHARES, min_size=steps + 1, max_size=steps + 1)))
    raw[0] = raw[0] if lower else 0.0
    raw[-1] = raw[-1] if upper else 1.0
    made = admissible(raw, grid)
    assert problems(made.values, grid) == []
    worst = max(abs(before - after) for before, after in zip(raw, made.values, strict=True))
    assert worst <= 0.012 or any(adjustment.rule == "largest_step" for adjustment in made.adjustments)
    assert made.values == pytest.approx(sorted(made.values), abs=0)
