"""Which predictions may be judged together, and by which truth."""

from __future__ import annotations

from typing import Final

import polars as pl

from consilience.errors import DataError

_SHOWN: Final = 5


def refuse_mixtures(predictions: pl.DataFrame) -> None:
    """Raise where predictions cannot stand in one table.

    Raises:
        DataError: There are none, splits are mixed, an item stands twice for one arm and rule, or an answer is no
            number.
    """
    if predictions.is_empty():
        raise DataError("there are no predictions to evaluate", hint="Finish a run first.")
    splits = predictions.group_by("split").agg(pl.col("run_id").unique().sort()).sort("split")
    if splits.height > 1:
        found = "; ".join(f"{split or 'none'} ({', '.join(runs)})" for split, runs in splits.iter_rows())
        raise DataError(f"predictions mix splits: {found}", hint="Evaluate the runs of one split at a time.")
    twice = predictions.filter(pl.struct("item_id", "arm", "aggregation").is_duplicated())
    if twice.height:
        first = twice.row(0, named=True)
        runs = sorted(twice.filter(pl.col("arm") == first["arm"])["run_id"].unique())
        raise DataError(
            f"arm {first['arm']} answers item {first['item_id']} twice, in the runs {', '.join(runs)}",
            hint="Name the runs to evaluate, one per arm (a run of nested rounds brings its own F_independent). Runs "
            "of other seeds are evaluated apart.",
        )
    speechless = predictions.filter((pl.col("status") == "answered") & pl.col("point").is_null())
    if speechless.height:
        first = speechless.row(0, named=True)
        raise DataError(
            f"item {first['item_id']} of arm {first['arm']} (run {first['run_id']}) is not answered with a number",
            hint="Probabilities, distributions and choices are not scored yet: name the runs that asked for estimates.",
        )


def with_truth(predictions: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Return the predictions with the columns ``truth`` and ``cluster`` of each item.

    Args:
        predictions: Of any runs.
        truth: ``item_id, truth`` and optionally ``cluster`` (null: the item is its own); may hold more items.

    Raises:
        DataError: A column is missing, or an item has no truth or two.
    """
    for column in ("item_id", "truth"):
        if column not in truth.columns:
            raise DataError(f'the truth lacks the column "{column}"', hint="Give item_id and truth, maybe cluster.")
    twice = truth.filter(pl.col("item_id").is_duplicated())["item_id"]
    if twice.len():
        raise DataError(f"item {twice[0]} has two truths", hint="Give each item one row.")
    group = pl.col("cluster").cast(pl.String) if "cluster" in truth.columns else pl.lit(None, pl.String)
    known = truth.drop_nulls("truth").select(
        "item_id",
        pl.col("truth").cast(pl.Float64),
        # Prefixes keep an item without a cluster apart from a cluster that happens to bear its id.
        cluster=pl.coalesce(pl.lit("cluster:") + group, pl.lit("item:") + pl.col("item_id")),
    )
    lost = predictions.join(known, on="item_id", how="anti")["item_id"].unique().sort().to_list()
    if lost:
        listed = ", ".join(lost[:_SHOWN]) + (" …" if len(lost) > _SHOWN else "")
        raise DataError(
            f"{len(lost)} item(s) have no truth: {listed}", hint="Give the table the items were drawn from."
        )
    return predictions.join(known, on="item_id", how="left", maintain_order="left")
