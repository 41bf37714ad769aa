from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from consilience.core.answers import LEVELS
from consilience.errors import DataError
from consilience.scoring.crps import POINT_MASS_SD, crps_ensemble, crps_lognormal, crps_normal, crps_reconstructed
from consilience.scoring.law import reconstruct
from consilience.scoring.pit import pit, pit_bins, pit_histogram
from consilience.scoring.quantile import wis5

SCORES = ndtri(np.array(LEVELS))
ONE, BAD = np.array([1.0]), np.array([np.nan])
ROW = np.array([[1.0, 2, 3, 4, 5]])


def test_a_normal_law_is_given_back_far_into_its_tails() -> None:
    mean, sd = np.array([12.5, 0.0, -3.0, 12.5]), np.array([0.2, 1.0, 5.0, 0.2])
    y = np.array([12.9, -6.0, 30.0, 12.5])
    q = mean[:, None] + sd[:, None] * SCORES
    made = crps_reconstructed(quantiles=q, outcome=y)
    assert made.score == pytest.approx(crps_normal(mean=mean, sd=sd, outcome=y), rel=1e-10)
    assert pit(quantiles=q, outcome=y) == pytest.approx(ndtr((y - mean) / sd), rel=1e-9)


def test_other_levels_serve_too() -> None:
    levels = (0.1, 0.5, 0.9)
    q = 2.0 + 0.5 * ndtri(np.array([levels]))
    made = crps_reconstructed(quantiles=q, outcome=ONE, levels=levels)
    assert made.score == pytest.approx(crps_normal(mean=np.array([2.0]), sd=np.array([0.5]), outcome=ONE), rel=1e-10)


def test_five_level_interval_score_is_not_the_crps() -> None:
    y = np.random.default_rng(1).standard_normal(20_000)
    q = np.tile(SCORES, (y.size, 1))
    assert wis5(quantiles=q, outcome=y).score.mean() == pytest.approx(0.496, abs=0.006)
    assert crps_reconstructed(quantiles=q, outcome=y).score.mean() == pytest.approx(0.564, abs=0.006)


def test_a_point_mass_is_scored_with_the_least_width_and_flagged() -> None:
    q = np.vstack([np.full((2, 5), 12.5), 12.5 + SCORES])
    made = crps_reconstructed(quantiles=q, outcome=np.array([12.5, 12.8, 12.5]))
    assert made.point_mass.tolist() == [True, True, False]
    by_law = crps_normal(mean=np.full(2, 12.5), sd=np.full(2, POINT_MASS_SD), outcome=np.array([12.5, 12.8]))
    assert made.score[:2] == pytest.approx(by_law, rel=1e-6)
    assert made.score[1] == pytest.approx(0.3, abs=1e-4)


def test_atoms_in_the_middle_and_at_the_ends() -> None:
    inner = np.array([[0.0, 1, 1, 1, 2]])
    law = reconstruct(quantiles=inner)
    at = np.array([1.0])
    assert law.cdf(outcome=at, closed=False).tolist() == pytest.approx([0.25])
    assert law.cdf(outcome=at).tolist() == pytest.approx([0.75])
    outer = np.array([[0.0, 0, 1, 2, 2]])  # a quarter of the mass below 0.25 and above 0.75 sits on each end
    for y, left, right in ((-0.5, 0.0, 0.0), (0.0, 0.0, 0.25), (1.0, 0.5, 0.5), (2.0, 0.75, 1.0), (2.5, 1.0, 1.0)):
        outcome = np.array([y])
        closed = reconstruct(quantiles=outer).cdf(outcome=outcome)
        assert closed.tolist() == pytest.approx([right]), y
        assert reconstruct(quantiles=outer).cdf(outcome=outcome, closed=False).tolist() == pytest.approx([left]), y
    inside, beyond = (crps_reconstructed(quantiles=outer, outcome=np.array([y])).score[0] for y in (2.0, 3.0))
    assert beyond - inside == pytest.approx(1.0)


def test_widths_too_small_for_a_slope_are_atoms() -> None:
    q = np.array([[0.0, 5e-324, 1, 2, 3]])
    made = crps_reconstructed(quantiles=q, outcome=np.array([-1.0]))
    assert np.isfinite(made.score).all()
    assert pit(quantiles=q, outcome=np.array([-1.0])).tolist() == [0.0]


