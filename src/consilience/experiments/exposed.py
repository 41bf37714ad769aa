"""Items changed on purpose, to see whether a model answers from the evidence or from what it was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from consilience.core.packet import EvidenceItem, Item, Packet, Section
from consilience.core.panel import seeded_order
from consilience.errors import PlanError

Evidence = Literal["given", "closed_book", "perturbed"]
FACTORS = (0.8, 1.25)
"""What amounts are multiplied with when they are perturbed; the draw is per item."""
PERTURBED = "perturbed_by"
"""Stratum that holds the factor."""


@dataclass(frozen=True)
class EvidenceFields:
    """What an application's evidence says, as far as these treatments need to know it.

    Attributes:
        subject: By section code, the fields that name the subject and no more; a closed book keeps these alone.
        amounts: Names of fields, at any depth, whose numbers are in the unit of the answer.
    """

    subject: Mapping[str, frozenset[str]] = field(default_factory=dict)
    amounts: frozenset[str] = frozenset()


def treat(item: Item, evidence: Evidence, *, fields: EvidenceFields, seed: int) -> Item:
    """Return the item as its treatment shows it.

    ``given`` changes nothing. ``closed_book`` leaves of the evidence only what names the subject: whoever is right now
    has seen the answer before. ``perturbed`` multiplies every amount, and the truth with them, by 0.8 or 1.25, drawn
    per item and kept in its strata: whoever answers as before does not read the evidence.

    Raises:
        PlanError: There is no amount to perturb, or the question does not ask for one.

    Example:
        >>> from datetime import date
        >>> from consilience.core.packet import Section
        >>> from consilience.core.question import Question
        >>> shown = Section(code="X", title="Context", items=(EvidenceItem(id="X1", content={"price": 100.0}),))
        >>> packet = Packet(item_id="q", cutoff=date(2026, 1, 1), cutoff_rule="last_admissible", sections={"X": shown})
        >>> item = Item(question=Question(id="q", text="What is it worth?", kind="estimate"), packet=packet, truth=90.0)
        >>> treat(item, "closed_book", fields=EvidenceFields(), seed=0).packet.evidence_ids()
        ()
        >>> moved = treat(item, "perturbed", fields=EvidenceFields(amounts=frozenset({"price"})), seed=0)
        >>> moved.truth in {72.0, 112.5}
        True
    """
    if evidence == "closed_book":
        return item.model_copy(update={"packet": _closed(item.packet, fields.subject)})
    return _perturbed(item, fields.amounts, seed=seed) if evidence == "perturbed" else item


def _closed(packet: Packet, subject: Mapping[str, frozenset[str]]) -> Packet:
    def left(item: EvidenceItem, kept: frozenset[str]) -> EvidenceItem:
        return _with_content(item, {name: value for name, value in item.content.items() if name in kept})

    sections = {
        code: _with_items(section, [left(item, subject[code]) for item in section.items if code in subject])
        for code, section in packet.sections.items()
    }
    return _rebuilt(packet, sections=sections, notes=())


def _perturbed(item: Item, amounts: frozenset[str], *, seed: int) -> Item:
    if item.question.kind != "estimate":
        raise PlanError(
            f"{item.question.id} asks for a {item.question.kind}, which has no amounts to perturb",
            hint="Use this arm for estimates.",
        )
    factor = FACTORS[seeded_order(len(FACTORS), seed, item.question.id, "perturbed")[0]]

    def moved(shown: EvidenceItem) -> EvidenceItem:
        return _with_content(
            shown, {name: _scaled(name, part, amounts, factor) for name, part in shown.content.items()}
        )

    sections = {
        code: _with_items(section, [moved(shown) for shown in section.items])
        for code, section in item.packet.sections.items()
    }
    packet = _rebuilt(item.packet, sections=sections)
    if packet.digest == item.packet.digest:
        raise PlanError(
            f"the evidence of {item.question.id} holds no amount to perturb",
            hint=f"Amounts stand in the fields {', '.join(sorted(amounts)) or 'that an application names'}.",
        )
    truth = item.truth * factor if isinstance(item.truth, float) else item.truth
    return item.model_copy(
        update={"packet": packet, "truth": truth, "strata": item.strata | {PERTURBED: f"{factor:g}"}}
    )


def _scaled(name: str, value: JsonValue, amounts: frozenset[str], factor: float) -> JsonValue:
    if isinstance(value, dict):
        return {key: _scaled(key, part, amounts, factor) for key, part in value.items()}
    if isinstance(value, list):
        return [_scaled(name, part, amounts, factor) for part in value]
    if name not in amounts or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return round(value * factor) if isinstance(value, int) else value * factor


def _with_content(item: EvidenceItem, content: Mapping[str, JsonValue]) -> EvidenceItem:
    return EvidenceItem(id=item.id, as_of=item.as_of, snapshot=item.snapshot, content=dict(content))


def _with_items(section: Section, items: Sequence[EvidenceItem]) -> Section:
    return Section(code=section.code, title=section.title, items=tuple(items))


def _rebuilt(packet: Packet, **changes: object) -> Packet:
    """Return a changed packet, made anew so that nothing computed of the old one stays in it."""
    return Packet.model_validate({**{name: getattr(packet, name) for name in Packet.model_fields}, **changes})
