"""``C_boosting``: boosted trees on ln price, measured from the price level of the day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.errors import ConfigError, DataError
from consilience.valuation.baselines.base import Baseline, FittedBaseline, Floats, Prediction, information_date
from consilience.valuation.baselines.hedonic import HedonicPrices, days, fit_prices, property_classes
from consilience.valuation.baselines.strata import ResidualIntervals, fit_intervals
from consilience.valuation.baselines.trees import Trees, grown, rounds_of
from consilience.valuation.features import FEATURES, FeatureMatrix

CALENDAR: Final = ("month_index", "month_of_year")
"""Left out: trees cannot continue a trend, and the level as of the cutoff says what month it is."""
MONEY: Final = ("_ln_price", "_ln_per_m2", "_ln_by_area", "_ln_weighted")
CLASS: Final = "property_class"
STOPPING_SHARE: Final = 0.1
"""Latest share of the rows on which training stops early."""
LEAST_ROWS: Final = 100


@dataclass(frozen=True)
class LeveledColumns:
    """Feature rows in which no price level is left: every figure in money is measured from the level of its day.

    ln price is modelled as ``L(cutoff) + f(x)``. L is the as-of level of the hedonic's surplus (`HedonicPrices.path`),
    evidence rather than a parameter. Were comparables and medians left in money, a rising market would count twice and
    leave the range that the trees saw.

    Attributes:
        prices: The hedonic behind the level.
        names: Columns: features that some row of train knows, and the property class as a number.
        classes: Classes of train in order; another one is unknown.
    """

    prices: HedonicPrices
    names: tuple[str, ...]
    classes: tuple[str, ...]

    def of(self, subjects: FeatureMatrix) -> tuple[Floats, Floats]:
        """Return columns (rows, names), NaN where unknown, and the level of each row (rows,)."""
        path = self.prices.path(subjects.sales)
        cutoffs = days(subjects.frame["cutoff"])
        level = path.at_cutoff(cutoffs)
        then = path.at(days(subjects.frame["prior_sale_date"]), cutoffs)
        columns = []
        for name in self.names:
            if name == CLASS:
                found = [self.classes.index(c) if c in self.classes else np.nan for c in property_classes(subjects)]
                columns.append(np.array(found, dtype=np.float64))
                continue
            column = subjects.numbers((name,))[:, 0]
            if name == "ln_prior_price":
                column = column - then
            elif any(part in name for part in MONEY):
                column = column - level
            columns.append(column)
        return np.column_stack(columns), level

    def record(self) -> dict[str, Any]:
        """Return columns, classes and the level's hedonic as JSON."""
        return {"features": list(self.names), "classes": list(self.classes), "level": self.prices.record()}


def leveled_columns(train: FeatureMatrix) -> LeveledColumns:
    """Return the columns that train knows something of.

    Raises:
        DataError: Train holds too few sales.
    """
    if len(train) < LEAST_ROWS:
        raise DataError(
            f"train holds {len(train)} sales and boosting needs {LEAST_ROWS}", hint="Choose a later first boundary."
        )
    known = [name for name in FEATURES if name not in CALENDAR and train.frame[name].is_not_null().any()]
    classes = sorted(set(property_classes(train)))
    return LeveledColumns(fit_prices(train), (*known, CLASS), tuple(classes))


@dataclass(frozen=True)
class Choice:
    """What tuning chose.

    Attributes:
        leaves: Leaves of a tree.
        rounds: Trees.
        losses: Mean absolute log error over the folds, per number of leaves tried.
    """

    leaves: int
    rounds: int
    losses: Mapping[str, float]


