"""Leaks are found by structure: what must not be known is changed, and nothing that was said before may move.

A model that sees its own sale is hardly more accurate than an honest one, so accuracy reveals nothing. Each check here
runs on honest code, where it must hold, and on variants with a planted leak, where it must fail.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from consilience.core.canonical import canonical_json
from consilience.valuation import features, market
from consilience.valuation.comparables import ComparableIndex
from consilience.valuation.features import FEATURES, build_feature_matrix
from consilience.valuation.features_comparables import find_comparables
from consilience.valuation.market import MarketHistory
from consilience.valuation.packets import PacketBuilder
from leak_cases import (
    CHANGES,
    Change,
    Said,
    Source,
    days_of,
    deleted,
    eves,
    judged,
    known_from,
    make_county,
    make_town,
    raw_ids,
    repriced,
    rows_of,
)


@pytest.fixture(scope="module")
def town() -> Source:
    return make_town()


@pytest.fixture(scope="module")
def county(shared: Path) -> Source:
    return make_county(shared)


def the_future_moves_nothing(source: Source, day: date, change: Change) -> None:
    """Change or delete every price known on or after a day: all that is said of subjects valued by it stays."""
    sales = known_from(source, source.raw)
    future = sales.filter(pl.col("known") >= day)["tx_id"]
    subjects = sales.filter(pl.col("valued") <= day)
    if change is deleted:  # a deleted sale is no subject: those of the day itself are repriced instead
        changed = repriced(source.raw, raw_ids(source).is_in(future.implode()))
        keep = subjects.filter(pl.col("tx_id").is_in(future.implode()))["tx_id"]
        gone = future.filter(~future.is_in(keep.implode()))
        changed = deleted(changed, raw_ids(source).is_in(gone.implode()))
    else:
        changed = change(source.raw, raw_ids(source).is_in(future.implode()))
    assert not changed.equals(source.raw)
    tx_ids = subjects.sort("valued", "tx_id", descending=True)["tx_id"].to_list()
    assert subjects.filter(pl.col("valued") == day).height
    assert Said(source, changed).of(tx_ids) == Said(source, source.raw).of(tx_ids)


def comparables_and_prior_sales_are_older_than_the_cutoff(source: Source, day: date) -> None:
    """Change every price known on or after the cutoff: comparables and prior sales of that day's subjects stay."""
    sales = known_from(source, source.raw)
    cutoff = day - timedelta(days=1)
    hit = raw_ids(source).is_in(sales.filter(pl.col("known") >= cutoff)["tx_id"].implode())
    assert sales.filter(pl.col("known") == cutoff).height
    tx_ids = sales.filter(pl.col("valued") == day)["tx_id"].to_list()
    names = ("prior_sale_date", "prior_sale_price", *(name for name in FEATURES if name.startswith("comp_")))
    shown = []
    for raw in (source.raw, repriced(source.raw, hit)):
        said = Said(source, raw)
        chosen = rows_of(said.matrix, tx_ids)
        packets = [said.builder.build(tx_id) for tx_id in tx_ids]
        evidence = [[packet.sections[code].model_dump(mode="json") for code in "PC"] for packet in packets]
        shown.append((chosen.frame.select(names).write_ndjson(), [canonical_json(part) for part in evidence]))
        days = chosen.sales["available_date"].to_numpy()[chosen.comparables.rows]
        assert (days[chosen.comparables.rows >= 0] < np.datetime64(cutoff)).all()
    assert shown[0] == shown[1]


def no_sale_of_the_own_parcel_is_comparable(source: Source) -> None:
    table = source.analytic(source.raw)
    whole = build_feature_matrix(table, source.splits(table))
    rows = whole.comparables.rows
    parcels = whole.sales["parcel_id"].to_numpy()[np.maximum(rows, 0)]
    assert (rows >= 0).sum() > 1000
    assert not ((parcels == whole.frame["parcel_id"].to_numpy()[:, None]) & (rows >= 0)).any()


