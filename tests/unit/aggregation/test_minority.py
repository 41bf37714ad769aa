"""What other rules would have said and how many moves decide, by hand and against trying everything."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.minority import MarginOfVictory, margin_of_victory, would_have_won
from consilience.aggregation.tallies import VoteRule
from consilience.aggregation.votes import VOTE_RULES
from consilience.errors import DataError
from vote_cases import numbers

TENNESSEE = {
    ("Memphis", "Nashville", "Chattanooga", "Knoxville"): 42,
    ("Nashville", "Chattanooga", "Knoxville", "Memphis"): 26,
    ("Chattanooga", "Knoxville", "Nashville", "Memphis"): 15,
    ("Knoxville", "Chattanooga", "Nashville", "Memphis"): 17,
}


def test_rules_disagree_on_tennessee() -> None:
    cast = [r for r, n in TENNESSEE.items() for _ in range(n)]
    ballots = [Ballot(f"s{i:03d}", r[0], ranking=r) for i, r in enumerate(cast)]
    found = would_have_won(ballots=ballots, options=next(iter(TENNESSEE)), rules=VOTE_RULES)
    assert found == {
        "Memphis": ("plurality", "weighted"),
        "Nashville": ("borda", "copeland", "minimax", "ranked_pairs", "schulze"),
        "Chattanooga": (),
        "Knoxville": ("irv",),
    }


def margin(choices: str, rule: str = "plurality", options: tuple[str, ...] = ("A", "B", "C")) -> MarginOfVictory:
    ballots = [Ballot(f"s{i:02d}", choice, 0.5) for i, choice in enumerate(choices)]
    return margin_of_victory(rule=VOTE_RULES[rule], ballots=ballots, options=options)


@pytest.mark.parametrize(
    ("choices", "rule", "switches"),
    [
        ("AAAB", "plurality", 1),  # a tie is another result
        ("AAAAB", "plurality", 2),
        ("AAABB", "plurality", 1),
        ("AABB", "plurality", 1),
        ("AAAA", "unanimity", 1),
        ("AAAAAB", "majority", 2),
        ("AAAABC", "supermajority", 1),
        ("AAABBC", "supermajority", 1),
        ("A" * 20, "plurality", 10),
    ],
)
def test_margins_of_head_counts(choices: str, rule: str, switches: int) -> None:
    assert margin(choices, rule) == MarginOfVictory(switches, switches)


def test_no_number_of_switches_changes_the_only_option() -> None:
    assert margin("AA", options=("A",)) == MarginOfVictory(None, 3)


def test_more_than_twenty_ballots_are_not_searched() -> None:
    with pytest.raises(DataError, match="21 ballots"):
        margin("A" * 21)


def test_the_heaviest_voter_may_decide_alone() -> None:
    ballots = [Ballot("a", "A"), Ballot("b", "A"), Ballot("c", "B")]
    rule = VOTE_RULES["weighted"]
    found = margin_of_victory(rule=rule, ballots=ballots, options=("A", "B"), weights={"a": 5, "b": 1, "c": 1})
    assert found.switches == 1
    level = margin_of_victory(rule=rule, ballots=ballots, options=("A", "B"), weights={"a": 5, "b": 5, "c": 1})
    assert level.switches == 1


def brute(rule: VoteRule, ballots: list[Ballot], options: tuple[str, ...], weights: dict[str, int]) -> int:
    before = rule(ballots=ballots, options=options, weights=weights).winners
    for k in range(1, len(ballots) + 1):
        for out in combinations(range(len(ballots)), k):
            for new in product(options, repeat=k):
                choice = dict(zip(out, new, strict=True))
                cast = [Ballot(b.seat, choice.get(i, b.choice), b.confidence) for i, b in enumerate(ballots)]
                if rule(ballots=cast, options=options, weights=weights).winners != before:
                    return k
    return len(ballots) + 1


@pytest.mark.parametrize("name", ["plurality", "majority", "supermajority", "unanimity", "weighted"])
def test_the_search_finds_what_trying_everything_finds(name: str) -> None:
    draw, rule, options = numbers(f"margin-{name}"), VOTE_RULES[name], ("A", "B", "C")
    for _ in range(12):
        ballots = [Ballot(f"s{i}", options[next(draw) % 3], (1 + next(draw) % 8) / 8) for i in range(4)]
        weights = {ballot.seat: 1 + next(draw) % 4 for ballot in ballots}
        found = margin_of_victory(rule=rule, ballots=ballots, options=options, weights=weights)
        assert found.at_least == brute(rule, ballots, options, weights)


def test_margins_of_rankings_are_searched_and_given_up_with_a_bound() -> None:
    cast = [Ballot(f"s{i}", ranking=tuple(r)) for i, r in enumerate(["ABC", "ABC", "ABC", "BCA", "CBA"])]
    for name in ("borda", "copeland", "schulze", "irv"):
        found = margin_of_victory(rule=VOTE_RULES[name], ballots=cast, options=("A", "B", "C"))
        assert found.switches == found.at_least == 1
    options = tuple("ABCDEF")
    alike = [Ballot(f"s{i}", ranking=options) for i in range(12)]
    found = margin_of_victory(rule=VOTE_RULES["copeland"], ballots=alike, options=options)
    assert found == MarginOfVictory(None, 2)
    approving = [Ballot(f"s{i}", approvals=("A",)) for i in range(3)]
    assert margin_of_victory(rule=VOTE_RULES["approval"], ballots=approving, options=("A", "B")).switches == 2
