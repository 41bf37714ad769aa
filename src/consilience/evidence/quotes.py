"""Whether a quoted passage stands in an evidence item: punctuation and case may differ, words and digits may not."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

from pydantic import JsonValue

# A number in space-separated groups; a number with its sign (a hyphen after a word is punctuation); a run of letters.
_TOKEN = re.compile(r"(?:(?<!\w)-)?(?:\d{1,3}(?: \d{3})+(?![.,]?\d)|\d+(?:[.,']\d+)*)|[^\W\d_]+")
_GROUPED = re.compile(r"-?\d{1,3}(?:([, '])\d{3}(?:\1\d{3})*(?:\.\d+)?|(?:\.\d{3}){2,}(?:,\d+)?)")
_SIGNS = str.maketrans({"−": "-", "’": "'"})


def contains_passage(content: JsonValue, passage: str) -> bool:
    """Return whether the words and numbers of the passage occur in the content, adjacent and in order.

    The content is read as field name, value, field name, value… in the order it is shown. Numbers are compared by
    their digits, so ``412,000`` is ``412000`` and ``412000.0``, and ``41`` is not found in it. A passage without words
    and numbers is never found.

    Example:
        >>> item = {"note": "Corner lot.", "price": 412000}
        >>> [contains_passage(item, passage) for passage in ("Price: 412,000", "“corner lot”", "421000")]
        [True, True, False]
    """
    wanted = _tokens(passage)
    return bool(wanted) and _line(wanted) in _line(_tokens("\n".join(_spoken(content))))


def _line(tokens: list[str]) -> str:
    return "\n" + "\n".join(tokens) + "\n"


def _spoken(value: JsonValue) -> Iterator[str]:
    """Yield names and scalars of a JSON value in the order of `visible_json`."""
    if isinstance(value, dict):
        for name in sorted(value):
            yield name
            yield from _spoken(value[name])
    elif isinstance(value, list):
        for part in value:
            yield from _spoken(part)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def _tokens(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).translate(_SIGNS).casefold()
    return [part for token in _TOKEN.findall(folded) for part in _parts(token)]


def _parts(token: str) -> list[str]:
    """Return a word as it is, a number in plain digits, and digits joined by other punctuation apart."""
    if token.isalpha():
        return [token]
    if _GROUPED.fullmatch(token):
        european = token.count(".") > 1
        token = token.replace("." if european else ",", "").replace(" ", "").replace("'", "")
    token = token.replace(",", ".")
    if token.count(".") + token.count("'") > 1 or "'" in token:
        return re.split("[.']", token)
    return [token.rstrip("0").rstrip(".") if "." in token else token]
