"""The stratified subsamples that language models are run on: drawn once, stored, never drawn again."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from consilience.errors import ConfigError, DataError
from consilience.experiments.parquet import read_parquet, write_parquet
from consilience.registry import nearest

TIERS: dict[str, int] = {"pilot": 24, "validation": 240, "full": 1_140}
"""Tiers and their sizes, each within the next."""

SAMPLED = ("validation", "test", "holdout")
SUBSAMPLE_SCHEMA = pl.Schema({"tx_id": pl.String(), "split": pl.String(), "tier": pl.String(), "stratum": pl.String()})
"""``tier`` is the smallest tier a sale belongs to."""


def stratify(sales: pl.DataFrame) -> pl.DataFrame:
    """Return ``tx_id, stratum``: property class × size of the municipality × price tercile.

    A municipality's size is the tercile of its number of sales among all sales given (``unknown`` where the
    municipality is). Strata use the price, so they serve drawing and reporting and never stand in a packet.

    Example:
        >>> sales = pl.DataFrame({"tx_id": ["a", "b", "c"], "property_class": ["house"] * 3,
        ...     "municipality": ["x", "x", None], "price": [1.0, 2.0, 3.0]})
        >>> stratify(sales)["stratum"].to_list()
        ['house/small/low', 'house/small/middle', 'house/unknown/high']
    """
    size = pl.when(pl.col("municipality").is_not_null()).then(pl.len().over("municipality"))
    return sales.select(
        "tx_id",
        stratum=pl.concat_str(
            pl.col("property_class"),
            _tercile(size, ("small", "medium", "large"), "min").fill_null("unknown"),
            _tercile(pl.col("price"), ("low", "middle", "high"), "ordinal"),
            separator="/",
        ),
    )


def _tercile(value: pl.Expr, names: tuple[str, str, str], method: Literal["min", "ordinal"]) -> pl.Expr:
    third = (value.rank(method) - 1) * 3 // value.count()
    return third.replace_strict([0, 1, 2], names, return_dtype=pl.String)


def draw_subsamples(sales: pl.DataFrame, splits: pl.DataFrame, *, rng: np.random.Generator) -> pl.DataFrame:
    """Return the nested stratified subsamples of validation, test and holdout, sorted by split and ``tx_id``.

    The largest tier is drawn from the split with allocation proportional to the strata (largest remainders, ties by
    name of the stratum), and each smaller tier from the next larger one in the same way. A split smaller than a tier
    is taken whole.

    Args:
        sales: The analytic table.
        splits: ``tx_id, split``.
        rng: The seeded source of the draw.
    """
    drawn = []
    for split in SAMPLED:
        pool = splits.filter(pl.col("split") == split).join(sales, on="tx_id", how="inner").sort("tx_id")
        pool = stratify(pool).with_columns(split=pl.lit(split), tier=pl.lit(None, dtype=pl.String))
        for tier, size in sorted(TIERS.items(), key=lambda item: -item[1]):
            chosen = _proportional(pool, size, rng)
            pool = chosen.with_columns(tier=pl.lit(tier))
            drawn.append(pool)
    smallest = pl.concat(drawn).unique("tx_id", keep="last")
    return smallest.select(SUBSAMPLE_SCHEMA.names()).sort("split", "tx_id")


def _proportional(pool: pl.DataFrame, size: int, rng: np.random.Generator) -> pl.DataFrame:
    if pool.height <= size:
        return pool
    groups = pool.partition_by("stratum", as_dict=True)
    names = sorted(groups)
    quotas = np.array([groups[name].height for name in names]) * size / pool.height
    counts = np.floor(quotas + 1e-9).astype(int)
    by_remainder = np.argsort(-(quotas - counts), kind="stable")
    counts[by_remainder[: size - counts.sum()]] += 1
    picked = [
        groups[name][np.sort(rng.choice(groups[name].height, count, replace=False))]
        for name, count in zip(names, counts.tolist(), strict=True)
    ]
    return pl.concat(picked)


def stored_subsamples(path: Path, sales: pl.DataFrame, splits: pl.DataFrame, *, seed: int) -> pl.DataFrame:
    """Return the subsamples stored at ``path``; draw and store them only where there are none.

    Args:
        path: ``llm_subsamples.parquet``.
        sales: The analytic table.
        splits: ``tx_id, split``.
        seed: Used only for the one draw; what is stored is returned whatever the seed.

    Raises:
        DataError: The stored file breaks its schema or holds sales that are not in their split, so it belongs to
            other splits.
    """
    if not path.exists():
        write_parquet(draw_subsamples(sales, splits, rng=np.random.default_rng(seed)), path)
    stored = read_parquet(path)
    if stored.schema != SUBSAMPLE_SCHEMA:
        raise DataError(f"{path} has columns {dict(stored.schema)}", hint="It is no subsample file; move it away.")
    strange = stored.join(splits, on=["tx_id", "split"], how="anti")
    if strange.height:
        raise DataError(
            f'{path} holds sale "{strange["tx_id"][0]}" under {strange["split"][0]}, where the splits do not',
            hint="It was drawn for other splits: bring those back, or move the file away to draw a new one.",
        )
    return stored


def select_items(stored: pl.DataFrame, *, split: str, n: int) -> list[str]:
    """Return the ids of the first ``n`` sales, sorted by id, of the smallest stored tier that holds ``n``.

    Args:
        stored: The stored subsamples.
        split: ``validation``, ``test`` or ``holdout``.
        n: How many sales, at least 1; 24, 240 and 1,140 are the tiers pilot, validation and full.

    Raises:
        ConfigError: The split has no subsample, or it holds fewer than ``n`` sales.

    Example:
        >>> stored = pl.DataFrame({"tx_id": ["b", "a", "c"], "split": ["test"] * 3, "tier": ["pilot", "pilot", "full"]})
        >>> select_items(stored, split="test", n=2)
        ['a', 'b']
    """
    if split not in SAMPLED:
        raise ConfigError(f'no subsample is drawn from split "{split}"', hint=nearest(split, SAMPLED))
    of_split = stored.filter(pl.col("split") == split)
    inside: list[str] = []
    for tier in TIERS:
        inside.append(tier)
        ids = of_split.filter(pl.col("tier").is_in(inside))["tx_id"].sort()
        if 1 <= n <= len(ids):
            return ids.head(n).to_list()
    raise ConfigError(
        f"{n} sales were asked for and the stored subsample of {split} holds {of_split.height}",
        hint=f"Ask for 1 to {of_split.height}.",
    )
