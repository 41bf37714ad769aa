"""Several baselines as one: weights on the simplex, learnt on sales that none of them was fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl

from consilience.aggregation.fitted import stack_simplex
from consilience.errors import DataError
from consilience.valuation.baselines.base import FittedBaseline, Floats
from consilience.valuation.features import FeatureMatrix

LEAST_ROWS: Final = 10
"""Sales that weights are learnt on, at least."""
MOSTLY: Final = 0.5
"""A part that answers a smaller share of them gets no weight."""


@dataclass(frozen=True)
class Stack:
    """Weights of the parts of a stack.

    Attributes:
        weights: Weight by part, each >= 0, sum 1.
        rows: Sales they were learnt on: those that all parts with a weight answered.
        notes: What a reader has to know.
    """

    weights: Mapping[str, float]
    rows: int
    notes: tuple[str, ...] = ()

    def combine(self, points: Mapping[str, Floats]) -> Floats:
        """Return the weighted mean of ln prices, as ln price, shape (n,).

        The weights of parts that do not answer a row fall to the others in proportion. NaN where no part with a weight
        answers.

        Args:
            points: Prices by part, NaN without an answer; a part that is not there answers nothing.

        Example:
            >>> stack = Stack({"a": 0.75, "b": 0.25}, rows=40)
            >>> said = stack.combine({"a": np.array([np.e, np.nan]), "b": np.array([np.e, 1.0])})
            >>> said.tolist()
            [1.0, 0.0]
        """
        unanswered = np.full(len(next(iter(points.values()))), np.nan)
        said = np.log(np.column_stack([points.get(name, unanswered) for name in self.weights]))
        there = ~np.isnan(said)
        share = np.where(there, np.array(list(self.weights.values())), 0.0)
        total = share.sum(axis=1)
        summed = (np.where(there, said, 0.0) * share).sum(axis=1)
        combined: Floats = np.divide(summed, total, out=np.full(len(total), np.nan), where=total > 0)
        return combined

    def record(self) -> dict[str, Any]:
        """Return the weights as JSON."""
        return {"weights": dict(self.weights), "rows": self.rows, "notes": list(self.notes)}


def fit_stack(points: Mapping[str, Floats], log_price: Floats) -> Stack:
    """Return the simplex weights that minimise the squared log error of the weighted mean of ln prices.

    A part that answers less than half of the rows weighs 0; the others are fitted on the rows that all of them answer.

    Args:
        points: Prices by part, NaN without an answer, shape (n,) each.
        log_price: ln of the prices paid, shape (n,).

    Raises:
        DataError: Fewer than `LEAST_ROWS` rows are answered by all that count, or nobody answers half of them.

    Example:
        >>> truth = np.linspace(12, 14, 30)
        >>> off = np.tile([0.1, -0.1], 15)
        >>> fit_stack({"a": np.exp(truth + off), "b": np.exp(truth - off)}, truth).weights["a"].__round__(6)
        0.5
    """
    answered = {name: float((~np.isnan(point)).mean()) if point.size else 0.0 for name, point in points.items()}
    counted = [name for name, share in answered.items() if share >= MOSTLY]
    said = np.log(np.column_stack([points[name] for name in counted])) if counted else np.empty((len(log_price), 0))
    rows = ~np.isnan(said).any(axis=1) if counted else np.zeros(len(log_price), dtype=np.bool_)
    if rows.sum() < LEAST_ROWS:
        raise DataError(
            f"{int(rows.sum())} sales are answered by all parts of the stack and its weights need {LEAST_ROWS}",
            hint="Choose boundaries that leave a longer validation period.",
        )
    found = stack_simplex(log_points=said[rows], log_truth=log_price[rows]).weights
    weights = dict.fromkeys(points, 0.0) | dict(zip(counted, found, strict=True))
    notes = tuple(
        f"{name} answers {answered[name]:.0%} of the sales that weights are learnt on and weighs nothing."
        for name in points
        if name not in counted
    )
    return Stack(weights=weights, rows=int(rows.sum()), notes=notes)


def points_of(parts: Mapping[str, FittedBaseline], subjects: FeatureMatrix) -> dict[str, Floats]:
    """Return the price that each part gives each subject, NaN where it abstains; prices of subjects are withheld."""
    hidden = subjects.blind()
    return {name: part.predict(hidden).point for name, part in parts.items()}


def joined(parts: Sequence[FeatureMatrix]) -> FeatureMatrix:
    """Return the rows of several parts of one matrix as one, in turn."""
    tables = [part.comparables for part in parts]
    return replace(
        parts[0],
        frame=pl.concat([part.frame for part in parts]),
        log_price=np.concatenate([part.truth() for part in parts]),
        comparables=replace(
            tables[0],
            rows=np.concatenate([table.rows for table in tables]),
            scores=np.concatenate([table.scores for table in tables]),
            distances_km=np.concatenate([table.distances_km for table in tables]),
            candidates=np.concatenate([table.candidates for table in tables]),
            radius_km=np.concatenate([table.radius_km for table in tables]),
        ),
    )
