from __future__ import annotations

import json
from typing import Any

import pytest

from consilience.core.schema import lint_schema, wire_schema
from consilience.errors import PlanError
from engine_cases import answer_json

NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def an_object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


@pytest.mark.parametrize("kind", ["estimate", "probability", "distribution", "choice"])
def test_the_schemas_we_send_are_inlined_closed_and_linted(kind: Any) -> None:
    schema = wire_schema(kind, ("o0", "o1"))
    lint_schema(schema, name=kind)
    text = json.dumps(schema)
    assert "$ref" not in text
    assert "default" not in text
    assert list(schema["properties"]) == ["answer", "critiques", "abstention"]
    (answer,) = [part for part in schema["properties"]["answer"]["anyOf"] if part["type"] == "object"]
    assert set(answer_json(kind)) <= set(answer["properties"])
    assert set(answer["required"]) == set(answer["properties"])
    assert ('"enum": ["o0", "o1"]' in text) == (kind in {"distribution", "choice"})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array", "items": {"type": "string"}}, "root: must be an object"),
        ({"type": "object"}, "an object without fixed fields is a map"),
        (an_object(a={"type": "object"}), "root.a: an object without fixed fields is a map"),
        (an_object(a={"type": "object", "additionalProperties": {"type": "number"}}), "root.a: an object without"),
        (an_object(a={"type": "string"}) | {"required": []}, "every field must be required"),
        (an_object(a={"type": "string"}) | {"additionalProperties": True}, "no other allowed"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, "no other allowed"),
        (an_object(a={"$ref": "#/$defs/A"}), "root.a: references are not inlined"),
        (an_object(a={"type": "array", "items": {"$ref": "#/$defs/A"}}), "root.a: references are not inlined"),
        (an_object(a={"type": "string"}) | {"$defs": {}}, "root: references are not inlined"),
        (an_object(a={"anyOf": [{"type": "object"}, {"type": "null"}]}), "root.a: an object without fixed fields"),
        (an_object(**{f"f{n}": NULLABLE for n in range(17)}), "17 fields are unions; at most 16"),
        (an_object(**{f"f{n}": NULLABLE for n in range(25)}), "25 nullable fields are too many"),
    ],
)
def test_what_a_vendor_would_refuse_is_refused_before_anything_is_spent(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(PlanError) as caught:
        lint_schema(schema, name="x")
    assert why in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "é", "a" * 65, "a.b", "a/b"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(PlanError, match="needs 1 to 64 of"):
        lint_schema(an_object(a={"type": "string"}), name=name)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(PlanError, match=r"root\.a: .*root\.b: .*name 'a b'"):
        lint_schema(an_object(a={"type": "object"}, b={"$ref": "x"}), name="a b")


def test_sixteen_unions_are_accepted() -> None:
    lint_schema(an_object(**{f"f{n}": NULLABLE for n in range(16)}), name="a" * 64)
    with pytest.raises(PlanError):
        lint_schema(an_object(**{f"f{n}": NULLABLE for n in range(16)}, more=NULLABLE), name="a")
