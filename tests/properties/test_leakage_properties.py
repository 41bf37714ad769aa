"""A planted secret never passes the guard, wherever it is put and however it is written; honest packets always pass."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.core.packet import EvidenceItem, Packet, Section
from consilience.core.question import Question
from consilience.core.role import Role
from consilience.errors import LeakError
from consilience.evidence.figures import Figure
from consilience.evidence.leakage import guard_packet, guard_view
from consilience.evidence.views import view

CUTOFF = date(2015, 3, 1)
QUESTION = Question(id="s", text="What will it fetch?", kind="estimate", scale="log", unit="USD")
CODES = ("P", "C", "M", "G")

targets = st.integers(10_001, 20_000_000).filter(lambda n: not str(n).startswith("20"))  # would read as dates
words = st.text("abcdefgh äöü-,.;()", max_size=20)
small = st.one_of(st.none(), st.booleans(), st.integers(-999, 999), words)
honest = st.recursive(
    small, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words.map("x".__add__), inner, max_size=3)
)
contents = st.dictionaries(words.map("x".__add__), honest, max_size=4)


def grouped(n: int, separator: str) -> str:
    return f"{n:,}".replace(",", separator)


def exact(n: int, exponent: int) -> str:
    return f"{n / 10**exponent:.{exponent}f}"


WAYS = (
    str,
    lambda n: f"{n}.00",
    lambda n: grouped(n, ","),
    lambda n: grouped(n, "."),
    lambda n: grouped(n, " "),
    lambda n: grouped(n, "\u00a0"),
    lambda n: grouped(n, "\u202f"),
    lambda n: grouped(n, "’"),
    lambda n: "$" + grouped(n, ",") + ".00",
    lambda n: exact(n, 3) + "k",
    lambda n: exact(n, 3).rstrip("0").rstrip(".") + " thousand",
    lambda n: "$" + exact(n, 6) + "M",
    lambda n: exact(n, 6).lstrip("0") + " million",
    lambda n: f"{n:.8e}",
    lambda n: f"{n / 10 ** (len(str(n)) - 1):.8f} × 10^{len(str(n)) - 1}",
)


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    sections = {}
    for code in CODES:
        items = [
            EvidenceItem(
                id=f"{code}{number}",
                as_of=CUTOFF - timedelta(days=draw(st.integers(0, 900))),
                content={**draw(contents), "day": str(CUTOFF - timedelta(days=draw(st.integers(0, 900))))},
            )
            for number in range(draw(st.integers(1, 2)))
        ]
        sections[code] = Section(code=code, title=f"Section {code}", items=tuple(items))
    notes = tuple(draw(st.lists(words, max_size=2)))
    return Packet(item_id="s", cutoff=CUTOFF, cutoff_rule="last_admissible", sections=sections, notes=notes)


def planted(packet: Packet, code: str, field: str, value: Any) -> Packet:
    section = packet.sections[code]
    first = section.items[0]
    tainted = first.model_copy(update={"content": {**first.content, field: value}})
    section = section.model_copy(update={"items": (tainted, *section.items[1:])})
    return Packet.model_validate(
        {**{name: getattr(packet, name) for name in Packet.model_fields}, "sections": packet.sections | {code: section}}
    )


@given(packet=packets(), target=targets)
def test_honest_packets_pass_with_every_view(packet: Packet, target: int) -> None:
    guard_packet(packet, question=QUESTION, target=float(target))
    for code in CODES:
        seen = view(packet, Role(id="judge", view=(code,), text="Judge."))
        guard_view(seen, target=float(target))
        assert not Figure(target).occurs_in(seen.json_text)


@given(
    packet=packets(),
    target=targets,
    way=st.sampled_from(WAYS),
    code=st.sampled_from(CODES),
    around=st.tuples(words, words),
    deep=st.booleans(),
)
def test_a_planted_secret_is_found_wherever_it_is_said(
    packet: Packet, target: int, way: Any, code: str, around: tuple[str, str], deep: bool
) -> None:
    text = f"{around[0]} {way(target)} {around[1]}"
    tainted = planted(packet, code, "remark", [{"said": text}] if deep else text)
    with pytest.raises(LeakError, match=f"item s, section {code}, evidence {code}0: the target"):
        guard_packet(tainted, question=QUESTION, target=float(target))
    for codes in ((code,), ("all",)):
        with pytest.raises(LeakError, match="target"):
            guard_view(view(tainted, Role(id="judge", view=codes, text="Judge.")), target=float(target))
    blind = tuple(other for other in CODES if other != code)
    guard_view(view(tainted, Role(id="judge", view=blind, text="Judge.")), target=float(target))


@given(packet=packets(), target=targets, code=st.sampled_from(("C", "M", "G")))
def test_a_number_that_an_item_legitimately_holds_passes(packet: Packet, target: int, code: str) -> None:
    holding = planted(packet, code, "area", target)
    guard_packet(holding, question=QUESTION, target=float(target))
    for tainted in (planted(holding, "P", "remark", f"{target:,}"), planted(holding, "P", "area", target)):
        with pytest.raises(LeakError, match=r"section P, evidence P0: .*the target"):
            guard_packet(tainted, question=QUESTION, target=float(target))


@given(packet=packets(), code=st.sampled_from(CODES), days=st.integers(1, 4000))
def test_nothing_dated_past_the_cutoff_passes(packet: Packet, code: str, days: int) -> None:
    later = (CUTOFF + timedelta(days=days)).isoformat()
    with pytest.raises(LeakError, match="past the cutoff"):
        guard_packet(planted(packet, code, "seen", f"on {later}"), question=QUESTION, target=None)


@given(value=targets, other=targets, way=st.sampled_from(WAYS))
def test_another_number_of_the_same_length_is_not_the_target(value: int, other: int, way: Any) -> None:
    assert Figure(value).occurs_in(way(value))
    if len(str(value)) == len(str(other)):
        assert Figure(value).occurs_in(way(other)) == (value == other)
