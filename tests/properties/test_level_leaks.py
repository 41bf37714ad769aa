"""Leaks planted in the price level are caught: a window past the cutoff, and one around a day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from consilience.valuation.baselines import Baseline
from consilience.valuation.baselines.adjusted import AdjustedComps
from consilience.valuation.baselines.base import Floats
from consilience.valuation.baselines.hedonic import Hedonic
from consilience.valuation.baselines.levels import LevelPath
from consilience.valuation.comparables import Ints
from consilience.valuation.features import FeatureMatrix, build_feature_matrix
from leak_cases import CHANGES, Source, judged, known_from, make_town, raw_ids, repriced, rows_of


@dataclass(frozen=True)
class Worlds:
    """A town as it is, as it is after changes of what is known from a day on, and after changes of single prices."""

    before: FeatureMatrix
    subjects: list[str]
    later: dict[str, FeatureMatrix]
    own: dict[str, FeatureMatrix]


def matrix_of(source: Source, raw: pl.DataFrame) -> FeatureMatrix:
    table = source.analytic(raw)
    return build_feature_matrix(table, source.splits(table))


@pytest.fixture(scope="module")
def worlds() -> Worlds:
    town = make_town()
    sales = known_from(town, town.raw)
    outside = sales.filter(pl.col("valued") >= town.edges[1])
    day = outside["valued"].unique().sort()[40]
    late = raw_ids(town).is_in(sales.filter(pl.col("known") >= day)["tx_id"].implode())
    return Worlds(
        before=matrix_of(town, town.raw),
        subjects=outside.filter(pl.col("valued") <= day)["tx_id"].to_list(),
        later={change.__name__: matrix_of(town, change(town.raw, late)) for change in CHANGES},
        own={tx_id: matrix_of(town, repriced(town.raw, raw_ids(town) == tx_id)) for tx_id in judged(town)[:2]},
    )


def said(kind: type[Baseline], matrix: FeatureMatrix, tx_ids: list[str]) -> bytes:
    """Return what a baseline fitted on train and validation says of subjects, as bytes."""
    fitted = kind().fit(matrix.part("train"), matrix.part("validation"))
    predicted = fitted.predict(rows_of(matrix, tx_ids).blind())
    return np.column_stack([predicted.point, predicted.quantiles]).tobytes()


def moved(kind: type[Baseline], worlds: Worlds) -> set[str]:
    """Return the changes that moved something said of a subject."""
    found = set()
    for name, after in worlds.later.items():
        # The same subjects on both sides: the last bit of a product depends on how many rows it has.
        there = set(after.frame["tx_id"])
        asked = [tx_id for tx_id in worlds.subjects if tx_id in there]
        assert asked
        if said(kind, after, asked) != said(kind, worlds.before, asked):
            found.add(name)
    for tx_id, after in worlds.own.items():
        if said(kind, after, [tx_id]) != said(kind, worlds.before, [tx_id]):
            found.add("own")
    return found


@pytest.mark.parametrize("kind", [Hedonic, AdjustedComps], ids=lambda kind: kind.name)
@pytest.mark.slow
def test_neither_later_prices_nor_the_own_one_move_a_prediction(worlds: Worlds, kind: type[Baseline]) -> None:
    assert moved(kind, worlds) == set()


def test_a_trailing_level_that_is_centred_on_the_sale_is_caught(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = LevelPath.at_cutoff

    def seeing(self: LevelPath, cutoffs: Ints) -> Floats:
        return honest(self, cutoffs + 15)

    monkeypatch.setattr(LevelPath, "at_cutoff", seeing)
    assert "repriced" in moved(Hedonic, worlds)


def test_a_centred_index_is_caught(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    def centred(self: LevelPath, days: Ints, cutoffs: Ints) -> Floats:
        days, _ = np.broadcast_arrays(days, cutoffs)
        return self.central[np.clip(days - self.first_day, 0, len(self.central) - 1)]

    monkeypatch.setattr(LevelPath, "at", centred)
    assert {"repriced", "deleted"} <= moved(AdjustedComps, worlds)
