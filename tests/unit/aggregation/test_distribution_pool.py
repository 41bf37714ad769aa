from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from consilience.aggregation.distributions import (
    DEFAULT_DISTRIBUTION_RULE,
    DISTRIBUTION_RULES,
    LinearPool,
    LogarithmicPool,
)
from consilience.errors import DataError, QuorumError

OPTIONS = ("x", "y", "z")
P = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.4, 0.0]])
SEATS = ("c", "a", "b")


def test_the_pool_is_the_exact_mean_rounded_once() -> None:
    made = LinearPool()(probabilities=P, options=OPTIONS, seats=SEATS)
    for option, column in zip(OPTIONS, P.T, strict=True):
        exact = sum((Fraction(x) for x in column.tolist()), Fraction()) / 3
        assert made.probabilities[option] == float(exact)
    assert list(made.probabilities.values()) == pytest.approx(P.mean(axis=0))
    assert list(made.probabilities) == list(OPTIONS)
    assert made.weights == dict.fromkeys(sorted(SEATS), 1 / 3)
    assert (made.flags, made.n) == ((), 3)


def test_what_rounding_leaves_of_the_sum_is_recorded_not_mended() -> None:
    thirds = np.array([[1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1], [0.15, 0.35, 0.5]])
    made = LinearPool()(probabilities=thirds, options=OPTIONS, seats=("a", "b", "c", "d"))
    assert made.total == float(sum(map(Fraction, made.probabilities.values()), Fraction()))
    assert made.total == pytest.approx(1.0, abs=1e-15)


def test_a_single_seat_is_itself_and_flagged() -> None:
    made = LinearPool()(probabilities=P[:1], options=OPTIONS, seats=("solo",))
    assert list(made.probabilities.values()) == P[0].tolist()
    assert made.flags == ("single_agent",)


def test_nothing_is_made_of_nothing() -> None:
    with pytest.raises(QuorumError, match="linear_pool of no answers"):
        LinearPool()(probabilities=np.empty((0, 3)), options=OPTIONS, seats=())


@pytest.mark.parametrize(
    ("p", "options", "seats"),
    [
        (P, OPTIONS[:2], SEATS),
        (P, ("x", "x", "z"), SEATS),
        (P, OPTIONS, SEATS[:2]),
        (P, OPTIONS, ("a", "a", "b")),
        (P * 0.999, OPTIONS, SEATS),
        (np.array([[1.2, -0.2, 0.0]]), OPTIONS, ("a",)),
        (np.array([[float("nan"), 0.5, 0.5]]), OPTIONS, ("a",)),
    ],
    ids=["columns", "options alike", "rows", "seats alike", "sum", "range", "nan"],
)
def test_what_is_no_distribution_is_refused(p: np.ndarray, options: tuple[str, ...], seats: tuple[str, ...]) -> None:
    with pytest.raises(DataError):
        LinearPool()(probabilities=p, options=options, seats=seats)


def test_the_default_is_registered() -> None:
    assert DEFAULT_DISTRIBUTION_RULE in DISTRIBUTION_RULES


def test_the_logarithmic_pool_divides_geometric_means_by_their_sum_and_counts_its_clips() -> None:
    made = LogarithmicPool()(probabilities=P, options=OPTIONS, seats=SEATS)
    means = [(0.2 * 0.1 * 0.6) ** (1 / 3), (0.3 * 0.1 * 0.4) ** (1 / 3), (0.5 * 0.8 * 0.005) ** (1 / 3)]
    assert list(made.probabilities.values()) == pytest.approx([mean / sum(means) for mean in means], rel=1e-12)
    assert (made.clips, made.flags) == (1, ("clipped",))
    alike = LogarithmicPool()(probabilities=np.array([[1.0, 0, 0]] * 2), options=OPTIONS, seats=("a", "b"))
    assert (list(alike.probabilities.values()), alike.clips) == ([1.0, 0.0, 0.0], 0)
