from __future__ import annotations

import builtins
import re
import struct
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.errors import ConfigError
from consilience.valuation.adapters import ADAPTERS, Built, build
from consilience.valuation.describe import describe
from consilience.valuation.pictures import Picture, draw
from consilience.valuation.splits import time_splits
from consilience.valuation.synthetic import generate, write_town


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Built:
    path = tmp_path_factory.mktemp("town") / "town.parquet"
    write_town(generate(sales=400, seed=3), path)
    return build(ADAPTERS["synthetic"], path)


@pytest.fixture(scope="module")
def drawn(town: Built, tmp_path_factory: pytest.TempPathFactory) -> tuple[Picture, ...]:
    return draw(town.frame, town.manifest, tmp_path_factory.mktemp("pictures"))


def test_a_description_counts_what_is_there(town: Built) -> None:
    told = describe(town.frame, town.manifest, splits=time_splits(town.frame).frame)
    assert (told.sales, told.parcels + told.resales, told.currency) == (400, 400, town.manifest.currency)
    prices = town.frame["price"]
    assert (told.prices["least"], told.prices["median"], told.prices["most"]) == (
        prices.min(),
        prices.median(),
        prices.max(),
    )
    assert sum(told.classes.values()) == 400
    assert told.unknown["condition"] == 400
    assert told.observations["condition"] == "not in the source"
    assert told.observations["assessment_total"] == "at the roll's reference date"
    assert told.flags == town.manifest.flag_counts
    assert [period.split for period in told.periods] == ["train", "validation", "test", "holdout"]
    assert sum(period.sales for period in told.periods) == 400
    assert all(early.last < late.first for early, late in zip(told.periods, told.periods[1:], strict=False))
    assert told.market_would_exclude["non_arms_length"] > 0
    assert told.warnings == ("4 without coordinates: they have no comparables and are none",)
    assert describe(town.frame, town.manifest).periods == ()


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("adapter", "file", "said"),
    [
        ("lucas", "lucas_oh_1993_1998", ("assessment_total", "no municipality is known")),
        ("ames", "ames_2006_2010", ("year_built", "12 without coordinates")),
        ("seattle", "seattle_sales_2010_2016", ("property_class",)),
    ],
)
def test_later_snapshots_and_gaps_are_warned_of(shared: Path, adapter: str, file: str, said: tuple[str, ...]) -> None:
    made = build(ADAPTERS[adapter], shared / "data/avm" / f"{file}.parquet")
    told = describe(made.frame, made.manifest)
    assert "may be later than the sales" in told.warnings[0]
    assert all(any(word in warning for warning in told.warnings) for word in said)
    assert told.observations["floor_area_m2"] == "one snapshot on a day not stated, maybe later than the sale"


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """The texts that a PNG carries beside its picture."""
    data, at = path.read_bytes(), 8
    while at < len(data):
        (length,), sort = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if sort == b"tEXt":
            key, _, value = body.partition(b"\0")
            yield key.decode(), value.decode("latin-1")
        elif sort == b"iTXt":
            key, _, rest = body.partition(b"\0")
            value = rest[2:].split(b"\0", 2)[2]
            yield key.decode(), (zlib.decompress(value) if rest[0] else value).decode()
        at += 12 + length


@pytest.mark.slow
def test_pictures_say_what_they_show(drawn: tuple[Picture, ...]) -> None:
    assert [picture.name for picture in drawn] == ["map", "prices", "months", "unknown"]
    for picture in drawn:
        png, svg = picture.files
        assert (png.suffix, svg.suffix) == (".png", ".svg")
        assert dict(texts(png))["Description"] == picture.alt
        root = ET.fromstring(svg.read_text())  # noqa: S314 - written by ourselves just now
        assert (root.get("role"), root.get("aria-label")) == ("img", picture.alt)
        assert len(picture.alt) > 60
    assert "400 prices" in drawn[1].alt
    files = [file for picture in drawn for file in picture.files]
    assert sorted(files[0].parent.iterdir()) == sorted(files)


def test_the_same_table_gives_the_same_files(town: Built, drawn: tuple[Picture, ...], tmp_path: Path) -> None:
    again = [file for picture in draw(town.frame, town.manifest, tmp_path) for file in picture.files]
    assert [file.read_bytes() for file in again] == [file.read_bytes() for p in drawn for file in p.files]


def test_axes_carry_units(town: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consilience.valuation.pictures.STYLE", {"svg.fonttype": "none"})
    drawn = draw(town.frame, town.manifest, tmp_path)
    words = {picture.name: re.sub(r"<[^>]*>", " ", picture.files[1].read_text()) for picture in drawn}
    currency = town.manifest.currency
    assert f"price ({currency} per m²), log scale" in words["map"]
    assert "longitude (degrees)" in words["map"]
    assert f"price ({currency}), log scale" in words["prices"]
    assert "sales per bin (count)" in words["prices"]
    assert f"median price ({currency})" in words["months"]
    assert "sales without a value (% of 400)" in words["unknown"]


@pytest.mark.parametrize("unplaced", [True, False])
def test_one_sale_can_be_drawn_and_a_map_needs_a_place(town: Built, tmp_path: Path, *, unplaced: bool) -> None:
    sale = town.frame.filter(pl.col("lat").is_not_null()).head(1)
    if unplaced:
        sale = sale.with_columns(lat=None, lng=None, floor_area_m2=None)
    sale = sale.with_columns(sale_date=date(2020, 1, 31)).cast(town.frame.schema)
    names = [picture.name for picture in draw(sale, town.manifest, tmp_path)]
    assert names == ["map", "prices", "months", "unknown"][unplaced:]


def test_without_matplotlib_the_error_says_what_to_install(
    town: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def lacking(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError("no", name="matplotlib")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(ConfigError, match=r'pip install "consilience\[report\]"'):
        draw(town.frame, town.manifest, tmp_path)
