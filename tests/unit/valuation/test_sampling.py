from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from consilience.errors import ConfigError, DataError
from consilience.experiments.parquet import write_parquet
from consilience.valuation.sampling import TIERS, draw_subsamples, select_items, stored_subsamples, stratify


def sales(n: int = 3_000) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "tx_id": [f"t{i:05d}" for i in range(n)],
            "property_class": rng.choice(["house", "condo"], n, p=[0.8, 0.2]),
            "municipality": [f"m{i}" for i in rng.geometric(0.15, n)],
            "price": rng.lognormal(12, 0.5, n),
        }
    )


def splits(n: int = 3_000, share: int = 2) -> pl.DataFrame:
    return sales(n).select("tx_id", split=pl.when(pl.int_range(n) % share == 0).then(pl.lit("test")).otherwise(None))


def test_strata_are_terciles_of_price_and_of_the_municipalitys_size() -> None:
    table = stratify(sales()).with_columns(part=pl.col("stratum").str.split("/"))
    prices = table["part"].list.get(2).value_counts()
    assert dict(prices.iter_rows()) == {"low": 1_000, "middle": 1_000, "high": 1_000}
    joined = table.join(sales(), on="tx_id").with_columns(
        size=pl.len().over("municipality"), name=pl.col("part").list.get(1)
    )
    ranges = {
        name: (group["size"].min(), group["size"].max())
        for (name,), group in joined.partition_by("name", as_dict=True).items()
    }
    assert set(ranges) == {"small", "medium", "large"}
    assert joined.filter(pl.col("name") == "small")["size"].to_numpy().max() < (
        joined.filter(pl.col("name") == "large")["size"].to_numpy().min()
    )


def test_the_draw_is_nested_seeded_and_of_the_declared_sizes() -> None:
    first = draw_subsamples(sales(), splits(), rng=np.random.default_rng(7))
    assert first.equals(draw_subsamples(sales(), splits(), rng=np.random.default_rng(7)))
    assert not first.equals(draw_subsamples(sales(), splits(), rng=np.random.default_rng(8)))
    counts = dict(first["tier"].value_counts().iter_rows())
    assert counts == {"pilot": 24, "validation": 240 - 24, "full": 1_140 - 240}
    assert set(first["split"]) == {"test"}
    assert first["tx_id"].is_sorted()


def test_allocation_is_proportional() -> None:
    drawn = draw_subsamples(sales(), splits(), rng=np.random.default_rng(7))
    pool = stratify(sales().join(splits().filter(pl.col("split") == "test"), on="tx_id"))
    whole = dict(pool["stratum"].value_counts().iter_rows())
    found = dict(drawn["stratum"].value_counts().iter_rows())
    assert len(whole) > 10
    for name, count in whole.items():
        assert abs(found.get(name, 0) - count * TIERS["full"] / pool.height) < 1


def test_what_is_stored_is_never_drawn_again(tmp_path: Path) -> None:
    path = tmp_path / "llm_subsamples.parquet"
    first = stored_subsamples(path, sales(), splits(), seed=7)
    before = path.read_bytes()
    assert stored_subsamples(path, sales(), splits(), seed=8).equals(first)
    assert path.read_bytes() == before


def test_a_subsample_of_other_splits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "llm_subsamples.parquet"
    stored_subsamples(path, sales(), splits(), seed=7)
    with pytest.raises(DataError, match="It was drawn for other splits"):
        stored_subsamples(path, sales(), splits(share=3), seed=7)
    write_parquet(sales(), path)
    with pytest.raises(DataError, match="It is no subsample file"):
        stored_subsamples(path, sales(), splits(), seed=7)


def test_items_are_the_first_n_by_id_of_the_smallest_tier_that_holds_them() -> None:
    stored = draw_subsamples(sales(), splits(), rng=np.random.default_rng(7))
    pilot = stored.filter(pl.col("tier") == "pilot")["tx_id"].sort().to_list()
    second = stored.filter(pl.col("tier") != "full")["tx_id"].sort().to_list()
    assert select_items(stored, split="test", n=24) == pilot
    assert select_items(stored, split="test", n=5) == pilot[:5]
    assert select_items(stored, split="test", n=25) == second[:25]
    assert select_items(stored, split="test", n=1_140) == stored["tx_id"].sort().to_list()


def test_too_many_items_or_an_unsampled_split_are_refused() -> None:
    stored = draw_subsamples(sales(), splits(), rng=np.random.default_rng(7))
    for n in (0, 1_141):
        with pytest.raises(ConfigError, match="Ask for 1 to 1140"):
            select_items(stored, split="test", n=n)
    with pytest.raises(ConfigError, match="no subsample is drawn from"):
        select_items(stored, split="train", n=1)
