from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl
from hypothesis import given, reject
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.valuation.adapters.base import fill_absent
from consilience.valuation.flags import annotate
from consilience.valuation.sampling import SAMPLED, TIERS, draw_subsamples, select_items, stratify
from consilience.valuation.splits import check_splits, time_splits

START = date(2020, 1, 1)
SALES = st.lists(
    st.tuples(st.integers(0, 800), st.integers(0, 12), st.sampled_from([5_000.0, 1e5, 1.6e5, 3e5])),
    min_size=1,
    max_size=60,
)


def table(rows: list[tuple[int, int, float]]) -> pl.DataFrame:
    return fill_absent(
        pl.DataFrame(
            {
                "tx_id": [f"t{i}" for i in range(len(rows))],
                "parcel_id": [f"p{parcel}" for _, parcel, _ in rows],
                "sale_date": [START + timedelta(days=day) for day, _, _ in rows],
                "price": [price for _, _, price in rows],
                "lat": [float(parcel % 3) for _, parcel, _ in rows],
                "lng": [1.0] * len(rows),
                "currency": ["USD"] * len(rows),
                "property_class": ["house" if parcel % 2 else "condo" for _, parcel, _ in rows],
                "municipality": [f"m{parcel % 4}" if parcel % 5 else None for _, parcel, _ in rows],
                "source": ["test"] * len(rows),
            }
        )
    )


@given(SALES, st.booleans())
def test_time_runs_forward_and_no_parcel_is_seen_again(rows: list[tuple[int, int, float]], grouped: bool) -> None:
    sales = annotate(table(rows))
    try:
        made = time_splits(sales, group_parcels=grouped)
    except DataError:
        reject()  # too few days to fill four splits
    joined = sales.join(check_splits(made.frame, sales=sales), on="tx_id")
    order = {"excluded": 0, "train": 0, "validation": 1, "test": 2, "holdout": 3}
    ranks = joined.sort("sale_date")["split"].replace_strict(order, return_dtype=pl.Int64)
    assert ranks.is_sorted()
    assert joined.group_by("sale_date").agg(pl.col("split").replace("excluded", "train").n_unique())["split"].max() == 1
    judged = set(joined.filter(pl.col("split").is_in(["test", "holdout"]))["parcel_id"])
    trained = set(joined.filter(pl.col("split") == "train")["parcel_id"])
    assert not grouped or not judged & trained
    assert made.moved == joined.filter(pl.col("split") == "excluded").height


@given(SALES, st.integers(0, 800))
def test_later_sales_never_change_an_earlier_sales_flags(rows: list[tuple[int, int, float]], day: int) -> None:
    until = START + timedelta(days=day)
    whole = annotate(table(rows)).filter(pl.col("sale_date") <= until)
    past = annotate(table(rows).filter(pl.col("sale_date") <= until))
    assert whole.equals(past)


@given(SALES)
def test_flagging_drops_and_invents_no_sale(rows: list[tuple[int, int, float]]) -> None:
    flagged = annotate(table(rows))
    assert sorted(flagged["tx_id"]) == sorted(table(rows)["tx_id"])
    assert flagged.select("sale_date", "parcel_id").equals(flagged.select("sale_date", "parcel_id").sort(pl.all()))


@given(st.integers(40, 2_000), st.integers(0, 2**32))
def test_subsamples_are_nested_proportional_and_repeatable(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = list(zip(range(n), rng.integers(0, 40, n).tolist(), rng.lognormal(12, 0.4, n).tolist(), strict=True))
    sales = table(rows)
    splits = sales.select("tx_id", split=pl.Series(rng.choice([*SAMPLED, "train"], n)))
    drawn = draw_subsamples(sales, splits, rng=np.random.default_rng(seed))
    assert drawn.equals(draw_subsamples(sales.reverse(), splits, rng=np.random.default_rng(seed)))
    assert drawn["tx_id"].is_unique().all()
    for split in SAMPLED:
        pool = splits.filter(pl.col("split") == split)
        stored = drawn.filter(pl.col("split") == split)
        assert stored.height == min(pool.height, TIERS["full"])
        strata = dict(stratify(pool.join(sales, on="tx_id"))["stratum"].value_counts().iter_rows())
        pilot, inside = (stored.filter(pl.col("tier").is_in(names)) for names in (["pilot"], ["pilot", "validation"]))
        for tier, size in ((pilot, 24), (inside, 240)):
            assert tier.height == min(size, pool.height)
            assert not tier.height or select_items(drawn, split=split, n=tier.height) == sorted(tier["tx_id"])
        # Whole splits were stored here, so the second tier was drawn straight from the split.
        share = min(1.0, 240 / max(1, pool.height))
        found = dict(inside["stratum"].value_counts().iter_rows())
        assert all(abs(found.get(name, 0) - share * count) <= 1 for name, count in strata.items())
