"""Who breaks a tie is told; what majorities are worth is held against enumeration and scipy.stats."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.jury import jury_accuracy, log_odds_weights, weighted_majority_accuracy
from consilience.aggregation.runoff import eliminate
from consilience.aggregation.ties import Settled, break_tie, safest
from consilience.aggregation.votes import VOTE_RULES
from consilience.errors import DataError

OPTIONS = ("A", "B", "C", "D")


def tally(rule: str, *rankings: str) -> Any:
    ballots = [Ballot(f"s{i}", ranking=tuple(ranking)) for i, ranking in enumerate(rankings)]
    return VOTE_RULES[rule](ballots=ballots, options=tuple(sorted(rankings[0])))


def test_a_rule_that_decided_is_left_alone() -> None:
    made = tally("copeland", "ABC", "ABC", "BCA")
    assert break_tie(made, rule="copeland", safety_order=("C", "B", "A")) == Settled("A", "copeland", ())
    none = tally("majority", "ABC", "BCA", "CAB")
    assert break_tie(none, rule="majority", safety_order=("C", "B", "A")) == Settled(None, None, ())


def test_a_second_score_comes_before_the_safety_order_and_is_told() -> None:
    cycle = ("ABC", "ABC", "BCA", "BCA", "BCA", "CAB", "CAB")
    first, second = tally("copeland", *cycle), tally("borda", *cycle)
    assert first.decided == "tie"
    settled = break_tie(first, rule="copeland", safety_order=("C", "A", "B"), second=("borda", second))
    assert settled == Settled("B", "borda", ("A", "B", "C"))
    assert break_tie(first, rule="copeland", safety_order=("C", "A", "B")).winner == "C"


def test_the_safety_order_decides_among_those_the_second_score_leaves() -> None:
    rankings = ("ABCD", "BADC", "CDAB", "DCBA")
    first, second = tally("plurality", *rankings), tally("plurality", "ABCD", "BADC")
    settled = break_tie(first, rule="plurality", safety_order=("D", "B", "A", "C"), second=("of two", second))
    assert settled == Settled("B", "safety_order", ("A", "B"))


def test_what_nothing_declared_breaks_stays_a_tie() -> None:
    assert break_tie(tally("plurality", "AB", "BA"), rule="plurality") == Settled(None, None, ("A", "B"))


@pytest.mark.parametrize("order", [("A",), ("A", "A", "B"), ()])
def test_a_safety_order_names_all_once(order: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="does not order"):
        safest(("A", "B"), safety_order=order)


def test_a_run_off_needs_rankings_and_an_order_of_all() -> None:
    with pytest.raises(DataError, match="no ballot ranks an option"):
        eliminate(rankings=[()], options=("A", "B"), safety_order=("A", "B"))
    with pytest.raises(DataError, match="does not order"):
        eliminate(rankings=[("A",)], options=("A", "B"), safety_order=("A",))


def test_accuracy_is_that_of_enumeration() -> None:
    p, weights = [0.9, 0.8, 0.55, 0.5], [3, 2, 2, 1]
    expected = 0.0
    for votes in product((0, 1), repeat=4):
        mass, right = 1.0, 0
        for vote, chance, weight in zip(votes, p, weights, strict=True):
            mass *= chance if vote else 1 - chance
            right += weight if vote else 0
        expected += mass * (1.0 if right > 4 else 0.5 if right == 4 else 0.0)
    assert weighted_majority_accuracy(p, weights) == pytest.approx(expected, rel=1e-12)
    assert weighted_majority_accuracy([0.9], [0]) == 0.5


def test_log_odds_weights_are_no_worse_than_equal_ones() -> None:
    p = [0.95, 0.7, 0.6, 0.55, 0.52]
    best = log_odds_weights(p)
    assert sum(best) == pytest.approx(1)
    assert weighted_majority_accuracy(p, best) >= weighted_majority_accuracy(p, [1] * 5)
    assert log_odds_weights([0.4, 0.6]) == pytest.approx((-0.5, 0.5))


def test_correlation_is_a_ceiling_and_its_ends_are_known() -> None:
    assert jury_accuracy(p=0.7, n=9, rho=1e-9) == pytest.approx(jury_accuracy(p=0.7, n=9), rel=1e-6)
    assert jury_accuracy(p=0.7, n=9, rho=1.0) == 0.7
    accuracies = [jury_accuracy(p=0.7, n=9, rho=rho) for rho in (0.0, 0.1, 0.3, 0.6, 0.9)]
    assert accuracies == sorted(accuracies, reverse=True)
    assert [jury_accuracy(p=p, n=5) for p in (0.0, 1.0)] == [0.0, 1.0]
    assert jury_accuracy(p=0.5, n=4, rho=0.2) == pytest.approx(0.5)


@pytest.mark.parametrize("bad", [{"p": 1.1}, {"p": float("nan")}, {"n": 0}, {"rho": -0.1}])
def test_numbers_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="out of range"):
        jury_accuracy(**{"p": 0.6, "n": 3, **bad})


def test_unusable_competences_and_weights_are_refused() -> None:
    with pytest.raises(DataError, match="do not lie"):
        log_odds_weights([0.5, 1.0])
    with pytest.raises(DataError, match="better or worse than chance"):
        log_odds_weights([0.5, 0.5])
    with pytest.raises(DataError, match="2 weights for 1 voters"):
        weighted_majority_accuracy([0.5], [1, 1])
    with pytest.raises(DataError, match="no number from 0"):
        weighted_majority_accuracy([0.5], [-1])
