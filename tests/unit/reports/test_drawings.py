"""Pictures are sound SVG that only shows: no script, no style, texts escaped, values in their places."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.reports.drawings.errors import Scored, draw_calibration, draw_errors
from consilience.reports.drawings.fan import Fan, Said, draw_fan
from consilience.reports.drawings.neighbours import Neighbour, draw_neighbours
from consilience.reports.drawings.sheet import PALETTES, WIDTH, Scale, scale_of
from viewer_cases import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


def elements(svg: bytes) -> list[ET.Element]:
    found = list(ET.fromstring(svg).iter())  # noqa: S314 - our own
    assert {one.tag.removeprefix(SVG) for one in found} <= {"svg", "line", "rect", "circle", "text"}
    assert not any(name.startswith(("on", "style", "href")) for one in found for name in one.attrib)
    return found


def fan(**changes: object) -> Fan:
    said = {"a": Said(100.0, (80, 90, 100, 110, 120)), "b": Said(200.0, (150, 180, 200, 220, 260))}
    values = {
        "seats": ["a", "b"],
        "rounds": [(0, said), (1, {"a": said["b"]})],
        "panel": said["a"],
        "truth": 150.0,
        "unit": HOSTILE,
        "log": True,
    }
    return Fan(**(values | changes))  # type: ignore[arg-type]


def test_a_fan_has_a_bar_for_every_answer_and_one_for_the_panel() -> None:
    found = elements(draw_fan(fan(), "light"))
    assert len([one for one in found if one.tag == f"{SVG}circle"]) == 4
    assert [one.text for one in found if one.text in {"round 0", "round 1", "panel", "truth"}]
    heights = [float(one.attrib["cy"]) for one in found if one.tag == f"{SVG}circle"]
    assert heights[0] > heights[1]  # 100 lies lower than 200 on the picture
    assert "round 0: 100 to 200; round 1: 200 to 200; the panel: 100" in fan().alt


def test_a_fan_without_numbers_says_so() -> None:
    found = elements(draw_fan(fan(rounds=[], panel=None, truth=None), "dark"))
    assert "no number was stated" in [one.text for one in found]


@given(
    values=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6),
    theme=st.sampled_from(sorted(PALETTES)),
    log=st.booleans(),
)
def test_every_value_lies_on_the_sheet(values: list[float], theme: str, log: bool) -> None:
    said = {str(at): Said(value, None) for at, value in enumerate(values)}
    drawn = draw_fan(Fan(list(said), [(0, said)], None, None, None, log), theme)  # type: ignore[arg-type]
    for one in elements(drawn):
        for name in ("x", "x1", "x2", "cx"):
            assert -1 <= float(one.attrib.get(name, 0)) <= WIDTH + 1
        for name in ("y1", "y2", "cy"):
            assert 0 <= float(one.attrib.get(name, 1)) <= 330


def test_a_scale_goes_through_its_ends_and_marks_round_values() -> None:
    scale = Scale(100, 10_000, 0, 200, log=True)
    assert [round(scale(value), 6) for value in (100, 1_000, 10_000)] == [0, 100, 200]
    assert scale.ticks() == [100, 200, 500, 1_000, 2_000, 5_000, 10_000]
    assert Scale(0, 1, 0, 100).ticks() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert Scale(5, 5, 0, 100)(5) == 50
    assert scale_of([3.0], 0, 10).low < 3 < scale_of([3.0], 0, 10).high


def test_errors_and_calibration_and_neighbours_are_drawn() -> None:
    scored = [Scored(str(n), 100.0 * n, 90.0 * n, None) for n in range(1, 6)]
    assert len([one for one in elements(draw_errors(scored, "light", log=True)) if one.tag == f"{SVG}circle"]) == 5
    levels = [(0.05, 0.1), (0.5, 0.5), (0.95, 0.9)]
    found = elements(draw_calibration(levels, "dark", across="stated", up=HOSTILE))
    assert len([one for one in found if one.tag == f"{SVG}circle"]) == 3
    near = draw_neighbours([Neighbour("C01", 0.5, visible=True), Neighbour(HOSTILE, 1.0, visible=False)], "light")
    filled = [one.attrib["fill"] for one in elements(near) if one.tag == f"{SVG}circle" and one.attrib["r"] == "4.5"]
    assert filled == [PALETTES["light"].hues[0], "none"]
    assert b"<script" not in near


@pytest.mark.parametrize("theme", sorted(PALETTES))
def test_hues_stand_out_from_the_page(theme: str) -> None:
    page = {"light": "#ffffff", "dark": "#14191d"}[theme]

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    palette = PALETTES[theme]  # type: ignore[index]
    for colour in (*palette.hues, palette.ink, palette.soft):
        assert re.fullmatch("#[0-9a-f]{6}", colour)
        dark, light = sorted((luminance(colour), luminance(page)))
        assert (light + 0.05) / (dark + 0.05) >= 3  # WCAG 2.2, 1.4.11: what must be seen to understand
