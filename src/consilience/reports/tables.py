"""Tables in Markdown, HTML, LaTeX, CSV and JSON from one source: records hold numbers, columns say how to show them."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

Value = str | int | float | bool | None
Record = Mapping[str, Value]

ABSENT = "–"
_NARROW = "\N{NO-BREAK SPACE}"
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "[": "{[}",  # behind a row's end it would be read as a length
        "]": "{]}",
        _NARROW: "~",
        "−": "$-$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "–": "--",
        "…": r"\ldots{}",
        "“": "``",
        "”": "''",
        "’": "'",
        "→": r"$\to$",
        "α": r"$\alpha$",
        "ζ": r"$\zeta$",
        "λ": r"$\lambda$",
        "ρ": r"$\rho$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
    }
)
_SET = frozenset(map(chr, range(0x180))) - frozenset("ĦħĸĿŀŉŦŧſ")
"""Letters that LaTeX's T1 fonts hold by their own number."""


@dataclass(frozen=True)
class Column:
    """What one column of a shown table says.

    Attributes:
        label: Its heading.
        cell: The text of a record's cell.
        numeric: Set right-aligned.
    """

    label: str
    cell: Callable[[Record], str]
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    r"""Records and how they are shown; CSV and JSON write all fields of the records, unrounded.

    Attributes:
        caption: One or more sentences.
        columns: Shown from left to right; the first heads its row.
        records: All with the same fields in the same order.

    Example:
        >>> table = Table("Two.", (Column("arm", lambda r: str(r["arm"]), numeric=False),), ({"arm": "E", "n": 2},))
        >>> table.to_csv()
        'arm,n\nE,2\n'
    """

    caption: str
    columns: tuple[Column, ...]
    records: tuple[Record, ...]

    def cells(self) -> list[list[str]]:
        """Return the shown text, row by row; control and invisible characters are spelled out."""
        return [[plain(column.cell(record)) for column in self.columns] for record in self.records]

    def to_markdown(self) -> str:
        """Return the table in Markdown with its caption below."""
        head = [markdown(column.label) for column in self.columns]
        rule = ["--:" if column.numeric else ":--" for column in self.columns]
        body = [[markdown(cell) for cell in row] for row in self.cells()]
        lines = [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
        return "\n".join([*lines, "", markdown(self.caption), ""])

    def to_html(self, *, breaking: bool = False) -> str:
        """Return a ``<table>``; every cell carries its heading in ``data-label``, for narrow screens.

        Args:
            breaking: Names may go on in the next line behind an underscore or point.
        """
        labels = [escape(plain(column.label)).replace(" %", f"{_NARROW}%") for column in self.columns]
        kinds = [' class="num"' if column.numeric else "" for column in self.columns]
        head = "".join(f'<th scope="col"{kind}>{label}</th>' for label, kind in zip(labels, kinds, strict=True))
        body = []
        for row in self.cells():
            first, *rest = (
                re.sub(r"(?<=\w[_.])(?=[^\W\d])", "<wbr>", escape(cell))
                if breaking and not column.numeric
                else escape(cell)
                for cell, column in zip(row, self.columns, strict=True)
            )
            cells = "".join(
                f'<td data-label="{label}"{kind}>{cell}</td>'
                for label, kind, cell in zip(labels[1:], kinds[1:], rest, strict=True)
            )
            body.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
        caption = escape(plain(self.caption))
        head = f"<table><caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>"
        return "\n".join([head, "<tbody>", *body, "</tbody></table>"])

    def to_latex(self, *, label: str) -> str:
        r"""Return a ``table`` with rules of booktabs, shrunk to the line; no sign of any text acts as a command.

        Args:
            label: What ``\ref`` calls it: letters, digits, colons and hyphens.
        """
        columns = "".join("r" if column.numeric else "l" for column in self.columns)
        head = [f"\\textbf{{{latex(column.label)}}}" for column in self.columns]
        rows = [" & ".join(map(latex, row)) + r" \\" for row in self.cells()]
        return "\n".join(
            [
                r"\begin{table}[htbp]",
                r"\centering\footnotesize",
                f"\\caption{{{latex(self.caption)}}}",
                f"\\label{{{label}}}",
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
                r"\toprule",
                " & ".join(head) + r" \\",
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}}",
                r"\end{table}",
                "",
            ]
        )

    def to_csv(self) -> str:
        """Return all fields of the records; an unknown value is an empty cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.records[0].keys() if self.records else [column.label for column in self.columns])
        writer.writerows(
            [json.dumps(v) if isinstance(v, bool) else v for v in record.values()] for record in self.records
        )
        return text.getvalue()

    def to_json(self) -> list[dict[str, Value]]:
        """Return all fields of the records as JSON values; an unknown value is null."""
        return [dict(record) for record in self.records]


def plain(text: str) -> str:
    r"""Return a text with its control, format and direction characters spelled out, so that none of them acts.

    Example:
        >>> plain("a\x1b[31m\u202eb")
        'a\\u001b[31m\\u202eb'
    """
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in {"Cc", "Cf", "Cs"} else c for c in text)


def latex(text: str) -> str:
    r"""Return a text as LaTeX prints it; a character that its fonts lack is told by its number.

    Example:
        >>> latex("50 % of G_1"), latex("東")
        ('50 \\% of G\\_1', '[U+6771]')
    """
    shown = unicodedata.normalize("NFC", plain(text))
    return "".join(
        _LATEX.get(ord(sign), sign) if sign in _SET or ord(sign) in _LATEX else f"[U+{ord(sign):04X}]" for sign in shown
    )


def between(text: str, low: str | None, high: str | None) -> str:
    r"""Return a number with the ends of its interval, which no line break splits, where there are any.

    Example:
        >>> between("0.5", "0.4", "0.6"), between("0.5", None, None)
        ('0.5 [0.4,\xa00.6]', '0.5')
    """
    return text if low is None or high is None else f"{text} [{low},{_NARROW}{high}]"


def percent(value: float | None, digits: int = 1) -> str:
    r"""Return a share in percent.

    Example:
        >>> percent(0.0862), percent(None)
        ('8.6\xa0%', '–')
    """
    return ABSENT if value is None else f"{value * 100:.{digits}f}{_NARROW}%".replace("-", "−")


def points(value: float) -> str:
    """Return a difference of shares in percentage points, with its sign.

    Example:
        >>> points(-0.0123), points(0.0)
        ('−1.2', '0.0')
    """
    text = f"{value * 100:+.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text.replace("-", "−")


def dollars(value: float | None) -> str:
    """Return an amount; one that is not known is called so and never 0.

    Example:
        >>> dollars(0.0712), dollars(12.5), dollars(None)
        ('$0.0712', '$12.50', 'unknown')
    """
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def count(value: int | None) -> str:
    """Return a count; one that is not known is called so and never 0.

    Example:
        >>> count(12345), count(None)
        ('12,345', 'unknown')
    """
    return "unknown" if value is None else f"{value:,}"


def markdown(text: str) -> str:
    r"""Return a text as Markdown prints it.

    Example:
        >>> markdown("a|b *c*")
        'a\\|b \\*c\\*'
    """
    for sign in ("\\", "|", "<", "`", "*"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("](", "]\\(")
