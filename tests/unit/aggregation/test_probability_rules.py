from __future__ import annotations

import statistics

import numpy as np
import pytest

from consilience.aggregation.probabilities import DEFAULT_PROBABILITY_RULE, PROBABILITY_RULES, MedianProbability
from consilience.errors import DataError, QuorumError

SEATS = tuple("abcdefgh")


@pytest.mark.parametrize(
    "p", [[0.1, 0.2, 0.4, 0.5], [0.0, 1.0], [0.9, 0.05, 0.3], [1.0, 1.0, 0.0, 0.7, 0.2], [0.1] * 6]
)
def test_the_median_is_that_of_the_standard_library(p: list[float]) -> None:
    made = MedianProbability()(probabilities=np.array(p), seats=SEATS[: len(p)])
    assert made.value == statistics.median(p)
    assert made.n == len(p)
    assert sum(made.weights.values()) == pytest.approx(1.0)
    assert made.value == pytest.approx(sum(made.weights[seat] * x for seat, x in zip(SEATS, p, strict=False)))
    assert made.flags == ()


def test_certainty_is_kept_as_given() -> None:
    assert MedianProbability()(probabilities=np.array([0.0, 0.0, 1.0]), seats=SEATS[:3]).value == 0.0


def test_a_single_seat_is_itself_and_flagged() -> None:
    made = MedianProbability()(probabilities=np.array([0.3]), seats=("solo",))
    assert (made.value, made.weights, made.flags, made.n) == (0.3, {"solo": 1.0}, ("single_agent",), 1)


def test_nothing_is_made_of_nothing() -> None:
    with pytest.raises(QuorumError, match="median of no answers"):
        MedianProbability()(probabilities=np.empty(0), seats=())


@pytest.mark.parametrize(
    ("p", "seats"),
    [
        ([0.1, 0.2], ("a",)),
        ([0.1, 0.2], ("a", "a")),
        ([0.1, 1.1], ("a", "b")),
        ([-0.1, 0.2], ("a", "b")),
        ([float("nan"), 0.2], ("a", "b")),
        ([[0.1], [0.2]], ("a", "b")),
    ],
)
def test_what_is_no_probability_is_refused(p: list[float], seats: tuple[str, ...]) -> None:
    with pytest.raises(DataError):
        MedianProbability()(probabilities=np.array(p), seats=seats)


def test_the_default_is_registered() -> None:
    assert DEFAULT_PROBABILITY_RULE in PROBABILITY_RULES
