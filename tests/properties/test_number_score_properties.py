"""Scores of numbers and ratios: propriety, invariance, bounds, and closed forms equal to what they abbreviate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from consilience.core.answers import LEVELS
from consilience.core.undefined import Undefined
from consilience.scoring.crps import crps_ensemble, crps_reconstructed
from consilience.scoring.equity import VerticalEquity
from consilience.scoring.interval import covered, interval_score
from consilience.scoring.law import reconstruct
from consilience.scoring.pit import pit, pit_bins
from consilience.scoring.point import FloatArray
from consilience.scoring.quantile import pinball, wis5
from consilience.scoring.ratio import PriceRelatedBias
from consilience.scoring.summaries import clopper_pearson, share_clustered, summarise_points, summarise_ratios, wilson

NUMBER = st.floats(-50, 50).map(lambda x: round(x, 3))
ROW = st.lists(NUMBER, min_size=5, max_size=5).map(lambda row: np.sort(np.array([row])))
PRICE = st.integers(1_000, 10_000_000).map(float)
SALES = st.lists(st.tuples(PRICE, st.floats(0.3, 3.0)), min_size=3, max_size=80)

HALVINGS = np.unique([0.0, *(2.0 ** -np.arange(19)), *(1 - 2.0 ** -np.arange(19))])
"""Shares of a piece, denser towards its ends: a tail is steep beside its knot, however far the outcome."""


def columns(sales: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    price, ratio = np.array(sales).T
    return price * ratio, price


@given(row=ROW, y=NUMBER)
def test_crps_is_positive_and_equals_numeric_integration(row: FloatArray, y: float) -> None:
    made = crps_reconstructed(quantiles=row, outcome=np.array([y]))
    assert made.score[0] > 0
    assert made.point_mass[0] == (row[0, 0] == row[0, -1])
    if made.point_mass[0]:
        assert made.score[0] == pytest.approx(abs(row[0, 0] - y), abs=1e-4)
        return
    knots = np.unique(np.append(row[0], y))
    down, up = (8 * (row[0, i + 1] - row[0, i]) / (ndtri(LEVELS[i + 1]) - ndtri(LEVELS[i])) for i in (0, 3))
    edges = np.unique([knots[0] - down, *knots, knots[-1] + up])  # eight standard deviations of either tail
    nodes, weights = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for a, b in itertools.pairwise(edges):
        ends = a + (b - a) * HALVINGS
        half = np.diff(ends)[:, None] / 2
        u = (ends[:-1, None] + (nodes + 1) * half).ravel()
        cdf = reconstruct(quantiles=np.repeat(row, u.size, axis=0)).cdf(outcome=u)
        total += float((half * weights).ravel() @ (cdf - (u >= y)) ** 2)
    assert made.score[0] == pytest.approx(total, rel=1e-6, abs=1e-9)


@given(row=ROW, y=NUMBER, shift=NUMBER, scale=st.floats(0.5, 4))
def test_scores_move_with_their_unit(row: FloatArray, y: float, shift: float, scale: float) -> None:
    outcome = np.array([y])
    moved, at = shift + scale * row, shift + scale * outcome
    if row[0, 0] < row[0, -1]:
        first = crps_reconstructed(quantiles=row, outcome=outcome).score
        assert crps_reconstructed(quantiles=moved, outcome=at).score == pytest.approx(scale * first, rel=1e-7, abs=1e-6)
    assert wis5(quantiles=moved, outcome=at).score == pytest.approx(
        scale * wis5(quantiles=row, outcome=outcome).score, rel=1e-7, abs=1e-6
    )


@given(row=ROW, y=NUMBER)
def test_wis_is_half_interval_scores_and_twice_pinball(row: FloatArray, y: float) -> None:
    outcome = np.array([y])
    made = wis5(quantiles=row, outcome=outcome)
    twice = [2 * pinball(quantile=row[:, i], outcome=outcome, level=level) for i, level in enumerate(LEVELS)]
    assert made.score == pytest.approx(np.mean(twice, axis=0), rel=1e-9, abs=1e-12)
    parts = 0.5 * np.abs(outcome - row[:, 2])
    for low, high, alpha in ((0, 4, 0.1), (1, 3, 0.5)):
        parts = parts + alpha / 2 * interval_score(lower=row[:, low], upper=row[:, high], outcome=outcome, alpha=alpha)
    assert made.score == pytest.approx(parts / 2.5, rel=1e-9, abs=1e-12)
    assert min(made.dispersion[0], made.overprediction[0], made.underprediction[0]) >= 0


@settings(max_examples=60)
@given(sample=st.lists(NUMBER, min_size=1, max_size=60), other=ROW)
def test_no_quantiles_score_a_sample_better_than_its_own(sample: list[float], other: FloatArray) -> None:
    y = np.array(sample)
    own = np.array([[np.quantile(y, level, method="inverted_cdf") for level in LEVELS]])
    for i, level in enumerate(LEVELS):
        best = pinball(quantile=np.full(y.size, own[0, i]), outcome=y, level=level).mean()
        assert best <= pinball(quantile=np.full(y.size, other[0, i]), outcome=y, level=level).mean() + 1e-9
    best = wis5(quantiles=np.repeat(own, y.size, axis=0), outcome=y).score.mean()
    assert best <= wis5(quantiles=np.repeat(other, y.size, axis=0), outcome=y).score.mean() + 1e-9


@settings(max_examples=60)
@given(mean=st.floats(-2, 2), sd=st.floats(0.1, 5))
def test_the_true_law_has_the_best_expected_crps(mean: float, sd: float) -> None:
    y = ndtri((np.arange(2000) + 0.5) / 2000)  # a standard normal outcome
    stated = mean + sd * ndtri(np.array([LEVELS]))
    right = crps_reconstructed(quantiles=np.tile(ndtri(np.array(LEVELS)), (y.size, 1)), outcome=y).score.mean()
    assert right <= crps_reconstructed(quantiles=np.repeat(stated, y.size, axis=0), outcome=y).score.mean() + 1e-9


@given(members=st.lists(NUMBER, min_size=2, max_size=12), y=NUMBER)
def test_ensemble_score_equals_its_double_sum(members: list[float], y: float) -> None:
    x = np.array(members)
    gaps = np.abs(x[:, None] - x).sum() / 2
    for estimator, pairs in (("energy", x.size**2), ("fair", x.size * (x.size - 1))):
        made = crps_ensemble(members=x[None], outcome=np.array([y]), estimator=estimator)  # type: ignore[arg-type]
        assert made[0] == pytest.approx(np.abs(x - y).mean() - gaps / pairs, rel=1e-9, abs=1e-9)


@given(row=ROW, ys=st.lists(NUMBER, min_size=2, max_size=20))
def test_pit_rises_with_the_outcome_and_agrees_with_the_bins(row: FloatArray, ys: list[float]) -> None:
    y = np.sort(np.array([*ys, *row[0]]))
    rows = np.repeat(row, y.size, axis=0)
    closed = pit(quantiles=rows, outcome=y)
    drawn = pit(quantiles=rows, outcome=y, rng=np.random.default_rng(1))
    assert (np.diff(closed) >= -1e-12).all()
    assert ((drawn >= 0) & (drawn <= closed + 1e-12)).all()
    bins = pit_bins(quantiles=rows, outcome=y)
    edges = np.array([0.0, *LEVELS, 1.0])
    assert (closed >= edges[bins] - 1e-9).all()
    inside = covered(lower=rows[:, 0], upper=rows[:, 4], outcome=y)
    assert inside[(bins >= 1) & (bins <= 4)].all()
    assert not inside[bins == 5].any()


@given(sales=SALES, unit=st.floats(1e-3, 1e3), level=st.floats(0.2, 5))
def test_ratio_statistics_know_no_unit_and_no_level(
    sales: list[tuple[float, float]], unit: float, level: float
) -> None:
    estimate, price = columns(sales)
    first = summarise_ratios(estimate=estimate, price=price)
    for other in (
        summarise_ratios(estimate=unit * estimate, price=unit * price),
        summarise_ratios(estimate=level * estimate, price=price),
    ):
        assert other.cod == pytest.approx(first.cod, rel=1e-6, abs=1e-9)
        assert other.prd == pytest.approx(first.prd, rel=1e-9)
        assert other.concentration.kakwani == pytest.approx(first.concentration.kakwani, rel=1e-6, abs=1e-9)
        if isinstance(first.prb, PriceRelatedBias) and np.ptp(np.log(price)) > 1e-3:
            assert isinstance(other.prb, PriceRelatedBias)
            assert other.prb.value == pytest.approx(first.prb.value, rel=1e-5, abs=1e-7)
    assert first.cod >= 0
    assert isinstance(first.vei, Undefined if len(sales) < 20 else VerticalEquity)


@given(sales=SALES, c=st.floats(0.2, 5))
def test_a_constant_share_of_every_price_is_even(sales: list[tuple[float, float]], c: float) -> None:
    _, price = columns(sales)
    made = summarise_ratios(estimate=c * price, price=price)
    assert made.cod == pytest.approx(0, abs=1e-9)
    assert made.prd == pytest.approx(1)
    assert made.concentration.kakwani == pytest.approx(0, abs=1e-9)
    if isinstance(made.prb, PriceRelatedBias):
        assert made.prb.value == pytest.approx(0, abs=1e-6)


@given(sales=SALES)
def test_point_summaries_keep_their_bounds(sales: list[tuple[float, float]]) -> None:
    estimate, price = columns(sales)
    made = summarise_points(estimate=estimate, truth=price)
    assert 0 <= made.ppe10 <= made.ppe20 <= 1
    assert abs(made.bias) <= made.mae_log + 1e-12
    assert made.mae_log <= made.rmse_log + 1e-12
    for explained in (made.r2, made.r2_log):
        assert isinstance(explained, Undefined) or explained <= 1


@given(
    hits=st.lists(st.booleans(), min_size=1, max_size=120),
    labels=st.integers(1, 60),
    level=st.floats(0.5, 0.99),
)
def test_shares_lie_in_intervals_that_lie_in_bounds(hits: list[bool], labels: int, level: float) -> None:
    found = np.array(hits)
    clusters = np.arange(found.size) * 7 % labels
    made = share_clustered(hits=found, clusters=clusters, level=level)
    assert 1 <= made.design_effect <= made.n + 1e-9
    assert made.n_effective * made.design_effect == pytest.approx(made.n)
    for low, high in (
        wilson(k=made.k, n=made.n, level=level),
        clopper_pearson(k=made.k, n=made.n, level=level),
        (made.low, made.high),
    ):
        if low is None or high is None:
            assert made.n_clusters == 1
            continue
        assert -1e-12 <= low <= made.value + 1e-9
        assert made.value - 1e-9 <= high <= 1 + 1e-12
    plain = wilson(k=made.k, n=made.n, level=level)
    if made.low is not None and made.high is not None:
        assert made.high - made.low >= plain[1] - plain[0] - 1e-9
