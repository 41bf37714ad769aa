"""Baselines on real sales: error, level by month and coverage, frozen and rolling, never in one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.scoring.interval import covered
from consilience.scoring.point import log_error
from consilience.scoring.summaries import Share, share, summarise_points
from consilience.valuation.adapters import ADAPTERS, build
from consilience.valuation.baselines import BASELINES, Prediction
from consilience.valuation.features import FeatureMatrix, build_feature_matrix
from consilience.valuation.rolling import Schedule, roll
from consilience.valuation.splits import time_splits

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "avm"
KING_COUNTY = (date(2014, 12, 17), date(2015, 2, 15), date(2016, 1, 1))
"""Validation is the last 60 days before the test begins; nothing is held out."""
SEATTLE = (date(2015, 11, 2), date(2016, 1, 1), date(2017, 1, 1))
ARMS = ("A_hedonic", "A2_adjusted_comps", "B_hierarchical", "C_boosting", "D_avm")
SCHEDULE = Schedule(every_days=14)
MONTHLY = Schedule()
ERROR_GOALS = {"A_hedonic": 11.3, "A2_adjusted_comps": 8.9, "C_boosting": 8.8}
YEAR = 1.0

Groups = npt.NDArray[np.generic]


def _matrix(adapter: str, file: str, edges: tuple[date, date, date]) -> FeatureMatrix:
    table = build(ADAPTERS[adapter], DATA / file).frame
    return build_feature_matrix(table, time_splits(table, boundaries=edges))


@dataclass(frozen=True)
class Scored:
    """What one arm said of the subjects it answers, against the prices paid."""

    subjects: FeatureMatrix
    prediction: Prediction

    @property
    def truth(self) -> npt.NDArray[np.float64]:
        """Prices paid."""
        return np.exp(self.subjects.truth())

    @property
    def months(self) -> Groups:
        """Month of each sale."""
        return self.subjects.frame["sale_date"].to_numpy().astype("datetime64[M]")

    @property
    def quartiles(self) -> Groups:
        """Quartile of each price paid, from 1."""
        cuts = np.quantile(self.truth, [0.25, 0.5, 0.75])
        return np.searchsorted(cuts, self.truth, side="right") + 1

    def hits(self, low: int, high: int) -> npt.NDArray[np.bool_]:
        """Whether each price lies between two of the five quantiles."""
        quantiles = self.prediction.quantiles
        return covered(lower=quantiles[:, low], upper=quantiles[:, high], outcome=self.truth)

    def width(self) -> float:
        """Median width of the 90 % interval in logs."""
        quantiles = np.log(self.prediction.quantiles)
        return float(np.median(quantiles[:, 4] - quantiles[:, 0]))

    def level(self) -> str:
        """Median ratio of estimate to price by month."""
        error = log_error(estimate=self.prediction.point, truth=self.truth)
        return ", ".join(
            f"{month} {np.exp(np.median(error[self.months == month])):.3f}" for month in np.unique(self.months)
        )


def _scored(subjects: FeatureMatrix, prediction: Prediction) -> Scored:
    rows = np.flatnonzero(prediction.answered)
    kept = Prediction(point=prediction.point[rows], quantiles=prediction.quantiles[rows])
    return Scored(subjects.take(rows), kept)


def _told(found: Share) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _by(groups: Groups, hits: npt.NDArray[np.bool_]) -> list[tuple[str, Share]]:
    return [(str(group), share(hits=hits[groups == group])) for group in np.unique(groups)]


def _error_rows(name: str, found: Scored, asked: int, goal: float | None, *, ppe10: bool = False) -> Iterator[Any]:
    points = summarise_points(estimate=found.prediction.point, truth=found.truth)
    yield {
        "name": f"{name}: MdAPE",
        "value": round(100 * points.mdape, 2),
        "unit": "%",
        "goal": goal,
        "note": f"{points.n:,} of {asked:,} answered; PPE10 {100 * points.ppe10:.1f}, PPE20 {100 * points.ppe20:.1f}, "
        f"RMSE log {points.rmse_log:.4f}; median ratio by month: {found.level()}",
    }
    if ppe10:
        yield {"name": f"{name}: PPE10", "value": round(100 * points.ppe10, 1), "unit": "%", "goal": 55.0}


def _coverage_rows(name: str, found: Scored, *, goals: bool) -> Iterator[Any]:
    hits = found.hits(0, 4)
    overall, months, quartiles = share(hits=hits), _by(found.months, hits), _by(found.quartiles, hits)
    half = share(hits=found.hits(1, 3))
    yield {
        "name": f"{name}: 90 % coverage",
        "value": round(overall.value, 3),
        "unit": "of subjects",
        "goal": ".88–.92" if goals else None,
        "note": f"Wilson [{overall.low:.3f}, {overall.high:.3f}]; 50 % {_told(half)}; "
        f"median width {found.width():.3f} log",
    }
    for what, groups, goal in (("month", months, 0.86), ("price quartile", quartiles, 0.82)):
        yield {
            "name": f"{name}: lowest 90 % coverage of a {what}",
            "value": round(min(part.value for _, part in groups), 3),
            "unit": "of subjects",
            "goal": goal if goals else None,
            "note": "; ".join(f"{group} {_told(part)} (n {part.n:,})" for group, part in groups),
        }


def _king_county() -> Iterator[Any]:
    matrix = _matrix("king_county", "king_county_2014_2015.parquet", KING_COUNTY)
    train, valid, test = (matrix.part(name) for name in ("train", "validation", "test"))
    for arm in ARMS:
        baseline = BASELINES[arm]()
        frozen = _scored(test, baseline.fit(train, valid).predict(test.blind()))
        name = f"King County, {arm}, frozen"
        yield from _error_rows(name, frozen, len(test), ERROR_GOALS.get(arm), ppe10=arm == "C_boosting")
        yield from _coverage_rows(name, frozen, goals=False)
        rolled = roll(baseline, matrix, subjects=pl.col("split") == "test", schedule=SCHEDULE)
        found = _scored(test, rolled.prediction)
        name = f"King County, {arm}, rolling every {SCHEDULE.every_days} days"
        yield from _error_rows(name, found, len(test), None)
        yield from _coverage_rows(name, found, goals=arm == "D_avm")


def _seattle() -> Iterator[Any]:
    matrix = _matrix("seattle", "seattle_sales_2010_2016.parquet", SEATTLE)
    test = matrix.part("test")
    rolled = roll(BASELINES["C_boosting"](), matrix, subjects=pl.col("split") == "test", schedule=MONTHLY)
    found = _scored(test, rolled.prediction)
    yield from _error_rows(f"Seattle 2016, {rolled.arm}, every {MONTHLY.every_days} days", found, len(test), 8.8)
    held = test.where(pl.col("prior_years") >= YEAR)
    train, valid = matrix.part("train"), matrix.part("validation")
    said = {arm: BASELINES[arm]().fit(train, valid).predict(held.blind()) for arm in ("B_hierarchical", "D_index")}
    both = np.flatnonzero(said["B_hierarchical"].answered & said["D_index"].answered)
    truth = np.exp(held.truth()[both])
    ours, index = (
        summarise_points(estimate=said[arm].point[both], truth=truth) for arm in ("B_hierarchical", "D_index")
    )
    yield {
        "name": "Seattle 2016, resales held a year or more, B_hierarchical, frozen: MdAPE",
        "value": round(100 * ours.mdape, 2),
        "unit": "%",
        "goal": "below the index",
        "peer": f"D_index (prior price × index), {100 * index.mdape:.2f} %",
        "ratio": round(ours.mdape / index.mdape, 3),
        "note": f"{len(both):,} of {len(held):,} resales answered by both; RMSE log {ours.rmse_log:.4f} "
        f"against {index.rmse_log:.4f}; hit rate of the index over all of 2016 {len(held) / len(test):.3f}",
    }


def run() -> list[dict[str, Any]]:
    """Return the rows of the result table; none where the real data are absent."""
    if not DATA.is_dir():
        return []
    return [*_king_county(), *_seattle()]


if __name__ == "__main__":
    for row in run():
        print(row)
