"""Effective numbers of members: reference vectors, independent oracles, and the cases without a number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consilience.errors import DataError
from consilience.inference.crowd import diversity_prediction, shared_mistakes
from consilience.inference.effective import (
    EffectiveNumbers,
    FloatArray,
    Undefined,
    correlation_matrix,
    effective_numbers,
    equal_weight,
    equicorrelated,
    mean_square_ratio,
    optimal_weight,
    participation_ratio,
)

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "panel_vectors.json"
VECTORS: dict[str, dict[str, Any]] = {vector["id"]: vector for vector in json.loads(GOLDEN.read_text())["vectors"]}
DEFINITIONS = ("equicorrelated", "equal_weight", "optimal_weight", "participation_ratio", "mean_square")


def errors(n_items: int, n_members: int, *, shared: float = 0.0, seed: int = 7) -> FloatArray:
    """Errors of unit variance whose correlation is ``shared``."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_items, 1))
    own = rng.standard_normal((n_items, n_members))
    made: FloatArray = np.sqrt(shared) * common + np.sqrt(1 - shared) * own
    return made


def why(value: float | Undefined) -> str:
    assert isinstance(value, Undefined)
    return value.reason


def test_closed_form_vector() -> None:
    vector = VECTORS["agent.neff"]
    assert equicorrelated(**vector["input"]) == pytest.approx(vector["expected"], rel=vector["rel_tol"])


def test_matrix_vector() -> None:
    vector = VECTORS["agent.neff.matrix"]
    matrix = np.array(vector["input"]["corr"])
    made = {
        "equal_weight": equal_weight(covariance=matrix),
        "optimal_weight": optimal_weight(covariance=matrix),
        "participation_ratio": participation_ratio(covariance=matrix),
    }
    assert made == pytest.approx(vector["expected"], rel=vector["rel_tol"], abs=vector["rel_tol"])


def test_diversity_vector() -> None:
    vector = VECTORS["agent.diversity_theorem"]
    for said, expected in zip(vector["input"]["predictions"], vector["expected"], strict=True):
        made = diversity_prediction(predictions=np.array(said, dtype=np.float64), truth=vector["input"]["truth"])
        assert vars(made) == pytest.approx(expected, rel=vector["rel_tol"])


@pytest.mark.shared_data
def test_golden_equals_the_reference(shared: Path) -> None:
    reference = json.loads((shared / "vectors" / "statistics.json").read_text())["vectors"]
    mine = [vector for vector in reference if vector["id"].startswith(("agent.neff", "agent.diversity"))]
    assert [{key: value for key, value in vector.items() if key != "note"} for vector in mine] == [*VECTORS.values()]


def test_definitions_against_numpy() -> None:
    values = errors(60, 4, shared=0.4) * np.array([1.0, 2.0, 0.5, 1.5]) + 0.3
    made = effective_numbers(values=values, errors=True)
    covariance = np.cov(values.T, ddof=0)
    correlation: FloatArray = np.array(np.corrcoef(values.T))
    rho = correlation[np.triu_indices(4, 1)].mean()
    ranks = np.argsort(np.argsort(values, axis=0), axis=0)
    assert made.rho == pytest.approx(rho)
    assert made.rank_rho == pytest.approx(np.array(np.corrcoef(ranks.T))[np.triu_indices(4, 1)].mean())
    assert made.equicorrelated == pytest.approx(4 / (1 + 3 * rho))
    # what the mean really gains: the members' mean variance over the variance of their mean
    assert made.equal_weight == pytest.approx(values.var(axis=0).mean() / values.mean(axis=1).var())
    assert made.optimal_weight == pytest.approx(np.linalg.inv(covariance).sum() * covariance.diagonal().mean())
    lambdas = np.linalg.eigvalsh(correlation)
    assert made.participation_ratio == pytest.approx(lambdas.sum() ** 2 / (lambdas**2).sum())
    assert made.mean_square == pytest.approx((values**2).mean() / (values.mean(axis=1) ** 2).mean())


def test_tied_values_share_their_ranks() -> None:
    values = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 3.0], [5.0, 3.0]])
    ranks = np.array([[1.5, 1.0], [1.5, 2.0], [3.0, 3.5], [4.0, 3.5]])
    made = effective_numbers(values=values, errors=True)
    assert made.rank_rho == pytest.approx(np.array(np.corrcoef(ranks.T))[0, 1])


