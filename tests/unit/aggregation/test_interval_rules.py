from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri

from consilience.aggregation.intervals import (
    DEFAULT_INTERVAL_RULE,
    INTERVAL_RULES,
    IntervalRule,
    Mixture,
    fix_crossing,
    mixture_quantiles,
    quantile_average_log,
)
from consilience.aggregation.location import FloatArray
from consilience.core.answers import LEVELS
from consilience.errors import DataError, QuorumError

RULES = list(INTERVAL_RULES)
THREE = np.array([[100.0, 150, 200, 260, 400], [120, 180, 240, 300, 500], [80, 100, 300, 350, 360]])


def slow_mixture(q: FloatArray) -> list[float]:
    """Bisect on the mixture's CDF, seat by seat: the definition, written plainly.

    A seat counts by its smaller tail; where the tails alone decide, their logarithms are compared.
    """
    z = ndtri(np.array(LEVELS))

    def reaches(u: float, level: float) -> bool:
        below, above = [-np.inf], [-np.inf]
        for row in q:
            k = int((row <= u).sum())
            if k == 0:
                score = -np.inf if row[1] == row[0] else z[0] + (z[1] - z[0]) * (u - row[0]) / (row[1] - row[0])
            elif k == len(row):
                score = np.inf if row[-1] == row[-2] else z[-1] + (z[-1] - z[-2]) * (u - row[-1]) / (row[-1] - row[-2])
            else:
                score = z[k - 1] + (z[k] - z[k - 1]) * (u - row[k - 1]) / (row[k] - row[k - 1])
            (above if score > 0 else below).append(float(log_ndtr(-abs(score))))
        lead = round(len(above) - 1 - len(q) * level, 12)
        if lead == 0:
            return bool(np.logaddexp.reduce(below) >= np.logaddexp.reduce(above))
        return math.fsum([*np.exp(below), *(-np.exp(above)), lead]) >= 0

    found = []
    for level in LEVELS:
        low, high = float(q.min()) - 1, float(q.max()) + 1
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if reaches(middle, level) else (middle, high)
        found.append(high)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_mixture_equals_plain_bisection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = np.sort(rng.standard_normal((rng.integers(2, 9), 5)), axis=1)
    if seed % 3 == 0:
        q = np.round(q, 0)  # many atoms and shared knots
    assert mixture_quantiles(quantiles=q).tolist() == pytest.approx(slow_mixture(q), abs=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_mixture_of_wide_narrow_and_distant_seats(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 13))
    widths = 10 ** rng.uniform(-1, 0.5, (n, 1))
    q = 12 + rng.standard_normal((n, 1)) * 10 ** rng.uniform(-2, 1) + np.sort(rng.standard_normal((n, 5))) * widths
    assert mixture_quantiles(quantiles=q).tolist() == pytest.approx(slow_mixture(q), abs=1e-7)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.05, 0.2])
def test_median_of_two_camps_lies_midway_however_narrow_they_are(width: float) -> None:
    shape = width * ndtri(np.array(LEVELS))
    camps = np.array([shape, shape + 1.0])
    assert mixture_quantiles(quantiles=camps)[2] == pytest.approx(0.5, abs=1e-9)
    assert mixture_quantiles(quantiles=np.vstack([camps, camps]))[2] == pytest.approx(0.5, abs=1e-9)
    outlier = np.vstack([camps[:1], np.tile(camps[1], (3, 1))])  # a quarter of the seats: the lower quartile is midway
    assert mixture_quantiles(quantiles=outlier)[1] == pytest.approx(0.5, abs=0.1)


def test_two_certain_seats_meet_at_the_lower() -> None:
    assert mixture_quantiles(quantiles=np.array([[1.0] * 5, [2.0] * 5])).tolist() == [1.0, 1.0, 1.0, 2.0, 2.0]


def test_one_law_is_reproduced() -> None:
    law = np.exp(0.3 * ndtri(np.array([LEVELS] * 3)) + 12)
    assert mixture_quantiles(quantiles=np.log(law)) == pytest.approx(np.log(law[0]), rel=1e-14)


def test_mixture_is_wider_than_averaged_quantiles_when_seats_disagree() -> None:
    apart = np.array([[90.0, 95, 100, 105, 110], [180, 190, 200, 210, 220]])
    pooled = Mixture()(quantiles=apart, scale="log").quantiles
    averaged = quantile_average_log(quantiles=apart)
    assert pooled[0] < averaged[0] - 30
    assert pooled[4] > averaged[4] + 40


def test_an_outer_atom_holds_its_whole_tail() -> None:
    q = np.array([[1.0, 1, 2, 3, 4], [1.5, 1.6, 1.7, 1.8, 1.9]])
    assert mixture_quantiles(quantiles=q)[0] == 1.0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_hard_cases(rule: IntervalRule) -> None:
    with pytest.raises(QuorumError):
        rule(quantiles=np.empty((0, 5)), scale="log")
    assert rule(quantiles=THREE[:1], scale="log").quantiles == tuple(THREE[0])
    assert rule(quantiles=THREE[:1], scale="log").flags == ("single_agent",)
    mass = rule(quantiles=np.full((3, 5), 200.0), scale="log")
    assert (mass.quantiles, mass.flags) == ((200.0,) * 5, ("point_mass",))
    for bad, what in (
        (THREE[:, ::-1], "cross"),
        (-THREE, "inadmissible"),
        (THREE * np.nan, "inadmissible"),
        (THREE[:, :4], "shape"),
        (THREE[0], "shape"),
    ):
        with pytest.raises(DataError, match=what):
            rule(quantiles=bad, scale="log")
    below_zero = rule(quantiles=THREE - 200, scale="linear").quantiles
    assert list(below_zero) == sorted(below_zero)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_registry_and_fields(rule: IntervalRule) -> None:
    assert rule.kinds == ("estimate",)
    assert type(rule)(**dataclasses.asdict(rule)) == rule  # type: ignore[call-overload]
    assert INTERVAL_RULES.names() == ["median_of_quantiles", "mixture"]
    assert INTERVAL_RULES[DEFAULT_INTERVAL_RULE].name == "median_of_quantiles"


def test_fix_crossing_reports_only_what_crossed() -> None:
    fixed, crossed = fix_crossing(quantiles=THREE)
    assert (fixed == THREE).all()
    assert crossed is False
    with pytest.raises(DataError, match="not finite"):
        fix_crossing(quantiles=np.array([1.0, np.nan]))
