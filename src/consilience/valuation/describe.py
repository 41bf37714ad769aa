"""What a table of sales holds, in numbers: enough to see its gaps, oddities and dates before anything is fitted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from consilience.valuation.exclusions import MARKET, exclude
from consilience.valuation.flags import flag_counts
from consilience.valuation.schema import ANALYTIC, IDENTITY, Manifest
from consilience.valuation.splits import SPLITS

QUANTILES = (("least", 0.0), ("q25", 0.25), ("median", 0.5), ("q75", 0.75), ("most", 1.0))


@dataclass(frozen=True)
class Period:
    """The sales of one split.

    Attributes:
        split: Its name.
        sales: How many.
        first: Day of the first sale, ISO.
        last: Day of the last sale, ISO.
        median_price: In the table's currency.
    """

    split: str
    sales: int
    first: str
    last: str
    median_price: float


@dataclass(frozen=True)
class Description:
    """A table of sales in numbers.

    Attributes:
        adapter: What built it.
        source_file: What it was built from.
        sales: Rows.
        parcels: Distinct parcels.
        resales: Sales of a parcel that stands earlier in the table.
        first: Day of the first sale, ISO.
        last: Day of the last sale, ISO.
        currency: Of all prices.
        prices: ``least, q25, median, q75, most``.
        classes: Sales per property class, the most frequent first.
        unknown: Sales without a value, per column that is an observation.
        flags: Sales per flag that occurs.
        exclusion_set: The declared set that chose the sales.
        excluded: Sales it dropped, per rule.
        market_would_exclude: Sales that the set ``market`` would drop from what is here, per rule.
        periods: Split by split in the order of time; empty before there are splits.
        observations: Column → its observation rule in words.
        warnings: What every reader of the figures must know.
    """

    adapter: str
    source_file: str
    sales: int
    parcels: int
    resales: int
    first: str
    last: str
    currency: str
    prices: dict[str, float]
    classes: dict[str, int]
    unknown: dict[str, int]
    flags: dict[str, int]
    exclusion_set: str
    excluded: dict[str, int]
    market_would_exclude: dict[str, int]
    periods: tuple[Period, ...]
    observations: dict[str, str]
    warnings: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        return asdict(self)


def describe(sales: pl.DataFrame, manifest: Manifest, *, splits: pl.DataFrame | None = None) -> Description:
    """Return a checked analytic table in numbers.

    Args:
        sales: The table, with at least one sale.
        manifest: What stands beside it.
        splits: ``tx_id, split`` where there are any.

    Example:
        >>> from datetime import date
        >>> from consilience.valuation.schema import Observation, RegionMap
        >>> rules = {name: Observation(rule="at_sale") for name in ANALYTIC if name not in IDENTITY}
        >>> manifest = Manifest(adapter="csv", source_file="s.csv", source_sha256="0" * 64, rows=1, currency="USD",
        ...                     region=RegionMap(municipality="town", region="county"), observations=rules)
        >>> sale = {"tx_id": "t1", "parcel_id": "p", "sale_date": date(2020, 5, 1), "price": 2e5, "flags": ["flip"]}
        >>> told = describe(pl.DataFrame([sale], schema=ANALYTIC), manifest)
        >>> told.sales, told.flags, told.unknown["lat"], told.market_would_exclude["flip"]
        (1, {'flip': 1}, 1, 1)
    """
    first, last = sales["sale_date"].min(), sales["sale_date"].max()
    classes = sales["property_class"].value_counts(sort=True).sort("count", "property_class", descending=[True, False])
    return Description(
        adapter=manifest.adapter,
        source_file=manifest.source_file,
        sales=sales.height,
        parcels=sales["parcel_id"].n_unique(),
        resales=sales.height - sales["parcel_id"].n_unique(),
        first=str(first),
        last=str(last),
        currency=manifest.currency,
        prices=dict(zip((name for name, _ in QUANTILES), _quantiles(sales["price"]), strict=True)),
        classes={str(name): count for name, count in classes.iter_rows()},
        unknown={name: sales[name].null_count() for name in ANALYTIC.names() if name not in IDENTITY},
        flags=flag_counts(sales),
        exclusion_set=manifest.exclusion_set,
        excluded=dict(manifest.exclusions),
        market_would_exclude=exclude(sales, MARKET).counts,
        periods=() if splits is None else _periods(sales, splits),
        observations=_observations(manifest),
        warnings=_warnings(sales, manifest),
    )


def _quantiles(prices: pl.Series) -> list[float]:
    return [float(prices.quantile(share, "linear") or 0.0) for _, share in QUANTILES]


def _periods(sales: pl.DataFrame, splits: pl.DataFrame) -> tuple[Period, ...]:
    told = (
        sales.join(splits, on="tx_id")
        .group_by("split")
        .agg(
            sales=pl.len(),
            first=pl.col("sale_date").min(),
            last=pl.col("sale_date").max(),
            median_price=pl.col("price").median(),
        )
    )
    rows = sorted(told.rows(), key=lambda row: SPLITS.index(row[0]))
    return tuple(Period(split, count, str(first), str(last), median) for split, count, first, last, median in rows)


def _observations(manifest: Manifest) -> dict[str, str]:
    words = {
        "at_sale": "at the sale",
        "at_roll_reference": "at the roll's reference date",
        "absent": "not in the source",
    }
    told = {}
    for name, rule in manifest.observations.items():
        day = "on a day not stated" if rule.as_of is None else f"of {rule.as_of}"
        later = ", maybe later than the sale" if rule.later_than_sale else ""
        told[name] = words.get(rule.rule, f"one snapshot {day}{later}")
    return {name: told[name] for name in ANALYTIC.names() if name in told}


def _warnings(sales: pl.DataFrame, manifest: Manifest) -> tuple[str, ...]:
    found = []
    later = manifest.later_snapshots()
    if later:
        found.append(
            f"one snapshot that may be later than the sales, as every report will say: {', '.join(later)}; "
            "what was built or mended after a sale stands there as if it had been known"
        )
    nowhere = int(sales["lat"].is_null().sum())
    if nowhere:
        found.append(f"{nowhere:,} without coordinates: they have no comparables and are none")
    if nowhere < sales.height and sales["municipality"].null_count() == sales.height:
        found.append("no municipality is known: market levels are the region's")
    return tuple(found)
