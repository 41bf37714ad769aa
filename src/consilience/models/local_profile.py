"""How a small model is asked: short, under a grammar, with offsets in place of quantiles; and how its reply is read.

A grammar can bound numbers but not order them, so an estimate is asked for as a point and non-negative offsets, from
which quantiles follow that cannot cross. What the model is not asked for (adjustments, counterarguments, abstention)
stays empty in its answer.

Layout: what is the same for all roles of an item comes first and the role last, so that the engine reuses its state.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from consilience.config import package_text
from consilience.core.kinds import KINDS
from consilience.errors import DataError
from consilience.evidence.reading import ParsedPrompt, parse_prompt
from consilience.evidence.rendering import fence, fill
from consilience.evidence.visible import visible_json
from consilience.models.request import Request

PROFILE = "offsets-1"
MOST = 10**12
MOST_IDS = 2
LONGEST_TEXT = 400
MOST_ITEMS = 8
_WORD = "[A-Za-z]{1,14}"
_SENTENCE = f"^{_WORD}(,? ({_WORD}|[A-Z]?[0-9]{{1,4}})){{2,9}}[.]$"
_CURRENCY = re.compile(r"[A-Z]{3}")

Schema = dict[str, Any]
Reading = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Wire:
    """One call in the form the small model is given.

    Attributes:
        system: The system message.
        user: The user message.
        schema: What the reply must fit.
        read: Turns a reply into the fields of the envelope; None where the reply is the envelope itself.
    """

    system: str
    user: str
    schema: Schema
    read: Reading | None

    def answer(self, said: str) -> str:
        """Return the envelope that a reply stands for, or the reply itself when it is not in the asked form."""
        if self.read is None:
            return said
        try:
            read = self.read(json.loads(said))
        except (ValueError, KeyError, TypeError, RecursionError):
            return said  # whoever reads it under the contract says what is wrong with it
        return json.dumps({"answer": None, "critiques": None, "abstention": None} | read)


def wire(request: Request) -> Wire:
    """Return a request as the small model is asked it: a turn of a panel in short, anything else as it stands."""
    if request.contract.name not in KINDS or len(request.messages) != 1:
        return _as_it_stands(request)
    view_block, turn_block, *corrections = (block.text for block in request.messages[0].blocks)
    system = "\n".join(block.text for block in request.system)
    try:
        prompt = parse_prompt("\n".join([system, view_block, turn_block, *corrections]))
    except DataError:
        return _as_it_stands(request)
    schema, words, read = _asked(prompt)
    shown = turn_block[: turn_block.rindex("TASK: ")]
    asked: dict[str, Any] = {name: prompt.question[name] for name in ("text", "unit") if name in prompt.question}
    question = fence(prompt.tag, asked, label="question") + "\n"
    user = "".join(
        [_short(view_block, prompt), question, shown, *corrections, _mandate(system, prompt), "Reply in JSON.\n"]
    )
    return Wire(package_text("prompts/local/system.md").strip() + f"\n{words}", user, schema, read)


def _as_it_stands(request: Request) -> Wire:
    system = "\n\n".join(block.text for block in request.system)
    user = "\n".join(block.text for message in request.messages for block in message.blocks)
    return Wire(system, user, bounded(request.contract.schema), read=None)


def bounded(schema: Mapping[str, Any]) -> Schema:
    """Return a schema whose texts, lists and numbers cannot run away; ``uniqueItems``, which would, is left out.

    Example:
        >>> bounded({"type": "array", "items": {"type": "string"}, "uniqueItems": True})
        {'type': 'array', 'items': {'type': 'string', 'maxLength': 400}, 'maxItems': 8}
    """
    made = {name: _bounded_part(part) for name, part in schema.items() if name != "uniqueItems"}
    limits: dict[str, Schema] = {
        "string": {"maxLength": LONGEST_TEXT},
        "array": {"maxItems": MOST_ITEMS},
        "integer": {"minimum": -MOST, "maximum": MOST},
        "number": {"minimum": -MOST, "maximum": MOST, "multipleOf": 0.01},
    }
    kind = made.get("type")
    return made | {
        name: limit
        for name, limit in limits.get(kind if isinstance(kind, str) else "", {}).items()
        if name not in made and not {"enum", "const", "pattern"} & made.keys()
    }


def _bounded_part(part: Any) -> Any:
    if isinstance(part, Mapping):
        return bounded(part)
    return [_bounded_part(each) for each in part] if isinstance(part, list) else part


def _short(view_block: str, prompt: ParsedPrompt) -> str:
    """Return the view block with unknowns left out of the evidence: what is not there is unknown."""
    known = {
        code: [{name: value for name, value in item.items() if value is not None} for item in items]
        for code, items in prompt.view.items()
    }
    line = f"<data-{prompt.tag} view>\n"
    before, _, after = view_block.partition(line)
    return before + line + visible_json(known) + after[after.index("\n") :]


def _mandate(system: str, prompt: ParsedPrompt) -> str:
    """Return the first paragraph of the role's text: what it is there for."""
    role = system.partition(f"ROLE_ID: {prompt.seat}\n\n")[2]
    text = f"Your role: {role.partition(chr(10) * 2)[0].strip().removeprefix('Mandate: ')}\n"
    if prompt.task.startswith("critique"):
        return f"{text}Judge the answer of one other member.\n"
    if prompt.task.startswith("revision"):
        return f"{text}Keep your own answer or change it for a reason.\n"
    return text


