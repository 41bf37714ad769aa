"""Canonical JSON and tagged hashes: the same value gives the same bytes, everywhere and always."""

from __future__ import annotations

import hashlib
import json
import json.encoder
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
