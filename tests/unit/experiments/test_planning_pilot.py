"""A pilot of two arms: which rows count, what repetitions tell, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from consilience.errors import PlanError
from consilience.experiments.planning import MEAN, MEDIAN, foreseen, pilot
from consilience.inference.effective import Undefined

RUN_SD = 0.1


def rows(arm: str, run: str, items: range, seed: int, **more: Any) -> pl.DataFrame:
    """Log errors: 0.5 + what belongs to arm and item + what belongs to the run."""
    rng = np.random.default_rng([sum(arm.encode()), 1])
    lasting = rng.normal(0, 0.05, 400)
    noise = np.random.default_rng(seed).normal(0, RUN_SD, 400)
    told = {"split": "validation", "arm": arm, "run_id": run, "aggregation": "median", "n_seats": 12}
    made = [
        told
        | {
            "item_id": f"i{at:03d}",
            "status": "answered",
            "point": 100 * float(np.exp(0.5 + lasting[at] + noise[at])),
            "truth": 100.0,
            "cluster": f"c{at // 2}",
        }
        | more
        for at in items
    ]
    return pl.DataFrame(made)


ITEMS = range(300)
PAIR = [rows("E", "e", ITEMS, 1), rows("F", "f", ITEMS, 2)]
REPEATED = [rows("E", "e2", range(100), 3), rows("F", "f2", range(100), 4)]


def test_repetitions_tell_the_variance_from_run_to_run_and_what_averaging_gains() -> None:
    made = pilot(pl.concat([*PAIR, *REPEATED]))
    assert made.arms == ("E", "F")
    assert made.log_losses.shape == (300, 2)
    assert made.n_clusters == 150
    for variance in made.run_variance:
        assert isinstance(variance, float)
        assert variance == pytest.approx(RUN_SD**2, rel=0.3)
    mean, median = foreseen(made, n_clusters=300)
    assert (mean.measure, median.measure) == (MEAN, MEDIAN)
    assert mean.se == pytest.approx(np.sqrt(2 * (0.05**2 + RUN_SD**2) / 600), rel=0.15)
    (averaged,) = foreseen(made, n_clusters=300, runs=4, effect=0.02)
    assert averaged.se == pytest.approx(np.sqrt(2 * (0.05**2 + RUN_SD**2 / 4) / 600), rel=0.3)
    assert averaged.power is not None
    assert averaged.least < mean.least


def test_without_repetitions_averaging_is_not_foreseen() -> None:
    made = pilot(pl.concat(PAIR))
    assert made.run_variance == (Undefined("there are no repetitions"),) * 2
    with pytest.raises(PlanError, match="no repetitions"):
        foreseen(made, n_clusters=300, runs=2)


@pytest.mark.parametrize("split", ["test", "holdout"])
def test_sealed_items_are_not_planned_from(split: str) -> None:
    with pytest.raises(PlanError, match=split):
        pilot(pl.concat([PAIR[0], rows("F", "f", ITEMS, 2, split=split)]))


def test_what_is_no_pilot_is_refused() -> None:
    with pytest.raises(PlanError, match="two arms"):
        pilot(PAIR[0])
    with pytest.raises(PlanError, match="no common item"):
        pilot(pl.concat([PAIR[0], rows("F", "f", range(300, 310), 2)]))
    wrong = [rows("F", "f", ITEMS, 2, aggregation=rule) for rule in ("mean", "trimmed")]
    with pytest.raises(PlanError, match="under the rule"):
        pilot(pl.concat([PAIR[0], *wrong]))
    with pytest.raises(PlanError, match="never differ"):
        foreseen(pilot(pl.concat([PAIR[0], PAIR[0].with_columns(arm=pl.lit("F"))])), n_clusters=30)
    with pytest.raises(PlanError, match="one cluster"):
        foreseen(pilot(pl.concat(PAIR).with_columns(cluster=pl.lit("c"))), n_clusters=30)
    with pytest.raises(PlanError, match="at least two"):
        foreseen(pilot(pl.concat(PAIR)), n_clusters=1)
