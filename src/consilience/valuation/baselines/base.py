"""What every baseline is: parameters that are fitted on the past and a price with five quantiles for each subject."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError

if TYPE_CHECKING:
    from consilience.valuation.features import FeatureMatrix

LEVELS: Final = (0.05, 0.25, 0.50, 0.75, 0.95)
"""Levels of the five quantiles, in the order of their columns."""

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """Prices predicted for the subjects of one matrix, in its order.

    Attributes:
        point: Shape ``(n,)``: prices in the table's currency, above 0. NaN is no prediction: such a row abstains.
        quantiles: Shape ``(n, 5)``: prices at `LEVELS`, not falling within a row. A row of NaN has no quantiles.
        crossing_rate: Share of the rows with quantiles whose raw quantiles crossed before they were sorted.
        notes: What a reader has to know, one sentence each.
        information_dates: Latest day that the parameters behind each row saw, where rows differ (rolling refits);
            None means `FittedBaseline.information_date` for all.

    Raises:
        DataError: Shapes differ, a price is not above 0 or infinite, quantiles fall, a row has some of the five, or a
            row without a point has quantiles.

    Example:
        >>> Prediction(point=np.array([2.0]), quantiles=np.array([[1.0, 1.5, 2.0, 2.5, 3.0]])).answered.tolist()
        [True]
    """

    point: Floats
    quantiles: Floats
    crossing_rate: float = 0.0
    notes: tuple[str, ...] = ()
    information_dates: tuple[date, ...] | None = None

    def __post_init__(self) -> None:
        n = len(self.point)
        if self.point.shape != (n,) or self.quantiles.shape != (n, len(LEVELS)):
            raise DataError(
                f"points have shape {self.point.shape} and quantiles {self.quantiles.shape}",
                hint="Pass (n,) and (n, 5).",
            )
        if self.information_dates is not None and len(self.information_dates) != n:
            raise DataError(f"{len(self.information_dates)} information dates for {n} rows", hint="Pass one per row.")
        known = ~np.isnan(self.quantiles)
        whole = known.all(axis=1)
        ragged = known.any(axis=1) & (~whole | np.isnan(self.point))
        prices = np.column_stack([self.point, self.quantiles])
        unpriced = (~np.isnan(prices) & ~(np.isfinite(prices) & (prices > 0))).any(axis=1)
        falling = whole & (np.diff(self.quantiles, axis=1) < 0).any(axis=1)
        for bad, what in (
            (ragged, "has some of the numbers and not all"),
            (unpriced, "holds a number that is no price"),
            (falling, "has falling quantiles"),
        ):
            if bad.any():
                raise DataError(f"prediction {int(np.argmax(bad))} {what}", hint="Mend the baseline that made it.")

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """Which rows have a prediction."""
        return ~np.isnan(self.point)


class FittedBaseline(ABC):
    """A baseline with its parameters fixed."""

    @property
    @abstractmethod
    def information_date(self) -> date:
        """The latest day that anything fitted has seen, intervals included."""

    @abstractmethod
    def predict(self, subjects: FeatureMatrix) -> Prediction:
        """Return a prediction for each subject, in order; nothing of the subjects' own prices is read.

        Raises:
            DataError: A column is missing.
        """

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return what was fitted, as JSON: features, parameters, coefficients and whatever else a model card tells."""

    def files(self) -> Mapping[str, str]:
        """Return texts that belong to the model, by file name; none by default."""
        return {}


class Baseline(ABC):
    """One way of predicting prices; a frozen dataclass whose fields are its parameters.

    Attributes:
        name: The arm it is registered as.
    """

    name: ClassVar[str]

    @abstractmethod
    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedBaseline:
        """Return the baseline fitted on ``train``, with intervals, tuning and stacking on ``valid``.

        Raises:
            DataError: Too few sales to fit, or a column is missing.
        """


def information_date(*parts: FeatureMatrix) -> date:
    """Return the latest day at which a price within the parts became known (``available_date``).

    Raises:
        DataError: The parts hold no sale.
    """
    days = [day for part in parts if isinstance(day := part.frame["available_date"].max(), date)]
    if not days:
        raise DataError("there is no sale to fit on", hint="Split the table so that train and validation hold sales.")
    return max(days)
