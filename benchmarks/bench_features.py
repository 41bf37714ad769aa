"""Features: analytic layer, comparables, market and features of a million synthetic sales, one thread."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from typing import Any

import polars as pl

from consilience.valuation.adapters.base import fill_absent
from consilience.valuation.features import FEATURES, build_feature_matrix
from consilience.valuation.flags import annotate
from consilience.valuation.schema import validate
from consilience.valuation.splits import time_splits
from consilience.valuation.synthetic import generate

TOWN = 31_250
COPIES = (4, 8, 32)
GOAL_GIB = 4


def _raw(copies: int) -> pl.DataFrame:
    """Return copies of a town a degree apart: more of the same, at the same density."""
    town = generate(sales=TOWN, seed=2026).sales
    names = ("tx_id", "parcel_id", "municipality", "borough", "region")
    return pl.concat(
        town.with_columns(
            *(pl.format("{}-{}", pl.col(name), pl.lit(copy)).alias(name) for name in names), lng=pl.col("lng") + copy
        )
        for copy in range(copies)
    )


def _measure(copies: int) -> dict[str, float]:
    raw = _raw(copies)
    begun = time.process_time()
    table = validate(annotate(fill_absent(raw)))
    del raw
    splits = time_splits(table)
    analytic = time.process_time()
    matrix = build_feature_matrix(table, splits)
    done = time.process_time()
    assert matrix.frame.select(FEATURES).height == copies * TOWN
    return {
        "sales": table.height,
        "analytic_s": analytic - begun,
        "features_s": done - analytic,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "candidates": matrix.frame["comp_candidates"].to_numpy().mean(),
    }


def run() -> list[dict[str, Any]]:
    """Return the rows of the result table; every size in a process of its own."""
    found = []
    for copies in COPIES:
        child = subprocess.run(
            [sys.executable, __file__, str(copies)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
        )
        found.append(json.loads(child.stdout))
    small, large = found[0], found[-1]
    seconds = [one["analytic_s"] + one["features_s"] for one in found]
    exponent = math.log(seconds[-1] / seconds[0]) / math.log(large["sales"] / small["sales"])
    nlogn = 1 + math.log(math.log(large["sales"]) / math.log(small["sales"])) / math.log(
        large["sales"] / small["sales"]
    )
    sizes = ", ".join(f"{one['sales']:,}: {second:.0f} s" for one, second in zip(found, seconds, strict=True))
    what = f"{large['sales']:,} sales"
    return [
        {
            "name": f"analytic layer, {what}",
            "value": round(large["analytic_s"], 1),
            "unit": "CPU-s",
            "note": "schema, flags and splits; one run",
        },
        {
            "name": f"comparables, market and features, {what}",
            "value": round(large["features_s"], 1),
            "unit": "CPU-s",
            "note": f"{len(FEATURES)} features; {large['candidates']:.0f} candidates per subject on average; one run",
        },
        {
            "name": f"peak memory of both, {what}",
            "value": round(large["peak_gib"], 2),
            "unit": "GiB",
            "goal": GOAL_GIB,
            "note": "resident, the raw table included; one run",
        },
        {
            "name": "growth at constant density",
            "value": round(exponent, 3),
            "unit": "exponent of n",
            "note": f"n log n would be {nlogn:.2f} over this range; {sizes}",
        },
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_measure(int(sys.argv[1]))))
    else:
        for row in run():
            print(row)
