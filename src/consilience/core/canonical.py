"""Canonical JSON and tagged hashes: the same value gives the same bytes, everywhere and always."""

from __future__ import annotations

import hashlib
import json
import json.encoder
import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _pieces() -> Callable[[Any, int], Iterable[str]]:
    """Return what `json.JSONEncoder.encode` makes anew at every call: five times a turn, a good part of its cost."""
    make = vars(json.encoder).get("c_make_encoder")
    if make is None:
        return lambda value, _: _ENCODER.iterencode(value)
    encode = json.encoder.encode_basestring_ascii
    made: Callable[[Any, int], Iterable[str]] = make(
        None, _ENCODER.default, encode, None, ":", ",", _ENCODER.sort_keys, _ENCODER.skipkeys, _ENCODER.allow_nan
    )
    return made


_PIECES = _pieces()


def canonical_json(value: Any) -> bytes:
    r"""Return the one byte string that stands for a JSON value.

    Keys sorted, no white space, ASCII only (so that lone surrogates and NUL survive), NaN and infinities refused.

    Raises:
        ValueError: The value holds NaN or an infinity.
        TypeError: The value is not JSON.
        RecursionError: The value contains itself.

    Example:
        >>> canonical_json({"b": 1, "a": "é\ud800"})
        b'{"a":"\\u00e9\\ud800","b":1}'
    """
    return "".join(_PIECES(value, 0)).encode("ascii")


def strict_json(text: str | bytes) -> Any:
    """Return the JSON value of a text that can be read in one way only.

    Raises:
        ValueError: It is no JSON, holds NaN or an infinity (also a number too large to be one), or has an object with
            one key twice.
        RecursionError: It is nested too deeply.

    Example:
        >>> strict_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
            ...
        ValueError: the key "a" stands twice in one object
    """
    return json.loads(text, object_pairs_hook=_distinct, parse_constant=_finite, parse_float=_finite)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {json.dumps(twice)[:80]} stands twice in one object")
    return value


def _finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"{written[:20]} is no finite number")
    return value


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of ``data`` as 64 hex digits.

    Example:
        >>> sha256_hex(b"")[:8]
        'e3b0c442'
    """
    return hashlib.sha256(data).hexdigest()


def tagged_hash(tag: str, value: Any) -> str:
    """Return SHA-256 over a domain tag and the canonical JSON of ``value``; one tag's hashes never equal another's.

    Example:
        >>> tagged_hash("packet", {"a": 1}) == tagged_hash("role", {"a": 1})
        False
    """
    return hashlib.sha256(tag.encode() + b"\x00" + canonical_json(value)).hexdigest()


@lru_cache(maxsize=256)
def text_hash(text: str) -> str:
    r"""Return the SHA-256 of a text by its JSON bytes, defined for every Python string, lone surrogates included.

    Line ends count as ``\n`` so that a checkout with other line ends hashes alike.

    Example:
        >>> text_hash("a\r\nb") == text_hash("a\nb")
        True
    """
    return sha256_hex(canonical_json(text.replace("\r\n", "\n")))
