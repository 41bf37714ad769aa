"""Rolling refits: every fitted arm and calibration is fitted anew on one schedule, from what was known by then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final, Protocol, Self, runtime_checkable

import numpy as np
import polars as pl

from consilience.errors import ConfigError, DataError
from consilience.valuation.baselines.base import LEVELS, Baseline, FittedBaseline, Prediction
from consilience.valuation.features import FeatureMatrix

SUFFIX: Final = "_rolling"
"""Ends the arm's name in tables, so that rolling figures never stand as frozen ones."""


@runtime_checkable
class Tuned(Protocol):
    """A baseline whose tuning can be kept for later refits."""

    def kept(self, fitted: FittedBaseline) -> Self:
        """Return the same baseline with what tuning chose in ``fitted``."""
        ...


@dataclass(frozen=True)
class Schedule:
    """When parameters are fitted anew.

    Attributes:
        every_days: Days from one refit to the next, at least 1.
        valid_days: The latest days before a refit that serve as its validation, at least 1.

    Raises:
        ConfigError: One of them is below 1.

    Example:
        >>> Schedule(every_days=14).refits(date(2015, 2, 15), date(2015, 3, 1))
        [datetime.date(2015, 2, 15), datetime.date(2015, 3, 1)]
    """

    every_days: int = 30
    valid_days: int = 60

    def __post_init__(self) -> None:
        if min(self.every_days, self.valid_days) < 1:
            raise ConfigError(
                f"refits every {self.every_days} days with {self.valid_days} days of validation",
                hint="Give whole days of at least 1.",
            )

    def refits(self, first: date, last: date) -> list[date]:
        """Return the days of refit for subjects sold from ``first`` to ``last``."""
        return [first + timedelta(days=days) for days in range(0, (last - first).days + 1, self.every_days)]


@dataclass(frozen=True)
class Rolled:
    """A baseline predicted in turn.

    Attributes:
        arm: Name of the baseline with `SUFFIX`.
        subjects: Who was predicted, in the order of the matrix, prices withheld.
        prediction: What for, with the latest day that the parameters of each row saw.
        fits: The fitted baseline by day of refit.
    """

    arm: str
    subjects: FeatureMatrix
    prediction: Prediction
    fits: dict[date, FittedBaseline]


def roll(baseline: Baseline, matrix: FeatureMatrix, *, subjects: pl.Expr, schedule: Schedule | None = None) -> Rolled:
    """Return predictions by parameters that are fitted anew on a schedule.

    The first refit falls on the first subject's sale. A refit on day R uses the sales known before R
    (``available_date``), whatever their split but ``excluded``: those sold in the ``valid_days`` before R are
    validation, older ones train. It predicts the subjects sold from R until the next refit. Hyper-parameters are tuned
    at the first refit and kept; weights, margins and intervals are fitted every time.

    Args:
        baseline: What to fit.
        matrix: The features of the whole table.
        subjects: Condition on the frame for whom to predict.
        schedule: When to refit; by default every 30 days with 60 days of validation.

    Raises:
        DataError: No subjects, or too few sales are known by a refit.
    """
    schedule = schedule or Schedule()
    asked = matrix.where(subjects).blind()
    days = asked.frame["sale_date"]
    first, last = days.min(), days.max()
    if not isinstance(first, date) or not isinstance(last, date):
        raise DataError("there is no subject to predict", hint="Choose a split that holds sales.")
    point, quantiles = np.full(len(asked), np.nan), np.full((len(asked), len(LEVELS)), np.nan)
    information: list[date | None] = [None] * len(asked)
    crossed, notes, fits = 0.0, dict[str, None](), dict[date, FittedBaseline]()
    for refit in schedule.refits(first, last):
        rows = np.flatnonzero(
            ((days >= refit) & (days < refit + timedelta(days=schedule.every_days))).to_numpy().astype(np.bool_)
        )
        if not rows.size:
            continue
        fitted = _fit(baseline, matrix, refit, schedule)
        fits[refit] = fitted
        if isinstance(baseline, Tuned):
            baseline = baseline.kept(fitted)
        said = fitted.predict(asked.take(rows))
        point[rows], quantiles[rows] = said.point, said.quantiles
        for row in rows.tolist():
            information[row] = fitted.information_date
        crossed += said.crossing_rate * rows.size
        notes.update(dict.fromkeys(said.notes))
    return Rolled(
        arm=baseline.name + SUFFIX,
        subjects=replace(asked, as_of="rolling"),
        prediction=Prediction(
            point=point,
            quantiles=quantiles,
            crossing_rate=crossed / len(asked),
            notes=tuple(notes),
            information_dates=tuple(day for day in information if day is not None),
        ),
        fits=fits,
    )


def _fit(baseline: Baseline, matrix: FeatureMatrix, refit: date, schedule: Schedule) -> FittedBaseline:
    known = (pl.col("available_date") < refit) & (pl.col("split") != "excluded")
    edge = pl.lit(refit - timedelta(days=schedule.valid_days))
    train, valid = (
        matrix.where(known & condition) for condition in (pl.col("sale_date") < edge, pl.col("sale_date") >= edge)
    )
    if not len(train) or not len(valid):
        raise DataError(
            f"by the refit of {refit} there are {len(train)} sales to train and {len(valid)} to validate on",
            hint="Begin later, or give a shorter validation.",
        )
    return baseline.fit(train, valid)
