from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from consilience.errors import DataError
from consilience.experiments.parquet import read_parquet, write_parquet
from consilience.experiments.storage import write_whole
from consilience.valuation.schema import (
    ANALYTIC,
    IDENTITY,
    MONTH_ONLY,
    Manifest,
    Observation,
    RegionMap,
    available_date,
    manifest_path,
    read_analytic,
    read_manifest,
    validate,
    write_analytic,
)


def table(**changes: Any) -> pl.DataFrame:
    values: dict[str, Any] = {
        "tx_id": ["a", "b"],
        "parcel_id": ["1", "2"],
        "sale_date": [date(2020, 1, 1), date(2020, 2, 1)],
        "price": [100_000.0, 200_000.0],
        "currency": ["USD", "USD"],
        "property_class": ["house", "house"],
        "source": ["test", "test"],
        "flags": [[], ["flip"]],
    } | changes
    return pl.DataFrame({name: values.get(name, [None, None]) for name in ANALYTIC.names()}, schema=ANALYTIC)


def manifest(**changes: Any) -> Manifest:
    rules = {name: Observation(rule="at_sale") for name in ANALYTIC.names() if name not in IDENTITY}
    return Manifest(
        **{
            "adapter": "test",
            "source_file": "sales.csv",
            "source_sha256": "0" * 64,
            "rows": 2,
            "currency": "USD",
            "region": RegionMap(municipality="town", region="county"),
            "observations": rules | changes.pop("rules", {}),
            **changes,
        }
    )


