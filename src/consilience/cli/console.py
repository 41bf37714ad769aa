"""What is printed: results on stdout for a person, a pipe or a machine; everything else on stderr."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC and other strings
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
)
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})


def clean(text: str) -> str:
    r"""Return a text without terminal escapes, control and direction characters; line ends and tabs stay.

    Example:
        >>> clean("\x1b[31mred\x1b[0m\x07 \u202eback")
        'red back'
    """
    bare = _ESCAPES.sub("", text)
    return "".join(char for char in bare if char in "\n\t" or unicodedata.category(char) not in _UNSEEN)


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

    A terminal gets tables, a pipe gets plain aligned lines.
    """
    if as_json:
        sys.stdout.write(json.dumps(document, allow_nan=False, default=str) + "\n")
        return
    for part in parts:
        if isinstance(part, str):
            sys.stdout.write(clean(part) + "\n")
        elif sys.stdout.isatty():
            _draw(part)
        else:
            sys.stdout.write("\n".join(aligned(part)) + "\n")


def note(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(clean(text) + "\n")
    sys.stderr.flush()


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


def _draw(grid: Grid) -> None:
    from rich import box  # noqa: PLC0415 - only where a table is drawn
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.table import Table  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, heading in enumerate(grid.headings):
        word = at < grid.words
        table.add_column(Text(_cell(heading)), justify="left" if word else "right", no_wrap=not word, overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(_cell(text)) for text in row))
    Console(markup=False, highlight=False, emoji=False).print(table)


def _cell(text: str) -> str:
    return " ".join(clean(text).split())


def number(value: float | None) -> str:
    """Return a number for reading; unknown is a dash.

    Example:
        >>> number(512345.6), number(0.123456), number(None)
        ('512,346', '0.1235', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
