"""Comparables: subjects per CPU-second, one thread, against a scan of all sales in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from consilience.valuation.comparables import EARTH_RADIUS_KM, ComparableIndex

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "avm"
REPEATS = 5
SCANNED = 1_000
SINGLE = 2_000
COPIES = 4
Subject = dict[str, Any]


def _king_county() -> pl.DataFrame:
    table = pl.read_parquet(DATA / "king_county_2014_2015.parquet")
    return table.with_columns(area="sqft_living", year="yr_built", klass=pl.lit("house"))


def _seattle() -> pl.DataFrame:
    table = pl.read_parquet(DATA / "seattle_sales_2010_2016.parquet")
    return table.with_columns(area="tot_sf", year=pl.col("sale_date").dt.year() - pl.col("age"), klass="use_type")


def _index(table: pl.DataFrame) -> ComparableIndex:
    return ComparableIndex(
        dates=table["sale_date"].to_numpy(),
        lat=table["lat"].to_numpy(),
        lng=table["lon"].to_numpy(),
        area=table["area"].to_numpy(),
        year_built=table["year"].to_numpy(),
        parcel=table["parcel_id"].to_list(),
        klass=table["klass"].to_list(),
    )


def _subjects(table: pl.DataFrame) -> list[Subject]:
    names = {"lat": "lat", "lon": "lng", "area": "area", "year": "year_built", "parcel_id": "parcel", "klass": "klass"}
    rows = table.select(*(pl.col(old).alias(new) for old, new in names.items()), cutoff=pl.col("sale_date"))
    return [row | {"cutoff": row["cutoff"] - timedelta(days=1)} for row in rows.iter_rows(named=True)]


def _scan(table: pl.DataFrame) -> Callable[[Subject], int]:
    """Return the same rule as a plain numpy scan of every sale of the table."""
    days = table["sale_date"].to_numpy().astype("datetime64[D]").astype(np.int64)
    phi, lam = np.radians(table["lat"].to_numpy()), np.radians(table["lon"].to_numpy())
    log_area, year = np.log(table["area"].to_numpy()), table["year"].to_numpy()
    parcel, klass = (table[name].rank("dense").to_numpy() for name in ("parcel_id", "klass"))
    codes = [dict(zip(table[name], code, strict=True)) for name, code in (("parcel_id", parcel), ("klass", klass))]

    def query(s: Subject) -> int:
        age = s["cutoff"].toordinal() - date(1970, 1, 1).toordinal() - days
        rows = np.flatnonzero((age >= 1) & (age <= 540))
        rows = rows[(klass[rows] == codes[1][s["klass"]]) & (parcel[rows] != codes[0][s["parcel"]])]
        own_phi, own_lam = np.radians(s["lat"]), np.radians(s["lng"])
        half = np.sin((phi[rows] - own_phi) / 2) ** 2
        half += np.cos(phi[rows]) * np.cos(own_phi) * np.sin((lam[rows] - own_lam) / 2) ** 2
        km = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(half))
        inside, radius = np.zeros(rows.size, dtype=bool), 25.0
        for radius in (1.0, 3.0, 10.0, 25.0):
            inside = km <= radius
            if inside.sum() >= 3:
                break
        rows, km = rows[inside], km[inside]
        score = km / radius + 1.5 * np.abs(log_area[rows] - np.log(s["area"]))
        score += 0.5 * np.abs(year[rows] - s["year_built"]) / 50 + 0.5 * age[rows] / 540
        return int(rows[np.lexsort((rows, score))[:12]].size)

    return query


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _per_second(table: pl.DataFrame, subjects: list[Subject]) -> float:
    """Return subjects per CPU-second, building the index included; median of 5."""

    def work() -> None:
        index = _index(table)
        for subject in subjects:
            index.query(**subject)

    return len(subjects) / statistics.median(_cpu(work) for _ in range(REPEATS))


def _throughput(name: str, table: pl.DataFrame, goal: int) -> dict[str, Any]:
    table = table.sort("sale_date", "parcel_id", maintain_order=True)
    subjects = _subjects(table)
    ours = _per_second(table, subjects)
    scan, some = _scan(table), subjects[:: max(1, len(subjects) // SCANNED)]
    naive = len(some) / statistics.median(_cpu(lambda: [scan(s) for s in some]) for _ in range(REPEATS))
    return {
        "name": f"comparables, {name}",
        "value": round(ours),
        "unit": "subjects per CPU-second",
        "ratio": round(ours / naive, 1),
        "note": f"goal {goal:,}; all {len(subjects):,} subjects, building the index included, one thread; "
        f"ratio to a plain numpy scan ({naive:,.0f} on every {len(subjects) // SCANNED}th subject)",
    }


def _latency(table: pl.DataFrame) -> dict[str, Any]:
    index, subjects = _index(table), _subjects(table)[-SINGLE:]
    times = []
    for subject in subjects:
        start = time.perf_counter()
        index.query(**subject)
        times.append((time.perf_counter() - start) * 1e3)
    return {
        "name": "comparables, one subject",
        "value": round(statistics.median(times), 3),
        "unit": "ms",
        "ratio": None,
        "note": f"goal below 1 ms; King County's last {SINGLE:,} subjects; 99th percentile "
        f"{np.quantile(times, 0.99):.3f} ms, worst {max(times):.3f} ms",
    }


def _growth(table: pl.DataFrame) -> dict[str, Any]:
    """Compare the cost per subject in one county and in several copies of it side by side."""
    wide = pl.concat([table.with_columns(pl.col("lon") + 3.0 * copy) for copy in range(COPIES)])
    one, many = (1e6 / _per_second(sales, _subjects(sales)) for sales in (table, wide))
    return {
        "name": f"comparables, {COPIES} times the sales",
        "value": round(many, 1),
        "unit": "CPU-µs per subject",
        "ratio": round(many / one, 2),
        "note": f"ratio to one county ({one:.1f} µs); 1 is linear growth of the whole, n log n a little more",
    }


def run() -> list[dict[str, Any]]:
    """Return the rows of the result table; none where the real data are absent."""
    if not DATA.is_dir():
        return []
    king_county = _king_county().sort("sale_date", "parcel_id", maintain_order=True)
    return [
        _throughput("King County", king_county, 15_000),
        _throughput("Seattle", _seattle(), 12_000),
        _latency(king_county),
        _growth(king_county),
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