def _asked(prompt: ParsedPrompt) -> tuple[Schema, str, Reading]:
    if prompt.task.startswith("critique"):
        words = package_text("prompts/local/critiques.md").strip()
        return _critiques_schema(prompt), words, _read_critiques
    if prompt.kind == "estimate":
        return _Estimation.of(prompt).asked()
    options = [str(option["id"]) for option in prompt.question.get("options", ())]
    own: Schema = {
        "probability": {"p_yes": _multiple(0, 1)},
        "distribution": {"weights": _object(dict.fromkeys(options, _integer(1, 100)))},
        "choice": {"choice": {"type": "string", "enum": options}, "confidence": _multiple(0, 1)},
    }[prompt.kind]
    words = package_text(f"prompts/local/{prompt.kind}.md").strip()
    return _object(own | _grounds(prompt)), words, _READERS[prompt.kind]


def _object(fields: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def _integer(low: float, high: float) -> Schema:
    return {"type": "integer", "minimum": math.ceil(low), "maximum": math.floor(high)}


def _multiple(low: float, high: float, step: float = 0.01) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high, "multipleOf": step}


def _list(of: Iterable[Any], most: int) -> Schema:
    values = list(of)
    if not values:
        return {"type": "array", "items": {"type": "null"}, "maxItems": 0}
    items = values[0] if isinstance(values[0], dict) else {"type": "string", "enum": values}
    return {"type": "array", "items": items, "maxItems": most}


def _grounds(prompt: ParsedPrompt) -> dict[str, Schema]:
    ids = [str(item["id"]) for items in prompt.view.values() for item in items]
    return {"evidence_ids": _list(ids, MOST_IDS), "reason": {"type": "string", "pattern": _SENTENCE}}


def _read_grounds(said: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "evidence_ids": said["evidence_ids"],
        "reasoning_summary": said["reason"],
        "counterarguments": [],
        "missing_data": [],
    }


def _read_probability(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"answer": {"p_yes": said["p_yes"], "rationale": "", **_read_grounds(said)}}


def _read_distribution(said: Mapping[str, Any]) -> dict[str, Any]:
    total = math.fsum(said["weights"].values())
    rows = [{"option_id": option, "p": weight / total} for option, weight in said["weights"].items()]
    return {"answer": {"probabilities": rows, "rationale": "", **_read_grounds(said)}}


def _read_choice(said: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: said[name] for name in ("choice", "confidence")}
    return {"answer": {**own, "rationale": "", **_read_grounds(said)}}


_READERS: dict[str, Reading] = {
    "probability": _read_probability,
    "distribution": _read_distribution,
    "choice": _read_choice,
}


def _critiques_schema(prompt: ParsedPrompt) -> Schema:
    others = [str(row["seat"]) for row in (prompt.committee or {}).get("others", ())]
    entry: dict[str, Schema] = {
        "target_role": {"type": "string", "enum": others},
        "agrees": {"type": "boolean"},
        "point": {"type": "string", "pattern": _SENTENCE},
    }
    return _object({"critiques": _list([_object(entry)] if others else (), 1)})


