"""Replies drawn from a schema by a seeded generator: in contract where schema and prompt tell the contract."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consilience.errors import DataError
from consilience.evidence.reading import parse_prompt
from consilience.models.simulated import Draws

ENVELOPE = frozenset({"answer", "critiques", "abstention"})
QUANTILES = ("q05", "q25", "q50", "q75", "q95")
BESIDE_THE_POINT = frozenset({"quotes", "adjustments", "risks"})
"""Lists that are right when empty and hard to fill rightly."""
_TASK = re.compile(r"^TASK: (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class _Facts:
    """What the prompt tells about a right answer."""

    task: str
    lower: float | None = None
    upper: float | None = None
    options: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def draw_reply(schema: Mapping[str, Any], prompt: str, *, seed: int) -> str:
    """Return the JSON text of a reply under a schema; the same for the same schema, prompt and seed.

    Quantiles are ordered and inside the question's bounds, probabilities in [0, 1] and summing to 1, options and
    members are those of the prompt; of an envelope the field that the TASK line asks for is filled.

    Example:
        >>> draw_reply({"type": "object", "properties": {"ok": {"type": "boolean"}}}, "", seed=0)
        '{"ok": true}'
    """
    drawing = _Drawing(Draws(seed, prompt), _facts(prompt), schema.get("$defs", {}))
    return json.dumps(drawing.value(schema, "root", ""))


def schema_in(text: str) -> dict[str, Any] | None:
    """Return the last JSON schema of an object that is written out in a prompt, or None."""
    decoder = json.JSONDecoder()
    found = None
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except ValueError:
            end = position + 1
        else:
            if isinstance(value, dict) and value.get("type") == "object" and isinstance(value.get("properties"), dict):
                found = value
        position = text.find("{", end)
    return found


def _facts(prompt: str) -> _Facts:
    try:
        parsed = parse_prompt(prompt)
    except DataError:
        return _Facts(task=(_TASK.findall(prompt) or ["answer"])[-1])
    asked = parsed.question
    return _Facts(
        task=parsed.task,
        lower=0.0 if asked.get("lower") is None and asked.get("scale") == "log" else asked.get("lower"),
        upper=asked.get("upper"),
        options=tuple(option["id"] for option in asked.get("options", ())),
        evidence=tuple(str(item["id"]) for items in parsed.view.values() for item in items if "id" in item),
        others=tuple(str(row["seat"]) for row in (parsed.committee or {}).get("others", ())),
    )


@dataclass(frozen=True)
class _Drawing:
    draws: Draws
    facts: _Facts
    defs: Mapping[str, Any]

    def value(self, node: Mapping[str, Any], path: str, name: str) -> Any:
        if "$ref" in node:
            return self.value(self.defs[str(node["$ref"]).rsplit("/", 1)[-1]], path, name)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self._pick(node["enum"], path)
        if "anyOf" in node:
            return self.value(self._pick(_not_null(node["anyOf"]), path), path, name)
        return self._typed(node, path, name)

    def _typed(self, node: Mapping[str, Any], path: str, name: str) -> Any:
        kind = node.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind == "object":
            return self._object(node, path)
        if kind == "array":
            return self._array(node.get("items", {}), path, name)
        return self._scalar(kind, path, name)

    def _pick(self, choices: Sequence[Any], path: str) -> Any:
        return choices[int(self.draws.uniform(path) * len(choices))]

    def _object(self, node: Mapping[str, Any], path: str) -> dict[str, Any]:
        fields = node.get("properties", {})
        if fields.keys() >= ENVELOPE:
            wanted = "critiques" if self.facts.task.startswith("critique") else "answer"
            filled = {wanted: self.value(fields[wanted], f"{path}.{wanted}", wanted)}
            return {field: filled.get(field) for field in fields}
        drawn = {field: self.value(part, f"{path}.{field}", field) for field, part in fields.items()}
        if fields.keys() >= {*QUANTILES}:
            drawn |= dict(zip(QUANTILES, sorted(drawn[name] for name in QUANTILES), strict=True))
            drawn |= {"point": drawn["q50"]} if "point" in fields else {}
        if "ranking" in fields and "choice" in fields:
            options = fields["choice"].get("enum", self.facts.options)
            drawn["ranking"] = [drawn["choice"], *(option for option in options if option != drawn["choice"])]
            drawn |= {"approvals": drawn["ranking"][:1]} if "approvals" in fields else {}
        return drawn

    def _array(self, items: Mapping[str, Any], path: str, name: str) -> list[Any]:
        if name == "evidence_ids":
            return list(self.facts.evidence[:2])
        if name in BESIDE_THE_POINT:
            return []
        fields = items.get("properties", {})
        if fields.keys() == {"option_id", "p"}:
            return self._shares(fields["option_id"].get("enum", self.facts.options), path)
        if "target_role" in fields:
            rows = [(label, self._object(items, f"{path}.{label}")) for label in self.facts.others]
            return [row | {"target_role": label} for label, row in rows]
        return [self.value(items, f"{path}[0]", name)]

    def _shares(self, options: Sequence[str], path: str) -> list[dict[str, Any]]:
        weights = [self.draws.uniform(f"{path}.{option}") for option in options]
        shares = [round(weight / sum(weights), 4) for weight in weights[:-1]]
        last = max(0.0, round(1 - sum(shares), 4))
        return [{"option_id": option, "p": p} for option, p in zip(options, [*shares, last], strict=True)]

    def _scalar(self, kind: Any, path: str, name: str) -> Any:
        u = self.draws.uniform(path)
        if kind == "boolean":
            return u < 0.5
        if kind == "integer":
            return int(self._number(u))
        if kind == "number":
            is_probability = name in {"p", "probability", "confidence"} or name.startswith("p_")
            return round(u, 3) if is_probability else round(self._number(u), 3)
        if kind == "null":
            return None
        if name == "choice" and self.facts.options:
            return self._pick(self.facts.options, path)
        return f"[fake] drawn text {int(u * 1e6)}"

    def _number(self, u: float) -> float:
        lower, upper = self.facts.lower, self.facts.upper
        if lower is None and upper is None:
            lower, upper = 100.0, 200.0
        elif lower is None and upper is not None:
            lower = upper - 100.0
        elif lower is not None and upper is None:
            upper = lower + 100.0
        return (lower or 0.0) + u * ((upper or 0.0) - (lower or 0.0))


def _not_null(branches: Sequence[Any]) -> list[Any]:
    return [branch for branch in branches if branch.get("type") != "null"] or list(branches)
