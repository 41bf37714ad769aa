from __future__ import annotations

import pytest
from pydantic import JsonValue

from consilience.evidence.quotes import contains_passage

ITEM: JsonValue = {
    "as_of": "2015-01-09",
    "price": 412000,
    "living_area": 1800.0,
    "ratio": 1.05,
    "change": -5,
    "waterfront": False,
    "roof": None,
    "text": "Über dem See, \u201crarely offered\u201d — built in 1998; asking 1 250 000, not 1.5M. Part-time care.",
    "rooms": ["three", {"baths": 2}],
}


@pytest.mark.parametrize(
    "passage",
    [
        "412000",
        "412,000",
        "$412'000.00",
        "412 000",
        "price: 412,000",
        "living area 1,800",
        "Living_Area = 1800",
        "1.05",
        "1,05",
        "-5",
        "change −5",
        "2015/01/09",
        "rarely offered",
        "'Rarely offered'",
        "ÜBER DEM SEE",
        "1,250,000",
        "1.250.000",
        "1.5M",
        "built in 1998 - asking",
        "part time",
        "baths 2",
        "roof null",
        "waterfront: false",
    ],
)
def test_punctuation_case_and_spacing_may_differ(passage: str) -> None:
    assert contains_passage(ITEM, passage)


@pytest.mark.parametrize(
    "passage",
    [
        "421000",
        "41",
        "12000",
        "4120000",
        "412001",
        "105",
        "15",
        "5",
        "change 5",
        "1998 built",
        "rarely sold",
        "see part",
        "",
        "…",
        "“”",
        "rare",
        "area 180",
        "baths 02",
    ],
)
def test_words_digits_and_order_may_not(passage: str) -> None:
    assert not contains_passage(ITEM, passage)
