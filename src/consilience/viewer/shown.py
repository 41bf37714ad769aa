"""How a page becomes bytes: every text is made visible and escaped, every list comes in pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from consilience.evidence.visible import visible_text
from consilience.models.prices import NANO

PAGE: Final = 50
LONGEST: Final = 2_000
"""Characters of one text on a page; a note says how many there are in all."""
T = TypeVar("T")


@dataclass(frozen=True)
class Paged(Generic[T]):
    """One page of a list.

    Attributes:
        rows: What stands on it.
        number: Of the page, from 1.
        pages: How many there are, at least 1.
        total: Rows in all.
    """

    rows: Sequence[T]
    number: int
    pages: int
    total: int


def paged(rows: Sequence[T], number: int) -> Paged[T]:
    """Return a page of fifty; a number beyond the last gives the last.

    Example:
        >>> one = paged(list(range(120)), 3)
        >>> one.rows[0], len(one.rows), one.pages
        (100, 20, 3)
    """
    pages = max(1, -(-len(rows) // PAGE))
    at = min(max(1, number), pages)
    return Paged(rows[(at - 1) * PAGE : at * PAGE], at, pages, len(rows))


@cache
def environment() -> Environment:
    """Return the templates; whatever is put into one is visible text, and escaped."""
    made = Environment(
        loader=PackageLoader("consilience.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"clip": clip, "amount": amount, "usd": usd, "nano": nano, "share": share, "words": words}
    made.filters |= {"part": part, "compact": compact, "json_text": json_text}
    return made


def _visible(value: object) -> object:
    if value is None:
        return "unknown"
    return visible_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def part(name: object) -> str:
    """Return a name as one part of an address; no sign of it can end the part.

    Example:
        >>> part("a/../b?c")
        'a%2F..%2Fb%3Fc'
    """
    return quote(str(name), safe="", errors="surrogatepass")


def clip(text: str, most: int = LONGEST) -> str:
    """Return the beginning of a long text, and how long it is.

    Example:
        >>> clip("abcdef", 3)
        'abc… (the first 3 of 6 characters)'
    """
    return text if len(text) <= most else f"{text[:most]}… (the first {most:,} of {len(text):,} characters)"


def compact(value: object) -> str:
    """Return a JSON value in one line for readers; what is nested stays JSON.

    Example:
        >>> compact({"kept": 5, "share": 1 / 3}), compact(["a", "b"]), compact([]), compact([{"a": 1}])
        ('kept 5, share 0.333333', 'a, b', 'none', '[{"a": 1}]')
    """
    if isinstance(value, str):
        return clip(value)
    if isinstance(value, dict | list) and not value:
        return "none"
    if isinstance(value, dict) and all(map(_is_plain, value.values())):
        return clip(", ".join(f"{words(str(name))} {_plain(one)}" for name, one in value.items()))
    if isinstance(value, list) and all(map(_is_plain, value)):
        return clip(", ".join(map(_plain, value)))
    return _plain(value) if _is_plain(value) else json_text(value)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _plain(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def json_text(value: object) -> str:
    """Return a JSON value as JSON."""
    return clip(json.dumps(value, ensure_ascii=False), LONGEST * 10)


def amount(value: object) -> str:
    """Return a number for readers; what is unknown is said to be.

    Example:
        >>> amount(338270.394), amount(0.41197), amount(None)
        ('338,270', '0.412', 'unknown')
    """
    if not isinstance(value, int | float):
        return "unknown" if value is None else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def usd(value: float | None) -> str:
    """Return dollars; what is unknown is said to be."""
    return "unknown" if value is None else f"${value:,.4f}"


def nano(value: int | None) -> str:
    """Return nano-dollars in dollars."""
    return usd(None if value is None else value / NANO)


def share(value: float | None) -> str:
    """Return a fraction in percent."""
    return "unknown" if value is None else f"{value:.0%}"


def words(name: str) -> str:
    """Return an identifier in words.

    Example:
        >>> words("market_economist")
        'market economist'
    """
    return name.replace("_", " ")


def page(template: str, **context: Any) -> str:
    """Return a page."""
    return environment().get_template(template).render(**context)
