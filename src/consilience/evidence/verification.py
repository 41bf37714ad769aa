"""Whether an answer keeps to its evidence: deterministic flags, and their counts per seat and arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from consilience.core.answers import AnyAnswer, Estimate
from consilience.core.packet import Packet
from consilience.core.question import Strict
from consilience.evidence.quotes import contains_passage
from consilience.evidence.views import View

FlagCode = Literal[
    "unknown_evidence_id",
    "unknown_comparable",
    "evidence_outside_view",
    "adjustment_out_of_band",
    "point_outside_comparable_hull",
    "quote_not_found",
]
ADJUSTMENT_BAND = 0.40
HULL_MARGIN = 0.25

_ROUNDING = 1e-12
_HULL_WORDS = ("outside", "above", "below", "beyond", "exceed", "range", "hull", "comparable", "premium", "discount")


class Flag(Strict):
    """One thing an answer did with its evidence that it should not have done.

    Attributes:
        code: Which rule.
        evidence_id: The id concerned, where it is one; as the answer wrote it.
        detail: The figures behind it.
        justified: For ``point_outside_comparable_hull``: the key assumption that speaks of it, word for word.
    """

    code: FlagCode
    evidence_id: str | None = None
    detail: str
    justified: str | None = None


@dataclass(frozen=True)
class Comparables:
    """Which evidence is a comparable: items of one section with a number in one field.

    Attributes:
        section: The section's code.
        value_field: The field of the content that holds the raw value.
    """

    section: str = "C"
    value_field: str = "price"

    def values(self, packet: Packet) -> dict[str, float]:
        """Return the raw value by id of every comparable of the packet."""
        section = packet.sections.get(self.section)
        found: dict[str, float] = {}
        for item in section.items if section else ():
            value = item.content.get(self.value_field)
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[item.id] = value
        return found


DEFAULT_COMPARABLES = Comparables()


def verify_answer(
    answer: AnyAnswer, *, view: View, packet: Packet, comparables: Comparables = DEFAULT_COMPARABLES
) -> tuple[Flag, ...]:
    """Return what the answer did against its evidence, in a fixed order; empty when nothing.

    - ``unknown_evidence_id``: a cited or quoted id that the packet lacks;
    - ``unknown_comparable``: an adjustment of something that is no comparable of the packet;
    - ``evidence_outside_view``: a cited, quoted or adjusted id that exists but that this member may not see;
    - ``adjustment_out_of_band``: |adjusted − raw| > 0.40 · |raw|;
    - ``point_outside_comparable_hull``: point outside [min − 0.25 · |min|, max + 0.25 · |max|] of the adjusted
      values of known comparables (no adjustments, no hull);
    - ``quote_not_found``: a quoted passage that the cited item does not contain (`contains_passage`).

    Numbers on a limit are inside it.
    """
    known, visible = frozenset(packet.evidence_ids()), frozenset(view.evidence_ids_visible)
    cited = dict.fromkeys((*answer.evidence_ids, *(quote.evidence_id for quote in answer.quotes)))
    adjusted = [adjustment.evidence_id for adjustment in answer.adjustments] if isinstance(answer, Estimate) else []
    flags = [
        Flag(code="unknown_evidence_id", evidence_id=name, detail="the packet has no such evidence")
        for name in cited
        if name not in known
    ]
    flags += [
        Flag(code="evidence_outside_view", evidence_id=name, detail="the packet has it, this member's view does not")
        for name in dict.fromkeys((*cited, *adjusted))
        if name in known and name not in visible
    ]
    if isinstance(answer, Estimate) and answer.adjustments:
        flags += _adjustment_flags(answer, comparables.values(packet))
    flags += _quote_flags(answer, packet)
    return tuple(flags)


def _adjustment_flags(answer: Estimate, raw: dict[str, float]) -> Iterator[Flag]:
    hull: list[float] = []
    for adjustment in answer.adjustments:
        name, value = adjustment.evidence_id, adjustment.adjusted_value
        if name not in raw:
            yield Flag(code="unknown_comparable", evidence_id=name, detail="the packet has no such comparable")
            continue
        hull.append(value)
        if abs(value - raw[name]) > ADJUSTMENT_BAND * abs(raw[name]) * (1 + _ROUNDING):
            yield Flag(
                code="adjustment_out_of_band",
                evidence_id=name,
                detail=f"{value:.12g} is more than 40 % from the raw {raw[name]:.12g}",
            )
    if not hull:
        return
    low, high = min(hull), max(hull)
    low -= HULL_MARGIN * abs(low) * (1 + _ROUNDING)
    high += HULL_MARGIN * abs(high) * (1 + _ROUNDING)
    if not low <= answer.point <= high:
        yield Flag(
            code="point_outside_comparable_hull",
            detail=f"{answer.point:.12g} lies outside [{low:.12g}, {high:.12g}]",
            justified=_justification(answer),
        )


def _justification(answer: Estimate) -> str | None:
    """Return the first key assumption that names an adjusted comparable or speaks of leaving their range, if any."""
    words = (*_HULL_WORDS, *(adjustment.evidence_id.casefold() for adjustment in answer.adjustments))
    spoken = (said for said in answer.key_assumptions if any(word in said.casefold() for word in words if word))
    return next(spoken, None)


def _quote_flags(answer: AnyAnswer, packet: Packet) -> Iterator[Flag]:
    for quote in answer.quotes:
        item = packet.item(quote.evidence_id)
        if item is not None and not contains_passage(item.shown(), quote.text):
            yield Flag(
                code="quote_not_found", evidence_id=quote.evidence_id, detail="the item does not contain this passage"
            )


@dataclass(frozen=True)
class Citations:
    """How one answer stood to its evidence.

    Attributes:
        arm: The arm the answer belongs to.
        role: The role that gave it.
        cited: How many different ids it cited, quoted or adjusted.
        existing: How many of them the packet has.
        flags: What `verify_answer` found.
    """

    arm: str
    role: str
    cited: int
    existing: int
    flags: tuple[Flag, ...]


def citations(answer: AnyAnswer, *, arm: str, role: str, packet: Packet, flags: tuple[Flag, ...]) -> Citations:
    """Return the record of one answer for `faithfulness_summary`."""
    ids = {*answer.evidence_ids, *(quote.evidence_id for quote in answer.quotes)}
    if isinstance(answer, Estimate):
        ids.update(adjustment.evidence_id for adjustment in answer.adjustments)
    return Citations(arm, role, len(ids), len(ids.intersection(packet.evidence_ids())), flags)


@dataclass(frozen=True)
class Faithfulness:
    """How the answers of one role, or of a whole arm (``role`` None), stood to their evidence.

    Attributes:
        arm: The arm.
        role: The role; None for all roles of the arm together.
        answers: How many answers were verified.
        flagged: How many of them have at least one flag.
        counts: Flags by code; codes that never occurred are absent.
        justified: How many hull flags have a justification beside them.
        cited: Ids cited, summed over answers.
        existing: Of these, ids that exist.
    """

    arm: str
    role: str | None
    answers: int
    flagged: int
    counts: dict[FlagCode, int]
    justified: int
    cited: int
    existing: int

    @property
    def share_existing(self) -> float | None:
        """Share of cited ids that exist, in [0, 1], 1 is good; None where nothing was cited."""
        return self.existing / self.cited if self.cited else None


def faithfulness_summary(records: Iterable[Citations]) -> list[Faithfulness]:
    """Return one row per arm (first) and per role of it, sorted by name; no records, no rows.

    Example:
        >>> rows = faithfulness_summary([Citations("F", "skeptic", 2, 1, ()), Citations("F", "energy", 0, 0, ())])
        >>> [(row.role, row.answers, row.share_existing) for row in rows]
        [(None, 2, 0.5), ('energy', 1, None), ('skeptic', 1, 0.5)]
    """
    groups: dict[tuple[str, str | None], list[Citations]] = {}
    for record in records:
        groups.setdefault((record.arm, None), []).append(record)
        groups.setdefault((record.arm, record.role), []).append(record)
    return [_row(*group, groups[group]) for group in sorted(groups, key=lambda group: (group[0], group[1] or ""))]


def _row(arm: str, role: str | None, records: list[Citations]) -> Faithfulness:
    flags = [flag for record in records for flag in record.flags]
    return Faithfulness(
        arm=arm,
        role=role,
        answers=len(records),
        flagged=sum(bool(record.flags) for record in records),
        counts=dict(sorted(Counter(flag.code for flag in flags).items())),
        justified=sum(flag.justified is not None for flag in flags),
        cited=sum(record.cited for record in records),
        existing=sum(record.existing for record in records),
    )
