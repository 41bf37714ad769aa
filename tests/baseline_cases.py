"""A synthetic town as features, for tests of baselines."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from consilience.valuation.adapters import ADAPTERS
from consilience.valuation.features import FeatureMatrix, build_feature_matrix
from consilience.valuation.splits import time_splits
from consilience.valuation.synthetic import Town, generate


def town_table(town: Town) -> pl.DataFrame:
    """Return the analytic table of a town's open-market sales."""
    table = ADAPTERS["synthetic"].to_analytic(town.sales)
    market = town.truth.filter("market")["tx_id"]
    return table.filter(pl.col("tx_id").is_in(market.implode()))


def matrix_of(table: pl.DataFrame) -> FeatureMatrix:
    """Return the features of a table, split by time."""
    return build_feature_matrix(table, time_splits(table))


def town_matrix(sales: int, seed: int) -> FeatureMatrix:
    """Return the features of a town, split by time."""
    return matrix_of(town_table(generate(sales=sales, seed=seed)))


def repriced(table: pl.DataFrame, chosen: pl.Expr, factor: float = 7.0) -> pl.DataFrame:
    """Return a table with some prices multiplied."""
    return table.with_columns(price=pl.when(chosen).then(pl.col("price") * factor).otherwise(pl.col("price")))


def last_fitting_day(matrix: FeatureMatrix) -> pl.Expr:
    """Return the last day of train and validation, as an expression."""
    last = matrix.part("train", "validation").frame["available_date"].max()
    return pl.lit(last)


def mdape(point: np.ndarray[tuple[int], np.dtype[np.float64]], matrix: FeatureMatrix) -> float:
    """Return the median absolute percentage error of answered rows."""
    error = np.abs(point / np.exp(matrix.truth()) - 1)
    return float(100 * np.median(error[~np.isnan(error)]))


ONE_DAY = timedelta(days=1)
