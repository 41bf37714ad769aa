"""Packets that declare adjusted comparables: what they show, what they say of it, and what no later price changes."""

from __future__ import annotations

import math

import polars as pl
import pytest

from consilience.core.canonical import canonical_json
from consilience.core.packet import Packet
from consilience.errors import DataError, LeakError
from consilience.evidence.leakage import guard_packet
from consilience.experiments.exposed import treat
from consilience.valuation.adapters import ADAPTERS, build
from consilience.valuation.adjustments import AdjustedPrices, adjust_comparables
from consilience.valuation.exclusions import MARKET
from consilience.valuation.features import build_feature_matrix
from consilience.valuation.packets import EVIDENCE_FIELDS, PacketBuilder
from consilience.valuation.schema import Manifest
from consilience.valuation.splits import time_splits
from consilience.valuation.synthetic import generate, write_town

Town = tuple[pl.DataFrame, pl.DataFrame, Manifest]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    path = tmp_path_factory.mktemp("town") / "town.parquet"
    write_town(generate(sales=1_500, seed=11), path)
    built = build(ADAPTERS["synthetic"], path, exclusions=MARKET)
    return built.frame, time_splits(built.frame).frame, built.manifest


def subjects(town: Town, split: str = "test") -> list[str]:
    return town[1].filter(pl.col("split") == split)["tx_id"].to_list()[:20]


@pytest.fixture(scope="module")
def adjusted(town: Town) -> AdjustedPrices:
    return adjust_comparables(build_feature_matrix(town[0], town[1]), subjects(town))


def bytes_of(packet: Packet) -> bytes:
    return canonical_json(packet.model_dump(mode="json"))


def test_each_comparable_shows_both_prices_beside_what_was_paid(town: Town, adjusted: AdjustedPrices) -> None:
    with_them = PacketBuilder(town[0], town[2], adjusted=adjusted)
    without = PacketBuilder(town[0], town[2])
    for tx_id in subjects(town):
        shown, plain = with_them.build(tx_id), without.build(tx_id)
        assert [note for note in shown.notes if note not in plain.notes] == [adjusted.note]
        assert str(adjusted.information_date) in adjusted.note
        for ours, theirs in zip(shown.sections["C"].items, plain.sections["C"].items, strict=True):
            content = dict(ours.content)
            assert isinstance(content.pop("indexed_price"), int)
            assert isinstance(content.pop("adjusted_price"), int)
            assert content == theirs.content
        for code in "PMG":
            assert shown.sections[code] == plain.sections[code]


def test_adjusted_prices_lie_nearer_to_the_truth(town: Town, adjusted: AdjustedPrices) -> None:
    builder = PacketBuilder(town[0], town[2], adjusted=adjusted)
    miss: dict[str, list[float]] = {"price": [], "indexed_price": [], "adjusted_price": []}
    for tx_id in subjects(town):
        item = builder.build_item(tx_id)
        assert isinstance(item.truth, float)
        for one in item.packet.sections["C"].items:
            for name, misses in miss.items():
                misses.append(abs(math.log(float(str(one.content[name])) / item.truth)))
    mean = {name: sum(misses) / len(misses) for name, misses in miss.items()}
    assert mean["adjusted_price"] < 0.7 * mean["price"]


def test_they_are_off_unless_declared(town: Town) -> None:
    builder = PacketBuilder(town[0], town[2])
    packet = builder.build(subjects(town)[0])
    assert all("indexed_price" not in item.content for item in packet.sections["C"].items)
    assert not any("indexed_price" in note for note in packet.notes)


def test_the_leak_guard_passes_and_amounts_are_perturbed_alike(town: Town, adjusted: AdjustedPrices) -> None:
    builder = PacketBuilder(town[0], town[2], adjusted=adjusted)
    for tx_id in subjects(town):
        item = builder.build_item(tx_id)
        assert item.truth is not None
        guard_packet(item.packet, question=item.question, target=item.truth)
        moved = treat(item, "perturbed", fields=EVIDENCE_FIELDS, seed=1)
        assert isinstance(moved.truth, float)
        assert isinstance(item.truth, float)
        for before, after in zip(item.packet.sections["C"].items, moved.packet.sections["C"].items, strict=True):
            for name in ("price", "indexed_price", "adjusted_price"):
                now, then = float(str(after.content[name])), float(str(before.content[name]))
                assert now / then == pytest.approx(moved.truth / item.truth, rel=1e-4)


def test_later_prices_and_the_own_one_change_nothing(town: Town, adjusted: AdjustedPrices) -> None:
    table, splits, manifest = town
    chosen = subjects(town)
    day = table.filter(pl.col("tx_id").is_in(chosen))["sale_date"].max()
    for future in (pl.col("sale_date") >= day, pl.col("tx_id") == chosen[3]):
        other = table.with_columns(price=pl.when(future).then(pl.col("price") * 7).otherwise("price"))
        again = adjust_comparables(build_feature_matrix(other, splits), chosen)
        first = PacketBuilder(table, manifest, adjusted=adjusted)
        second = PacketBuilder(other, manifest, adjusted=again)
        asked = chosen if future.meta.root_names() == ["sale_date"] else [chosen[3]]
        assert [bytes_of(first.build(tx_id)) for tx_id in asked] == [bytes_of(second.build(tx_id)) for tx_id in asked]


def test_validation_prices_teach_no_adjustment(town: Town, adjusted: AdjustedPrices) -> None:
    table, splits, _ = town
    validation = splits.filter(pl.col("split") == "validation")["tx_id"].to_list()
    noisy = table.with_columns(
        price=pl.when(pl.col("tx_id").is_in(validation)).then(pl.col("price") * 2).otherwise("price")
    )
    again = adjust_comparables(build_feature_matrix(noisy, splits), subjects(town, "validation")[:1])
    assert again.information_date == adjusted.information_date
    known = set(splits.filter(pl.col("split") == "train")["tx_id"])
    before = adjust_comparables(build_feature_matrix(table, splits), subjects(town, "validation")[:1])
    for tx_id, prices in before.prices.items():
        assert {k: v for k, v in prices.items() if k in known} == {
            k: v for k, v in again.prices[tx_id].items() if k in known
        }


def test_a_subject_of_train_or_without_prices_is_refused(town: Town, adjusted: AdjustedPrices) -> None:
    matrix = build_feature_matrix(town[0], town[1])
    with pytest.raises(LeakError, match="teach the adjustments"):
        adjust_comparables(matrix, subjects(town, "train"))
    with pytest.raises(DataError, match='no sale "nowhere"'):
        adjust_comparables(matrix, ["nowhere"])
    with pytest.raises(DataError, match="has no adjusted prices"):
        PacketBuilder(town[0], town[2], adjusted=adjusted).build(subjects(town, "holdout")[0])
