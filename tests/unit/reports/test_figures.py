from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from consilience.reports.figures import ForestRow, forest

ROWS = [
    ForestRow("F", "−0.7 [−9.9, +9.4]", -0.007, -0.099, 0.094),
    ForestRow('G"<script>' + "x" * 40, "+0.1", 0.001),
]


def test_a_forest_is_well_formed_and_told_in_words() -> None:
    root = ET.fromstring(forest(ROWS, title="Differences & more", axis="points"))  # noqa: S314 - our own figure
    assert root.attrib["role"] == "img"
    assert root.findtext("title") == "Differences & more"
    assert "F: −0.7 [−9.9, +9.4]" in (root.findtext("desc") or "")
    assert len(root.findall("circle")) == 2
    assert len([line for line in root.findall("line") if line.attrib["class"] == "reach"]) == 1
    assert max(len(text.text or "") for text in root.findall("text")) <= 24


def test_letters_do_not_grow_or_shrink_with_the_screen() -> None:
    root = ET.fromstring(forest(ROWS, title="t", axis="a"))  # noqa: S314 - our own figure
    assert "viewBox" not in root.attrib
    assert (root.attrib["width"], root.attrib["height"].isdecimal()) == ("100%", True)


@pytest.mark.parametrize(("low", "high"), [(-0.1, 0.2), (0.05, 0.06), (-0.0004, -0.0001), (-9.0, 0.0), (0.0, 0.0)])
def test_the_axis_holds_zero_and_all_ends(low: float, high: float) -> None:
    drawn = forest([ForestRow("F", "", (low + high) / 2, low, high)], title="t", axis="a")
    places = [float(x) for x in re.findall(r'(?:x1|x2|cx)="([^"]+)%"', drawn)]
    assert min(places) >= 4.0
    assert max(places) <= 96.0
    ticks = re.findall(r'text-anchor="middle">(−?[\d.]+)</text>', drawn)
    assert "0" in ticks
    assert 2 <= len(ticks) <= 8
    assert len(set(ticks)) == len(ticks)