def _read_critiques(said: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        {"target_role": row["target_role"], "agrees": row["agrees"], "points": [row["point"]], "evidence_ids": []}
        for row in said["critiques"]
    ]
    return {"critiques": rows}


@dataclass(frozen=True)
class _Estimation:
    """How one number is asked for.

    Attributes:
        name: What the point is called on the wire.
        step: What the point is a multiple of; 1 for money.
        least: Smallest point that may be said.
        floor: What quantiles stay above, if anything; offsets below the point are percentages of the way there.
        ceiling: What they stay below, if anything; the same.
        percent_above: Offsets above the point are percentages, of the way to the ceiling or else of the point.
        grounds: Schema of evidence and reason.
    """

    name: str
    step: float
    least: float
    floor: float | None
    ceiling: float | None
    percent_above: bool
    grounds: Mapping[str, Schema]

    @classmethod
    def of(cls, prompt: ParsedPrompt) -> _Estimation:
        question = prompt.question
        unit, lower, upper = question.get("unit"), question.get("lower"), question.get("upper")
        log = question.get("scale") == "log"
        floor = max(lower or 0.0, 0.0) if log else lower
        width = math.inf if floor is None or upper is None else upper - floor
        step = 1 if log and width >= 100 and _CURRENCY.fullmatch(unit or "") else 0.01
        if width < 10:
            step = 10.0 ** (math.floor(math.log10(width)) - 3)
        return cls(
            name=_name_in_evidence(prompt),
            step=step,
            least=-MOST if floor is None else max(floor, step) if log else floor,
            floor=floor,
            ceiling=upper,
            percent_above=log or upper is not None,
            grounds=_grounds(prompt),
        )

    def asked(self) -> tuple[Schema, str, Reading]:
        """Return schema, explanation and reading."""
        most = MOST if self.ceiling is None else self.ceiling
        below = _integer(0, 45) if self.floor is not None else _multiple(0, MOST)
        above = _integer(0, 45 if self.ceiling is not None else 100) if self.percent_above else _multiple(0, MOST)
        fields = {
            self.name: _integer(self.least, most) if self.step == 1 else _multiple(self.least, most, self.step),
            "down25": below,
            "down05": below,
            "up75": above,
            "up95": above,
            **self.grounds,
        }
        values = {
            "name": self.name,
            "below": "in the same unit" if self.floor is None else f"in percent of the way down to {self.floor:g}",
            "above": self._above_words(),
        }
        words = fill(package_text("prompts/local/estimate.md"), values).strip()
        return _object(fields), words, self.read

    def _above_words(self) -> str:
        if not self.percent_above:
            return "in the same unit"
        return "in percent of it" if self.ceiling is None else f"in percent of the way up to {self.ceiling:g}"

    def read(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Return point and quantiles; q25 = point − down25, q05 = q25 − down05, and upwards alike; q50 = point."""
        point = said[self.name]
        near, far = said["down25"], said["down25"] + said["down05"]
        over, beyond = said["up75"], said["up75"] + said["up95"]
        quantiles = {
            "q05": _towards(point, far, self.floor) if self.floor is not None else point - far,
            "q25": _towards(point, near, self.floor) if self.floor is not None else point - near,
            "q50": point,
            "q75": self._up(point, over),
            "q95": self._up(point, beyond),
        }
        own = {"adjustments": [], "key_assumptions": [], "confidence_rationale": ""}
        return {"answer": {"point": point, **quantiles, **own, **_read_grounds(said)}}

    def _up(self, point: float, offset: float) -> float:
        if not self.percent_above:
            return point + offset
        return point * (100 + offset) / 100 if self.ceiling is None else _towards(point, offset, self.ceiling)


def _towards(point: float, percent: float, end: float) -> float:
    """Return the number that lies so many percent of the way from the point to the end."""
    return (point * (100 - percent) + end * percent) / 100


def _name_in_evidence(prompt: ParsedPrompt) -> str:
    """Return the word of the question that the evidence uses for a number, such as "price", else "point".

    A small model finds numbers by the names they have in its prompt.
    """
    names = {
        name
        for items in prompt.view.values()
        for item in items
        for name, value in item.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    words = re.findall(r"[a-z]+", prompt.question["text"].lower())
    return next((word for word in words if word in names), "point")
