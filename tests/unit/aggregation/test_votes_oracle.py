"""Who wins 10,000 random elections, ties included, is who pref_voting says; see ``make_vote_golden.py``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.minority import margin_of_victory
from consilience.aggregation.runoff import eliminate
from consilience.aggregation.tallies import VoteRule
from consilience.aggregation.votes import VOTE_RULES
from vote_cases import ALPHABET, APART, PROFILES, Profile, approvals, digest_of_profiles, profile

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[2] / "golden" / "votes_pref_voting.json").read_text()
)
NAMES = tuple(GOLDEN["options"])
RANKED = ("plurality", "borda", "copeland", "minimax", "ranked_pairs", "schulze", "irv")


def ballots(voters: Profile, part: str) -> list[Ballot]:
    named = [tuple(NAMES[option] for option in voter) for voter in voters]
    if part == "approvals":
        return [Ballot(f"s{index:02d}", approvals=voter) for index, voter in enumerate(named)]
    return [Ballot(f"s{index:02d}", ranking=voter) for index, voter in enumerate(named)]


def letter(winners: tuple[str, ...]) -> str:
    return ALPHABET[sum(1 << NAMES.index(winner) for winner in winners)]


@pytest.fixture(scope="module")
def elections() -> list[tuple[tuple[str, ...], list[Ballot]]]:
    made = [profile(index) for index in range(PROFILES)]
    return [(NAMES[: len(voters[0])], ballots(voters, "ranking")) for voters in made]


def test_the_elections_are_those_the_oracle_saw() -> None:
    assert GOLDEN["profiles"] == PROFILES == 10_000
    assert digest_of_profiles() == GOLDEN["profiles_sha256"]


@pytest.mark.parametrize("name", RANKED)
def test_winners_are_the_oracles_ties_included(name: str, elections: Any) -> None:
    rule, expected = VOTE_RULES[name], GOLDEN["winners"][name]
    made = "".join(letter(rule(ballots=cast, options=options).winners) for options, cast in elections)
    wrong = [index for index in range(PROFILES) if made[index] != expected[index]]
    assert wrong == []
    ties = sum(character not in "1248G" for character in expected)
    assert ties > 500, "few ties would prove little"


def test_majorities_are_the_oracles_which_knows_no_tie(elections: Any) -> None:
    rule, expected = VOTE_RULES["majority"], GOLDEN["winners"]["majority"]
    made = [rule(ballots=cast, options=options).winner for options, cast in elections]
    assert "".join(letter(() if winner is None else (winner,)) for winner in made) == expected


def test_approval_winners_are_the_oracles_but_where_nothing_is_approved() -> None:
    rule, expected = VOTE_RULES["approval"], GOLDEN["winners"]["approval"]
    differ = 0
    for index in range(PROFILES):
        voters = approvals(index)
        options = NAMES[: len(profile(index)[0])]
        made = letter(rule(ballots=ballots(voters, "approvals"), options=options).winners)
        if any(voters):
            assert made == expected[index]
        else:
            differ += 1
            assert (made, expected[index]) == ("0", letter(options))
    assert differ > 0


def test_condorcet_winners_and_smith_sets_are_the_oracles(elections: Any) -> None:
    rule = VOTE_RULES["copeland"]
    for index, (options, cast) in enumerate(elections):
        notes = rule(ballots=cast, options=options).notes
        beats_all = notes["condorcet_winner"]
        assert letter(() if beats_all is None else (beats_all,)) == GOLDEN["winners"]["condorcet_winner"][index]
        assert letter(tuple(notes["smith_set"])) == GOLDEN["winners"]["smith_set"][index]


def test_the_oracles_run_off_that_drops_all_losers_at_once_is_another_rule() -> None:
    put, at_once = GOLDEN["winners"]["irv"], GOLDEN["winners"]["instant_runoff"]
    assert sum(one != other for one, other in zip(put, at_once, strict=True)) > 100
    cast = ballots(APART, "ranking")
    assert GOLDEN["apart"] == {"irv": letter(("d",)), "instant_runoff": letter(("a",))}
    assert VOTE_RULES["irv"](ballots=cast, options=NAMES[:4]).winners == ("d",)
    rankings = [tuple(NAMES[option] for option in voter) for voter in APART]
    for order in ("abcd", "dcba"):
        assert eliminate(rankings=rankings, options=NAMES[:4], safety_order=order).winner == "d"


@pytest.mark.parametrize(("options", "voters"), [(28, 5), (60, 5), (200, 5), (200, 20)])
@pytest.mark.parametrize("rule", tuple(VOTE_RULES), ids=lambda rule: rule.name)
def test_many_options_are_counted_or_given_up_in_bounded_time(rule: VoteRule, options: int, voters: int) -> None:
    names = tuple(f"o{number}" for number in range(1, options + 1))
    order = Random(0)  # noqa: S311 - ballots of a test
    ballots = []
    for seat in range(voters):
        ranking = tuple(order.sample(names, options))
        ballots.append(Ballot(f"seat_{seat:02d}", ranking[0], 0.5, ranking, ranking[:3]))
    began = time.process_time()
    tally = rule(ballots=ballots, options=names)
    margin = margin_of_victory(rule=rule, ballots=ballots, options=names)
    assert time.process_time() - began < 10  # about one second; it once took hours
    if "too_many_paths" in tally.flags:
        assert (rule.name in {"ranked_pairs", "irv"}, tally.winners, margin.switches) == (True, (), None)
    assert margin.at_least >= 1
