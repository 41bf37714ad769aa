"""Elementary scores: mixtures of them are the scores we know, and nobody gains by stating what he does not think."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.integrate import quad

from consilience.errors import DataError
from consilience.scoring.elementary import elementary_probability, elementary_quantile

CHANCES = hnp.arrays(np.float64, 6, elements=st.floats(0, 1))
OUTCOMES = hnp.arrays(np.float64, 6, elements=st.sampled_from([0.0, 1.0]))
NUMBERS = hnp.arrays(np.float64, 6, elements=st.floats(-100, 100))


def mixed(p: float, y: float, weight: float, *, log: bool = False) -> float:
    """Return an integral over the thresholds, cut where the score jumps."""

    def at(t: float) -> float:
        each = elementary_probability(p=np.array([p]), y=np.array([y]), threshold=t)
        return float(each[0]) * (1 / (t * (1 - t)) if log else weight)

    # quad takes no end points, so 0 and 1 are never asked for
    return float(quad(at, 0, p)[0] + quad(at, p, 1)[0])


@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 0.83, 0.99])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_twice_the_integral_is_the_brier_score(p: float, y: float) -> None:
    assert mixed(p, y, 2.0) == pytest.approx((p - y) ** 2, abs=1e-9)


@pytest.mark.parametrize(("p", "y"), [(0.2, 1.0), (0.2, 0.0), (0.9, 0.0)])
def test_another_mixture_is_the_log_score(p: float, y: float) -> None:
    assert mixed(p, y, 0.0, log=True) == pytest.approx(-np.log(p if y else 1 - p), rel=1e-6)


@given(p=CHANCES, y=OUTCOMES)
@pytest.mark.slow
def test_the_exact_mixture_holds_case_by_case(p: np.ndarray, y: np.ndarray) -> None:
    # Between 0, p and 1 the score is linear in t, so a midpoint of fine cells sums it up but for the cell of p itself.
    cells = 2000
    middles = (np.arange(cells) + 0.5) / cells
    total = sum(elementary_probability(p=p, y=y, threshold=float(t)) for t in middles) / cells
    assert np.abs(2 * total - (p - y) ** 2).max() <= 2 / cells


@given(quantile=NUMBERS, outcome=NUMBERS, level=st.floats(0.01, 0.99))
def test_the_integral_over_thresholds_is_the_pinball_loss(
    quantile: np.ndarray, outcome: np.ndarray, level: float
) -> None:
    cuts = np.unique(np.concatenate([quantile, outcome]))
    total = np.zeros(6)
    for low, high in pairwise(cuts.tolist()):  # constant on [low, high)
        total += (high - low) * elementary_quantile(quantile=quantile, outcome=outcome, level=level, threshold=low)
    miss = outcome - quantile
    assert total == pytest.approx(np.where(miss >= 0, level * miss, (level - 1) * miss), abs=1e-9)


@pytest.mark.parametrize("belief", [0.1, 0.35, 0.8])
def test_stating_what_one_thinks_loses_least_at_every_threshold(belief: float) -> None:
    stated = np.linspace(0.01, 0.99, 99)
    for t in (0.05, 0.3, 0.5, 0.77):
        yes, no = (elementary_probability(p=stated, y=np.full(99, y), threshold=t) for y in (1.0, 0.0))
        expected = belief * yes + (1 - belief) * no
        own = belief * (0 if belief > t else 1 - t) + (1 - belief) * (t if belief > t else 0)
        assert expected.min() >= own - 1e-12


def test_quantiles_may_be_put_through_a_rising_function() -> None:
    rng = np.random.default_rng(1)
    said, paid = rng.lognormal(size=50), rng.lognormal(size=50)
    for t in (0.5, 1.0, 2.0):
        raw = elementary_quantile(quantile=said, outcome=paid, level=0.3, threshold=t)
        logs = elementary_quantile(quantile=np.log(said), outcome=np.log(paid), level=0.3, threshold=float(np.log(t)))
        assert raw.tolist() == logs.tolist()
        assert set(raw.tolist()) <= {0.0, 0.3, 0.7}


def test_what_equals_the_threshold_lies_below_it() -> None:
    half = np.array([0.5])
    assert elementary_probability(p=half, y=np.ones(1), threshold=0.5).tolist() == [0.5]
    assert elementary_probability(p=half, y=np.zeros(1), threshold=0.5).tolist() == [0.0]
    assert elementary_quantile(quantile=half, outcome=half, level=0.5, threshold=0.5).tolist() == [0.0]
    assert elementary_quantile(quantile=half, outcome=half + 1, level=0.5, threshold=0.5).tolist() == [0.5]


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.1, float("nan")])
def test_thresholds_outside_are_refused(threshold: float) -> None:
    with pytest.raises(DataError, match="an elementary score at"):
        elementary_probability(p=np.array([0.5]), y=np.array([1.0]), threshold=threshold)


def test_what_is_no_forecast_is_refused() -> None:
    one = np.ones(1)
    with pytest.raises(DataError):
        elementary_probability(p=np.array([1.5]), y=one, threshold=0.5)
    with pytest.raises(DataError):
        elementary_probability(p=one, y=np.array([0.5]), threshold=0.5)
    with pytest.raises(DataError, match="do not fit"):
        elementary_quantile(quantile=one, outcome=np.ones(2), level=0.5, threshold=1.0)
    with pytest.raises(DataError, match="not finite"):
        elementary_quantile(quantile=one, outcome=one, level=0.5, threshold=float("nan"))
    with pytest.raises(DataError, match="at level 1"):
        elementary_quantile(quantile=one, outcome=one, level=1.0, threshold=1.0)