def the_own_price_moves_nothing(source: Source, factor: float) -> None:
    """Change the price of one subject outside train and validation: nothing that is said of it moves."""
    before = Said(source, source.raw)
    for tx_id in judged(source):
        changed = repriced(source.raw, raw_ids(source) == tx_id, factor)
        assert not changed.equals(source.raw)
        assert Said(source, changed).of([tx_id]) == before.of([tx_id])


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", range(3))
def test_the_future_moves_nothing_in_the_town(town: Source, when: int, change: Change) -> None:
    the_future_moves_nothing(town, days_of(town)[when], change)


def test_cutoffs_are_strict_in_the_town(town: Source) -> None:
    for day in eves(town):
        comparables_and_prior_sales_are_older_than_the_cutoff(town, day)
    no_sale_of_the_own_parcel_is_comparable(town)


@pytest.mark.parametrize("factor", [1.0001, 4.0])
def test_the_own_price_moves_nothing_in_the_town(town: Source, factor: float) -> None:
    the_own_price_moves_nothing(town, factor)


@pytest.mark.shared_data
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.slow
def test_the_future_moves_nothing_in_king_county(county: Source, change: Change) -> None:
    the_future_moves_nothing(county, days_of(county)[1], change)


@pytest.mark.shared_data
@pytest.mark.slow
def test_cutoffs_and_own_prices_in_king_county(county: Source) -> None:
    comparables_and_prior_sales_are_older_than_the_cutoff(county, days_of(county)[2])
    no_sale_of_the_own_parcel_is_comparable(county)
    the_own_price_moves_nothing(county, 2.0)


# Planted leaks: each is a variant of the honest code with one mistake, and the check that has to catch it.

Patch = pytest.MonkeyPatch


def _comparables_up_to_the_cutoff(patch: Patch) -> None:
    """`<=` for `<`."""
    honest = ComparableIndex._candidates
    patch.setattr(
        ComparableIndex,
        "_candidates",
        lambda self, sales, place, parcel, day: honest(self, sales, place, parcel, day + 1),
    )


def _batch_up_to_the_cutoff(patch: Patch) -> None:
    """`<=` for `<` in the features alone."""
    honest = find_comparables
    later = pl.col("cutoff") + pl.duration(days=1)
    patch.setattr(features, "find_comparables", lambda index, subjects: honest(index, subjects.with_columns(later)))


def _own_sale_among_comparables(patch: Patch) -> None:
    """Neither the own parcel nor the day of the sale is left out."""
    honest = find_comparables
    later, nobody = pl.col("cutoff") + pl.duration(days=2), pl.lit(None, dtype=pl.String).alias("parcel_id")
    patch.setattr(
        features, "find_comparables", lambda index, subjects: honest(index, subjects.with_columns(later, nobody))
    )


def _own_parcel_among_comparables(patch: Patch) -> None:
    honest = find_comparables
    nobody = pl.lit(None, dtype=pl.String).alias("parcel_id")
    patch.setattr(features, "find_comparables", lambda index, subjects: honest(index, subjects.with_columns(nobody)))


def _levels_up_to_the_sale(patch: Patch) -> None:
    """`<=` the day of the sale for `<`."""
    honest = market._window
    patch.setattr(market, "_window", lambda days, after, until: honest(days, after, until + 1))


def _context_up_to_the_sale(patch: Patch) -> None:
    honest = MarketHistory.context
    patch.setattr(
        MarketHistory,
        "context",
        lambda self, *, cutoff, **place: honest(self, cutoff=cutoff + timedelta(days=1), **place),
    )


def _centred_median(patch: Patch) -> None:
    """A rolling median centred on the cutoff."""
    honest = market._window
    patch.setattr(market, "_window", lambda days, after, until: honest(days, after + 183, until + 183))


def _index_of_the_whole_month(patch: Patch) -> None:
    """The month of the cutoff with the sales of its other half."""
    honest = market._Series.months
    patch.setattr(market._Series, "months", lambda self, cutoffs: honest(self, cutoffs + 31))


def _centred_index_in_packets(patch: Patch) -> None:
    def index(self: market._Series, cutoff: date) -> Any:
        months = [month for month in self._monthly if abs(month - market._month(cutoff)) <= 1]
        return {"values": [self._monthly[month][0] for month in sorted(months)]}

    patch.setattr(market._Series, "index", index)


