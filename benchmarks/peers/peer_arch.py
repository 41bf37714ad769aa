"""arch: its i.i.d. bootstrap of rows, and of clusters by their rows, of the median of every arm."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from arch.bootstrap import IIDBootstrap


def rows(values: Any, resamples: int) -> Any:
    """Return the medians when every row is its own cluster, which is arch's simplest case."""
    return IIDBootstrap(values, seed=1).apply(lambda drawn: np.median(drawn, axis=0), resamples)


def groups(values: Any, clusters: Any, resamples: int) -> Any:
    """Return the medians when clusters are drawn: arch draws their numbers, and their rows are put together."""
    members = [np.flatnonzero(clusters == label) for label in np.unique(clusters)]

    def medians(drawn: Any) -> Any:
        return np.median(values[np.concatenate([members[at] for at in drawn])], axis=0)

    return IIDBootstrap(np.arange(len(members)), seed=1).apply(medians, resamples)


def main() -> None:
    """Draw as often as asked and report CPU seconds with the standard deviation of the first arm's median."""
    variant, path, resamples = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    table = dict(np.load(path))
    begun = time.process_time()
    found = (
        rows(table["values"], resamples) if variant == "rows" else groups(table["values"], table["clusters"], resamples)
    )
    print(json.dumps({"cpu_s": time.process_time() - begun, "sd": float(np.std(np.asarray(found)[:, 0]))}))


if __name__ == "__main__":
    main()
