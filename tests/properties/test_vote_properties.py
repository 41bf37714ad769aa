"""Promises of the rules for votes, over the registry: what is declared holds, what is not is refuted by an example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.heads import Majority, Supermajority
from consilience.aggregation.ranked import Borda
from consilience.aggregation.tallies import Tally, VoteRule, leaders
from consilience.aggregation.votes import VOTE_RULES

BRIEF = settings(max_examples=60, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
OPTIONS = ("o1", "o2", "o3", "o4")
RULES = [*VOTE_RULES, Borda("average"), Majority("seats"), Supermajority(denominator="seats")]
EVERY_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{rule.denominator}")


def cast(seat: int, ranking: list[str], confidence: int, approved: int) -> Ballot:
    """Return a ballot every rule can read; confidences are sixteenths, so that their sums are exact."""
    return Ballot(f"s{seat:02d}", ranking[0], confidence / 16, tuple(ranking), tuple(ranking[:approved]))


BALLOTS = st.lists(
    st.tuples(st.permutations(OPTIONS), st.integers(1, 16), st.integers(0, 4)), min_size=1, max_size=13
).map(lambda said: [cast(seat, *one) for seat, one in enumerate(said)])


def shuffled(n: int, seed: int) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).permutation(n)]


def renamed(ballot: Ballot, names: dict[str, str]) -> Ballot:
    ranking = tuple(names[option] for option in ballot.ranking or ())
    return replace(
        ballot,
        choice=ranking[0],
        ranking=ranking,
        approvals=tuple(names[option] for option in ballot.approvals or ()),
    )


def raised(ballot: Ballot, option: str, to: int) -> Ballot:
    """Return the ballot with an option at a place, if that is higher, and approved."""
    ranking = list(ballot.ranking or ())
    if to < ranking.index(option):
        ranking.remove(option)
        ranking.insert(to, option)
    approved = ballot.approvals or ()
    return replace(
        ballot,
        choice=ranking[0],
        ranking=tuple(ranking),
        approvals=approved if option in approved else (*approved, option),
    )


def named(made: Tally, names: dict[str, str]) -> dict[str, object]:
    return {names[option]: (made.scores[option], made.counts[option], made.shares[option]) for option in names}


@EVERY_RULE
@BRIEF
@given(ballots=BALLOTS, seed=SEEDS)
def test_neither_order_nor_names_matter(rule: VoteRule, ballots: list[Ballot], seed: int) -> None:
    assert rule.order_invariant
    assert rule.neutral
    made = rule(ballots=ballots, options=OPTIONS)
    assert rule(ballots=[ballots[i] for i in shuffled(len(ballots), seed)], options=OPTIONS) == made
    turned = tuple(OPTIONS[i] for i in shuffled(4, seed))
    other = rule(ballots=ballots, options=turned)
    assert (other.scores, set(other.winners), other.shares) == (made.scores, set(made.winners), made.shares)
    assert list(other.scores) == list(turned)
    names = dict(zip(OPTIONS, turned, strict=True))
    again = rule(ballots=[renamed(ballot, names) for ballot in ballots], options=OPTIONS)
    assert set(again.winners) == {names[option] for option in made.winners}
    assert named(again, {option: option for option in OPTIONS}) == named(made, names)


@EVERY_RULE
@BRIEF
@given(ballots=BALLOTS)
def test_a_tally_agrees_with_itself(rule: VoteRule, ballots: list[Ballot]) -> None:
    made = rule(ballots=ballots, options=OPTIONS)
    assert sum(made.shares.values()) == pytest.approx(1, abs=1e-12)
    assert sum(made.weights.values()) == pytest.approx(1, abs=1e-12)
    assert list(made.weights) == sorted(ballot.seat for ballot in ballots)
    assert (made.winner is None) == (len(made.winners) != 1)
    assert made.decided == {0: "no_decision", 1: "winner"}.get(len(made.winners), "tie")
    assert ("tie" in made.flags) == (made.decided == "tie")
    assert 0 <= made.agreement_share <= 1
    if made.winners:
        assert leaders(made.shares) == made.winners
        assert set(made.winners) <= set(leaders(made.scores))


@EVERY_RULE
@BRIEF
@given(ballots=BALLOTS, seat=st.integers(0, 12), to=st.integers(0, 3))
def test_support_for_a_winner_does_not_make_it_lose(rule: VoteRule, ballots: list[Ballot], seat: int, to: int) -> None:
    made = rule(ballots=ballots, options=OPTIONS)
    for winner in made.winners if rule.monotone else ():
        more = [raised(one, winner, to) if i == seat % len(ballots) else one for i, one in enumerate(ballots)]
        assert winner in rule(ballots=more, options=OPTIONS).winners


@EVERY_RULE
@BRIEF
@given(ballots=BALLOTS, option=st.sampled_from(OPTIONS))
def test_what_all_put_first_wins(rule: VoteRule, ballots: list[Ballot], option: str) -> None:
    made = rule(ballots=[raised(ballot, option, 0) for ballot in ballots], options=OPTIONS)
    assert option in made.winners
    assert made.agreement_share == 1
    assert made.winner == option or not rule.unanimity


@EVERY_RULE
@BRIEF
@given(ballots=BALLOTS, more=st.integers(1, 9))
def test_who_casts_no_ballot_never_enters(rule: VoteRule, ballots: list[Ballot], more: int) -> None:
    made = rule(ballots=ballots, options=OPTIONS)
    wider = rule(ballots=ballots, options=OPTIONS, n_seats=len(ballots) + more)
    assert (wider.scores, wider.counts, wider.weights, wider.n) == (made.scores, made.counts, made.weights, made.n)
    if rule.denominator == "cast":
        assert wider == made
    else:
        assert wider.of == made.of + more
        assert set(wider.winners) <= set(made.winners)


@BRIEF
@given(ballots=BALLOTS, weights=st.lists(st.integers(1, 9), min_size=13, max_size=13))
def test_who_weighs_nothing_does_not_matter(ballots: list[Ballot], weights: list[int]) -> None:
    rule = VOTE_RULES["weighted"]
    declared = {f"s{seat:02d}": weight for seat, weight in enumerate(weights)}
    made = rule(ballots=ballots, options=OPTIONS, weights=declared)
    nobody = cast(99, list(OPTIONS), 16, 1)
    wider = rule(ballots=[*ballots, nobody], options=OPTIONS, weights={**declared, nobody.seat: 0})
    assert (wider.scores, wider.shares, wider.winners) == (made.scores, made.shares, made.winners)
    silent = VOTE_RULES["confidence_weighted"]
    sure = silent(ballots=ballots, options=OPTIONS)
    unsure = silent(ballots=[*ballots, replace(nobody, confidence=0.0)], options=OPTIONS)
    assert (unsure.scores, unsure.shares, unsure.winners) == (sure.scores, sure.shares, sure.winners)


def test_only_what_is_refuted_here_is_not_declared() -> None:
    promises = ("order_invariant", "unanimity", "neutral", "monotone")
    undeclared = {(rule.name, promise) for rule in VOTE_RULES for promise in promises if not getattr(rule, promise)}
    assert undeclared == {("approval", "unanimity"), ("irv", "monotone")}


def test_what_all_approve_may_share_the_win() -> None:
    made = VOTE_RULES["approval"](ballots=[Ballot("a", "x", approvals=("x", "y"))], options=("x", "y"))
    assert made.winners == ("x", "y")


def test_more_support_can_lose_a_run_off() -> None:
    rankings = ["xyz"] * 6 + ["zxy"] * 5 + ["yzx"] * 4 + ["yxz"] * 2
    before = [Ballot(f"s{i:02d}", ranking=tuple(ranking)) for i, ranking in enumerate(rankings)]
    after = [replace(ballot, ranking=("x", "y", "z")) if i >= 15 else ballot for i, ballot in enumerate(before)]
    rule = VOTE_RULES["irv"]
    assert rule(ballots=before, options=("x", "y", "z")).winner == "x"
    assert rule(ballots=after, options=("x", "y", "z")).winner == "z"
