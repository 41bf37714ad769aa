"""OpenAVMKit: its comparables engine on the same sales, and its ratio statistics on the same estimates."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

warnings.simplefilter("ignore")
from openavmkit import modeling  # noqa: E402 - it warns while it is imported
from openavmkit.utilities import stats  # noqa: E402 - the same
from openavmkit.vertical_equity_study import get_vertical_equity_scores  # noqa: E402 - the same

REPEATS = 5


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    made = work()
    return time.process_time() - begun, made


def comparables(table: Any) -> dict[str, Any]:
    """Fit the engine as `run_layeredcomp` does, in one thread, to the sales before the cut; predict those after it."""
    columns = ["lat", "lng", "area", "year"]
    frame = pd.DataFrame({name: table[name] for name in columns})
    train = table["days"] < table["cut"]
    model = modeling.LCompModel(
        tree_count=modeling._LCOMP_TREE_COUNT,  # noqa: SLF001 - its own setting
        sample_pct=modeling._LCOMP_SAMPLE_PCT,  # noqa: SLF001 - the same
        split_metric=modeling._LCOMP_SPLIT_METRIC,  # noqa: SLF001 - the same
        random_state=42,
        n_jobs=1,
    )
    fitting, _ = _cpu(lambda: model.fit(frame[train], pd.Series(table["price"][train], dtype=float)))
    asking, said = _cpu(lambda: model.predict(frame[~train]))
    return {"fit_s": fitting, "ask_s": asking, "subjects": int((~train).sum()), "estimates": np.asarray(said).tolist()}


def ratios(table: Any) -> dict[str, Any]:
    """Compute each statistic, and its bootstrap of 10,000 resamples."""
    said, paid = table["estimate"], table["price"]
    frame = pd.DataFrame({"said": said, "paid": paid})

    def points() -> dict[str, float]:
        return {
            "cod": float(stats.calc_cod(said / paid)),
            "prd": float(stats.calc_prd(pd.Series(said), pd.Series(paid))),
            "prb": float(stats.calc_prb(said, paid)[0]),
            "vei": float(get_vertical_equity_scores(frame, "paid", "said")["vei"]),
        }

    points()
    times, drawing = [], []
    drawn: dict[str, Any] = {}
    for _ in range(REPEATS):
        took, found = _cpu(points)
        times.append(took)
        took, drawn = _cpu(lambda: stats.calc_ratio_stats_bootstrap(said, paid, iterations=10_000))
        drawing.append(took)
    intervals = {name: [drawn[name].low, drawn[name].high] for name in ("cod", "prd")}
    return {"points_s": times, "draws_s": drawing, "values": found, "intervals": intervals}


if __name__ == "__main__":
    task, file = sys.argv[1:]
    print(json.dumps({"comparables": comparables, "ratios": ratios}[task](dict(np.load(Path(file))))))
