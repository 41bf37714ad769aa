"""Replies made wrong on purpose, one rule at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

LONE_SURROGATE = "\ud800"
PROSE = frozenset({"reasoning_summary", "rationale", "points", "abstention"})


def out_of_range(text: str) -> str:
    """Return a reply that is valid JSON under its schema and breaks its contract.

    Example:
        >>> out_of_range('{"answer": {"p_yes": 0.2}}')
        '{"answer": {"p_yes": 1.7}}'
    """
    value = _read(text)
    if value is None or not _spoil_numbers(value):
        return text
    return json.dumps(value)


def _spoil_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return any(_spoil_numbers(part) for part in value)
    if not isinstance(value, dict):
        return False
    if {"q05", "q95"} <= value.keys():
        value["q05"] = value["q95"] + 1
        return True
    for name, wrong in (("p_yes", 1.7), ("p", 1.7), ("choice", "no_such_option"), ("target_role", "nobody")):
        if name in value:
            value[name] = wrong
            return True
    return any(_spoil_numbers(part) for part in value.values())


def with_surrogate(text: str, *, escaped: bool) -> str:
    r"""Return a reply one of whose texts ends in a lone surrogate: as a character, or as its JSON escape.

    Example:
        >>> with_surrogate('{"why": "dry"}', escaped=True)
        '{"why": "dry\\ud800"}'
    """
    value = _read(text)
    places = list(_texts(value, ""))
    if not places:
        return text + LONE_SURROGATE
    container, key, _ = next((place for place in places if place[2] in PROSE), places[0])
    container[key] += LONE_SURROGATE
    return json.dumps(value, ensure_ascii=escaped)


def _texts(value: Any, name: str) -> Iterator[tuple[Any, Any, str]]:
    """Yield container, key and field name of every text."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        field = key if isinstance(key, str) else name
        if isinstance(part, str):
            yield value, key, field
        else:
            yield from _texts(part, field)


def _read(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None
