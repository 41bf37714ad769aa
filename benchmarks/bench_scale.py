"""Comparables of every sale, parted by place on two Ray workers, at growing size and constant density."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np

from consilience.experiments.engines.ray import spread
from consilience.valuation.comparables import EARTH_RADIUS_KM, ComparableIndex
from consilience.valuation.partitions import parts_of

SIZES = (25_000, 50_000, 100_000)
PER_KM2 = 2.0
SIDE_KM = 100.0
EPOCH = np.datetime64("2014-01-01")
Columns = dict[str, Any]


def _sales(n: int) -> Columns:
    """Return sales spread evenly over a band that grows with their number."""
    draw = np.random.default_rng(n)
    high = math.degrees(100 / EARTH_RADIUS_KM)
    wide = math.degrees(n / PER_KM2 / 100 / (EARTH_RADIUS_KM * math.cos(math.radians(47))))
    return {
        "dates": EPOCH + draw.integers(0, 730, n),
        "lat": 47 + draw.uniform(0, high, n),
        "lng": -60 + draw.uniform(0, wide, n),
        "area": draw.lognormal(4.8, 0.3, n),
        "year_built": draw.integers(1920, 2014, n).astype(float),
        "parcel": np.array([f"p{number}" for number in range(n)]),
        "klass": np.full(n, "house"),
    }


def _tasks(columns: Columns) -> Iterator[tuple[Columns, list[int]]]:
    for part in parts_of(columns["lat"], columns["lng"], side_km=SIDE_KM):
        held = {name: column[part.held] for name, column in columns.items()}
        yield held, np.searchsorted(part.held, part.own).tolist()


def search(task: tuple[Columns, list[int]]) -> tuple[float, int, int]:
    """Return CPU seconds, subjects and comparables of one part."""
    columns, own = task
    begun = time.process_time()
    lists = {name: columns[name].tolist() for name in ("parcel", "klass")}
    index = ComparableIndex(**{**columns, **lists})
    days = columns["dates"].tolist()
    found = 0
    for row in own:
        subject: dict[str, Any] = {name: float(columns[name][row]) for name in ("lat", "lng", "area", "year_built")}
        subject |= {name: lists[name][row] for name in lists}
        found += index.query(**subject, cutoff=days[row] - timedelta(days=1)).rows.size
    return time.process_time() - begun, len(own), found


def _measure(n: int) -> tuple[float, int, float]:
    begun = time.perf_counter()
    parts = spread(search, _tasks(_sales(n)))
    assert sum(subjects for _, subjects, _ in parts) == n
    return sum(seconds for seconds, _, _ in parts), len(parts), time.perf_counter() - begun


def run(sizes: tuple[int, ...] = SIZES) -> list[dict[str, Any]]:
    """Return the rows of the result table; none where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        return []
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # this machine's address is the loopback's
    rows = []
    seconds = []
    for n in sizes:
        cpu, parts, wall = _measure(n)
        seconds.append(cpu)
        rows.append(
            {
                "name": f"comparables on Ray, {n:,} sales",
                "value": round(cpu, 1),
                "unit": "CPU-s",
                "note": f"{parts} parts of {SIDE_KM:.0f} km with a rim of 25 km; {wall:.0f} s on the clock; one run",
            }
        )
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    rows.append(
        {
            "name": "growth at constant density, parted",
            "value": round(float(slope), 3),
            "unit": "exponent of n",
            "note": f"least squares on {len(sizes)} sizes; 1 is linear",
        }
    )
    return rows


if __name__ == "__main__":
    for row in run(tuple(map(int, sys.argv[1:])) or SIZES):
        print(row)
