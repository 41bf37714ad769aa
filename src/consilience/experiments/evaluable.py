"""Which predictions may be judged together, and by which truth."""

from __future__ import annotations

from typing import Final

import polars as pl

from consilience.aggregation.answers import OPTION_PREFIX
from consilience.errors import DataError

ESTIMATE: Final = "estimate"
PROBABILITY: Final = "probability"
OPTIONS: Final = "options"
_SHOWN: Final = 5


def refuse_mixtures(predictions: pl.DataFrame) -> None:
    """Raise where predictions cannot stand in one table.

    Raises:
        DataError: There are none, splits are mixed, or an item stands twice for one arm and rule.
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
    known = truth.drop_nulls("truth").select("item_id", pl.col("truth").cast(pl.Float64), cluster=_cluster(truth))
    lost = predictions.join(known, on="item_id", how="anti")["item_id"].unique().sort().to_list()
    if lost:
        listed = ", ".join(lost[:_SHOWN]) + (" …" if len(lost) > _SHOWN else "")
        raise DataError(
            f"{len(lost)} item(s) have no truth: {listed}", hint="Give the table the items were drawn from."
        )
    return predictions.join(known, on="item_id", how="left", maintain_order="left")


def with_option(predictions: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Return the predictions with the columns ``option``, the true one's id or null, and ``cluster`` of each item.

    Args:
        predictions: Of any runs.
        truth: ``item_id`` and optionally ``option`` and ``cluster``; an item that it lacks has no known truth.
    """
    option = pl.col("option").cast(pl.String) if "option" in truth.columns else pl.lit(None, pl.String)
    known = truth.select("item_id", option=option, cluster=_cluster(truth))
    own = pl.lit("item:") + pl.col("item_id")
    joined = predictions.join(known, on="item_id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("cluster").fill_null(own))


def kinds_of(predictions: pl.DataFrame, truth: pl.DataFrame) -> dict[str, str]:
    """Return what each item asked for: ``estimate``, ``probability`` or ``options``.

    Any answer tells; of an item that nobody answered, its true option, then what its runs asked for elsewhere.

    Args:
        predictions: Of any runs.
        truth: With the column ``option`` where questions have any.
    """
    shares = [name for name in predictions.columns if name.startswith(OPTION_PREFIX)]
    stated = pl.col("p").is_not_null() if "p" in predictions.columns else pl.lit(value=False)
    chosen = pl.any_horizontal(pl.col(shares).is_not_null()) if shares else pl.lit(value=False)
    kind = pl.when(pl.col("point").is_not_null()).then(pl.lit(ESTIMATE)).when(stated).then(pl.lit(PROBABILITY))
    told = predictions.select("item_id", "run_id", kind=kind.when(chosen).then(pl.lit(OPTIONS)))
    found: dict[str, str] = dict(told.drop_nulls("kind").select("item_id", "kind").unique().iter_rows())
    if "option" in truth.columns:
        named = truth.drop_nulls("option")["item_id"].to_list()
        found = dict.fromkeys(named, OPTIONS) | found
    runs: dict[str, set[str]] = {}
    for item, run in told.select("item_id", "run_id").unique().iter_rows():
        runs.setdefault(run, set()).update({found[item]} if item in found else ())
    for item, run in told.select("item_id", "run_id").unique().sort("item_id", "run_id").iter_rows():
        asked = runs[run]
        found.setdefault(item, next(iter(asked)) if len(asked) == 1 else ESTIMATE)
    return found


def _cluster(truth: pl.DataFrame) -> pl.Expr:
    group = pl.col("cluster").cast(pl.String) if "cluster" in truth.columns else pl.lit(None, pl.String)
    # Prefixes keep an item without a cluster apart from a cluster that happens to bear its id.
    return pl.coalesce(pl.lit("cluster:") + group, pl.lit("item:") + pl.col("item_id"))
