"""Promises of the rules for distributions, over the registry: what is declared holds, what is not is refuted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.aggregation.distributions import DISTRIBUTION_RULES, DistributionRule, LogarithmicPool
from consilience.aggregation.location import FloatArray

BRIEF = settings(max_examples=60, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
OPTIONS = ("o1", "o2", "o3", "o4")
RULES = list(DISTRIBUTION_RULES)


def _shares(weights: list[int]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


ROWS = st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any).map(_shares)
PANELS = st.lists(ROWS, min_size=1, max_size=12).map(lambda rows: np.array(rows, dtype=np.float64))
REFUTING = np.array([[0.5, 0.4, 0.1, 0.0], [0.1, 0.4, 0.5, 0.0]])
"""Seats that agree on one option and disagree on others."""


def names(n: int) -> tuple[str, ...]:
    return tuple(f"seat{i:02d}" for i in range(n))


def shuffle(n: int, seed: int) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).permutation(n)]


def pooled(rule: DistributionRule, p: FloatArray) -> FloatArray:
    made = rule(probabilities=p, options=OPTIONS, seats=names(len(p)))
    return np.array(list(made.probabilities.values()))


def in_range(rule: DistributionRule, p: FloatArray) -> bool:
    made = pooled(rule, p)
    return bool((p.min(axis=0) <= made).all() and (made <= p.max(axis=0)).all())


def is_marginal(rule: DistributionRule, p: FloatArray) -> bool:
    """Whether the first option keeps its pool when the other options' probabilities change hands."""
    other = p[:, [0, 2, 3, 1]].copy()
    other[0] = p[0]
    return bool(pooled(rule, other)[0] == pooled(rule, p)[0])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@BRIEF
@given(p=PANELS, seed=SEEDS)
def test_distribution_rules_keep_what_they_declare(rule: DistributionRule, p: FloatArray, seed: int) -> None:
    assert rule.order_invariant
    assert rule.unanimity
    seats, order, turned = names(len(p)), shuffle(len(p), seed), shuffle(4, seed)
    made = rule(probabilities=p, options=OPTIONS, seats=seats)
    assert rule(probabilities=p[order], options=OPTIONS, seats=tuple(seats[i] for i in order)) == made
    other = rule(probabilities=p[:, turned], options=tuple(OPTIONS[i] for i in turned), seats=seats)
    assert other.probabilities == made.probabilities
    assert all(0 <= value <= 1 for value in made.probabilities.values())
    assert made.total == pytest.approx(1.0, abs=1e-12)
    assert (made.clips > 0) == ("clipped" in made.flags)
    assert pooled(rule, np.tile(p[0], (len(p), 1))).tolist() == p[0].tolist()
    if rule.within_range:
        assert in_range(rule, p)
    if rule.marginal:
        assert is_marginal(rule, p)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_is_not_declared_is_refuted(rule: DistributionRule) -> None:
    assert in_range(rule, REFUTING) is rule.within_range
    assert is_marginal(rule, REFUTING) is rule.marginal


@BRIEF
@given(p=PANELS)
def test_a_veto_is_clipped_and_counted(p: FloatArray) -> None:
    rule = LogarithmicPool()
    made = rule(probabilities=p, options=OPTIONS, seats=names(len(p)))
    moved = 0 if (p == p[0]).all() else int(((p < rule.clip) | (p > 1 - rule.clip)).sum())
    assert made.clips == moved
    kept = p if moved == 0 else np.clip(p, rule.clip, 1 - rule.clip)
    if (kept > 0).all():
        means = np.exp(np.log(kept).mean(axis=0))
        assert list(made.probabilities.values()) == pytest.approx((means / means.sum()).tolist(), rel=1e-9)


@BRIEF
@given(yes=st.lists(st.floats(0, 1), min_size=2, max_size=9).filter(lambda p: len(set(p)) > 1))
def test_of_two_options_the_logarithmic_pool_is_the_geometric_mean_of_odds(yes: list[float]) -> None:
    p = np.array([[x, 1 - x] for x in yes])
    made = LogarithmicPool()(probabilities=p, options=("yes", "no"), seats=names(len(yes)))
    kept = [min(max(x, 0.005), 0.995) for x in yes]
    logit = math.fsum(math.log(x / (1 - x)) for x in kept) / len(kept)
    assert made.probabilities["yes"] == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-9)
