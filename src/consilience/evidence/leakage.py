"""The leak guard: nothing that names the target or is dated past the cutoff is ever shown. It runs before any call.

Structural: field names, coordinates, dates. Textual: the target number, however written (`figures`), may stand only
in a named evidence item that legitimately holds the same number. What recorded members said is not evidence and is
not given to the guard: a member may well guess the value. Targets that are options, probabilities or numbers below
1,000 are guarded structurally only, because their text stands everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from consilience.core.packet import EvidenceItem, Packet
from consilience.core.question import Question
from consilience.errors import LeakError
from consilience.evidence.figures import Figure, figure_of
from consilience.evidence.views import View, full_view
from consilience.evidence.visible import visible_json

_ISO_DAY = re.compile(r"(?<![0-9])([12][0-9]{3})(-?)(0[1-9]|1[0-2])\2(0[1-9]|[12][0-9]|3[01])(?![0-9])")
_NOT_WORD = re.compile(r"[\W_]+")
_DECIMALS = re.compile(r"[0-9]\.[0-9]{4}")

_TARGET_NAMES = frozenset({"target", "truth", "groundtruth", "answer", "outcome", "resolution"})
_SUBJECT_NAMES = frozenset(
    {"price", "saleprice", "soldprice", "closingprice", "transactionprice", "logprice", "saledate", "solddate"}
)
_IDENTITY_NAMES = frozenset(
    {"address", "streetaddress", "fulladdress", "civicaddress", "postaladdress", "street", "streetname"}
    | {"streetnumber", "housenumber", "civicnumber", "parcelid"}
)
_SUBJECT_HOLDERS = frozenset(
    {"priorsaleprice", "priorprice", "assessmenttotal", "assessmentland", "assessmentbuilding", "landaream2"}
)
_COORDINATE_NAMES = frozenset({"lat", "latitude", "lon", "lng", "long", "longitude", "coordinates"})
_PRIOR_NAMES = frozenset({"priorsaledate", "priordate", "previoussaledate", "lastsaledate"})


@dataclass(frozen=True)
class LeakPolicy:
    """Which field names give something away; names are compared without case, spaces and punctuation.

    Attributes:
        forbidden: Names refused at any depth of any section.
        forbidden_in: By section code: names refused at the top of its items' content.
        coordinates: Names whose numbers have at most 3 decimals.
        before_cutoff: Names (or parent and name joined) whose dates lie strictly before the cutoff.
        holders: By section code: the only fields (or parent and name joined) in which a number equal to the target is
            legitimate. In a section not listed here every field may hold it.
    """

    forbidden: frozenset[str] = _TARGET_NAMES | _IDENTITY_NAMES
    forbidden_in: Mapping[str, frozenset[str]] = field(default_factory=lambda: {"P": _SUBJECT_NAMES})
    coordinates: frozenset[str] = _COORDINATE_NAMES
    before_cutoff: frozenset[str] = _PRIOR_NAMES
    holders: Mapping[str, frozenset[str]] = field(default_factory=lambda: {"P": _SUBJECT_HOLDERS})


DEFAULT_POLICY = LeakPolicy()


class _Node(NamedTuple):
    """One scalar of a content, with the names that lead to it."""

    names: tuple[str, ...]
    value: str | float | bool | None

    def among(self, names: frozenset[str]) -> bool:
        """Return whether its field's name, alone or with its parent's before it, is one of the names."""
        return self.names[-1] in names or (len(self.names) > 1 and "".join(self.names[-2:]) in names)


def guard_packet(
    packet: Packet, *, question: Question, target: float | str | None, policy: LeakPolicy = DEFAULT_POLICY
) -> None:
    """Pass in silence if neither packet nor question gives the target away or shows anything past the cutoff.

    Args:
        packet: The evidence.
        question: What is asked; its text, unit and options are searched too.
        target: The truth where it is known; without it only the structure is checked.
        policy: Which field names give something away.

    Raises:
        LeakError: Something does; the message names item, section and evidence id.

    Example:
        >>> leaky = Packet(item_id="a", cutoff=date(2015, 3, 1), cutoff_rule="last_admissible",
        ...                notes=("went for 412k",), sections={})
        >>> guard_packet(leaky, question=Question(id="a", text="Price?", kind="estimate"), target=412000)
        Traceback (most recent call last):
            ...
        consilience.errors.LeakError: item a, notes: the target value is written here. Remove it...
    """
    guard_text(visible_json(question.model_dump(exclude={"id", "lower", "upper"})), target=target, where="question")
    for note in packet.notes:
        for day in _days(note):
            _check_day(packet, day, f"item {packet.item_id}, notes")
    for code, section in packet.sections.items():
        for item in section.items:
            _guard_item(packet, code, item, policy, figure_of(target))
    guard_view(full_view(packet), target=target)


def guard_view(view: View, *, target: float | str | None) -> None:
    """Pass in silence if the bytes of the view hold the target only where a named item holds that same number.

    Raises:
        LeakError: They do not; the message names item, section and evidence id.
    """
    figure = figure_of(target)
    if figure is None:
        return
    titles = [section.title for section in view.sections]
    guard_text(visible_json(view.notes), target=target, where=f"item {view.item_id}, notes")
    guard_text(visible_json(titles), target=target, where=f"item {view.item_id}, section titles")
    if not figure.occurs_in(view.json_text):
        return
    for section in view.sections:
        for item in section.items:
            where = f"item {view.item_id}, section {section.code}, evidence {item.id}"
            nodes = list(_nodes(item.content))
            held = [node.value for node in nodes if isinstance(node.value, int | float)]
            said = [node.value for node in nodes if isinstance(node.value, str)]
            names = sorted({name for node in nodes for name in node.names})
            guard_text(visible_json([item.id, *names, *said]), target=target, allowed=held, where=where)


def guard_text(
    text: str, *, target: float | str | None, where: str = "static prompt", allowed: Collection[float] = ()
) -> None:
    """Pass in silence if the target is not written in the text, or is one of the allowed numbers.

    Raises:
        LeakError: It is written there; the message names ``where``.

    Example:
        >>> guard_text("Comparable sold for 412,000.", target=412000, allowed=[412000.0])
    """
    figure = figure_of(target)
    if figure is None or any(_same(number, figure) for number in allowed):
        return
    if figure.occurs_in(text):
        raise LeakError(
            f"{where}: the target value is written here",
            hint="Remove it; text may hold it only where the same evidence item legitimately has it as a number.",
        )


def _guard_item(packet: Packet, code: str, item: EvidenceItem, policy: LeakPolicy, figure: Figure | None) -> None:
    where = f"item {packet.item_id}, section {code}, evidence {item.id}"
    top = policy.forbidden_in.get(code, frozenset())
    holders = policy.holders.get(code)
    for name in map(_name, item.content):
        if name in top:
            raise LeakError(f'{where}: field "{name}" tells the target', hint="Leave it out of the packet.")
    for node in _nodes(item.content, plain=True):
        if not policy.forbidden.isdisjoint(node.names):
            raise LeakError(
                f'{where}: field "{".".join(node.names)}" tells the target or the identity',
                hint="Leave it out of the packet.",
            )
        if _too_fine(node.value) and not policy.coordinates.isdisjoint(node.names):
            raise LeakError(f"{where}: a coordinate has more than 3 decimals", hint="Round it to 3 decimals.")
        if isinstance(node.value, str):
            strictly = node.among(policy.before_cutoff)
            for day in _days(node.value) if strictly or not item.snapshot else ():
                _check_day(packet, day, where, strictly=strictly)
        elif figure and holders is not None and _same(node.value, figure) and not node.among(holders):
            raise LeakError(
                f'{where}: field "{node.names[-1]}" holds the target value',
                hint="Remove it, or name the field among the policy's holders if it may hold that number.",
            )


def _check_day(packet: Packet, day: date, where: str, *, strictly: bool = False) -> None:
    if strictly and day >= packet.cutoff:
        raise LeakError(
            f"{where}: a prior sale of {day} is not before the cutoff {packet.cutoff}", hint="Leave the prior sale out."
        )
    if not packet.admits(day) and day != packet.valuation_date:
        raise LeakError(
            f"{where}: {day} is past the cutoff {packet.cutoff}",
            hint="Remove it, or declare the item a snapshot if its observation rule says so.",
        )


def _nodes(value: JsonValue, names: tuple[str, ...] = (), *, plain: bool = False) -> Iterator[_Node]:
    """Yield the scalars (and empty containers, as None) below a value, with names plain or as they are written."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _nodes(part, (*names, _name(name) if plain else name), plain=plain)
    elif isinstance(value, list) and value:
        for part in value:
            yield from _nodes(part, names, plain=plain)
    else:
        yield _Node(names, None if isinstance(value, dict | list) else value)


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    """Return a field name without case, spaces and punctuation."""
    return _NOT_WORD.sub("", name).casefold()


def _days(text: str) -> Iterator[date]:
    for year, _, month, day in _ISO_DAY.findall(text):
        try:
            yield date(int(year), int(month), int(day))
        except ValueError:  # such as 30 February: not a date
            continue


def _same(number: str | float | bool | None, figure: Figure) -> bool:
    return isinstance(number, int | float) and round(abs(number)) == figure.value


def _too_fine(value: str | float | bool | None) -> bool:
    if isinstance(value, str):
        return _DECIMALS.search(value) is not None
    return isinstance(value, float) and round(value, 3) != value
