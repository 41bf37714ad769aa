"""What a calibration did to answers it was not learnt on: how often intervals held the truth, and what came true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from consilience.experiments.measures import Recorded
from consilience.inference.bootstrap import Labels
from consilience.scoring.interval import covered, width
from consilience.scoring.point import FloatArray
from consilience.scoring.probability import corp, pav
from consilience.scoring.summaries import share_clustered


@dataclass(frozen=True)
class Inside:
    """How often one interval of an arm held the truth.

    Attributes:
        share: Truths inside it.
        low: Lower end of the 95 % Wilson interval, widened for clusters; None with one cluster.
        high: Upper end.
        width: Median of its width over the point.
        n_clusters: Clusters G of the items.
    """

    share: float
    low: float | None
    high: float | None
    width: float
    n_clusters: int


@dataclass(frozen=True)
class Frequencies:
    """What came true of each stated probability.

    Attributes:
        stated: The distinct probabilities, rising.
        count: Questions that stated each.
        seen: Share that came true, smoothed to rise: the isotonic regression.
        score: Mean Brier score.
        mcb: Its miscalibration (CORP); 0 is best.
        n_clusters: Clusters G of the questions.
    """

    stated: tuple[float, ...]
    count: tuple[int, ...]
    seen: tuple[float, ...]
    score: float
    mcb: float
    n_clusters: int


@dataclass(frozen=True)
class Change(Recorded):
    """What one calibration of an arm did on validation: learnt on its earlier items, told of its later ones.

    Attributes:
        arm: The arm.
        what: ``50 % interval``, ``90 % interval`` or ``probability``.
        kept: It surely gained and is applied; others were refused.
        n_fitted: Earlier items.
        n_judged: Later items.
        gain: Mean loss before less after; above 0 is better.
        low: Lower end of its 95 % cluster-bootstrap interval.
        high: Upper end.
        before: The later items as they were answered.
        after: The same, calibrated.
    """

    arm: str
    what: str
    kept: bool
    n_fitted: int
    n_judged: int
    gain: float
    low: float
    high: float
    before: Inside | Frequencies
    after: Inside | Frequencies


def inside(rows: pl.DataFrame, *, low: str, high: str) -> Inside:
    """Return how often an interval held the truth.

    Args:
        rows: With ``point``, ``truth``, ``cluster`` and the two ends; at least one.
        low: Column of the lower end.
        high: Column of the upper end.

    Example:
        >>> rows = pl.DataFrame({"q05": [1.0, 1.0], "point": [2.0, 2.0], "q95": [3.0, 3.0], "truth": [2.5, 9.0],
        ...                      "cluster": ["a", "b"]})
        >>> made = inside(rows, low="q05", high="q95")
        >>> made.share, made.width, made.n_clusters
        (0.5, 1.0, 2)
    """
    ends = {"lower": rows[low].to_numpy(), "upper": rows[high].to_numpy()}
    hits = covered(**ends, outcome=rows["truth"].to_numpy())
    made = share_clustered(hits=hits, clusters=rows["cluster"].to_numpy())
    relative = float(np.median(width(**ends) / rows["point"].to_numpy()))
    return Inside(share=made.value, low=made.low, high=made.high, width=relative, n_clusters=made.n_clusters)


def frequencies(*, p: FloatArray, y: FloatArray, clusters: Labels) -> Frequencies:
    """Return what came true of each stated probability, by isotonic regression.

    Args:
        p: Stated probabilities, at least one.
        y: Outcomes, 0 or 1.
        clusters: Of the questions.

    Reference: Dimitriadis, Gneiting & Jordan 2021.

    Raises:
        DataError: As `brier`, or there are no cases.

    Example:
        >>> made = frequencies(p=np.array([0.2, 0.2, 0.9]), y=np.array([0.0, 1.0, 1.0]), clusters=np.arange(3))
        >>> made.stated, made.count, made.seen
        ((0.2, 0.9), (2, 1), (0.5, 1.0))
    """
    parts = corp(p=p, y=y)
    stated, codes, counts = np.unique(p, return_inverse=True, return_counts=True)
    return Frequencies(
        stated=tuple(stated.tolist()),
        count=tuple(counts.tolist()),
        seen=tuple(pav(y=y, codes=codes, counts=counts).tolist()),
        score=parts.score,
        mcb=parts.mcb,
        n_clusters=int(np.unique(clusters).size),
    )
