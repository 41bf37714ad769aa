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
        columns = leveled_columns(train)
        parts = [(*columns.of(part), part.truth()) for part in (train, valid)]
        values, level, truth = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        day = pl.concat([train.frame["sale_date"], valid.frame["sale_date"]]).to_numpy()
        target = truth - level
        folds = _folds(valid.frame["sale_date"].to_numpy(), self.folds)
        tried = (self.choice.leaves,) if self.choice else self.leaves
        judged = {leaves: [self._judge(values, target, day, fold, leaves) for fold in folds] for leaves in tried}
        losses = {
            leaves: float(np.abs(np.concatenate([target[rows] - said for rows, said, _ in found])).mean())
            for leaves, found in judged.items()
        }
        best = min(losses, key=losses.__getitem__)
        rounds = int(np.median([rounds for _, _, rounds in judged[best]]))
        choice = self.choice or Choice(best, rounds, {str(leaves): loss for leaves, loss in losses.items()})
        model = Trees(choice.leaves, choice.rounds, self.learning_rate).grow(values, target)
        rows = np.concatenate([rows for rows, _, _ in judged[best]])
        said = np.exp(np.concatenate([said for _, said, _ in judged[best]]) + level[rows])
        classes = np.array([*property_classes(train), *property_classes(valid)], dtype=object)
        intervals = fit_intervals(said, truth[rows], classes[rows].tolist())
        return FittedBoosting(columns, choice, model, intervals, information_date(train, valid))

    def _judge(
        self, values: Floats, target: Floats, day: npt.NDArray[Any], fold: tuple[Any, Any], leaves: int
    ) -> tuple[npt.NDArray[np.intp], Floats, int]:
        """Return the rows of a fold, what trees grown before it say of them, and the number of these trees."""
        first, last = fold
        rows = np.flatnonzero((day >= first) & (day <= last))
        before = day < first
        if self.choice is not None:
            text = Trees(leaves, self.choice.rounds, self.learning_rate).grow(values[before], target[before])
        else:
            edge = np.quantile(np.sort(day[before]), 1 - STOPPING_SHARE, method="lower")
            early, late = day < edge, before & (day >= edge)
            grower = Trees(leaves, None, self.learning_rate)
            text = grower.grow(values[early], target[early], stop_on=(values[late], target[late]))
        return rows, grown(text, values[rows]), rounds_of(text)


@dataclass(frozen=True)
class FittedBoosting(FittedBaseline):
    """A fitted `Boosting`.

    Attributes:
        columns: What the trees see.
        choice: Hyper-parameters.
        model: The trees as LightGBM's text.
        intervals: Residual quantiles of the folds.
        information: Latest sale of train and validation.
    """

    columns: LeveledColumns
    choice: Choice
    model: str
    intervals: ResidualIntervals
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
        return Prediction(point=point, quantiles=self.intervals.around(point, property_classes(subjects)))

    def record(self) -> dict[str, Any]:
        """Return columns, the level's hedonic, hyper-parameters and intervals as JSON; the trees are a file."""
        return {
            **self.columns.record(),
            "choice": {**vars(self.choice), "losses": dict(self.choice.losses)},
            "intervals": self.intervals.record(),
            "model": "C_boosting.txt",
        }

    def files(self) -> Mapping[str, str]:
        """Return the trees as text."""
        return {"C_boosting.txt": self.model}


def _folds(day: npt.NDArray[Any], count: int) -> list[tuple[Any, Any]]:
    """Return first and last day of folds of about equal size, in order; no day is divided."""
    if not day.size:
        raise DataError("validation holds no sale to tune on", hint="Choose boundaries that leave a longer validation.")
    ordered = np.sort(day)
    starts = np.unique(ordered[[len(ordered) * k // count for k in range(count)]])
    ends = [*(start - np.timedelta64(1, "D") for start in starts[1:]), ordered[-1]]
    return list(zip(starts, ends, strict=True))
