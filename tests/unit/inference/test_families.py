"""Families of tests, the largest statistic, the confidence set and equivalence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.inference.bootstrap import analysis_rng, bootstrap_means, cluster_weights
from consilience.inference.confidence_set import ConfidenceSet, model_confidence_set
from consilience.inference.effective import Undefined
from consilience.inference.equivalence import Equivalence, equivalence
from consilience.inference.multiplicity import Method, adjust, max_t
from consilience.inference.tests import cluster_t

PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@settings(max_examples=30, deadline=None)
@given(PROBABILITIES)
def test_scipy_agrees_on_false_discovery_rates(p: list[float]) -> None:
    from scipy import stats  # noqa: PLC0415 - an oracle, slow to load

    methods: tuple[Method, ...] = ("bh", "by")
    for method in methods:
        oracle = stats.false_discovery_control(p, method=method)
        assert adjust(p=p, method=method).p == pytest.approx(tuple(oracle))


@given(PROBABILITIES)
def test_holm_lies_between_the_raw_and_bonferroni_in_the_same_order(p: list[float]) -> None:
    made = adjust(p=p, method="holm").p
    crude = adjust(p=p, method="bonferroni").p
    values = [(raw, mine, most) for raw, mine, most in zip(p, made, crude, strict=True)]
    for raw, mine, most in values:
        assert isinstance(mine, float)
        assert isinstance(most, float)
        assert raw <= mine <= most
    by_raw = sorted((raw, float(mine)) for raw, mine, _ in values if isinstance(mine, float))
    assert [mine for _, mine in by_raw] == sorted(mine for _, mine in by_raw)


def test_what_has_no_p_value_leaves_the_family_and_is_listed() -> None:
    made = adjust(p=[0.02, math.nan, Undefined("identical"), 0.03], method="holm")
    assert made.p == (0.04, Undefined("the test has no p-value"), Undefined("identical"), 0.04)
    assert (made.family, made.excluded) == (2, (1, 2))
    assert adjust(p=[], method="by").p == ()
    with pytest.raises(DataError, match="p-values"):
        adjust(p=[1.2], method="bh")


def drawn(values: np.ndarray[tuple[int, int], np.dtype[np.float64]], seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    cases = np.arange(len(values))
    weights = cluster_weights(clusters=cases, n_resamples=4_000, rng=analysis_rng(seed=seed, analysis="family"))
    return values.mean(axis=0), bootstrap_means(values=values, clusters=cases, weights=weights)


def test_max_t_gains_on_holm_where_contrasts_depend_on_each_other() -> None:
    rng = np.random.default_rng(4)
    shared = rng.normal(0.2, 1, (120, 1))
    values = shared + rng.normal(0, 0.1, (120, 6))
    points, draws = drawn(values)
    made = max_t(points=points, draws=draws)
    raw = [cluster_t(differences=column, clusters=np.arange(120)).p for column in values.T]
    holm = adjust(p=raw, method="holm")
    for mine, other in zip(made.p, holm.p, strict=True):
        assert isinstance(mine, float)
        assert isinstance(other, float)
        assert mine < other


def test_max_t_of_one_contrast_is_its_own_bootstrap_test_and_still_ones_leave() -> None:
    values = np.random.default_rng(5).normal(0.1, 1, (80, 2))
    values[:, 1] = 0.0
    points, draws = drawn(values)
    made = max_t(points=points, draws=draws)
    b = np.count_nonzero(np.abs(draws[:, 0] - points[0]) >= abs(points[0]))
    assert made.p[0] == pytest.approx((b + 1) / 4_001)
    assert made.p[1] == Undefined("the draws do not vary")
    assert (made.family, made.excluded) == (1, (1,))
    with pytest.raises(DataError, match="do not fit"):
        max_t(points=points, draws=draws[:, :1])


def test_max_t_errs_at_most_at_its_level_under_no_difference() -> None:
    wrong = 0
    for seed in range(40):
        points, draws = drawn(np.random.default_rng(seed).normal(0, 1, (60, 5)), seed)
        wrong += min(value for value in max_t(points=points, draws=draws).p if isinstance(value, float)) <= 0.05
    assert wrong <= 6  # 0.05 expected; the bootstrap's t is a little narrow at 60 cases


def test_copies_share_their_place_in_the_confidence_set() -> None:
    values = np.random.default_rng(6).gamma(2, 0.05, (50, 3))
    values[:, 2] = values[:, 0]
    points, draws = drawn(values)
    made = model_confidence_set(losses=points, draws=draws, n_clusters=50)
    assert isinstance(made, ConfidenceSet)
    assert made.copies == ((2, 0),)
    assert made.p[2] == made.p[0]
    assert len(made.path) == 2


def test_an_arm_worse_by_a_constant_leaves_first_and_few_clusters_are_flagged() -> None:
    values = np.random.default_rng(7).gamma(2, 0.05, (12, 2))
    values[:, 1] = values[:, 0] + 0.01
    points, draws = drawn(values)
    made = model_confidence_set(losses=points, draws=draws, n_clusters=12)
    assert isinstance(made, ConfidenceSet)
    assert made.included == (0,)
    assert made.p == (1.0, 1 / 4_001)
    assert made.flags == ("few_clusters",)
    assert isinstance(model_confidence_set(losses=points, draws=draws, n_clusters=1), Undefined)
    with pytest.raises(DataError, match="size"):
        model_confidence_set(losses=points, draws=draws, n_clusters=12, size=1.0)
    with pytest.raises(DataError, match="do not fit"):
        model_confidence_set(losses=points[:1], draws=draws, n_clusters=12)


def test_one_arm_is_its_own_confidence_set() -> None:
    made = model_confidence_set(losses=np.array([1.0]), draws=np.ones((2, 1)), n_clusters=30)
    assert isinstance(made, ConfidenceSet)
    assert made.included == (0,)


@settings(max_examples=50, deadline=None)
@given(st.floats(-0.05, 0.05), st.floats(0.001, 0.05), st.integers(2, 300))
def test_equivalence_is_the_90_percent_interval_within_the_margin(point: float, se: float, groups: int) -> None:
    made = equivalence(point=point, se=se, n_clusters=groups, margin=0.03)
    assert isinstance(made, Equivalence)
    assert isinstance(made.p, float)
    if abs(made.p - 0.05) > 1e-6:
        assert made.equivalent == (made.low > -0.03 and made.high < 0.03)


def test_scipy_agrees_on_two_one_sided_tests() -> None:
    from scipy import stats  # noqa: PLC0415 - an oracle, slow to load

    d = np.random.default_rng(8).normal(0.01, 0.1, 50)
    test = cluster_t(differences=d, clusters=np.arange(50))
    made = equivalence(point=test.mean, se=test.se, n_clusters=50, margin=0.05)
    assert isinstance(made, Equivalence)
    above = stats.ttest_1samp(d, -0.05, alternative="greater").pvalue
    below = stats.ttest_1samp(d, 0.05, alternative="less").pvalue
    assert made.p == pytest.approx(max(above, below))


def test_equivalence_without_variation_or_clusters() -> None:
    same = equivalence(point=0.0, se=0.0, n_clusters=30, margin=0.01)
    assert isinstance(same, Equivalence)
    assert (same.equivalent, same.p) == (True, Undefined("nothing varies"))
    assert isinstance(equivalence(point=0.0, se=0.1, n_clusters=1, margin=0.01), Undefined)
    assert equivalence(point=0.0, se=Undefined("x"), n_clusters=1, margin=0.01) == Undefined("x")
    with pytest.raises(DataError, match="margin"):
        equivalence(point=0.0, se=0.1, n_clusters=30, margin=0.0)
    with pytest.raises(DataError, match="standard error"):
        equivalence(point=0.0, se=-0.1, n_clusters=30, margin=0.1)