def test_a_sound_table_passes_in_the_order_of_the_schema() -> None:
    shuffled = table().select(reversed(ANALYTIC.names()))
    assert validate(shuffled).equals(table())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"price": [1.0, -5.0]}, 'row 2, column "price": -5.0'),
        ({"price": [0.0, 1.0]}, 'row 1, column "price": 0.0'),
        ({"price": [1.0, math.nan]}, 'row 2, column "price": nan'),
        ({"price": [math.inf, 1.0]}, 'row 1, column "price": inf'),
        ({"price": [1.0, 1e300]}, 'row 2, column "price": 1e+300 is not a price'),
        ({"price": [1.0, None]}, 'row 2, column "price": there is no value'),
        ({"tx_id": ["a", "a"]}, "row 2, column \"tx_id\": 'a' stands in row 1 too"),
        ({"tx_id": ["a", "../b"]}, "row 2, column \"tx_id\": '../b' cannot name an item"),
        ({"tx_id": ["a", ".."]}, "row 2, column \"tx_id\": '..' cannot name an item"),
        ({"tx_id": ["Con.x", "b"]}, "row 1, column \"tx_id\": 'Con.x' cannot name an item"),
        ({"tx_id": ["a\n", "b"]}, 'row 1, column "tx_id"'),
        ({"sale_date": [None, date(2020, 1, 1)]}, 'row 1, column "sale_date"'),
        ({"lat": [math.nan, None]}, 'row 1, column "lat": nan is not finite'),
        ({"floor_area_m2": [10.0, 0.0]}, 'row 2, column "floor_area_m2": 0.0 is not an area'),
        ({"municipality": ["x" * 2_000, "y" * 2_001]}, 'row 2, column "municipality"'),
        ({"flags": [None, []]}, 'row 1, column "flags"'),
        ({"flags": [[], ["x", None]]}, 'row 2, column "flags"'),
    ],
)
def test_a_bad_value_names_row_and_column(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        validate(table(**changes))
    assert said in str(caught.value)


def test_an_unknown_column_names_the_nearest_one() -> None:
    with pytest.raises(DataError, match='unknown column "longitude_"') as caught:
        validate(table().with_columns(longitude_=1))
    assert "Known: " in caught.value.hint
    with pytest.raises(DataError, match='Did you mean "bedrooms"'):
        validate(table().rename({"bedrooms": "bedroms"}))


def test_missing_columns_and_wrong_types_are_named() -> None:
    with pytest.raises(DataError, match='"lat" is missing'):
        validate(table().drop("lat"))
    with pytest.raises(DataError, match='"price" of the analytic table has type Int64'):
        validate(table().cast({"price": pl.Int64}))


def test_a_huge_value_is_cut_in_the_message() -> None:
    with pytest.raises(DataError) as caught:
        validate(table(tx_id=["x" * 5_000_000, "b"]))
    assert len(str(caught.value)) < 300


def test_table_and_manifest_come_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "processed" / "analytic.parquet"
    later = {"lat": Observation(rule="snapshot", later_than_sale=True)}
    write_analytic(table(), path, manifest(rules=later))
    assert read_analytic(path).equals(table())
    assert read_manifest(path) == manifest(rules=later)
    assert read_manifest(path).later_snapshots() == ("lat",)
    assert sorted(item.name for item in path.parent.iterdir()) == ["analytic.manifest.json", "analytic.parquet"]


def test_writing_checks_the_table_and_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "analytic.parquet"
    with pytest.raises(DataError, match="is not a price"):
        write_analytic(table(price=[1.0, -1.0]), path, manifest())
    with pytest.raises(DataError, match="the manifest counts 3"):
        write_analytic(table(), path, manifest(rows=3))
    assert not list(tmp_path.iterdir())


def test_reading_checks_the_table_again(tmp_path: Path) -> None:
    write_parquet(table(price=[1.0, -1.0]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r't\.parquet: row 2, column "price"'):
        read_analytic(tmp_path / "t.parquet")


def test_a_snapshot_later_than_a_sale_must_be_declared(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    late = {"storeys": Observation(rule="snapshot", as_of=date(2020, 1, 2))}
    with pytest.raises(DataError, match='"storeys" is a snapshot of 2020-01-02'):
        write_analytic(table(), path, manifest(rules=late))
    declared = {"storeys": Observation(rule="snapshot", as_of=date(2020, 1, 2), later_than_sale=True)}
    write_analytic(table(), path, manifest(rules=declared))
    assert read_manifest(path).later_snapshots() == ("storeys",)
    with pytest.raises(ValidationError, match="undated snapshot is not before"):
        Observation(rule="snapshot")
    with pytest.raises(ValidationError, match="belong to snapshots"):
        Observation(rule="at_sale", later_than_sale=True)


def test_every_observed_column_needs_its_rule() -> None:
    with pytest.raises(ValidationError, match="differ in: lattitude"):
        manifest(rules={"lattitude": Observation(rule="at_sale")})


def test_missing_and_corrupt_files_say_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        read_analytic(tmp_path / "none.parquet")
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 this is no Parquet PAR1")
    with pytest.raises(DataError, match=r"bad\.parquet is no readable Parquet"):
        read_analytic(bad)
    good = tmp_path / "good.parquet"
    write_parquet(table(), good)
    bad.write_bytes(good.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"bad\.parquet is no readable Parquet"):
        read_analytic(bad)
    with pytest.raises(DataError, match=r"good\.manifest\.json cannot be read"):
        read_manifest(good)
    manifest_path(good).write_text("{}")
    with pytest.raises(DataError, match="is no manifest"):
        read_manifest(good)


def test_a_file_only_arrow_can_read_is_read_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(table(), path)

    def refuse(_: object) -> pl.DataFrame:
        raise pl.exceptions.ComputeError("broken metadata")

    monkeypatch.setattr(pl, "read_parquet", refuse)
    with pytest.warns(UserWarning, match="broken metadata"):
        frame = read_parquet(path)
    assert frame.equals(table())


def test_the_row_limit_is_checked_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(table(), path)
    assert read_parquet(path, row_limit=2).height == 2
    with pytest.raises(DataError, match="more than 1 rows"):
        read_parquet(path, row_limit=1)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(table(), path)
    before = path.read_bytes()

    def full(target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match="No space left on device"):
        write_whole(path, full)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["t.parquet"]
    with pytest.raises(DataError, match="cannot be written"):
        write_parquet(table(), path / "below_a_file.parquet")


def test_a_month_only_sale_is_known_at_the_months_end() -> None:
    frame = table(sale_date=[date(2008, 2, 1), date(2008, 2, 5)], flags=[[MONTH_ONLY], []])
    assert frame.select(available_date()).to_series().to_list() == [date(2008, 2, 29), date(2008, 2, 5)]
