from __future__ import annotations

import io
import json

import pytest

from consilience.cli import console
from consilience.cli.console import Grid, aligned, clean, show


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