def test_randomised_pit_moves_outcomes_on_atoms_only() -> None:
    q = np.array([[0.0, 1, 1, 1, 2]] * 400)
    y = np.array([1.0, 0.5] * 200)
    drawn = pit(quantiles=q, outcome=y, rng=np.random.default_rng(5))
    assert (drawn[1::2] == pit(quantiles=q, outcome=y)[1::2]).all()
    assert drawn[::2].min() == pytest.approx(0.25, abs=0.02)
    assert drawn[::2].max() == pytest.approx(0.75, abs=0.02)
    assert (drawn == pit(quantiles=q, outcome=y, rng=np.random.default_rng(5))).all()


def test_histogram_of_right_quantiles_lies_in_its_band_as_often_as_stated() -> None:
    rng, mass = np.random.default_rng(2), (0.05, 0.2, 0.25, 0.25, 0.2, 0.05)
    inside = []
    for _ in range(200):
        bins = rng.choice(6, size=300, p=mass)
        made = pit_histogram(bins=bins, rng=rng, draws=500)
        assert made.mass == pytest.approx(mass)
        assert sum(made.counts) == made.n == 300
        inside.append(all(a <= b <= c for a, b, c in zip(made.low, made.density, made.high, strict=True)))
    assert 0.83 <= np.mean(inside) <= 0.96


def test_histogram_densities_are_not_shares() -> None:
    bins = np.repeat(np.arange(6), [5, 20, 25, 25, 20, 5])
    made = pit_histogram(bins=bins, rng=np.random.default_rng(1))
    assert made.density == pytest.approx((1,) * 6)
    overconfident = pit_histogram(bins=np.repeat([0, 5], 50), rng=np.random.default_rng(1))
    assert overconfident.density == pytest.approx((10, 0, 0, 0, 0, 10))
    assert overconfident.density[0] > overconfident.high[0]


def test_what_is_no_law_is_refused() -> None:
    for score in (crps_reconstructed, pit):
        with pytest.raises(DataError, match="cross"):
            score(quantiles=ROW[:, ::-1], outcome=ONE)
        with pytest.raises(DataError, match="do not fit"):
            score(quantiles=ROW, outcome=np.ones(2))
        with pytest.raises(DataError, match="do not fit"):
            score(quantiles=ROW[:, :4], outcome=ONE)
        with pytest.raises(DataError, match="not finite"):
            score(quantiles=ROW, outcome=BAD)
        with pytest.raises(DataError, match="increase"):
            score(quantiles=ROW[:, :2], outcome=ONE, levels=(0.5, 0.5))
    with pytest.raises(DataError, match="width"):
        crps_reconstructed(quantiles=ROW, outcome=ONE, point_mass_sd=0.0)
    with pytest.raises(DataError, match="cross"):
        pit_bins(quantiles=ROW[:, ::-1], outcome=ONE)
    with pytest.raises(DataError, match="do not fit"):
        pit_bins(quantiles=ROW, outcome=np.ones(2))


def test_named_laws_refuse_what_they_do_not_score() -> None:
    with pytest.raises(DataError, match="not positive"):
        crps_normal(mean=ONE, sd=0 * ONE, outcome=ONE)
    with pytest.raises(DataError, match="do not fit"):
        crps_normal(mean=ONE, sd=ONE, outcome=BAD)
    with pytest.raises(DataError, match="not positive"):
        crps_lognormal(mean_log=ONE, sd_log=ONE, outcome=-ONE)
    with pytest.raises(DataError, match="do not fit"):
        crps_ensemble(members=ROW, outcome=np.ones(2))
    with pytest.raises(DataError, match="do not fit"):
        crps_ensemble(members=ROW[:, :1], outcome=ONE, estimator="fair")
    assert crps_ensemble(members=ROW[:, :1], outcome=np.array([3.0])).tolist() == [2.0]


def test_histogram_refuses_what_it_cannot_count() -> None:
    rng = np.random.default_rng(1)
    for bins in (np.empty(0, dtype=np.intp), np.array([6]), np.array([-1])):
        with pytest.raises(DataError, match="bins"):
            pit_histogram(bins=bins, rng=rng)
    with pytest.raises(DataError, match="band"):
        pit_histogram(bins=np.array([1]), rng=rng, draws=0)
    with pytest.raises(DataError, match="band"):
        pit_histogram(bins=np.array([1]), rng=rng, level=1.0)