def _lag_that_sees_its_own_row(patch: Patch) -> None:
    honest = features._prior_sale
    patch.setattr(
        features,
        "_prior_sale",
        lambda subjects, sales: honest(subjects.with_columns(pl.col("cutoff") + pl.duration(days=2)), sales),
    )


def _prior_sale_up_to_the_cutoff(patch: Patch) -> None:
    honest = features._prior_sale
    patch.setattr(
        features,
        "_prior_sale",
        lambda subjects, sales: honest(subjects.with_columns(pl.col("cutoff") + pl.duration(days=1)), sales),
    )


def _own_price_as_prior_sale_in_packets(patch: Patch) -> None:
    honest = PacketBuilder._prior_sale
    patch.setattr(
        PacketBuilder, "_prior_sale", lambda self, parcel, cutoff: honest(self, parcel, cutoff + timedelta(days=2))
    )


def _level_of_the_whole_sample(patch: Patch) -> None:
    """A target encoding over all sales."""
    honest = MarketHistory.levels

    def levels(self: MarketHistory, subjects: pl.DataFrame) -> Any:
        whole = {name: np.median(series.price) for (_, name, _), series in self._series.items()}
        encoded = np.array([whole.get(name, np.nan) for name in subjects["municipality"]])
        return honest(self, subjects) | {"municipality_price": encoded}

    patch.setattr(MarketHistory, "levels", levels)


def _known_when_the_month_begins(patch: Patch) -> None:
    """Sales of which only the month is known count from its first day."""
    patch.setattr(features, "available_date", lambda: pl.col("sale_date").alias("available_date"))


def _future(source: Source) -> None:
    the_future_moves_nothing(source, days_of(source)[1], repriced)


def _future_of_three_days(source: Source) -> None:
    for day in days_of(source):
        the_future_moves_nothing(source, day, repriced)


def _future_deleted(source: Source) -> None:
    the_future_moves_nothing(source, days_of(source)[1], deleted)


def _own(source: Source) -> None:
    the_own_price_moves_nothing(source, 4.0)


def _strict(source: Source) -> None:
    for day in eves(source):
        comparables_and_prior_sales_are_older_than_the_cutoff(source, day)


MUTATIONS: tuple[tuple[Callable[[Patch], None], Callable[[Source], None]], ...] = (
    (_comparables_up_to_the_cutoff, _strict),
    (_batch_up_to_the_cutoff, _strict),
    (_own_sale_among_comparables, _own),
    (_own_sale_among_comparables, _future),
    (_own_parcel_among_comparables, no_sale_of_the_own_parcel_is_comparable),
    (_levels_up_to_the_sale, _future),
    (_context_up_to_the_sale, _future),
    (_centred_median, _future),
    (_centred_median, _future_deleted),
    (_index_of_the_whole_month, _future),
    (_centred_index_in_packets, _future),
    (_lag_that_sees_its_own_row, _own),
    (_lag_that_sees_its_own_row, _future),
    (_prior_sale_up_to_the_cutoff, _strict),
    (_own_price_as_prior_sale_in_packets, _own),
    (_level_of_the_whole_sample, _future),
    (_level_of_the_whole_sample, _future_deleted),
    (_known_when_the_month_begins, _future_of_three_days),
)


@pytest.mark.parametrize(("plant", "check"), MUTATIONS)
def test_a_planted_leak_is_caught(
    town: Source, monkeypatch: Patch, plant: Callable[[Patch], None], check: Callable[[Source], None]
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(town)


def test_a_packet_refuses_a_sale_of_its_own_day(town: Source, monkeypatch: Patch) -> None:
    honest = ComparableIndex._candidates
    monkeypatch.setattr(
        ComparableIndex,
        "_candidates",
        lambda self, sales, place, _, day: honest(self, sales, place, None, day + 2),
    )
    with pytest.raises(ValidationError, match="past the cutoff"):
        Said(town, town.raw).of(judged(town))
