"""Signs in a table of forecasts that a score does not mean what it seems to mean."""

from __future__ import annotations

from typing import Final

import numpy as np

from consilience.experiments.forecast_table import ForecastTable
from consilience.scoring.point import BoolArray, FloatArray

LEAST: Final = 30
"""Fewer targets tell neither a leak nor a copy from luck."""
_PEERS: Final = 4
_FAR: Final = 0.75
_MOST: Final = 0.75
_CERTAIN: Final = (0.01, 0.99)
_CERTAIN_SHARE: Final = 0.8
_COPY: Final = 0.98


def flags_of(table: ForecastTable) -> dict[str, dict[str, float]]:
    """Return for each forecaster its flags, each with the number behind it.

    - ``missing_targets``: resolved targets without a probability of it.
    - ``missing_horizons``: questions of which it answered some targets and not the others, so that its mean is over an
      easier or harder set.
    - ``unsubmitted_half``: probabilities of exactly one half that were never submitted: a fallback, no forecast.
    - ``copies_price``: correlation with the market price, above 0.98.
    - ``far_below_peers``: its Brier score over another's on their common targets, where it is at most 0.75 for three
      quarters of at least four others; the number is the largest ratio to those three quarters. Whoever is that good
      may know the outcomes.
    - ``leak``: the same where above 80 % of its probabilities lie beyond .01 and .99 too: that share.
    """
    found: dict[str, dict[str, float]] = {name: {} for name in table.names}
    questions = np.unique(
        np.array([f"{q}\0{d}" for q, d in zip(table.question, table.as_of, strict=True)]), return_inverse=True
    )[1]
    asked = np.bincount(questions)
    for at, name in enumerate(table.names):
        there, p = table.present[:, at], table.probability[:, at]
        flags = found[name]
        if missing := int((~there).sum()):
            flags["missing_targets"] = missing
        answered = np.bincount(questions, weights=there)
        if partial := int(((answered > 0) & (answered < asked)).sum()):
            flags["missing_horizons"] = partial
        if half := int((there & table.unsubmitted[:, at] & (p == 0.5)).sum()):
            flags["unsubmitted_half"] = half
        r = _correlation(p, table.price, there & table.priced)
        if r is not None and r > _COPY:
            flags["copies_price"] = r
        ratio = _ratio(table, at)
        if ratio is not None and ratio <= _FAR:
            flags["far_below_peers"] = ratio
            certain = float(((p < _CERTAIN[0]) | (p > _CERTAIN[1]))[there].mean())
            if certain > _CERTAIN_SHARE:
                flags["leak"] = certain
    return found


def _ratio(table: ForecastTable, at: int) -> float | None:
    """Return the ratio of Brier scores that three quarters of the others allow at most, or None for too few others."""
    own = (table.probability[:, at] - table.outcome) ** 2
    ratios = []
    for other in range(len(table.names)):
        both = table.present[:, at] & table.present[:, other]
        if other == at or both.sum() < LEAST:
            continue
        theirs = float(((table.probability[both, other] - table.outcome[both]) ** 2).mean())
        ratios.append(float(own[both].mean()) / theirs if theirs > 0 else np.inf)
    return float(np.quantile(ratios, _MOST, method="higher")) if len(ratios) >= _PEERS else None


def _correlation(p: FloatArray, price: FloatArray, both: BoolArray) -> float | None:
    """Return Pearson's r, or None for few pairs or a constant."""
    if both.sum() < LEAST or np.ptp(p[both]) == 0 or np.ptp(price[both]) == 0:
        return None
    return float(np.corrcoef(p[both], price[both])[0, 1])
