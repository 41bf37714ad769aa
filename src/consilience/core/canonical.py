"""Canonical JSON and tagged hashes: the same value gives the same bytes, everywhere and always."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: Any) -> bytes:
    r"""Return the one byte string that stands for a JSON value.

    Keys sorted, no white space, ASCII only (so that lone surrogates and NUL survive), NaN and infinities refused.

    Raises:
        ValueError: The value holds NaN or an infinity.
        TypeError: The value is not JSON.

    Example:
        >>> canonical_json({"b": 1, "a": "é\ud800"})
        b'{"a":"\\u00e9\\ud800","b":1}'
    """
    return _ENCODER.encode(value).encode("ascii")


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
