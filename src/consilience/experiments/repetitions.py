"""How much a run differs from itself: the items that an arm was asked again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from consilience.core.undefined import Undefined
from consilience.experiments.measures import Recorded
from consilience.inference.variance import Components, components


@dataclass(frozen=True)
class RunToRun(Recorded):
    """One arm's repetitions under the primary rule.

    Attributes:
        arm: The arm.
        n_items: Items answered in at least two runs.
        n_runs: Runs of the arm, the first one included.
        components: Variance of the signed log error between items and from run to run; undefined where too few items
            were repeated.
        spread: Median over items of the largest less the smallest log answer.
        items: By item: the answers of its runs, in order of runs.
    """

    arm: str
    n_items: int
    n_runs: int
    components: Components | Undefined
    spread: float | Undefined
    items: dict[str, tuple[float, ...]]


def run_to_run(rows: pl.DataFrame) -> tuple[RunToRun, ...]:
    """Return how much every arm with repetitions differs from itself, sorted by arm.

    Args:
        rows: Answered rows under one rule per arm, of first runs and repetitions, with ``truth``; an item once per run.
    """
    found: list[RunToRun] = []
    for (arm,), mine in rows.sort("item_id", "run_id").group_by(["arm"], maintain_order=True):
        repeated = mine.filter(pl.len().over("item_id") > 1)
        if mine["run_id"].n_unique() < 2:
            continue
        few = Undefined(f"{repeated['item_id'].n_unique()} items were answered in two runs; at least 2 are needed")
        made: Components | Undefined = few
        if repeated["item_id"].n_unique() > 1:
            error = np.log(repeated["point"].to_numpy()) - np.log(repeated["truth"].to_numpy())
            made = components(values=error, groups=repeated["item_id"].to_numpy())
        items = {
            str(item): tuple(group["point"].to_list())
            for (item,), group in repeated.group_by(["item_id"], maintain_order=True)
        }
        gaps = [float(np.ptp(np.log(points))) for points in items.values()]
        found.append(
            RunToRun(
                arm=str(arm),
                n_items=len(items),
                n_runs=mine["run_id"].n_unique(),
                components=made,
                spread=float(np.median(gaps)) if gaps else Undefined("no item was answered in two runs"),
                items=items,
            )
        )
    return tuple(sorted(found, key=lambda one: one.arm))
