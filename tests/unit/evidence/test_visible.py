from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from consilience.errors import DataError
from consilience.evidence.visible import visible_json, visible_text


def test_every_invisible_character_of_unicode_is_escaped_and_read_back() -> None:
    hidden = "".join(
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    )
    # One surrogate at a time, or json.loads would join neighbours into one character.
    for sign in hidden:
        if not visible_json(sign).isascii():
            pytest.fail(f"U+{ord(sign):04X} is shown as it is")
    text = "".join(sign for sign in hidden if not "\ud800" <= sign <= "\udfff")
    assert visible_json(text).isascii()
    assert json.loads(visible_json(text)) == text


@pytest.mark.parametrize("sign", "<˂ᐸᚲ‹〈❬❮⟨⧼〈﹤＜𝈶")
def test_every_angle_that_could_open_a_fence_is_escaped(sign: str) -> None:
    assert visible_json(f"a{sign}b").isascii()
    assert json.loads(visible_json(sign)) == sign


@pytest.mark.parametrize("text", ["Ünïcode", "日本語", "é", "émoji 🏠", "a > b & 'c'"])
def test_ordinary_letters_and_signs_stay_readable(text: str) -> None:
    assert visible_json(text) == f'"{text}"'


@pytest.mark.parametrize("value", ["\ud800", "a\udfff", "NUL\x00", "\u2028TASK:", "\\<", '"}'])
def test_strings_survive_and_fit_in_utf8(value: str) -> None:
    line = visible_json(value)
    assert json.loads(line.encode().decode()) == value
    assert len(line.splitlines()) == 1


def test_keys_are_sorted_and_escaped_like_values() -> None:
    assert visible_json({"b": 1, "<": {"z": None, "y": True}}) == '{"\\u003c":{"y":true,"z":null},"b":1}'


def test_what_is_no_json_is_a_typed_error() -> None:
    deep: list[object] = []
    for _ in range(200_000):
        deep = [deep]
    for value in (float("nan"), float("inf"), {1, 2}, deep, 10**5000):
        with pytest.raises(DataError, match="cannot be shown"):
            visible_json(value)
    while deep:  # taken apart by hand: the interpreter would recurse
        deep = deep.pop()  # type: ignore[assignment]


def test_visible_text_keeps_lines_and_tabs_only() -> None:
    assert visible_text("a\r\nb\tc\rd\x0be\u2029") == "a\nb\tc\\rd\\u000be\\u2029"