@dataclass(frozen=True)
class Boosting(Baseline):
    """LightGBM on ln price less the as-of level, tuned on validation and refitted on train and validation.

    Validation is cut into folds in order of time. For each number of leaves, trees are grown on everything before a
    fold, stopping early on the latest tenth of that, and judged on the fold by mean absolute log error; the best is
    grown again on train and validation with the median of its folds' rounds. Its misses on the folds, which it had not
    seen, give the intervals by class and predicted tercile.

    Attributes:
        leaves: Numbers of leaves to try, each at least 2.
        folds: Folds of validation, at least 1.
        learning_rate: Share of each tree that is added.
        choice: Takes the place of tuning (`kept`).
    """

    name: ClassVar[str] = "C_boosting"

    leaves: tuple[int, ...] = (15, 31)
    folds: int = 2
    learning_rate: float = 0.06
    choice: Choice | None = None

    def __post_init__(self) -> None:
        if not self.leaves or min(self.leaves) < 2 or self.folds < 1 or not 0 < self.learning_rate <= 1:
            raise ConfigError(
                f"boosting with leaves {list(self.leaves)}, {self.folds} folds and rate {self.learning_rate}",
                hint="Give leaves of at least 2, at least one fold, and a rate in (0, 1].",
            )

    def kept(self, fitted: FittedBaseline) -> Boosting:
        """Return the same baseline with what tuning chose in ``fitted`` and one fold, for a later refit."""
        return replace(self, choice=fitted.choice, folds=1) if isinstance(fitted, FittedBoosting) else self

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedBoosting:
        """Return the trees grown on train and validation, with hyper-parameters and intervals from validation.

        Raises:
            DataError: Train or validation is too small.
            PlanError: LightGBM is missing.
        """
        rows = _Rows.of(train, valid)
        tried = (self.choice.leaves,) if self.choice else self.leaves
        judged = {leaves: [self._judge(rows, fold, leaves) for fold in rows.folds(self.folds)] for leaves in tried}
        choice = self.choice or _best(judged, rows)
        seen = judged[choice.leaves]
        at = np.concatenate([fold.rows for fold in seen])
        said = np.exp(np.concatenate([fold.said for fold in seen]) + rows.level[at])
        intervals = fit_intervals(said, rows.target[at] + rows.level[at], rows.classes[at].tolist())
        return self._fitted(rows, choice, intervals)

    def fit_points(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedBoosting:
        """Return the same without intervals, for a stack that has its own; a kept choice is not judged again.

        Raises:
            DataError: Train or validation is too small.
            PlanError: LightGBM is missing.
        """
        rows = _Rows.of(train, valid)
        if self.choice is not None:
            return self._fitted(rows, self.choice, None)
        judged = {leaves: [self._judge(rows, f, leaves) for f in rows.folds(self.folds)] for leaves in self.leaves}
        return self._fitted(rows, _best(judged, rows), None)

    def _fitted(self, rows: _Rows, choice: Choice, intervals: ResidualIntervals | None) -> FittedBoosting:
        model = Trees(choice.leaves, choice.rounds, self.learning_rate).grow(rows.values, rows.target)
        return FittedBoosting(rows.columns, choice, model, intervals, rows.information)

    def _judge(self, rows: _Rows, fold: tuple[Any, Any], leaves: int) -> _Judged:
        """Return what trees grown before a fold say of it."""
        first, last = fold
        at = np.flatnonzero((rows.day >= first) & (rows.day <= last))
        before = rows.day < first
        values, target = rows.values, rows.target
        if self.choice is not None:
            text = Trees(leaves, self.choice.rounds, self.learning_rate).grow(values[before], target[before])
        else:
            edge = np.quantile(rows.day[before], 1 - STOPPING_SHARE, method="lower")
            early, late = rows.day < edge, before & (rows.day >= edge)
            grower = Trees(leaves, None, self.learning_rate)
            text = grower.grow(values[early], target[early], stop_on=(values[late], target[late]))
        return _Judged(at, grown(text, values[at]), rounds_of(text))


@dataclass(frozen=True)
class _Judged:
    """A fold: its rows, what trees grown before it say of them, and how many trees they were."""

    rows: npt.NDArray[np.intp]
    said: Floats
    rounds: int


@dataclass(frozen=True)
class _Rows:
    """Train and validation as arrays; ``target`` is ln price less ``level``."""

    columns: LeveledColumns
    values: Floats
    level: Floats
    target: Floats
    day: npt.NDArray[np.datetime64]
    classes: npt.NDArray[np.object_]
    first_valid: int
    information: date

    @staticmethod
    def of(train: FeatureMatrix, valid: FeatureMatrix) -> _Rows:
        columns = leveled_columns(train)
        parts = [(*columns.of(part), part.truth()) for part in (train, valid)]
        values, level, truth = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        return _Rows(
            columns=columns,
            values=values,
            level=level,
            target=truth - level,
            day=pl.concat([train.frame["sale_date"], valid.frame["sale_date"]]).to_numpy(),
            classes=np.array([*property_classes(train), *property_classes(valid)], dtype=object),
            first_valid=len(train),
            information=information_date(train, valid),
        )

    def folds(self, count: int) -> list[tuple[Any, Any]]:
        """Return first and last day of folds of validation, of about equal size, in order; no day is divided."""
        ordered = np.sort(self.day[self.first_valid :])
        if not ordered.size:
            raise DataError("validation holds no sale to tune on", hint="Choose boundaries that leave a longer one.")
        starts = np.unique(ordered[[len(ordered) * k // count for k in range(count)]])
        ends = [*(start - np.timedelta64(1, "D") for start in starts[1:]), ordered[-1]]
        return list(zip(starts, ends, strict=True))


def _best(judged: Mapping[int, list[_Judged]], rows: _Rows) -> Choice:
    losses = {
        leaves: float(np.abs(np.concatenate([rows.target[fold.rows] - fold.said for fold in folds])).mean())
        for leaves, folds in judged.items()
    }
    best = min(losses, key=losses.__getitem__)
    rounds = int(np.median([fold.rounds for fold in judged[best]]))
    return Choice(best, rounds, {str(leaves): loss for leaves, loss in losses.items()})


@dataclass(frozen=True)
class FittedBoosting(FittedBaseline):
    """A fitted `Boosting`.

    Attributes:
        columns: What the trees see.
        choice: Hyper-parameters.
        model: The trees as LightGBM's text.
        intervals: Residual quantiles of the folds; None within a stack.
        information: Latest sale of train and validation.
    """

    columns: LeveledColumns
    choice: Choice
    model: str
    intervals: ResidualIntervals | None
    information: date

    @property
    def information_date(self) -> date:
        """The latest sale of train and validation."""
        return self.information

    def points(self, subjects: FeatureMatrix) -> Floats:
        """Return prices, shape ``(n,)``."""
        values, level = self.columns.of(subjects)
        prices: Floats = np.exp(level + grown(self.model, values))
        return prices

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        """Return a price and five quantiles for every subject."""
        point = self.points(subjects)
        quantiles = np.full((len(point), 5), np.nan)
        if self.intervals is not None:
            quantiles = self.intervals.around(point, property_classes(subjects))
        return Prediction(point=point, quantiles=quantiles)

    def record(self) -> dict[str, Any]:
        """Return columns, the level's hedonic, hyper-parameters and intervals as JSON; the trees are a file."""
        return {
            **self.columns.record(),
            "choice": {**vars(self.choice), "losses": dict(self.choice.losses)},
            "intervals": None if self.intervals is None else self.intervals.record(),
            "model": "C_boosting.txt",
        }

    def files(self) -> Mapping[str, str]:
        """Return the trees as text."""
        return {"C_boosting.txt": self.model}
