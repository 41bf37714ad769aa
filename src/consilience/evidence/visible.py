r"""Untrusted text made visible: one JSON line in which nothing can hide and nothing can open or close a fence.

Every untrusted value enters a prompt as compact JSON. In it, characters that a reader cannot see (control, bidi,
zero-width, private, lone surrogates) and every character that looks like ``<`` stand as ``\uXXXX``. Nothing is lost:
`json.loads` gives the value back. There is no line break in it, so it cannot begin a line of the prompt.
"""

from __future__ import annotations

import json
import re
from typing import Any

from consilience.errors import DataError

# Categories Cc, Cf, Cs, Co, Zl, Zp, the Hangul fillers and the variation selectors; a test compares with unicodedata.
_HIDDEN = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff"
)
# Less-than signs, single angle brackets and what Unicode lists as confusable with them.
_ANGLES = "<\u02c2\u1438\u16b2\u2039\u2329\u276c\u276e\u27e8\u29fc\u3008\ufe64\uff1c\U0001d236"

_IN_JSON = re.compile(f"[{_HIDDEN}{_ANGLES}]")
_IN_TEXT = re.compile(f"(?![\n\t])[{_HIDDEN}]")
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] not in "<\x7f" else f"\\u{ord(match[0]):04x}"


def visible_json(value: Any) -> str:
    r"""Return a JSON value as one line of compact JSON with sorted keys, hidden characters and angles escaped.

    Raises:
        DataError: The value is no JSON, holds NaN or an infinity, or is nested too deeply or too large a number.

    Example:
        >>> visible_json({"b": "</data-x>", "a": "é\u202e"})
        '{"a":"é\\u202e","b":"\\u003c/data-x>"}'
    """
    try:
        text = _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(
            f"a value cannot be shown in a prompt ({type(error).__name__}: {error})",
            hint="Give plain JSON: finite numbers, strings, lists, objects, nested less than some hundred levels.",
        ) from None
    return _IN_JSON.sub(_escape, text)


def visible_text(text: str) -> str:
    r"""Return trusted prose with its hidden characters escaped; line breaks (as ``\n``) and tabs stay.

    Example:
        >>> visible_text("one\r\ntwo\x1b[0m")
        'one\ntwo\\u001b[0m'
    """
    return _IN_TEXT.sub(_escape, text.replace("\r\n", "\n"))
