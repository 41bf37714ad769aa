from __future__ import annotations

import numpy as np
import pytest

from consilience.aggregation.numbers import POINT_RULES
from consilience.aggregation.rows import AggregateRow, aggregate_estimates
from consilience.errors import DataError, QuorumError

SEATS = ("market", "comparables", "skeptic")
POINTS = np.array([200.0, 240, 300])
QUANTILES = np.array([[100.0, 150, 200, 260, 400], [120, 180, 240, 300, 500], [80, 100, 300, 350, 360]])


def rows(points: np.ndarray = POINTS, quantiles: np.ndarray = QUANTILES) -> dict[str, AggregateRow]:
    made = aggregate_estimates(seats=SEATS, points=points, quantiles=quantiles, scale="log")
    return {row.rule: row for row in made}


def test_one_row_per_rule_and_one_for_the_mixture() -> None:
    made = rows()
    assert list(made) == [*POINT_RULES.names(), "mixture"]
    for name, row in made.items():
        assert row.interval_rule == ("mixture" if name == "mixture" else "median_of_quantiles")
        assert row.q05 <= row.q25 <= row.q50 <= row.q75 <= row.q95
        assert list(row.weights) == sorted(SEATS)
        assert row.n == 3
    assert (made["median"].q05, made["median"].q50, made["median"].q95) == (100.0, 240.0, 400.0)
    assert made["mixture"].point == made["mixture"].q50 == pytest.approx(226.18407758976588)


def test_a_point_outside_its_quartiles_is_flagged_and_not_moved() -> None:
    made = rows(points=np.array([399.0, 499, 100]))
    assert made["median"].point == 399.0
    assert "point_outside_iqr" in made["median"].flags
    assert "point_outside_iqr" not in made["mixture"].flags
    assert "point_outside_iqr" not in rows()["median"].flags


def test_rounding_flags_nothing_when_all_agree() -> None:
    agreed = np.array([0.1, 0.1, 0.1])
    for row in rows(points=agreed, quantiles=np.full((3, 5), 0.1)).values():
        assert row.point == row.q50 == 0.1
        assert "point_mass" in row.flags
        assert "point_outside_iqr" not in row.flags


def test_a_single_seat_passes_through_with_one_flag() -> None:
    made = aggregate_estimates(seats=("solo",), points=POINTS[:1], quantiles=QUANTILES[:1], scale="log")
    assert {row.point for row in made} == {200.0}
    assert {row.flags for row in made} == {("single_agent",)}


def test_nothing_is_made_of_nothing() -> None:
    with pytest.raises(QuorumError):
        aggregate_estimates(seats=(), points=np.empty(0), quantiles=np.empty((0, 5)), scale="log")
    with pytest.raises(DataError):
        aggregate_estimates(seats=SEATS, points=POINTS[:2], quantiles=QUANTILES, scale="log")


def test_quantiles_need_the_same_seats_as_points() -> None:
    with pytest.raises(DataError, match="quantile rows"):
        aggregate_estimates(seats=SEATS, points=POINTS, quantiles=QUANTILES[:2], scale="log")
