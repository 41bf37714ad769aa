from __future__ import annotations

import io
import json

import pytest

from consilience.cli import console
from consilience.cli.console import Grid, aligned, clean, counted, show


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("\x1b[2J\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b]0;title never ended", ""),
        ("\x1bPdevice\x1b\\x", "x"),
        ("\x1b(Bcharset", "charset"),
        ("a\r\x08b\x7f", "ab"),
        ("right\u202eleft\u2066", "rightleft"),
        ("lone \ud800", "lone "),
        ("unread m\udcc3\udcb6v \udcff", "unread möv \N{REPLACEMENT CHARACTER}"),
        ("smuggled \udcc2\udc9b31m", "smuggled "),
        ("two\nlines\tand [red]no markup[/red]", "two\nlines\tand [red]no markup[/red]"),
    ],
)
def test_terminal_escapes_are_stripped(text: str, bare: str) -> None:
    assert clean(text) == bare


def test_a_pipe_gets_plain_aligned_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show({}, Grid(("arm", "n"), (("E\x1b[31m\nx", "1"), ("F", "240"))), "then \x07text", as_json=False)
    assert capsys.readouterr().out == "arm    n\nE x    1\nF    240\nthen text\n"


def test_a_terminal_gets_a_table_without_reading_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("NO_COLOR", "1")
    show({}, Grid(("arm", "n"), (("[red]E[/red]", "\x1b[31m1"),)), as_json=False)
    text = screen.getvalue()
    assert "[red]E[/red]" in text
    assert "\u2500" in text
    assert "31m" not in text


WIDE = Grid(
    ("arm", "MdAPE", "Coverage of 90 % interval", "Cost per item", "Points of MdAPE from E_single [95 %]"),
    (
        ("G_debate_r2 (simulated)", "11.3 %", "75.0 %", "$0.4699 (56.0\N{MULTIPLICATION SIGN})", "+0.6 [-4.4, +8.3]"),
        ("F_independent (simulated)", "361,016", "東京", "$0.0903", "baseline"),
    ),
)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 81, 82, 83, 84, 85, 86, 100, 117, 140])
def test_no_terminal_is_too_narrow_for_a_cell(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    show({}, WIDE, as_json=False)
    text = screen.getvalue()
    assert [cell for row in WIDE.rows for cell in row if cell not in text] == []
    assert [word for heading in WIDE.headings for word in heading.split() if word not in text] == []
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert ("arm: G_debate" in text) == (width < 86)


def test_a_table_without_rows_is_its_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    show({}, Grid(("arm", "n"), ()), as_json=False)
    assert "arm" in screen.getvalue()


def test_what_an_encoding_lacks_is_spelt_and_columns_stay_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console.outspoken(stream)
    monkeypatch.setattr("sys.stdout", stream)
    grid = Grid(("arm", "cost"), (("naïve", "1.0\N{MULTIPLICATION SIGN}"), ("F", "\N{MINUS SIGN}10.8…")))
    show({}, grid, "n \N{EN DASH} m", as_json=False)
    stream.seek(0)
    assert stream.read() == "arm           cost\nna\\xefve      1.0x\nF         -10.8...\nn - m\n"


@pytest.mark.parametrize(("number", "told"), [(0, "0 turns"), (1, "1 turn"), (2, "2 turns"), (1_000, "1,000 turns")])
def test_counts_have_their_plural(number: int, told: str) -> None:
    assert counted(number, "turn") == told


def test_json_is_one_line_that_cannot_act_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show({"text": "\x1b[31m\u202e", "unknown": None}, "not printed", as_json=True)
    out = capsys.readouterr().out
    assert out.isprintable() or out.rstrip("\n").isprintable()
    assert json.loads(out) == {"text": "\x1b[31m\u202e", "unknown": None}


def test_json_never_holds_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        show({"x": float("nan")}, as_json=True)


def test_wide_characters_keep_columns_aligned() -> None:
    lines = aligned(Grid(("name", "n"), (("東京", "1"), ("ab", "2"))))
    assert lines == ["name  n", "東京  1", "ab    2"]


def test_notes_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    console.note("careful\x1b[0m")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "careful\n")
