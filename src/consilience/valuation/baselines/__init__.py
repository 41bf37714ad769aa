"""Statistical baselines, one file each: what a panel of agents has to beat."""

from __future__ import annotations

from consilience.registry import Registry
from consilience.valuation.baselines.base import Baseline, FittedBaseline, Prediction

__all__ = ["BASELINES", "Baseline", "FittedBaseline", "Prediction"]

BASELINES: Registry[type[Baseline]] = Registry(
    "baseline",
    (),
    group="consilience.baselines",
)
"""Baselines by the name of their arm, simple ones first: a stack finds its parts before it."""
