"""The JSON schema of a contract as vendors take it, and a linter for what none of them would accept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from consilience.core.contracts import ENVELOPES
from consilience.core.question import Kind
from consilience.errors import PlanError


@cache
def wire_schema(kind: Kind, option_ids: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON schema sent to vendors: inlined, every field required, bounds left to our own reading.

    Args:
        kind: The kind of answer.
        option_ids: The options, for distributions and choices.

    Example:
        >>> sorted(wire_schema("probability")["properties"])
        ['abstention', 'answer', 'critiques']
    """
    full = ENVELOPES[kind].model_json_schema()
    schema: dict[str, Any] = _plain(full, full.get("$defs", {}))
    if kind == "choice":
        _answer_fields(schema)["choice"] = {"type": "string", "enum": list(option_ids)}
    if kind == "distribution":
        rows = _answer_fields(schema)["probabilities"]["items"]["properties"]
        rows["option_id"] = {"type": "string", "enum": list(option_ids)}
    return schema


def _answer_fields(schema: dict[str, Any]) -> dict[str, Any]:
    branch = next(part for part in schema["properties"]["answer"]["anyOf"] if part.get("type") == "object")
    fields: dict[str, Any] = branch["properties"]
    return fields


def _plain(node: Any, defs: Mapping[str, Any]) -> Any:
    """Inline references and keep only what both vendors' structured output takes."""
    if isinstance(node, list):
        return [_plain(part, defs) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _plain(defs[node["$ref"].rsplit("/", 1)[-1]], defs)
    kept: dict[str, Any] = {}
    if "properties" in node:
        kept["type"] = "object"
        kept["properties"] = {name: _plain(part, defs) for name, part in node["properties"].items()}
        kept["required"] = list(node["properties"])
        kept["additionalProperties"] = False
        return kept
    for key in ("type", "enum", "const", "anyOf", "items"):
        if key in node:
            kept[key] = _plain(node[key], defs)
    return kept


def lint_schema(schema: Mapping[str, Any], *, name: str) -> None:
    """Refuse a schema that one of the vendors would refuse, before anything is spent.

    Objects have fixed fields, all required; no maps, no recursion; at most 16 union fields and 24 nullable ones;
    the root is an object; the name has at most 64 of ``[A-Za-z0-9_-]``.

    Raises:
        PlanError: With every problem found.

    Example:
        >>> lint_schema(wire_schema("probability"), name="probability")
    """
    problems = list(_schema_problems(schema, "root"))
    if schema.get("type") != "object":
        problems.append("root: must be an object")
    if not (0 < len(name) <= 64 and all(char.isascii() and (char.isalnum() or char in "_-") for char in name)):
        problems.append(f"name {name!r}: needs 1 to 64 of A-Z a-z 0-9 _ -")
    unions = sum(1 for node in _nodes(schema) if "anyOf" in node)
    nullable = sum(1 for node in _nodes(schema) if any(part.get("type") == "null" for part in node.get("anyOf", ())))
    if unions > 16:
        problems.append(f"root: {unions} fields are unions; at most 16 may be")
    if nullable > 24:
        problems.append(f"root: {nullable} nullable fields are too many")
    if problems:
        raise PlanError(
            f"contract {name} is outside what vendors accept: {'; '.join(problems)}", hint="Mend the model."
        )


def _nodes(node: Any) -> Iterable[dict[str, Any]]:
    if isinstance(node, Mapping):
        if "type" in node or "anyOf" in node:
            yield dict(node)
        for part in node.values():
            yield from _nodes(part)
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _nodes(part)


def _schema_problems(node: Mapping[str, Any], place: str) -> Iterable[str]:
    if "$ref" in node or "$defs" in node:
        yield f"{place}: references are not inlined"
    fields = node.get("properties", {})
    if node.get("type") == "object" and not fields:
        yield f"{place}: an object without fixed fields is a map"
    if set(node.get("required", ())) != set(fields) or (fields and node.get("additionalProperties") is not False):
        yield f"{place}: every field must be required and no other allowed"
    for name, field in fields.items():
        yield from _schema_problems(field, f"{place}.{name}")
    for part in (*node.get("anyOf", ()), *((node["items"],) if "items" in node else ())):
        yield from _schema_problems(part, place)
