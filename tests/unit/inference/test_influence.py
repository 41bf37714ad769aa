"""Influence: reference vectors, orders of members counted by brute force, copies, and sampling."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.inference.bootstrap import analysis_rng
from consilience.inference.influence import Rule, influence, sampled_shapley, shapley, value_table

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "conformity_vectors.json"
VECTORS: dict[str, dict[str, Any]] = {vector["method"]: vector for vector in json.loads(GOLDEN.read_text())["vectors"]}


def test_glove_vector() -> None:
    vector = VECTORS["shapley"]
    table = value_table(n=3, value=lambda panel: float(2 in panel and len(panel) > 1))
    assert shapley(values=table) == pytest.approx(vector["expected"], rel=vector["rel_tol"])


def test_influence_vector() -> None:
    vector = VECTORS["shapley_influence"]
    made = influence(errors=np.array(vector["input"]["log_errors"]))
    for name, expected in vector["expected"].items():
        assert getattr(made, name) == pytest.approx(expected, rel=vector["rel_tol"])
    assert made.exact
    assert made.empty == "a member drawn at random"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=16, max_size=16))
def test_shares_are_the_mean_gain_over_all_orders(values: list[float]) -> None:
    worth = np.array(values)
    expected = np.zeros(4)
    for order in permutations(range(4)):
        mask = 0
        for member in order:
            expected[member] += (worth[mask | 1 << member] - worth[mask]) / 24
            mask |= 1 << member
    made = shapley(values=worth)
    assert made == pytest.approx(expected, abs=1e-9)
    assert made.sum() == pytest.approx(worth[-1] - worth[0], abs=1e-9)


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_copies_share_equally_though_neither_is_missed(rule: Rule) -> None:
    rng = np.random.default_rng(1)
    errors = rng.normal(0, 0.1, (40, 4))
    errors[:, 3] = errors[:, 2]
    made = influence(errors=errors, rule=rule)
    assert made.shapley[2] == pytest.approx(made.shapley[3])
    assert sum(made.shapley) == pytest.approx(made.total)
    if rule == "mean":
        assert made.total == pytest.approx(float((errors**2).mean() - (errors.mean(axis=1) ** 2).mean()))


def test_one_member_is_worth_nothing_beyond_itself() -> None:
    made = influence(errors=np.array([[0.1], [0.2]]))
    assert (made.shapley, made.leave_one_out, made.total) == ((0.0,), (0.0,), 0.0)


def test_sampling_covers_the_exact_shares_and_keeps_their_sum() -> None:
    errors = np.random.default_rng(2).normal(0, 0.1, (30, 6)) * np.arange(1, 7)
    exact = influence(errors=errors)
    alone = float((errors**2).mean())

    def value(panel: tuple[int, ...]) -> float:
        return alone - float((errors[:, panel].mean(axis=1) ** 2).mean()) if panel else 0.0

    shares, se = sampled_shapley(n=6, value=value, rng=analysis_rng(seed=1, analysis="influence"))
    for mine, truth, error in zip(shares, exact.shapley, se, strict=True):
        assert abs(mine - truth) < 4 * error
    assert sum(shares) == pytest.approx(exact.total)


def test_many_members_are_sampled_and_say_so() -> None:
    errors = np.random.default_rng(3).normal(0, 0.1, (20, 18))
    made = influence(errors=errors, rng=analysis_rng(seed=2, analysis="influence"), n_pairs=20)
    assert not made.exact
    assert made.se is not None
    assert len(made.se) == 18
    assert sum(made.shapley) == pytest.approx(made.total)
    with pytest.raises(DataError, match="random orders"):
        influence(errors=errors)


def test_unusable_games_are_refused() -> None:
    with pytest.raises(DataError, match="finite matrix"):
        influence(errors=np.array([[np.nan]]))
    with pytest.raises(DataError, match="coalitions"):
        shapley(values=np.zeros(3))
    with pytest.raises(DataError, match="16 members"):
        value_table(n=16, value=lambda _: 0.0)
    with pytest.raises(DataError, match="pairs"):
        sampled_shapley(n=2, value=lambda _: 0.0, rng=np.random.default_rng(1), n_pairs=1)
