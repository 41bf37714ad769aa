"""What all arms stated on the items that each of them answered: for pictures that compare them item by item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from consilience.experiments.comparing import answered
from consilience.experiments.evaluable import with_truth
from consilience.inference.bootstrap import Labels
from consilience.scoring.point import FloatArray

_TEXT: Final = {"arm": pl.String, "aggregation": pl.String}


@dataclass(frozen=True, eq=False)
class Stated:
    """The answers of several arms to the same items, each arm under its primary rule.

    Attributes:
        arms: Labels, sorted.
        values: Points or probabilities, shape (n, arms).
        truth: What turned out, shape (n,).
        clusters: Of the items, shape (n,).
    """

    arms: tuple[str, ...]
    values: FloatArray
    truth: FloatArray
    clusters: Labels


def stated(predictions: pl.DataFrame, truth: pl.DataFrame, *, rules: Mapping[str, str], column: str) -> Stated | None:
    """Return what arms stated on the items that all of them answered; None where there is no such item.

    Args:
        predictions: What was evaluated.
        truth: ``item_id, truth`` and optionally ``cluster``.
        rules: Primary rule by arm; arms with no answer at all are left out.
        column: ``point`` or ``p``.

    Example:
        >>> told = {"aggregation": "median", "status": "answered"}
        >>> frame = pl.DataFrame([told | {"item_id": item, "arm": arm, "point": 1.0}
        ...                       for item, arm in (("a", "E"), ("b", "E"), ("b", "F"))])
        >>> truth = pl.DataFrame({"item_id": ["a", "b"], "truth": [1.0, 2.0]})
        >>> made = stated(frame, truth, rules={"E": "median", "F": "median", "G": "median"}, column="point")
        >>> made.arms, made.values.tolist(), made.truth.tolist()
        (('E', 'F'), [[1.0, 1.0]], [2.0])
    """
    if column not in predictions.columns:
        return None
    primary = pl.DataFrame({"arm": list(rules), "aggregation": list(rules.values())}, schema_overrides=_TEXT)
    rows = answered(predictions).join(primary, on=["arm", "aggregation"], how="semi").drop_nulls(column)
    known = truth.drop_nulls("truth")
    rows = with_truth(rows.join(known.select("item_id"), on="item_id", how="semi"), known)
    arms = tuple(sorted(rows["arm"].unique()))
    by_item = rows.group_by("item_id").len().filter(pl.col("len") == len(arms))
    rows = rows.join(by_item, on="item_id", how="semi").sort("arm", "item_id")
    if rows.is_empty():
        return None
    n = by_item.height
    values: FloatArray = rows[column].to_numpy().reshape(len(arms), n).T
    return Stated(arms, np.ascontiguousarray(values), rows["truth"].to_numpy()[:n], rows["cluster"].to_numpy()[:n])
