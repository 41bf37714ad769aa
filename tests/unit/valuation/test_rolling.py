"""Rolling refits know what was known before each refit and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from baseline_cases import matrix_of, repriced, town_matrix, town_table
from consilience.errors import ConfigError, DataError
from consilience.valuation.baselines import Baseline, FittedBaseline, Prediction
from consilience.valuation.baselines.base import information_date
from consilience.valuation.baselines.hedonic import Hedonic
from consilience.valuation.features import FeatureMatrix
from consilience.valuation.rolling import Schedule, Tuned, roll
from consilience.valuation.synthetic import generate

TEST = pl.col("split") == "test"


@dataclass(frozen=True)
class Median(FittedBaseline):
    price: float
    day: date
    tuned: int

    @property
    def information_date(self) -> date:
        return self.day

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        point = np.full(len(subjects), self.price)
        return Prediction(point=point, quantiles=np.repeat(point[:, None], 5, axis=1), notes=("flat",))

    def record(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Flat(Baseline):
    """The median of train; counts how often it was tuned and notes what it was given."""

    name: ClassVar[str] = "flat"
    tuned: int = 0
    seen: list[tuple[FeatureMatrix, FeatureMatrix]] = field(default_factory=list)

    def kept(self, fitted: FittedBaseline) -> Flat:
        assert isinstance(fitted, Median)
        return Flat(fitted.tuned + 1, self.seen)

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> Median:
        self.seen.append((train, valid))
        return Median(float(np.exp(np.median(train.truth()))), information_date(train, valid), self.tuned)


@pytest.fixture(scope="module")
def town() -> FeatureMatrix:
    return town_matrix(800, 3)


def test_each_refit_sees_the_days_before_it_and_predicts_those_after(town: FeatureMatrix) -> None:
    flat, schedule = Flat(), Schedule(every_days=40, valid_days=50)
    assert isinstance(flat, Tuned)
    rolled = roll(flat, town, subjects=TEST, schedule=schedule)
    first = town.part("test").frame["sale_date"].min()
    assert isinstance(first, date)
    for refit, (train, valid) in zip(rolled.fits, flat.seen, strict=True):
        edge = refit - timedelta(days=50)
        assert (refit - first).days % 40 == 0
        assert (pl.concat([train.frame, valid.frame])["available_date"] < refit).all()
        assert (train.frame["sale_date"] < edge).all()
        assert (valid.frame["sale_date"] >= edge).all()
        known = (pl.col("available_date") < refit) & (pl.col("split") != "excluded")
        assert len(train) + len(valid) == len(town.where(known))
    days = rolled.subjects.frame["sale_date"].to_list()
    informed = rolled.prediction.information_dates
    assert informed is not None
    assert all(told < day and (day - told).days <= 45 for told, day in zip(informed, days, strict=True))
    assert rolled.arm == "flat_rolling"
    assert rolled.subjects.as_of == "rolling"
    assert rolled.subjects.log_price is None
    assert rolled.prediction.notes == ("flat",)


def test_tuning_is_kept_from_one_refit_to_the_next(town: FeatureMatrix) -> None:
    rolled = roll(Flat(), town, subjects=TEST, schedule=Schedule(every_days=60))
    tuned = [fitted.tuned for fitted in rolled.fits.values() if isinstance(fitted, Median)]
    assert tuned == list(range(len(tuned)))
    assert len(tuned) > 1


def test_prices_from_a_day_on_move_no_prediction_until_that_day() -> None:
    table = town_table(generate(sales=800, seed=4))
    before = matrix_of(table)
    day = before.part("test").frame["sale_date"].sort()[60]
    after = matrix_of(repriced(table, pl.col("sale_date") >= day))
    subjects = TEST & (pl.col("sale_date") <= day)
    schedule = Schedule(every_days=20)
    first, second = (roll(Hedonic(), matrix, subjects=subjects, schedule=schedule) for matrix in (before, after))
    assert first.prediction.point.tobytes() == second.prediction.point.tobytes()
    assert first.prediction.quantiles.tobytes() == second.prediction.quantiles.tobytes()
    assert len(first.fits) > 1


def test_what_cannot_work_is_refused(town: FeatureMatrix) -> None:
    with pytest.raises(ConfigError, match="refits every 0 days"):
        Schedule(every_days=0)
    with pytest.raises(DataError, match="no subject"):
        roll(Flat(), town, subjects=pl.col("tx_id") == "nobody")
    with pytest.raises(DataError, match="0 sales to train"):
        roll(Flat(), town, subjects=pl.col("split") == "train")
