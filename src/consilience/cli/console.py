"""What is printed: results on stdout for a person, a pipe or a machine; everything else on stderr."""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
import textwrap
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC and other strings
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
)
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})
_SPELT = {
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{NO-BREAK SPACE}": " ",
    "\N{NARROW NO-BREAK SPACE}": " ",
    "\N{THIN SPACE}": " ",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{RIGHTWARDS ARROW}": "->",
    "\N{MIDDLE DOT}": "|",
    "\N{GREEK SMALL LETTER LAMDA}": "lambda",
}
SPELL = "consilience.spell"
"""Name of the error handler of streams: what an encoding lacks is spelt in ASCII, or escaped."""


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    escaped = (char.encode("ascii", "backslashreplace").decode("ascii") for char in lacking)
    return "".join(_SPELT.get(char, plain) for char, plain in zip(lacking, escaped, strict=True)), error.end


codecs.register_error(SPELL, _spell)


def outspoken(*streams: IO[str]) -> None:
    """Let streams spell what their encoding lacks: a terminal that cannot show a sign must not stop a run."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=SPELL)


_UNREAD = re.compile("[\udc80-\udcff]+")
"""Bytes of a file name that the locale's encoding could not read."""


def _read(found: re.Match[str]) -> str:
    return found[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def clean(text: str) -> str:
    r"""Return a text without terminal escapes, control and direction characters; line ends and tabs stay.

    Example:
        >>> clean("\x1b[31mred\x1b[0m\x07 \u202eback")
        'red back'
    """
    bare = _ESCAPES.sub("", _UNREAD.sub(_read, text))
    return "".join(char for char in bare if char in "\n\t" or unicodedata.category(char) not in _UNSEEN)


def spelt(text: str, encoding: str) -> str:
    """Return a text as a stream of this encoding shows it, so that its width is known beforehand.

    Example:
        >>> spelt("10.8\N{MULTIPLICATION SIGN}", "ascii"), spelt("10.8\N{MULTIPLICATION SIGN}", "utf-8")
        ('10.8x', '10.8\N{MULTIPLICATION SIGN}')
    """
    return text.encode(encoding, SPELL).decode(encoding)


@dataclass(frozen=True)
class Grid:
    """A table to print.

    Attributes:
        headings: One per column.
        rows: The cells' texts.
        words: How many columns from the left hold words; the others hold numbers and are set right.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


def show(document: Mapping[str, Any], *parts: str | Grid, as_json: bool) -> None:
    """Print a result on stdout: the document as one line of JSON, or the parts for people.

    A terminal gets tables, or a card per row where a table is too wide for it; a pipe gets plain aligned lines.
    """
    if as_json:
        sys.stdout.write(json.dumps(document, allow_nan=False, default=str) + "\n")
        return
    for part in parts:
        if isinstance(part, str):
            sys.stdout.write(clean(part) + "\n")
        elif sys.stdout.isatty():
            _draw(_spelt(part))
        else:
            sys.stdout.write("\n".join(aligned(_spelt(part))) + "\n")


def note(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(clean(text) + "\n")
    sys.stderr.flush()


def _spelt(grid: Grid) -> Grid:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    headings, *rows = (tuple(spelt(_cell(text), encoding) for text in row) for row in (grid.headings, *grid.rows))
    return Grid(headings, tuple(rows), words=grid.words)


def aligned(grid: Grid) -> list[str]:
    """Return a table as plain lines, columns two spaces apart.

    Example:
        >>> aligned(Grid(("arm", "n"), (("E", "24"),)))
        ['arm   n', 'E    24']
    """
    from rich.cells import cell_len  # noqa: PLC0415 - only where a table is printed

    table = [[_cell(text) for text in row] for row in (grid.headings, *grid.rows)]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]

    def padded(at: int, text: str) -> str:
        space = " " * (widths[at] - cell_len(text))
        return text + space if at < grid.words else space + text

    return ["  ".join(padded(at, text) for at, text in enumerate(row)).rstrip() for row in table]


def cards(grid: Grid) -> list[str]:
    """Return a table as one card per row, a line per column: nothing is cut, however narrow the terminal.

    Example:
        >>> cards(Grid(("arm", "n"), (("E", "24"),)))
        ['arm: E', '  n: 24']
    """
    rows = [
        [
            f"{'  ' if at else ''}{heading}: {text}"
            for at, (heading, text) in enumerate(zip(grid.headings, row, strict=True))
        ]
        for row in grid.rows
    ]
    return [line for number, row in enumerate(rows) for line in ([""] if number else []) + row]


def _draw(grid: Grid) -> None:
    """Draw a table with headings on one line, else on several, else cards: the first that fits the terminal."""
    from rich.cells import cell_len  # noqa: PLC0415 - only where a table is drawn
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.measure import Measurement  # noqa: PLC0415 - the same

    console = Console(markup=False, highlight=False, emoji=False)
    unbound = console.options.update(width=sys.maxsize)
    folded = tuple(
        _folded(heading, max((cell_len(row[at]) for row in grid.rows), default=0))
        for at, heading in enumerate(grid.headings)
    )
    for headings in (grid.headings, folded):
        table = _table(Grid(headings, grid.rows, words=grid.words))
        if Measurement.get(console, unbound, table).maximum <= console.width:
            console.print(table)
            return
    sys.stdout.write("\n".join(cards(grid)) + "\n")


def _folded(heading: str, width: int) -> str:
    return "\n".join(textwrap.wrap(heading, max(width, 1), break_long_words=False, break_on_hyphens=False))


def _table(grid: Grid) -> Any:
    from rich import box  # noqa: PLC0415 - only where a table is drawn
    from rich.table import Table  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, heading in enumerate(grid.headings):
        table.add_column(Text(heading), justify="left" if at < grid.words else "right", no_wrap=True)
    for row in grid.rows:
        table.add_row(*map(Text, row))
    return table


def _cell(text: str) -> str:
    return " ".join(clean(text).split())


def counted(number: int, noun: str) -> str:
    """Return a count with its noun, in the plural where it is not one.

    Example:
        >>> counted(1, "turn"), counted(1234, "turn")
        ('1 turn', '1,234 turns')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def number(value: float | None) -> str:
    """Return a number for reading; unknown is a dash.

    Example:
        >>> number(512345.6), number(0.123456), number(None)
        ('512,346', '0.1235', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
