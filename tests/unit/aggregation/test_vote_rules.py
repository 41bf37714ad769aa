"""Votes are counted exactly; hand-made ballots, ties and thresholds are the oracle."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.heads import Majority, Supermajority, Unanimity
from consilience.aggregation.ranked import Borda
from consilience.aggregation.tallies import Tally
from consilience.aggregation.votes import DEFAULT_VOTE_RULE, VOTE_RULES
from consilience.errors import ConfigError, DataError, QuorumError

OPTIONS = ("A", "B", "C")


def seats(n: int) -> tuple[str, ...]:
    return tuple(f"s{i:03d}" for i in range(n))


def vote(*choices: str, rule: str = "plurality", options: tuple[str, ...] = OPTIONS, **given: Any) -> Tally:
    ballots = [Ballot(seat, choice) for seat, choice in zip(seats(len(choices)), choices, strict=True)]
    return VOTE_RULES[rule](ballots=ballots, options=options, **given)


def rank(*rankings: str, rule: Any, options: tuple[str, ...] = OPTIONS) -> Tally:
    ballots = [Ballot(seat, ranking=tuple(r)) for seat, r in zip(seats(len(rankings)), rankings, strict=True)]
    made: Tally = (VOTE_RULES[rule] if isinstance(rule, str) else rule)(ballots=ballots, options=options)
    return made


def test_the_registry_has_every_method_and_the_default() -> None:
    assert VOTE_RULES.names() == [
        *("plurality", "majority", "supermajority", "unanimity", "weighted", "confidence_weighted", "borda"),
        *("approval", "copeland", "minimax", "ranked_pairs", "schulze", "irv"),
    ]
    assert DEFAULT_VOTE_RULE in VOTE_RULES


def test_exactly_half_is_a_tie_and_nobody_wins() -> None:
    for rule in ("plurality", "majority"):
        made = vote(*"AAAAABBBBB", rule=rule)
        assert (made.winners, made.winner, made.decided, made.flags) == (("A", "B"), None, "tie", ("tie",))
        assert made.agreement_share == Fraction(1, 2)


def test_a_plurality_is_no_majority() -> None:
    made = vote(*"AAAABBBCCC", rule="majority")
    assert (made.decided, made.winners, made.winner, made.strength) == ("no_decision", (), None, None)
    assert made.agreement_share == Fraction(4, 10)
    assert sum(made.shares.values()) == 1
    assert vote(*"AAAAABBBCC", rule="majority").decided == "no_decision"  # half, and no other option has half


def test_shares_are_exact_and_sum_to_one() -> None:
    made = vote("A", "A", "B", options=("A", "B", "C", "D"))
    assert made.shares == {"A": Fraction(2, 3), "B": Fraction(1, 3), "C": Fraction(0), "D": Fraction(0)}
    assert made.agreement_share == made.strength == Fraction(2, 3)
    assert sum(made.weights.values()) == 1
    assert made.flags == ()


@pytest.mark.parametrize("n", [3, 15, 300, 3_000_003])
def test_exactly_two_thirds_is_enough(n: int) -> None:
    counts = {"A": 2 * n // 3, "B": n - 2 * n // 3}
    assert Supermajority()._reached(counts, n) == ("A",)
    assert Supermajority()._reached({**counts, "A": counts["A"] - 1, "C": 1}, n) == ()


@pytest.mark.parametrize("threshold", [0.6666666666666667, Fraction(1, 2), Fraction(4, 3), 1])
def test_a_threshold_is_an_exact_fraction_above_half(threshold: Any) -> None:
    with pytest.raises(ConfigError, match="Fraction"):
        Supermajority(threshold)


def test_the_denominator_is_declared_and_recorded() -> None:
    ballots = [Ballot(seat, "A") for seat in seats(3)]
    for rule in (Majority("seats"), Supermajority(denominator="seats"), Unanimity("seats")):
        made = rule(ballots=ballots, options=OPTIONS, n_seats=7)
        assert (made.decided, made.denominator, made.of, made.n) == ("no_decision", "seats", 7, 3)
        assert rule(ballots=ballots, options=OPTIONS).winner == "A"
    made = Unanimity()(ballots=ballots, options=OPTIONS, n_seats=7)
    assert (made.winner, made.denominator, made.of) == ("A", "cast", 3)
    with pytest.raises(DataError, match="3 ballots of 2 seats"):
        Unanimity()(ballots=ballots, options=OPTIONS, n_seats=2)


def test_one_head_ends_unanimity() -> None:
    assert vote(*"AAAA", rule="unanimity").winner == "A"
    assert vote(*"AAAB", rule="unanimity").decided == "no_decision"


def test_a_single_ballot_wins_and_is_flagged() -> None:
    made = vote("B")
    assert (made.winner, made.flags, made.n) == ("B", ("single_agent",), 1)
    assert made.agreement_share == 1


def test_winners_stand_in_the_order_of_the_question_not_of_the_ballots() -> None:
    assert vote("C", "C", "A", "A", "B", options=("C", "B", "A")).winners == ("C", "A")


def test_nothing_is_made_of_nothing() -> None:
    with pytest.raises(QuorumError, match="plurality of no answers"):
        vote()
    with pytest.raises(QuorumError, match="borda has no ballot to count: s000: it ranks no option"):
        vote("A", rule="borda")


def test_seats_and_options_are_distinct() -> None:
    with pytest.raises(DataError, match="ids distinct"):
        VOTE_RULES["plurality"](ballots=[Ballot("s", "A"), Ballot("s", "A")], options=OPTIONS)
    with pytest.raises(DataError, match="options share an id"):
        vote("A", options=("A", "A"))


BAD = {
    "stranger": (Ballot("x", "a"), 'it chooses "a", which is no option'),
    "padded": (Ballot("x", "A "), 'it chooses "A ", which is no option'),
    "ranked twice": (Ballot("x", "A", ranking=("A", "B", "A")), "its ranking names A twice"),
    "ranked stranger": (Ballot("x", "A", ranking=("A", "D", "B")), 'its ranking names "D", which is no option'),
    "approved twice": (Ballot("x", "A", approvals=("B", "B")), "its approval set names B twice"),
    "contradiction": (Ballot("x", "A", 0.9, ranking=("B", "A", "C")), "it chooses A and ranks B first"),
    "overconfident": (Ballot("x", "A", 1.5), "its confidence 1.5 does not lie in [0, 1]"),
    "no number": (Ballot("x", "A", float("nan")), "its confidence nan does not lie in [0, 1]"),
}
SOUND = [
    Ballot("a", "A", 0.5, ("A", "B", "C"), ("A",)),
    Ballot("b", "B", 0.5, ("B", "A", "C"), ("B",)),
    Ballot("c", "A", 0.5, ("A", "C", "B"), ("A", "C")),
]


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("rule", list(VOTE_RULES), ids=lambda rule: rule.name)
def test_an_unsound_ballot_counts_under_no_rule_and_is_told(rule: Any, name: str) -> None:
    ballot, why = BAD[name]
    without, made = (rule(ballots=cast, options=OPTIONS) for cast in (SOUND, [ballot, *SOUND]))
    assert made.unused == {"x": why}
    assert made.flags == (*without.flags, "unused_ballots")
    assert (made.scores, made.winners, made.weights, made.n) == (
        without.scores,
        without.winners,
        without.weights,
        3,
    )


def test_a_choice_is_no_ranking_and_a_truncated_ranking_is_no_full_one() -> None:
    ballots = [*SOUND, Ballot("d", "C", 1.0), Ballot("e", "C", ranking=("C", "B"))]
    for name in ("borda", "copeland", "minimax", "ranked_pairs", "schulze"):
        made = VOTE_RULES[name](ballots=ballots, options=OPTIONS)
        assert made.unused == {"d": "it ranks no option", "e": "it ranks 2 of 3 options"}
    assert VOTE_RULES["irv"](ballots=ballots, options=OPTIONS).unused == {"d": "it ranks no option"}
    average = Borda("average")(ballots=ballots, options=OPTIONS)
    assert average.scores == {"A": 5, "B": 4, "C": 3}
    assert average.unused == {"d": "it ranks no option"}
    assert Borda("average")(ballots=[Ballot("e", ranking=("C",))], options=OPTIONS).scores == {
        "A": Fraction(1, 2),
        "B": Fraction(1, 2),
        "C": 2,
    }


def test_weights_are_exact_when_given_exactly() -> None:
    thirds = {"s000": Fraction(1, 3), "s001": Fraction(1, 6), "s002": Fraction(1, 6)}
    made = vote("A", "B", "B", rule="weighted", weights=thirds)
    assert (made.winners, made.scores["A"], made.shares["B"]) == (("A", "B"), Fraction(1, 3), Fraction(1, 2))
    assert made.agreement_share == Fraction(2, 3)  # heads, whatever they weigh
    floats = {"s000": 0.3, "s001": 0.1, "s002": 0.2}
    assert vote("A", "B", "B", rule="weighted", weights=floats).winners == ("A", "B")
    assert vote("A", "B", "B", rule="weighted", weights={**floats, "s002": 0.2 + 1e-9}).winner == "B"


def test_weights_are_declared_for_every_seat_or_for_none() -> None:
    assert vote("A", "B", "B", rule="weighted").flags == ("equal_weights",)
    for weights in ({"s000": 1}, {"s000": 1, "s001": -1}, {"s000": 1, "s001": float("nan")}):
        with pytest.raises(DataError, match="the weight of seat s001 is"):
            vote("A", "B", rule="weighted", weights=weights)
    made = vote("A", "B", rule="weighted", weights={"s000": 0, "s001": 0})
    assert (made.decided, made.flags, made.shares["A"]) == ("no_decision", ("no_support",), Fraction(1, 2))


def test_confidence_weighs_and_is_said_to_be_uncalibrated() -> None:
    ballots = [Ballot("a", "A", 0.9), Ballot("b", "B", 0.4), Ballot("c", "B", 0.2), Ballot("d", "B")]
    made = VOTE_RULES["confidence_weighted"](ballots=ballots, options=OPTIONS)
    assert (made.winner, made.flags) == ("A", ("confidence_uncalibrated", "unused_ballots"))
    assert made.strength == pytest.approx(0.6)
    assert made.agreement_share == Fraction(1, 3)
    assert made.unused == {"d": "it states no confidence"}
    tied = [Ballot("a", "A", 0.3), Ballot("b", "B", 0.1), Ballot("c", "B", 0.2)]
    assert VOTE_RULES["confidence_weighted"](ballots=tied, options=OPTIONS).winners == ("A", "B")
    zero = VOTE_RULES["confidence_weighted"](ballots=[Ballot("a", "A", 0.0)], options=OPTIONS)
    assert (zero.decided, zero.flags) == ("no_decision", ("single_agent", "confidence_uncalibrated", "no_support"))


def test_approving_nothing_supports_nothing() -> None:
    made = VOTE_RULES["approval"](ballots=[Ballot("a", approvals=()), Ballot("b", approvals=())], options=OPTIONS)
    assert (made.decided, made.n, made.flags) == ("no_decision", 2, ("no_support",))
    assert sum(made.shares.values()) == 1


def test_agreement_is_of_heads_whatever_the_rule_elects() -> None:
    made = rank("ABC", "ABC", "BCA", "CBA", "CBA", rule="borda")
    assert made.winner == "B"
    assert made.agreement_share == Fraction(1, 5)
    assert made.strength == Fraction(6, 15)


def test_a_run_off_tells_its_rounds_and_who_is_exhausted() -> None:
    made = rank("AB", "AB", "AB", "BA", "BA", "C", rule="irv")
    assert made.winner == "A"
    assert made.notes == {
        "eliminated": ["C"],
        "rounds": [{"A": 3, "B": 2, "C": 1}, {"A": 3, "B": 2}],
        "tied_rounds": [],
        "exhausted": 1,
    }


def test_a_run_off_of_many_options_and_few_ballots_ends() -> None:
    options = tuple(f"o{index:02d}" for index in range(60))
    rankings = [options[shift:] + options[:shift] for shift in range(0, 60, 15)]
    made = rank(*rankings, rule="irv", options=options)  # type: ignore[arg-type]
    assert made.winners == ("o00", "o15", "o30", "o45")
    assert made.flags == ("tie", "tie_sensitive")


def test_a_search_that_is_too_long_is_given_up_and_said() -> None:
    options = tuple(f"o{index:02d}" for index in range(26))
    everybody = [options[shift:] + options[:shift] for shift in range(26)]
    made = rank(*everybody, rule="irv", options=options)  # type: ignore[arg-type]
    assert (made.decided, made.flags) == ("no_decision", ("tie_sensitive", "too_many_paths"))
    assert rank(*everybody, rule="schulze", options=options).winners == options  # type: ignore[arg-type]


def test_records_are_json_and_keep_what_is_exact() -> None:
    for rule in VOTE_RULES:
        told = json.loads(json.dumps(rule(ballots=SOUND, options=OPTIONS).record()))
        assert told["agreement_share"] == "2/3"
        assert told["weights"]["a"] in {"1/3", 1 / 3}
        assert told["decided"] in {"winner", "no_decision"}
    assert VOTE_RULES["plurality"](ballots=SOUND, options=OPTIONS).record()["shares"]["A"] == "2/3"


@pytest.mark.parametrize("rule", list(VOTE_RULES), ids=lambda rule: rule.name)
def test_one_option_alone_wins(rule: Any) -> None:
    made = rule(ballots=[Ballot("a", "A", 0.5, ("A",), ("A",))], options=("A",))
    assert made.winner == "A"
    assert made.shares == {"A": 1}
