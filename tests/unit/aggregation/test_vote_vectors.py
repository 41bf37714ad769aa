"""Every reference vector of votes, by method; a method nobody knows fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from consilience.aggregation.ballots import Ballot
from consilience.aggregation.heads import Supermajority
from consilience.aggregation.jury import jury_accuracy, log_odds_weights, weighted_majority_accuracy
from consilience.aggregation.runoff import eliminate
from consilience.aggregation.tallies import Tally
from consilience.aggregation.ties import break_tie
from consilience.aggregation.votes import VOTE_RULES

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "vote_vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["vectors"]

Check = Callable[[dict[str, Any], Any, float], None]


def heads(votes: dict[str, int]) -> list[Ballot]:
    """Return a ballot per head; heads that abstain cast none."""
    return [
        Ballot(f"{option}{index:03d}", option)
        for option, count in votes.items()
        if option != "abstain"
        for index in range(count)
    ]


def rankings(given: dict[str, Any]) -> list[tuple[str, ...]]:
    return [tuple(ranking) for count, ranking in given["ballots"] for _ in range(count)]


def tally(rule: str, votes: list[tuple[str, ...]]) -> Tally:
    ballots = [Ballot(f"s{index:03d}", ranking=ranking) for index, ranking in enumerate(votes)]
    return VOTE_RULES[rule](ballots=ballots, options=tuple(sorted(votes[0])))


def elections(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    del tolerance
    votes = rankings(given)
    assert tally("plurality", votes).winner == expected["plurality"]
    assert tally("majority", votes).winner == expected["majority"]
    assert tally("borda", votes).scores == expected["borda"]
    assert tally("borda", votes).winner == expected["borda_winner"]
    assert tally("copeland", votes).scores == expected["copeland"]
    assert tally("copeland", votes).notes["condorcet_winner"] == expected["condorcet"]
    run_off = tally("irv", votes)
    assert run_off.winner == expected["irv"]
    assert run_off.notes["eliminated"] == expected["irv_eliminations"]


def elections_tiebreak(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    del tolerance
    votes, order = rankings(given), given["safety_order"]
    assert tally("borda", votes).scores == expected["borda"]
    assert tally("copeland", votes).scores == expected["copeland"]
    assert tally("minimax", votes).notes["condorcet_winner"] is expected["condorcet"]
    assert tally("minimax", votes).notes["smith_set"] == sorted(order)
    for rule in ("plurality", "borda", "copeland", "minimax", "ranked_pairs", "schulze", "irv"):
        made = tally(rule, votes)
        assert made.winners == tuple(sorted(order))
        settled = break_tie(made, rule=rule, safety_order=order, second=("borda", tally("borda", votes)))
        assert settled.winner == expected["winner_by_safety_order"]
        assert settled.decided_by == "safety_order"
    assert "tie_sensitive" in tally("irv", votes).flags
    assert eliminate(rankings=votes, options=("A", "B", "C"), safety_order=order).winner == expected["irv"]


def majority(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    del tolerance
    made = VOTE_RULES["majority"](ballots=heads(given["votes"]), options=tuple(given["votes"]))
    assert made.winner is expected["majority"] is expected["winner"]
    assert made.decided == "tie"
    assert break_tie(made, rule="majority", safety_order=("B", "A")).winner == "B"


def supermajority(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    del tolerance
    rule = Supermajority(Fraction(given["threshold"]))
    made = rule(ballots=heads(given["votes"]), options=tuple(given["votes"]))
    assert (made.winner == "A") is expected["met"]


def supermajority_abstain(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    del tolerance
    threshold, ballots, seats = Fraction(given["threshold"]), heads(given["votes"]), sum(given["votes"].values())
    cast = Supermajority(threshold, "cast")(ballots=ballots, options=("A", "B"), n_seats=seats)
    whole = Supermajority(threshold, "seats")(ballots=ballots, options=("A", "B"), n_seats=seats)
    assert (cast.winner == "A") is expected["of_votes_cast"]
    assert (whole.winner == "A") is expected["of_all_agents"]
    assert [(made.denominator, made.of) for made in (cast, whole)] == [("cast", 8), ("seats", 12)]


def weighted_accuracy(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    made = [weighted_majority_accuracy(given["p"], weights) for weights in given["weights"]]
    assert made == pytest.approx(expected, rel=tolerance)


def log_odds(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    assert log_odds_weights(given["p"]) == pytest.approx(expected, rel=tolerance)


def jury(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    assert [jury_accuracy(p=given["p"], n=n) for n in given["n"]] == pytest.approx(expected, rel=tolerance)


def even_jury(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    half, lost = (jury_accuracy(p=given["p"], n=given["n"], tie=tie) for tie in ("half", "lost"))
    assert half == pytest.approx(expected["tie_half"], rel=tolerance)
    assert half == pytest.approx(jury_accuracy(p=given["p"], n=given["n"] - 1), rel=tolerance)
    assert lost == pytest.approx(expected["tie_lost"], rel=tolerance)


def correlated_jury(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    assert jury_accuracy(p=given["p"], n=given["n"], rho=given["rho"]) == pytest.approx(expected, rel=tolerance)


def approval(given: dict[str, Any], expected: Any, tolerance: float) -> None:
    del tolerance
    ballots = [Ballot(f"s{index}", approvals=tuple(approved)) for index, approved in enumerate(given["approvals"])]
    made = VOTE_RULES["approval"](ballots=ballots, options=("A", "B", "C"))
    assert made.scores == expected["scores"]
    assert break_tie(made, rule="approval", safety_order=given["safety_order"]).winner == expected["winner"]
    empty = VOTE_RULES["approval"](ballots=[*ballots, Ballot("t", approvals=())], options=("A", "B", "C"))
    assert (empty.scores, empty.n) == (made.scores, made.n + 1)


CHECKS: dict[str, Check] = {
    "elections": elections,
    "elections_tiebreak": elections_tiebreak,
    "majority": majority,
    "supermajority": supermajority,
    "supermajority_abstain": supermajority_abstain,
    "weighted_majority_accuracy": weighted_accuracy,
    "log_odds_weights": log_odds,
    "condorcet_jury": jury,
    "condorcet_jury_even": even_jury,
    "correlated_jury": correlated_jury,
    "approval": approval,
}


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_vote_vector_holds(vector: dict[str, Any]) -> None:
    assert vector["method"] in CHECKS, f"nobody checks the method {vector['method']}"
    CHECKS[vector["method"]](vector["input"], vector["expected"], vector["rel_tol"])


def test_every_vote_check_has_a_vector() -> None:
    assert {vector["method"] for vector in VECTORS} == set(CHECKS)


@pytest.mark.shared_data
def test_golden_votes_equal_the_reference(shared: Path) -> None:
    reference = json.loads((shared / "vectors" / "statistics.json").read_text())["vectors"]
    mine = [vector for vector in reference if vector["id"].startswith("vote.")]
    assert [{key: value for key, value in vector.items() if key != "note"} for vector in mine] == VECTORS
