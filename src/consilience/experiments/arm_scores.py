"""Scores of one arm over its answered items, each with its cluster-bootstrap interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from consilience.core.undefined import Undefined
from consilience.experiments.measures import IntervalScores, Measure, RatioScores
from consilience.experiments.predictions import QUANTILES
from consilience.inference.bootstrap import (
    Counts,
    Labels,
    analysis_rng,
    bootstrap_means,
    bootstrap_medians,
    cluster_weights,
)
from consilience.inference.intervals import difference_interval
from consilience.scoring.crps import crps_reconstructed
from consilience.scoring.equity import concentration, vertical_equity
from consilience.scoring.interval import covered, interval_score, width
from consilience.scoring.pit import pit_bins
from consilience.scoring.point import BoolArray, FloatArray, absolute_percentage_error, log_error
from consilience.scoring.quantile import wis5
from consilience.scoring.ratio import cod, prb, prd, ratio, ratio_draws
from consilience.scoring.summaries import share_clustered

BELOW: Final = "below_possible"
RATIO_RESAMPLES: Final = 2_000
"""Resamples of the ratio statistics, whose medians are taken anew in each; as many as are asked for where fewer."""


class Draws:
    """Draws of clusters for levels of one analysis: the same for all sets of equally many clusters.

    Args:
        analysis: Name of the analysis.
        n_resamples: Resamples B.
        seed: Seed of the draws.
    """

    def __init__(self, analysis: str, *, n_resamples: int, seed: int) -> None:
        self._analysis = analysis
        self._seed = seed
        self._drawn: dict[int, Counts] = {}
        self.n_resamples = n_resamples

    def weights(self, clusters: Labels) -> Counts:
        """Return how often each cluster was drawn in each resample."""
        groups = int(np.unique(clusters).size)
        if groups not in self._drawn:
            rng = analysis_rng(seed=self._seed, analysis=self._analysis)
            self._drawn[groups] = cluster_weights(clusters=clusters, n_resamples=self.n_resamples, rng=rng)
        return self._drawn[groups]

    def fewer(self, most: int) -> Draws:
        """Return the first draws of these, at most so many."""
        return Draws(self._analysis, n_resamples=min(most, self.n_resamples), seed=self._seed)

    def means(self, values: FloatArray, clusters: Labels) -> tuple[Measure, ...]:
        """Return the mean of every column with its interval."""
        drawn = bootstrap_means(values=values, clusters=clusters, weights=self.weights(clusters))
        every = (measured(float(values[:, at].mean()), drawn[:, at], clusters) for at in range(values.shape[1]))
        return tuple(bounded(one) if (values[:, at] >= 0).all() else one for at, one in enumerate(every))

    def median(self, values: FloatArray, clusters: Labels) -> Measure:
        """Return the median of the values with its interval."""
        drawn = bootstrap_medians(values=values[:, None], clusters=clusters, weights=self.weights(clusters))
        made = measured(float(np.median(values)), drawn[:, 0], clusters)
        return bounded(made) if (values >= 0).all() else made


def measured(value: float, draws: FloatArray, clusters: Labels) -> Measure:
    """Return a number with the interval of its draws, by the rule that the number of clusters demands.

    Example:
        >>> measured(0.5, np.array([0.4, 0.6]), np.array(["a", "a"])).flags
        ('no_interval',)
    """
    groups = int(np.unique(clusters).size)
    return Measure.of(difference_interval(point=value, draws=draws, n_clusters=groups), n=clusters.size)


def bounded(made: Measure) -> Measure:
    """Return a number that cannot be negative, flagged where its interval reaches below 0; nothing is cut off.

    Of few clusters the interval is standard error × t(G - 1), which knows of no bound.

    Example:
        >>> bounded(measured(0.1, np.array([0.05, 0.2]), np.array(["a", "b", "c"]))).flags
        ('descriptive_only', 'below_possible')
    """
    return replace(made, flags=(*made.flags, BELOW)) if made.low is not None and made.low < 0 else made


def point_measures(answered: pl.DataFrame, draws: Draws) -> tuple[Measure, Measure]:
    """Return the median absolute percentage error and the mean absolute log error.

    Args:
        answered: Rows of one arm and rule with ``point``, ``truth`` and ``cluster``; at least one.
        draws: Draws of its clusters.
    """
    point, truth, clusters = (answered[name].to_numpy() for name in ("point", "truth", "cluster"))
    size = np.abs(log_error(estimate=point, truth=truth))
    ape = absolute_percentage_error(estimate=point, truth=truth)
    return draws.median(ape, clusters), draws.means(size[:, None], clusters)[0]


def interval_scores(answered: pl.DataFrame, draws: Draws) -> IntervalScores | None:
    """Return what the stated intervals were worth; None where no row has quantiles.

    Args:
        answered: Rows of one arm and rule with quantiles, ``point``, ``truth`` and ``cluster``.
        draws: Draws of its clusters.
    """
    told = answered.drop_nulls(list(QUANTILES))
    if told.is_empty():
        return None
    prices, truth, clusters = told.select(QUANTILES).to_numpy(), told["truth"].to_numpy(), told["cluster"].to_numpy()
    quantiles, outcome, point = np.log(prices), np.log(truth), told["point"].to_numpy()
    wis, law = wis5(quantiles=quantiles, outcome=outcome), crps_reconstructed(quantiles=quantiles, outcome=outcome)
    outer = interval_score(lower=quantiles[:, 0], upper=quantiles[:, 4], outcome=outcome, alpha=0.1)
    means = draws.means(np.column_stack([wis.score, law.score, outer]), clusters)

    def inside(low: int, high: int) -> BoolArray:
        return covered(lower=prices[:, low], upper=prices[:, high], outcome=truth)

    def relative(low: int, high: int) -> float:
        return float(np.median(width(lower=prices[:, low], upper=prices[:, high]) / point))

    shares: list[BoolArray] = [inside(1, 3), inside(0, 4), *(truth <= column for column in prices.T)]
    half, most, *below = (share_clustered(hits=hits, clusters=clusters) for hits in shares)
    bins = np.bincount(pit_bins(quantiles=quantiles, outcome=outcome), minlength=len(QUANTILES) + 1)
    return IntervalScores(
        n=told.height,
        coverage50=half,
        coverage90=most,
        below=tuple(below),
        width50=relative(1, 3),
        width90=relative(0, 4),
        wis=means[0],
        dispersion=float(wis.dispersion.mean()),
        overprediction=float(wis.overprediction.mean()),
        underprediction=float(wis.underprediction.mean()),
        crps=means[1],
        interval_score90=means[2],
        pit_bins=tuple(bins.tolist()),
        point_masses=int(law.point_mass.sum()),
    )


def ratio_scores(answered: pl.DataFrame, draws: Draws) -> RatioScores:
    """Return how even the estimates were.

    Args:
        answered: Rows of one arm and rule with ``point``, ``truth`` and ``cluster``; at least one.
        draws: Draws of its clusters; of them the first `RATIO_RESAMPLES` are used.
    """
    said, paid, clusters = (answered[name].to_numpy() for name in ("point", "truth", "cluster"))
    fewer = draws.fewer(RATIO_RESAMPLES)
    drawn = ratio_draws(estimate=said, price=paid, clusters=clusters, weights=fewer.weights(clusters))
    ratios, bias = ratio(estimate=said, price=paid), prb(estimate=said, price=paid)

    def of(value: float, rows: FloatArray) -> Measure:
        return measured(value, rows, clusters)

    slope: Measure | Undefined
    if isinstance(bias, Undefined):
        slope = bias
    else:
        slope = drawn.prb if isinstance(drawn.prb, Undefined) else of(bias.value, drawn.prb)
    return RatioScores(
        n=ratios.size,
        median=bounded(of(float(np.median(ratios)), drawn.median)),
        cod=bounded(of(cod(ratio=ratios), drawn.cod)),
        prd=bounded(of(prd(estimate=said, price=paid), drawn.prd)),
        prb=slope,
        vei=vertical_equity(estimate=said, price=paid),
        kakwani=concentration(estimate=said, price=paid).kakwani,
    )
