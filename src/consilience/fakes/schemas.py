"""The part of JSON Schema that both vendors' structured output takes; everything else is refused as they would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_OPTIONAL = 24
MAX_UNIONS = 16
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"$ref", "$defs", "title", "description"}
)


def schema_problems(schema: Mapping[str, Any]) -> list[str]:
    """Return what is outside the subset; empty for an acceptable schema.

    Objects have fixed fields, all required, no others; no maps, no recursion, no bounds; the root is an object; at most
    24 nullable and 16 union fields.

    Example:
        >>> schema_problems({"type": "object", "additionalProperties": {"type": "number"}})
        ['root: additionalProperties must be false', 'root: an object needs properties']
    """
    if schema.get("type") != "object":
        return ["root: must be an object"]
    defs = schema.get("$defs", {})
    problems: list[str] = []
    unions = nullable = 0
    for place, node in _walk(schema, "root", defs, ()):
        if isinstance(node, str):
            problems.append(f"{place}: {node}")
            continue
        problems += [f"{place}: {problem}" for problem in _node_problems(node)]
        branches = _branches(node)
        unions += bool(branches)
        nullable += "null" in branches
    if unions > MAX_UNIONS:
        problems.append(f"root: {unions} union fields; at most {MAX_UNIONS}")
    if nullable > MAX_OPTIONAL:
        problems.append(f"root: {nullable} optional fields; at most {MAX_OPTIONAL}")
    return problems


def _walk(
    node: Any, place: str, defs: Mapping[str, Any], open_refs: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield every subschema with its place, or a sentence about what cannot be followed."""
    if not isinstance(node, dict):
        yield place, "a schema must be an object"
        return
    if "$ref" in node:
        name = str(node["$ref"]).removeprefix("#/$defs/")
        if name in open_refs:
            yield place, "recursive schemas are not supported"
        elif name not in defs:
            yield place, f"{node['$ref']} leads nowhere"
        else:
            yield from _walk(defs[name], place, defs, (*open_refs, name))
        return
    yield place, node
    for name, part in node.get("properties", {}).items():
        yield from _walk(part, f"{place}.{name}", defs, open_refs)
    for part in node.get("anyOf", ()):
        yield from _walk(part, place, defs, open_refs)
    if "items" in node:
        yield from _walk(node["items"], f"{place}[]", defs, open_refs)


def _branches(node: Mapping[str, Any]) -> list[Any]:
    kind = node.get("type")
    if isinstance(kind, list):
        return kind
    return [part.get("type", "?") for part in node.get("anyOf", ()) if isinstance(part, dict)]


def _node_problems(node: Mapping[str, Any]) -> Iterator[str]:
    for keyword in sorted(node.keys() - KEYWORDS):
        yield f"keyword {keyword} is not supported"
    kinds = node["type"] if isinstance(node.get("type"), list) else [node["type"]] if "type" in node else []
    if not kinds and not node.keys() & {"anyOf", "enum", "const"}:
        yield "has no type"
    for kind in kinds:
        if kind not in TYPES:
            yield f"type {kind!r} is unknown"
    if "array" in kinds and "items" not in node:
        yield "an array needs items"
    if "object" in kinds:
        fields = node.get("properties", {})
        if node.get("additionalProperties") is not False:
            yield "additionalProperties must be false"
        if not fields:
            yield "an object needs properties"
        if sorted(node.get("required", ())) != sorted(fields):
            yield "every property must be required"
