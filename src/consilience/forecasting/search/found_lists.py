"""Lists of results as search servers write them: JSON in the usual shapes, or blocks of labelled lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from consilience.forecasting.search.dates import date_of
from consilience.forecasting.search.document import Hit

LISTS = ("results", "documents", "items", "hits", "organic", "organic_results", "news", "web", "data", "result")
"""Names under which a reply holds its list; ``web`` and the like may hold another such object."""
URLS = ("url", "link", "href", "uri")
TITLES = ("title", "name", "headline")
TEXTS = ("raw_content", "text", "content", "markdown", "snippet", "description", "summary", "body")
DATES = ("published", "published_date", "publishedDate", "published_at", "publishedAt", "datePublished", "date", "age")
SCORES = ("score", "relevance")

_LABELLED = re.compile(
    r"[ \t]*(?:[0-9]{1,3}[.)][ \t]+)?[*#]{0,3}[ \t]*([A-Za-z][A-Za-z _]{1,18})[*]{0,2}:[*]{0,2}[ \t]*(.*)"
)
_NAMES = {
    **dict.fromkeys(("title", "name"), "title"),
    **dict.fromkeys(("url", "link", "source url"), "url"),
    **dict.fromkeys(("content", "text", "snippet", "description", "summary", "raw content"), "text"),
    **dict.fromkeys(("published", "published date", "date", "age", "page age"), "published"),
}


def found_objects(value: Any) -> list[Mapping[str, Any]] | None:
    """Return the results in a JSON value; None where it has no list of objects with addresses, which is unreadable.

    Example:
        >>> found_objects({"web": {"results": [{"url": "https://example.org"}]}})
        [{'url': 'https://example.org'}]
        >>> found_objects({"answer": 42}) is None
        True
    """
    for _ in range(3):
        if isinstance(value, list):
            sound = all(isinstance(part, dict) and isinstance(_first(part, URLS), str) for part in value)
            return value if sound else None
        if not isinstance(value, dict):
            return None
        if isinstance(_first(value, URLS), str):
            return [value]
        value = next((value[name] for name in LISTS if name in value), None)
    return None


def found_in_text(text: str) -> list[Mapping[str, Any]] | None:
    r"""Return the results in a text: JSON, or blocks of lines such as ``Title: …``, ``URL: …``; None for neither.

    Example:
        >>> found_in_text("Title: Rates\nURL: https://example.org/a\nContent: Held\nat 4%.")
        [{'title': 'Rates', 'url': 'https://example.org/a', 'text': 'Held\nat 4%.'}]
    """
    try:
        return found_objects(json.loads(text))
    except (ValueError, RecursionError):
        blocks = [block for block in _blocks(text) if "url" in block]
        return list(blocks) or None


def hit_of(found: Mapping[str, Any], *, seen: datetime, whole: bool = False) -> Hit:
    """Return a result as a hit; a missing title or text is empty, a missing date is none.

    Args:
        found: A result with an address.
        seen: When it was retrieved.
        whole: It is a page, whose own lines may tell its date.
    """
    url, text, score = str(_first(found, URLS)), _text(_first(found, TEXTS)), _first(found, SCORES)
    said = _first(found, DATES)
    dated = date_of(
        metadata=said if isinstance(said, str) else None, url=url, text=text if whole else None, retrieved_at=seen
    )
    known = isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
    return Hit(
        url=_text(url),
        title=_text(_first(found, TITLES)),
        text=text,
        published=dated.published,
        date_source=dated.source,
        retrieved_at=seen,
        score=float(score) if known else None,
    )


def _blocks(text: str) -> Iterator[dict[str, str]]:
    block: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        found = _LABELLED.fullmatch(line)
        name = None if found is None else _NAMES.get(found[1].strip().lower().replace("_", " "))
        if found is None or name is None:
            if last == "text":
                block["text"] += f"\n{line}"
            continue
        if name in block and name in {"title", "url"}:
            yield {known: told.rstrip() for known, told in block.items()}
            block = {}
        block.setdefault(name, found[2].strip())
        last = name
    if block:
        yield {known: told.rstrip() for known, told in block.items()}


def _first(found: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((found[name] for name in names if found.get(name) not in (None, "")), None)


def _text(value: Any) -> str:
    """Return a text with lone surrogates, which nothing can carry on, as replacement characters; empty for no text."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else ""
