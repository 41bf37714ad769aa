from __future__ import annotations

import numpy as np
import pytest

from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.inference.bootstrap import analysis_rng, cluster_weights
from consilience.scoring.equity import VerticalEquity, concentration, vertical_equity
from consilience.scoring.ratio import PriceRelatedBias, beyond_iqr, cod, prb, prd, ratio, ratio_draws, scorable
from consilience.scoring.summaries import share, share_clustered, summarise_points, summarise_ratios


def a_market(n: int, *, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    price = np.exp(rng.normal(12.5, 0.4, n))
    return price * np.exp(rng.normal(-0.05, 0.12, n)), price


def test_draws_equal_the_statistics_of_repeated_rows() -> None:
    estimate, price = a_market(40)
    clusters = np.random.default_rng(2).integers(0, 9, 40)
    weights = cluster_weights(clusters=clusters, n_resamples=30, rng=analysis_rng(seed=1, analysis="x"))
    made = ratio_draws(estimate=estimate, price=price, clusters=clusters, weights=weights)
    codes = np.unique(clusters, return_inverse=True)[1]
    assert not isinstance(made.prb, Undefined)
    for b, draw in enumerate(weights):
        said, paid = np.repeat(estimate, draw[codes]), np.repeat(price, draw[codes])
        plain = summarise_ratios(estimate=said, price=paid)
        assert isinstance(plain.prb, PriceRelatedBias)
        assert made.median[b] == plain.median
        assert made.cod[b] == pytest.approx(plain.cod, rel=1e-12)
        assert made.prd[b] == pytest.approx(plain.prd, rel=1e-12)
        assert made.prb[b] == pytest.approx(plain.prb.value, rel=1e-9)


def test_a_resample_of_one_sale_leaves_the_bias_undefined() -> None:
    estimate, price = a_market(3)
    made = ratio_draws(
        estimate=estimate, price=price, clusters=np.arange(3), weights=np.array([[1, 1, 1], [0, 0, 3], [2, 1, 0]])
    )
    assert made.prb == Undefined("regressor has zero variance in 1 of 3 resamples")
    assert made.cod[1] == 0


def test_draws_refuse_weights_of_other_clusters() -> None:
    estimate, price = a_market(4)
    labels = np.array([1, 1, 2, 2])
    for weights in (np.ones((2, 3), dtype=int), np.ones(2, dtype=int)):
        with pytest.raises(DataError, match="clusters"):
            ratio_draws(estimate=estimate, price=price, clusters=labels, weights=weights)
    with pytest.raises(DataError, match="no sale"):
        ratio_draws(estimate=estimate, price=price, clusters=labels, weights=np.zeros((1, 2), dtype=int))
    with pytest.raises(DataError, match="no resamples"):
        ratio_draws(estimate=estimate, price=price, clusters=labels, weights=np.zeros((0, 2), dtype=int))


def test_sales_without_a_ratio_are_counted_and_outliers_declared() -> None:
    estimate, price = a_market(200)
    estimate[:3] = (0.0, np.nan, -5.0)
    price[3] = 0.0
    estimate[4] *= 50
    assert int(scorable(estimate=estimate, price=price).sum()) == 196
    plain = summarise_ratios(estimate=estimate, price=price)
    cut = summarise_ratios(estimate=estimate, price=price, trim=3.0)
    assert (plain.n, plain.unscorable, plain.trimmed, plain.trim) == (196, 4, 0, None)
    assert (cut.n, cut.unscorable, cut.trimmed, cut.trim) == (195, 4, 1, 3.0)
    assert cut.cod < plain.cod
    with pytest.raises(DataError, match="at least one sale"):
        summarise_ratios(estimate=np.zeros(2), price=np.ones(2))


def test_bias_has_the_sign_of_the_tilt() -> None:
    _, price = a_market(300)
    for tilt, sign in ((0.9, -1), (1.1, 1)):
        made = summarise_ratios(estimate=price**tilt, price=price)
        assert isinstance(made.prb, PriceRelatedBias)
        assert isinstance(made.vei, VerticalEquity)
        assert not isinstance(made.concentration.modified, Undefined)
        assert np.sign(made.prb.value) == np.sign(made.vei.value) == np.sign(made.concentration.kakwani) == sign
        assert made.prb.low < made.prb.value < made.prb.high
        assert (made.prd < 1) == (sign > 0)
        assert (made.concentration.modified > 1) == (sign > 0)
        assert made.vei.separate
        assert np.sign(made.vei.significance) == sign


@pytest.mark.parametrize(("n", "groups"), [(20, 2), (50, 2), (51, 4), (500, 4), (501, 10)])
def test_number_of_groups(n: int, groups: int) -> None:
    estimate, price = a_market(n)
    made = vertical_equity(estimate=estimate, price=price)
    assert isinstance(made, VerticalEquity)
    assert len(made.group_sizes) == groups
    assert sum(made.group_sizes) == n
    assert max(made.group_sizes) - min(made.group_sizes) <= 1
    assert all(low <= m <= high for m, (low, high) in zip(made.group_medians, made.group_intervals, strict=True))
    turned = vertical_equity(estimate=estimate[::-1], price=price[::-1])
    assert turned == made


def test_wide_intervals_hide_a_small_tilt() -> None:
    estimate, price = a_market(60, seed=3)
    made = vertical_equity(estimate=estimate, price=price)
    assert isinstance(made, VerticalEquity)
    assert not made.separate
    assert made.significance == 0 or np.sign(made.significance) != np.sign(made.value)


def test_what_is_undefined_says_why() -> None:
    estimate, price = a_market(19)
    assert vertical_equity(estimate=estimate, price=price) == Undefined("19 sales; at least 20 are needed")
    same = np.full(30, 100.0)
    cut = vertical_equity(estimate=same, price=same, grouping="percentile")
    assert cut == Undefined("group 2 of 2 has 0 sales, too few for a rank interval")
    assert prb(estimate=estimate[:2], price=price[:2]) == Undefined("2 sales; at least 3 are needed")
    assert concentration(estimate=same, price=same).modified == Undefined("all prices are equal")
    alone = summarise_points(estimate=np.array([90.0]), truth=np.array([100.0]))
    assert alone.spread == Undefined("one case has no spread")
    assert alone.r2 == alone.r2_log == Undefined("all truths are equal")


def test_explained_variance() -> None:
    estimate, price = a_market(100)
    made = summarise_points(estimate=estimate, truth=price)
    e, y = np.log(estimate), np.log(price)
    assert made.r2_log == pytest.approx(1 - np.var(e - y) / np.var(y) - made.bias**2 / np.var(y))
    assert made.r2 == pytest.approx(1 - np.mean((estimate - price) ** 2) / np.var(price))
    assert made.spread == pytest.approx(np.std(e - y, ddof=1))
    assert made.median_abs_log == pytest.approx(np.median(np.abs(e - y)))
    flat = summarise_points(estimate=np.full(100, price.mean()), truth=price)
    assert flat.r2 == pytest.approx(0)


def test_ratios_refuse_what_has_none() -> None:
    one = np.array([1.0])
    with pytest.raises(DataError, match="row 1"):
        ratio(estimate=np.array([1.0, 0.0]), price=np.ones(2))
    with pytest.raises(DataError, match="prices"):
        scorable(estimate=one, price=np.ones(2))
    with pytest.raises(DataError, match="at least one sale"):
        prd(estimate=np.empty(0), price=np.empty(0))
    for bad in (np.empty(0), np.array([np.inf]), np.array([0.0])):
        with pytest.raises(DataError, match="ratios"):
            cod(ratio=bad)
    with pytest.raises(DataError, match="outliers"):
        beyond_iqr(ratio=one, multiple=-1.0)
    for level in (0.0, 1.0):
        with pytest.raises(DataError, match="level"):
            prb(estimate=one, price=one, level=level)
        with pytest.raises(DataError, match="level"):
            vertical_equity(estimate=one, price=one, level=level)


def test_cases_of_their_own_give_the_plain_interval() -> None:
    hits = np.arange(200) % 10 > 0
    plain, made = share(hits=hits), share_clustered(hits=hits, clusters=np.arange(200))
    assert made.design_effect == pytest.approx(200 / 199)
    assert (made.low, made.high) == pytest.approx((plain.low, plain.high), abs=2e-4)
    assert made.flags == ()


def test_copies_count_once() -> None:
    once = np.arange(40) % 4 > 0
    made = share_clustered(hits=np.repeat(once, 5), clusters=np.repeat(np.arange(40), 5))
    alone = share_clustered(hits=once, clusters=np.arange(40))
    assert (made.low, made.high) == pytest.approx((alone.low, alone.high))
    assert made.n_effective == pytest.approx(alone.n_effective)


@pytest.mark.parametrize(
    ("groups", "flags"), [(1, ("no_interval",)), (9, ("descriptive_only",)), (19, ("few_clusters",)), (20, ())]
)
def test_few_clusters_are_flagged(groups: int, flags: tuple[str, ...]) -> None:
    hits = np.arange(60) % 3 > 0
    made = share_clustered(hits=hits, clusters=np.arange(60) % groups)
    assert made.flags == flags
    if groups == 1:
        assert made.low is None
        assert made.high is None
    else:
        assert made.low is not None
        assert made.high is not None
        assert made.low < made.value < made.high


def test_unanimous_cases_take_dependence_to_be_complete() -> None:
    made = share_clustered(hits=np.ones(100, dtype=bool), clusters=np.repeat(np.arange(25), 4))
    assert made.flags == ("all_alike",)
    assert made.n_effective == 25
    assert made.high == 1.0
    assert made.low == pytest.approx(share(hits=np.ones(25, dtype=bool)).low)
    with pytest.raises(DataError, match="label"):
        share_clustered(hits=np.ones(3, dtype=bool), clusters=np.arange(2))
    with pytest.raises(DataError, match="0 of 0"):
        share_clustered(hits=np.empty(0, dtype=bool), clusters=np.empty(0, dtype=int))


def test_clustered_intervals_cover_where_plain_ones_do_not() -> None:
    rng = np.random.default_rng(11)
    towns = np.repeat(np.arange(30), 10)
    held = {"plain": 0, "clustered": 0}
    for _ in range(400):
        hits = rng.random(towns.size) < rng.beta(2.4, 0.6, 30)[towns]  # 0.8 on average, correlation 0.25
        plain, made = share(hits=hits), share_clustered(hits=hits, clusters=towns)
        assert made.low is not None
        assert made.high is not None
        held["plain"] += plain.low <= 0.8 <= plain.high
        held["clustered"] += made.low <= 0.8 <= made.high
    assert held["plain"] / 400 < 0.80
    assert 0.92 <= held["clustered"] / 400 <= 0.98
