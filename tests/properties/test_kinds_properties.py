"""Promises of the rules for votes, over the registry."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.aggregation.votes import VOTE_RULES, VoteRule

BRIEF = settings(max_examples=60, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
OPTIONS = ("o1", "o2", "o3", "o4")
BALLOTS = st.lists(st.sampled_from(OPTIONS), min_size=1, max_size=15)


def names(n: int) -> tuple[str, ...]:
    return tuple(f"seat{i:02d}" for i in range(n))


def shuffle(n: int, seed: int) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).permutation(n)]


@pytest.mark.parametrize("rule", list(VOTE_RULES), ids=lambda rule: rule.name)
@BRIEF
@given(choices=BALLOTS, seed=SEEDS)
def test_vote_rules_keep_what_they_declare(rule: VoteRule, choices: list[str], seed: int) -> None:
    assert rule.order_invariant
    assert rule.unanimity
    assert rule.neutral
    assert rule.monotone
    seats, order, turned = names(len(choices)), shuffle(len(choices), seed), shuffle(4, seed)
    made = rule(choices=tuple(choices), options=OPTIONS, seats=seats)
    again = tuple(choices[i] for i in order), tuple(seats[i] for i in order)
    assert rule(choices=again[0], options=OPTIONS, seats=again[1]) == made
    assert sum(made.shares.values()) == 1
    assert made.agreement_share == max(made.shares.values())
    assert (made.winner is None) == ("tie" in made.flags) == (len(made.winners) > 1)
    # Other names change nothing but names.
    named = {option: OPTIONS[turned[index]] for index, option in enumerate(OPTIONS)}
    renamed = rule(choices=tuple(named[choice] for choice in choices), options=OPTIONS, seats=seats)
    assert set(renamed.winners) == {named[option] for option in made.winners}
    # One more ballot for a winner makes it the only one.
    more = rule(choices=(*choices, made.winners[0]), options=OPTIONS, seats=names(len(choices) + 1))
    assert more.winner == made.winners[0]
    assert more.agreement_share >= made.agreement_share
    alike = rule(choices=(choices[0],) * len(choices), options=OPTIONS, seats=seats)
    assert (alike.winner, alike.agreement_share) == (choices[0], Fraction(1))
