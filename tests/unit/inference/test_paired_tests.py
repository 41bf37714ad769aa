"""Paired tests against SciPy's, published figures and brute force, and the cases without a p-value."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.inference.bootstrap import analysis_rng
from consilience.inference.effective import Undefined
from consilience.inference.tests import DieboldMariano, cluster_t, diebold_mariano, sign_flip

MAIZE = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], dtype=np.float64)
"""Darwin's pairs of maize, in eighths of an inch (Fisher 1935)."""


def test_fishers_maize_counted_in_full() -> None:
    (made,) = sign_flip(differences=MAIZE[:, None], clusters=np.arange(15))
    assert made.exact
    assert made.p == 2 * 863 / 32768


def test_scipy_agrees_on_every_pattern() -> None:
    from scipy import stats  # noqa: PLC0415 - an oracle, slow to load

    d = np.random.default_rng(3).normal(0.3, 1, 9)
    (made,) = sign_flip(differences=d[:, None], clusters=np.arange(9))
    oracle = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert made.p == pytest.approx(oracle.pvalue)
    both = stats.ttest_1samp(d, 0)
    plain = cluster_t(differences=d, clusters=np.arange(9))
    assert (plain.statistic, plain.p) == pytest.approx((both.statistic, both.pvalue))


def test_drawn_patterns_come_near_the_exact_share_and_are_shared_by_contrasts() -> None:
    rng = np.random.default_rng(5)
    d = rng.normal(0.25, 1, (21, 1))
    clusters = np.arange(21)
    twice = np.column_stack([d, d])
    made = sign_flip(differences=twice, clusters=clusters, rng=analysis_rng(seed=2, analysis="flip"), n_patterns=20_000)
    assert made[0] == made[1]
    assert not made[0].exact
    totals = np.zeros(1)
    for value in d[:, 0]:
        totals = np.concatenate([totals + value, totals - value])
    exact = float((np.abs(totals) >= abs(d.sum()) - 1e-12).mean())
    assert made[0].p == pytest.approx(exact, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.data())
def test_sign_flip_is_the_share_of_all_patterns_of_clusters(values: list[int], data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values)))
    d, clusters = np.array(values, dtype=np.float64) / 10, np.array(labels)
    (made,) = sign_flip(differences=d[:, None], clusters=clusters)
    sums = [round(10 * d[clusters == label].sum()) for label in sorted(set(labels))]
    patterns = [*itertools.product((1, -1), repeat=len(sums))]
    far = sum(abs(sum(s * x for s, x in zip(signs, sums, strict=True))) >= abs(sum(sums)) for signs in patterns)
    if any(values):
        assert made.p == pytest.approx(far / len(patterns))
    else:
        assert isinstance(made.p, Undefined)


def test_identical_arms_have_no_p_value() -> None:
    nothing = np.zeros(24)
    made = cluster_t(differences=nothing, clusters=np.arange(24))
    assert made.p == Undefined("every difference is 0")
    assert (made.se, made.flags) == (0.0, ("identical",))
    (flipped,) = sign_flip(differences=np.zeros((4, 1)), clusters=np.arange(4))
    assert flipped.p == Undefined("every difference is 0")


def test_one_cluster_tells_nothing_and_a_constant_difference_has_no_p_value() -> None:
    alone = cluster_t(differences=np.array([0.1, 0.3]), clusters=np.zeros(2))
    assert isinstance(alone.se, Undefined)
    assert isinstance(alone.p, Undefined)
    still = cluster_t(differences=np.full(30, 0.1), clusters=np.arange(30))
    assert still.se == 0
    assert still.p == Undefined("the difference does not vary between clusters")


@pytest.mark.parametrize(("groups", "flags"), [(9, ("descriptive_only",)), (19, ("few_clusters",)), (20, ())])
def test_few_clusters_are_flagged(groups: int, flags: tuple[str, ...]) -> None:
    d = np.random.default_rng(1).normal(size=40)
    assert cluster_t(differences=d, clusters=np.arange(40) % groups).flags == flags


def test_a_negative_variance_falls_back_on_bartlett_and_says_so() -> None:
    d = np.tile([1.0, -1.0], 20) + 0.1
    made = diebold_mariano(differences=d, horizon=2, kernel="acf")
    assert isinstance(made, DieboldMariano)
    assert made.flags == ("negative_variance",)
    assert made.kernel == "bartlett"
    other = diebold_mariano(differences=d, horizon=2)
    assert isinstance(other, DieboldMariano)
    assert (made.statistic, made.p) == (other.statistic, other.p)


def test_long_series_may_use_the_acf_kernel() -> None:
    d = np.random.default_rng(2).normal(0.1, 1, 200)
    made = diebold_mariano(differences=d, horizon=3, kernel="acf")
    assert isinstance(made, DieboldMariano)
    assert (made.kernel, made.flags) == ("acf", ())


def test_unusable_input_is_refused() -> None:
    d = np.array([0.1, 0.2])
    with pytest.raises(DataError, match="do not fit"):
        cluster_t(differences=d, clusters=np.arange(3))
    with pytest.raises(DataError, match="one difference per row"):
        cluster_t(differences=d[:, None], clusters=np.arange(2))
    with pytest.raises(DataError, match="not finite"):
        sign_flip(differences=np.array([[np.nan]]), clusters=np.arange(1))
    with pytest.raises(DataError, match="too many"):
        sign_flip(differences=np.ones((21, 1)), clusters=np.arange(21))
    for horizon in (0, 2):
        with pytest.raises(DataError, match="horizon"):
            diebold_mariano(differences=d, horizon=horizon)
    with pytest.raises(DataError, match="loss differences"):
        diebold_mariano(differences=d[:1])
