"""What one role may see of a packet: the unit of least privilege, rendered, hashed and scanned once per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache

from consilience.core.canonical import text_hash
from consilience.core.packet import CutoffRule, EvidenceItem, Packet, Section
from consilience.core.role import Role
from consilience.evidence.visible import visible_json


@dataclass(frozen=True, eq=False)
class View:
    """The part of a packet that a role may see; ids are those of the packet.

    Two roles with the same section codes get the very same object for an item (`view` caches), so whatever is
    computed from it once serves both.

    Attributes:
        item_id: The item; names it in messages and is never shown to a role.
        packet_digest: SHA-256 of the packet the view was taken from.
        cutoff: The information cutoff.
        cutoff_rule: Whether the cutoff day itself still counts.
        valuation_date: The day the answer is for, where there is one.
        notes: How the evidence was assembled.
        sections: The visible sections, in order of their codes.
    """

    item_id: str
    packet_digest: str
    cutoff: date
    cutoff_rule: CutoffRule
    valuation_date: date | None
    notes: tuple[str, ...]
    sections: tuple[Section, ...]

    @cached_property
    def evidence_ids_visible(self) -> tuple[str, ...]:
        """Ids of the visible items, in section order."""
        return tuple(item.id for section in self.sections for item in section.items)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Codes of the visible sections, sorted."""
        return tuple(section.code for section in self.sections)

    @cached_property
    def json_text(self) -> str:
        """The visible evidence as one line of compact JSON: ``{code: [item, …]}``, id first in every item.

        The same packet digest and codes give the same bytes, whatever the order its sections and fields were built in.
        """
        blocks = (f'"{section.code}":[{",".join(shown(item) for item in section.items)}]' for section in self.sections)
        return "{" + ",".join(blocks) + "}"

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of `json_text`."""
        return text_hash(self.json_text)


def shown(item: EvidenceItem) -> str:
    """Return one item as a role reads it: id, date and snapshot mark where known, then its content by field name.

    Example:
        >>> shown(EvidenceItem(id="C01", as_of=date(2015, 2, 1), content={"price": 412000}))
        '{"id":"C01","as_of":"2015-02-01","price":412000}'
    """
    head = f'"id":"{item.id}"'
    if item.as_of is not None:
        head += f',"as_of":"{item.as_of.isoformat()}"'
    if item.snapshot:
        head += ',"snapshot":true'
    body = visible_json(item.content)[1:-1]
    return f"{{{head},{body}}}" if body else f"{{{head}}}"


class _Key:
    """A packet and codes, equal when digest and codes are: packets themselves cannot be hashed."""

    __slots__ = ("_identity", "codes", "packet")

    def __init__(self, packet: Packet, codes: frozenset[str]) -> None:
        self.packet = packet
        self.codes = codes
        self._identity = (packet.digest, codes)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._identity == other._identity


@lru_cache(maxsize=256)
def _view(key: _Key) -> View:
    packet = key.packet
    return View(
        item_id=packet.item_id,
        packet_digest=packet.digest,
        cutoff=packet.cutoff,
        cutoff_rule=packet.cutoff_rule,
        valuation_date=packet.valuation_date,
        notes=packet.notes,
        sections=tuple(packet.sections[code] for code in sorted(key.codes)),
    )


def view(packet: Packet, role: Role) -> View:
    """Return what the role may see of the packet; sections the packet lacks are simply not there.

    Example:
        >>> p = Packet(item_id="a", cutoff=date(2015, 3, 1), cutoff_rule="last_admissible", sections={
        ...     "P": Section(code="P", title="Subject", items=(EvidenceItem(id="P", content={"area": 90}),)),
        ...     "C": Section(code="C", title="Sales", items=(EvidenceItem(id="C01", content={"price": 5}),))})
        >>> view(p, Role(id="condition", view=("P",), text="Judge.")).json_text
        '{"P":[{"id":"P","area":90}]}'
    """
    return _view(_Key(packet, frozenset(code for code in packet.sections if role.sees(code))))


def full_view(packet: Packet) -> View:
    """Return the view of a role that may see everything.

    Example:
        >>> full_view(Packet(item_id="a", cutoff=date(2015, 3, 1), cutoff_rule="last_admissible", sections={})).codes
        ()
    """
    return _view(_Key(packet, frozenset(packet.sections)))


GATHERED = "D"
GATHERED_TITLE = "Documents gathered"


def with_gathered(seen: View, items: Sequence[EvidenceItem]) -> View:
    """Return a view with what was gathered for it; without any it is the very same view.

    Example:
        >>> from datetime import date
        >>> bare = View("q", "0" * 64, date(2031, 1, 1), "first_inadmissible", None, (), ())
        >>> with_gathered(bare, [EvidenceItem(id="D01", content={})]).evidence_ids_visible
        ('D01',)
    """
    if not items:
        return seen
    added = Section(code=GATHERED, title=GATHERED_TITLE, items=tuple(items))
    return replace(seen, sections=tuple(sorted((*seen.sections, added), key=lambda section: section.code)))