@pytest.mark.parametrize("n", [2, 5, 12])
def test_a_panel_of_copies_is_one_member_under_every_definition(n: int) -> None:
    made = effective_numbers(values=np.repeat(errors(40, 1), n, axis=1), errors=True)
    for name in DEFINITIONS:
        assert getattr(made, name) == pytest.approx(1.0, abs=1e-6), name


def test_independent_errors_are_worth_all_members() -> None:
    made = effective_numbers(values=errors(20_000, 5), errors=True)
    for name in DEFINITIONS:
        assert getattr(made, name) == pytest.approx(5.0, rel=0.05), name


def test_a_shared_bias_counts_in_the_mean_square_only() -> None:
    fair = errors(20_000, 5)
    made, biased = (effective_numbers(values=fair + bias, errors=True) for bias in (0.0, 1.0))
    assert biased.equal_weight == pytest.approx(made.equal_weight)
    assert biased.mean_square == pytest.approx((1 + 1) / (1 + 1 / 5), rel=0.05)


def test_scale_does_not_matter_however_large_or_small() -> None:
    values = errors(30, 3, shared=0.5)
    made = effective_numbers(values=values, errors=True)
    for factor in (1e-200, 1e200):
        scaled = effective_numbers(values=values * factor, errors=True)
        assert vars(scaled) == pytest.approx(vars(made), rel=1e-9)


def test_no_correlation_below_minus_one_over_n_less_one() -> None:
    assert "not above" in why(equicorrelated(n=3, rho=-0.5))
    assert "not above" in why(equicorrelated(n=3, rho=-0.9))
    assert equicorrelated(n=3, rho=-0.25) == 6.0
    assert equicorrelated(n=1, rho=0.3) == 1.0


def test_members_that_cancel_have_no_number() -> None:
    column = errors(30, 1)
    made = effective_numbers(values=np.hstack([column, -column]), errors=True)
    assert made.rho == pytest.approx(-1.0)
    assert "cancel" in why(made.equal_weight)
    assert "no variance" in why(made.optimal_weight)
    assert "right on every item" in why(made.mean_square)
    assert made.participation_ratio == pytest.approx(1.0)


def test_a_member_that_never_varies_leaves_no_correlation() -> None:
    values = errors(30, 3)
    values[:, 1] = 0.1  # its mean is not exactly 0.1
    made = effective_numbers(values=values, errors=True)
    assert why(made.rho) == why(made.equicorrelated) == "the values of member 2 do not vary"
    assert "do not vary" in why(made.rank_rho)
    assert "do not vary" in why(made.participation_ratio)
    assert "no variance" in why(made.optimal_weight)
    # what the mean gains is known all the same
    assert made.equal_weight == pytest.approx(values.var(axis=0).mean() / values.mean(axis=1).var())


def test_nothing_varies() -> None:
    made = effective_numbers(values=np.full((5, 3), 0.1), errors=True)
    assert why(made.equal_weight) == why(made.optimal_weight) == "no member's values vary"
    assert why(participation_ratio(covariance=np.zeros((2, 2)))) == "no member's values vary"
    assert made.mean_square == pytest.approx(1.0)
    right = effective_numbers(values=np.zeros((5, 3)), errors=True)
    assert "right on every item" in why(right.mean_square)


@pytest.mark.parametrize("items", [0, 1, 2])
def test_too_few_items_say_so(items: int) -> None:
    made = effective_numbers(values=errors(items, 3), errors=True)
    assert {why(getattr(made, name)) for name in DEFINITIONS} == {f"{items} items; at least 3 are needed"}
    assert isinstance(correlation_matrix(values=errors(items, 3)), Undefined)


def test_best_weights_need_more_items_than_members() -> None:
    made = effective_numbers(values=errors(5, 5), errors=True)
    assert "do not determine" in why(made.optimal_weight)
    assert isinstance(made.equal_weight, float)


def test_one_member_is_one_member() -> None:
    made = effective_numbers(values=errors(10, 1), errors=True)
    assert (made.equicorrelated, made.equal_weight, made.mean_square) == pytest.approx((1.0, 1.0, 1.0))
    assert "nobody to correlate" in why(made.rho)


