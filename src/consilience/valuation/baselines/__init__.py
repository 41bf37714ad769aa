"""Statistical baselines, one file each: what a panel of agents has to beat."""

from __future__ import annotations

from consilience.registry import Registry
from consilience.valuation.baselines.adjusted import AdjustedComps
from consilience.valuation.baselines.avm import Avm
from consilience.valuation.baselines.base import Baseline, FittedBaseline, Prediction
from consilience.valuation.baselines.boosting import Boosting
from consilience.valuation.baselines.hedonic import Hedonic
from consilience.valuation.baselines.hierarchical import Hierarchical
from consilience.valuation.baselines.imported import ImportedPredictions
from consilience.valuation.baselines.index import IndexedPrior

__all__ = ["BASELINES", "Baseline", "FittedBaseline", "Prediction"]

BASELINES: Registry[type[Baseline]] = Registry(
    "baseline",
    (
        Hedonic,
        AdjustedComps,
        Hierarchical,
        Boosting,
        Avm,
        IndexedPrior,
        ImportedPredictions,
    ),
    group="consilience.baselines",
)
"""Baselines by the name of their arm, simple ones first: a stack finds its parts before it."""
