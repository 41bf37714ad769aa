from __future__ import annotations

import numpy as np
import pytest

from consilience.errors import DataError
from consilience.scoring.interval import covered, interval_score, width
from consilience.scoring.point import absolute_percentage_error, log_error, within
from consilience.scoring.quantile import pinball, wis5
from consilience.scoring.summaries import clopper_pearson, share, summarise_points, wilson

# The worked example of scoringutils: three outcomes with quantiles at .1, .25, .5, .75, .9.
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
QUANTILES = np.array([[-1.0, 0, 1, 2, 3], [-2, 1, 2, 2, 4], [-2, 0, 3, 3, 4]])
OUTCOMES = np.array([1.0, -15, 22])

# Newcombe 1998, table I: successes, cases, Wilson, Clopper-Pearson.
NEWCOMBE = [
    (81, 263, (0.2552885198782742, 0.36620957698280004), (0.25273674558527126, 0.3676219226013514)),
    (15, 148, (0.06238639953073628, 0.16048724172330803), (0.05784401008344857, 0.161650490349479)),
    (0, 20, (0.0, 0.1611251580528194), (0.0, 0.16843347098308534)),
    (1, 29, (0.006113214292762667, 0.17175521879320294), (0.000872646883579922, 0.17764429548872293)),
]


def test_published_weighted_interval_scores() -> None:
    made = wis5(quantiles=QUANTILES, outcome=OUTCOMES, levels=LEVELS)
    assert made.score == pytest.approx(np.array([0.36, 15.34, 19.14]), rel=1e-9)


def test_wis_is_the_mean_of_twice_the_pinball_and_the_sum_of_its_parts() -> None:
    rng = np.random.default_rng(4)
    q, y = np.sort(rng.standard_normal((200, 5)), axis=1), rng.standard_normal(200) * 2
    made = wis5(quantiles=q, outcome=y)
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    losses = [2 * pinball(quantile=q[:, i], outcome=y, level=level) for i, level in enumerate(levels)]
    assert made.score == pytest.approx(np.mean(losses, axis=0), rel=1e-12)
    assert made.dispersion + made.overprediction + made.underprediction == pytest.approx(made.score)
    assert (made.overprediction[y > q[:, 4]] == 0).all()
    assert (made.underprediction[y < q[:, 0]] == 0).all()
    assert min(made.dispersion.min(), made.overprediction.min(), made.underprediction.min()) >= 0
    mass = wis5(quantiles=np.full((1, 5), 3.0), outcome=np.array([1.0]))
    assert mass.dispersion[0] == 0
    assert mass.score[0] == pytest.approx(2.0)


def test_interval_scores() -> None:
    made = interval_score(lower=np.array([0.0, 1, 0]), upper=np.array([2.0, 2, 3]), outcome=OUTCOMES, alpha=0.5)
    assert made.tolist() == [2.0, 65.0, 79.0]


def test_pinball_vector() -> None:
    made = pinball(quantile=np.array([8.0, 10, 13]), outcome=np.full(3, 10.0), level=0.9)
    assert made == pytest.approx(np.array([1.8, 0, 0.3]), rel=1e-9)


def test_point_vector() -> None:
    estimate, truth = np.array([110.0, 89, 100, 121, 130]), np.full(5, 100.0)
    made = summarise_points(estimate=estimate, truth=truth)
    assert made.n == 5
    assert made.mdape == pytest.approx(0.11, rel=1e-9)
    assert (made.ppe10, made.ppe20) == (0.4, 0.6)
    assert made.rmse_log == pytest.approx(0.15989702278179363, rel=1e-9)
    assert made.bias == pytest.approx(0.08635219752490284, rel=1e-9)
    assert made.mae_log == pytest.approx(np.mean(np.abs(np.log(estimate / 100))), rel=1e-9)


def test_the_edge_of_a_band_counts() -> None:
    edge = absolute_percentage_error(estimate=np.array([1.1 * 100]), truth=np.array([100.0]))
    assert edge[0] > 0.10
    assert within(ape=edge, limit=0.10).tolist() == [True]
    assert within(ape=np.array([0.1000001]), limit=0.10).tolist() == [False]


def test_an_even_sample_averages_the_two_middle_errors() -> None:
    made = summarise_points(estimate=np.array([110.0, 130]), truth=np.array([100.0, 100]))
    assert made.mdape == pytest.approx(0.2)


@pytest.mark.parametrize(("k", "n", "by_wilson", "exact"), NEWCOMBE)
def test_published_share_intervals(k: int, n: int, by_wilson: tuple[float, float], exact: tuple[float, float]) -> None:
    assert wilson(k=k, n=n) == pytest.approx(by_wilson, rel=1e-9, abs=1e-12)
    assert clopper_pearson(k=k, n=n) == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_share_intervals_mirror() -> None:
    assert wilson(k=20, n=20)[1] == 1.0
    assert clopper_pearson(k=20, n=20)[1] == 1.0
    assert wilson(k=20, n=20)[0] == pytest.approx(1 - wilson(k=0, n=20)[1])


def test_coverage_is_of_the_closed_interval() -> None:
    lower, upper = np.array([1.0, 1, 1]), np.array([2.0, 2, 1])
    hits = covered(lower=lower, upper=upper, outcome=np.array([1.0, 2.1, 1.0]))
    made = share(hits=hits)
    assert (made.value, made.k, made.n) == (2 / 3, 2, 3)
    assert made.low < 2 / 3 < made.high
    assert width(lower=lower, upper=upper).tolist() == [1.0, 1.0, 0.0]


def test_scores_refuse_what_is_no_answer() -> None:
    one, bad = np.array([1.0]), np.array([np.nan])
    for score in (log_error, absolute_percentage_error):
        with pytest.raises(DataError, match="row 0"):
            score(estimate=bad, truth=one)
        with pytest.raises(DataError, match="truth in row 0"):
            score(estimate=one, truth=-one)
        with pytest.raises(DataError, match="truths"):
            score(estimate=one, truth=np.ones(2))
    with pytest.raises(DataError, match="level"):
        pinball(quantile=one, outcome=one, level=1.0)
    with pytest.raises(DataError, match="not finite"):
        pinball(quantile=bad, outcome=one, level=0.5)
    with pytest.raises(DataError, match="do not fit"):
        wis5(quantiles=QUANTILES, outcome=one)
    with pytest.raises(DataError, match="cross"):
        wis5(quantiles=QUANTILES[:, ::-1], outcome=OUTCOMES)
    with pytest.raises(DataError, match="symmetric"):
        wis5(quantiles=QUANTILES, outcome=OUTCOMES, levels=(0.1, 0.2, 0.5, 0.75, 0.9))
    with pytest.raises(DataError, match="above its upper"):
        covered(lower=one + 1, upper=one, outcome=one)
    with pytest.raises(DataError, match="not finite"):
        width(lower=bad, upper=one)
    with pytest.raises(DataError, match="alpha"):
        interval_score(lower=one, upper=one, outcome=one, alpha=0.0)
    with pytest.raises(DataError, match="no cases"):
        summarise_points(estimate=np.empty(0), truth=np.empty(0))
    for interval in (wilson, clopper_pearson):
        for k, n in ((1, 0), (-1, 5), (6, 5)):
            with pytest.raises(DataError, match="cases"):
                interval(k=k, n=n)
    with pytest.raises(DataError, match="0 of 0"):
        share(hits=np.empty(0, dtype=bool))
