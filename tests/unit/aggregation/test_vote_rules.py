"""Votes are counted exactly; published elections and hand-made ties are the oracle."""

from __future__ import annotations

from fractions import Fraction

import pytest

from consilience.aggregation.votes import DEFAULT_VOTE_RULE, VOTE_RULES, Plurality, Tally
from consilience.errors import DataError, QuorumError

PLURALITY = Plurality()


def vote(*choices: str, options: tuple[str, ...] = ("A", "B", "C")) -> Tally:
    return PLURALITY(choices=choices, options=options, seats=tuple(f"s{i:03d}" for i in range(len(choices))))


def test_the_tennessee_election_has_a_plurality_and_no_majority() -> None:
    towns = {"Memphis": 42, "Nashville": 26, "Chattanooga": 15, "Knoxville": 17}
    made = vote(*(town for town, heads in towns.items() for _ in range(heads)), options=tuple(towns))
    assert made.winner == "Memphis"
    assert made.counts == towns
    assert made.agreement_share == Fraction(42, 100) <= Fraction(1, 2)


def test_exactly_half_is_a_tie_and_nobody_wins() -> None:
    made = vote(*"AAAAABBBBB")
    assert made.winners == ("A", "B")
    assert made.winner is None
    assert made.flags == ("tie",)
    assert made.agreement_share == Fraction(1, 2)


def test_a_cycle_of_first_choices_ties_all() -> None:
    assert vote("C", "A", "B").winners == ("A", "B", "C")


def test_shares_are_exact_and_sum_to_one() -> None:
    made = vote("A", "A", "B", options=("A", "B", "C", "D"))
    assert made.shares == {"A": Fraction(2, 3), "B": Fraction(1, 3), "C": Fraction(0), "D": Fraction(0)}
    assert sum(made.shares.values()) == 1
    assert made.agreement_share >= Fraction(2, 3)  # where the float 0.6666666666666667 would refuse two of three
    assert sum(made.weights.values()) == 1
    assert made.flags == ()


def test_a_single_ballot_wins_and_is_flagged() -> None:
    made = vote("B")
    assert (made.winner, made.flags, made.n) == ("B", ("single_agent",), 1)
    assert made.agreement_share == 1


def test_winners_stand_in_the_order_of_the_question_not_of_the_ballots() -> None:
    assert vote("C", "C", "A", "A", "B", options=("C", "B", "A")).winners == ("C", "A")


def test_nothing_is_made_of_nothing() -> None:
    with pytest.raises(QuorumError, match="plurality of no answers"):
        vote()


@pytest.mark.parametrize("stranger", ["a", "A ", "", "D"])
def test_a_ballot_for_no_option_is_refused_never_repaired(stranger: str) -> None:
    with pytest.raises(DataError, match="is no option"):
        vote("A", stranger)


def test_seats_and_options_are_distinct() -> None:
    with pytest.raises(DataError, match="ids distinct"):
        PLURALITY(choices=("A", "A"), options=("A", "B"), seats=("s", "s"))
    with pytest.raises(DataError, match="options share an id"):
        vote("A", options=("A", "A"))


def test_the_default_is_registered() -> None:
    assert DEFAULT_VOTE_RULE in VOTE_RULES