def test_answers_have_no_mean_square_and_options_no_ranks() -> None:
    made = effective_numbers(values=errors(12, 3), errors=False, centred=False, n_items=6)
    assert (made.n_items, why(made.mean_square)) == (6, "needs the truth")
    assert "no ranks" in why(made.rank_rho)


def test_the_record_is_json_without_nan() -> None:
    made = effective_numbers(values=np.full((5, 3), 0.1), errors=False)
    told = json.loads(json.dumps(made.record(), allow_nan=False))
    assert told["equal_weight"] is None
    assert told["undefined"]["equal_weight"] == "no member's values vary"
    assert set(told) == {*vars(made), "undefined"}
    assert isinstance(made, EffectiveNumbers)


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((3, 0)), np.array([[0.0, np.nan]] * 3)])
def test_gaps_and_other_shapes_are_refused(values: FloatArray) -> None:
    with pytest.raises(DataError, match="no finite matrix"):
        effective_numbers(values=values, errors=True)


@pytest.mark.parametrize("matrix", [np.zeros((2, 3)), np.array([[1.0, 0.5], [0.1, 1.0]]), np.zeros((0, 0))])
def test_what_is_no_covariance_is_refused(matrix: FloatArray) -> None:
    for definition in (equal_weight, optimal_weight, participation_ratio):
        with pytest.raises(DataError, match="no covariance"):
            definition(covariance=matrix)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(DataError, match=r"correlation of 1\.5"):
        equicorrelated(n=3, rho=1.5)
    with pytest.raises(DataError, match="ridge of -1"):
        optimal_weight(covariance=np.eye(2), ridge=-1)
    with pytest.raises(DataError, match="no items"):
        mean_square_ratio(errors=np.zeros((0, 2)))


def test_diversity_of_vectors_is_summed_over_coordinates() -> None:
    said = np.array([[0.5, 0.5], [0.9, 0.1]])
    made = diversity_prediction(predictions=said, truth=np.array([1.0, 0.0]))
    assert made.avg_error == pytest.approx(((0.5**2 + 0.5**2) + (0.1**2 + 0.1**2)) / 2)
    assert made.crowd_error == pytest.approx(0.3**2 + 0.3**2)
    assert made.diversity == pytest.approx(made.avg_error - made.crowd_error)


@pytest.mark.parametrize(
    ("said", "truth", "match"),
    [(np.zeros(0), 1.0, "against"), (np.zeros((2, 2)), 1.0, "against"), (np.array([np.inf]), 1.0, "not finite")],
)
def test_predictions_that_do_not_fit_are_refused(said: FloatArray, truth: float, match: str) -> None:
    with pytest.raises(DataError, match=match):
        diversity_prediction(predictions=said, truth=truth)


def test_shared_mistakes_by_hand() -> None:
    chosen = np.array(
        [
            [1, 1, 2],  # three wrong: of their 3 pairs 1 agrees
            [1, 0, 1],  # two wrong, alike
            [0, 0, 1],  # one wrong: no pair
            [1, 1, -1],  # one absent, two alike
            [1, 1, 1],  # two options only: passed over
        ]
    )
    made = shared_mistakes(chosen=chosen, truth=np.zeros(5, dtype=np.int64), n_options=np.array([3, 3, 3, 5, 2]))
    assert (made.both_wrong, made.same, made.share) == (5, 3, 0.6)
    assert made.by_chance == pytest.approx((3 / 2 + 1 / 2 + 1 / 4) / 5)
    assert made.kappa == pytest.approx((0.6 - 0.45) / 0.55)


def test_nobody_wrong_together() -> None:
    made = shared_mistakes(chosen=np.array([[0, 1]]), truth=np.array([0]), n_options=np.array([3]))
    assert "wrong together" in why(made.share)
    assert made.record() == {"both_wrong": 0, "same": 0, "share": None, "by_chance": None, "kappa": None}
    with pytest.raises(DataError, match="do not fit"):
        shared_mistakes(chosen=np.array([[0, 1]]), truth=np.array([0, 1]), n_options=np.array([3]))
