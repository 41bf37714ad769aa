"""Comparables by our rule from a tree of places: SciPy's k-d tree and scikit-learn's ball tree.

The tree knows places alone: date, class and parcel are filtered after each radius, then comes the haversine formula.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from sklearn.neighbors import BallTree

EARTH_RADIUS_KM = 6371.0088
RADII_KM = (1.0, 3.0, 10.0, 25.0)
Near = Callable[[int, float], Any]


def _kd_tree(phi: Any, lam: Any) -> Near:
    unit = np.column_stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])
    tree = cKDTree(unit)

    def near(subject: int, km: float) -> Any:
        chord = 2 * np.sin(km / EARTH_RADIUS_KM / 2) * (1 + 1e-9)
        return np.sort(np.array(tree.query_ball_point(unit[subject], chord), dtype=np.int64))

    return near


def _ball_tree(phi: Any, lam: Any) -> Near:
    places = np.column_stack([phi, lam])
    tree = BallTree(places, metric="haversine")

    def near(subject: int, km: float) -> Any:
        return np.sort(tree.query_radius(places[subject : subject + 1], km / EARTH_RADIUS_KM * (1 + 1e-9))[0])

    return near


def comparables(sales: Any, subjects: Any, tree: Callable[[Any, Any], Near]) -> list[Any]:
    """Return the rows of each subject's comparables, best first."""
    days, area, year = sales["days"], sales["area"], sales["year"]
    parcel, klass, cutoff = sales["parcel"], sales["klass"], sales["cutoff"]
    phi, lam = np.radians(sales["lat"]), np.radians(sales["lng"])
    log_area = np.log(area)
    near = tree(phi, lam)
    found = []
    for subject in subjects:
        rows, km, radius = np.empty(0, dtype=np.int64), np.empty(0), 1.0
        for radius in RADII_KM:
            rows = near(subject, radius)
            age = cutoff[subject] - days[rows]
            rows = rows[(age >= 1) & (age <= 540) & (klass[rows] == klass[subject]) & (parcel[rows] != parcel[subject])]
            half = np.sin((phi[rows] - phi[subject]) / 2) ** 2
            half += np.cos(phi[rows]) * np.cos(phi[subject]) * np.sin((lam[rows] - lam[subject]) / 2) ** 2
            km = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(half))
            rows, km = rows[km <= radius], km[km <= radius]
            if rows.size >= 3:
                break
        score = km / radius + 1.5 * np.abs(log_area[rows] - log_area[subject])
        score += 0.5 * np.abs(year[rows] - year[subject]) / 50 + 0.5 * (cutoff[subject] - days[rows]) / 540
        found.append(rows[np.lexsort((rows, np.round(score, 11)))[:12]])
    return found


def main() -> None:
    """Find the comparables of every subject in the table, and report CPU seconds; rows go beside the table."""
    variant, path = sys.argv[1], Path(sys.argv[2])
    sales = dict(np.load(path))
    subjects = np.arange(len(sales["days"]))
    begun = time.process_time()
    found = comparables(sales, subjects, {"kd": _kd_tree, "ball": _ball_tree}[variant])
    took = time.process_time() - begun
    rows = np.full((len(found), 12), -1, dtype=np.int64)
    for at, best in enumerate(found):
        rows[at, : best.size] = best
    np.save(path.with_name(f"rows-{variant}.npy"), rows)
    print(json.dumps({"cpu_s": took, "subjects": len(found)}))


if __name__ == "__main__":
    main()
