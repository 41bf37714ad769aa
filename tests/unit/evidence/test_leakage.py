from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pydantic import JsonValue

from consilience.core.packet import EvidenceItem, Packet, Section
from consilience.core.question import Option, Question
from consilience.core.role import Role
from consilience.errors import LeakError
from consilience.evidence.leakage import LeakPolicy, guard_packet, guard_text, guard_view
from consilience.evidence.views import view
from evidence_cases import make_packet, make_question

TARGET = 412000.0


def with_item(code: str, content: dict[str, JsonValue], **facts: Any) -> Packet:
    """The usual packet with one item more in a section."""
    packet = make_packet()
    old = packet.sections[code]
    item = EvidenceItem(id=f"{code}99", content=content, **facts)
    return make_packet(sections=packet.sections | {code: old.model_copy(update={"items": (*old.items, item)})})


def check(packet: Packet, target: float | str | None = TARGET, **more: Any) -> None:
    guard_packet(packet, question=make_question(), target=target, **more)


@pytest.mark.parametrize("target", [TARGET, None, 1.0, "yes", 400000.0, 440000.0, 420000.0, 250000.0])
def test_a_sound_packet_passes_even_if_comparables_cost_the_same(target: float | str | None) -> None:
    packet = make_packet()
    check(packet, target)
    for codes in (("P",), ("P", "C"), ("all",)):
        guard_view(view(packet, Role(id="judge", view=codes, text="Judge.")), target=target)
    assert packet.evidence_ids() == ("P", "C01", "C02", "M1", "G1")


@pytest.mark.parametrize("written", ["412000", "412,000", "412 000", "412\u00a0000", "412k", "$0.412M", "4.12e5"])
@pytest.mark.parametrize("code", ["P", "C", "M", "G"])
def test_the_target_in_text_is_a_leak_named_by_item_section_and_id(code: str, written: str) -> None:
    with pytest.raises(LeakError, match=f"item sale-1, section {code}, evidence {code}99: the target") as caught:
        check(with_item(code, {"note": f"Went for {written} in the end."}))
    assert caught.value.hint.startswith("Remove it")


def test_the_target_in_names_ids_titles_and_notes_is_a_leak() -> None:
    title = make_packet().sections["M"].model_copy(update={"title": "Market around 412k"})
    by_id = Section(code="D", title="Documents", items=(EvidenceItem(id="sale-412000", content={}),))
    for packet in (
        with_item("M", {"list": [{"412000": {}}]}),
        make_packet(sections={"M": title}),
        make_packet(sections={"D": by_id}),
        make_packet(notes=("closed at 412 000",)),
    ):
        with pytest.raises(LeakError, match="target value is written"):
            check(packet)


def test_text_may_name_a_number_that_its_own_item_holds() -> None:
    check(with_item("C", {"price": 412000, "note": "Sold for $412,000."}))
    with pytest.raises(LeakError, match="evidence C99"):
        check(with_item("C", {"price": 412001, "note": "Sold for $412,000."}))


def test_the_question_is_searched_too() -> None:
    options = (Option(id="a", label="Below 412k"), Option(id="b", label="Above"))
    for question in (
        Question(id="sale-1", text="Was it 412,000?", kind="estimate"),
        Question(id="sale-1", text="Which?", kind="choice", options=options),
    ):
        with pytest.raises(LeakError, match="question: the target"):
            guard_packet(make_packet(), question=question, target=TARGET)


@pytest.mark.parametrize("name", ["price", "Sale Price", "sale_price", "SOLD_PRICE", "log-price", "sale_date"])
def test_subject_fields_that_tell_the_target_are_refused_whatever_they_hold(name: str) -> None:
    with pytest.raises(LeakError, match=r"evidence P99: field .* tells the target"):
        check(with_item("P", {name: None}), target=None)
    check(with_item("C", {name: None}), target=None)


@pytest.mark.parametrize("name", ["target", "Ground Truth", "address", "streetAddress", "house_number", "parcel_id"])
def test_target_and_identity_fields_are_refused_at_any_depth(name: str) -> None:
    contents: list[dict[str, JsonValue]] = [{name: 1}, {"a": [{"b": {name: []}}]}]
    for content in contents:
        with pytest.raises(LeakError, match="tells the target or the identity"):
            check(with_item("G", content), target=None)


@pytest.mark.parametrize("content", [{"lat": 47.6123}, {"place": {"Longitude": -122.00001}}, {"lng": "47.61234"}])
def test_coordinates_have_at_most_three_decimals(content: dict[str, JsonValue]) -> None:
    with pytest.raises(LeakError, match="more than 3 decimals"):
        check(with_item("G", content))
    check(with_item("G", {"lat": 47.612, "lng": -122, "ratio": 0.123456}))


@pytest.mark.parametrize("day", ["2015-03-03", "20150401", "sold 2015-03-02T10:00; resold 2015-12-31"])
def test_later_dates_are_refused_unless_the_item_is_a_snapshot(day: str) -> None:
    with pytest.raises(LeakError, match="is past the cutoff 2015-03-01"):
        check(with_item("M", {"seen": [day]}))
    with pytest.raises(LeakError, match=r"notes: .* is past the cutoff"):
        check(make_packet(notes=(day,)))
    check(with_item("M", {"seen": [day]}, as_of=date(2016, 1, 1), snapshot=True))


@pytest.mark.parametrize("day", ["2015-03-01", "2015-03-02", "2015-02-31", "12015-04-01", "2015-04", "20150401234"])
def test_dates_up_to_the_cutoff_the_valuation_date_and_no_dates_pass(day: str) -> None:
    packet = with_item("M", {"seen": day})
    check(packet)
    assert packet.item("M99") is not None


def test_under_the_forecasting_rule_the_cutoff_day_is_too_late() -> None:
    packet = with_item("M", {"seen": "2015-03-01"}).model_copy(
        update={"cutoff_rule": "first_inadmissible", "valuation_date": None}
    )
    with pytest.raises(LeakError, match="2015-03-01 is past the cutoff"):
        check(packet)


@pytest.mark.parametrize("content", [{"prior_sale_date": "2015-03-01"}, {"prior_sale": {"date": "2015-03-01"}}])
def test_a_prior_sale_lies_strictly_before_the_cutoff_in_snapshots_too(content: dict[str, JsonValue]) -> None:
    for snapshot in (False, True):
        with pytest.raises(LeakError, match="prior sale of 2015-03-01 is not before the cutoff"):
            check(with_item("P", content, snapshot=snapshot))
    check(with_item("P", {"prior_sale_date": "2015-02-28"}))


def test_holders_say_which_subject_numbers_may_equal_the_target() -> None:
    legitimate: list[dict[str, JsonValue]] = [
        {"prior_sale_price": 412000},
        {"prior_sale": {"price": 412000}},
        {"Assessment total": 412000},
    ]
    for content in legitimate:
        check(with_item("P", content))
    check(with_item("C", {"x": 412000}))
    with pytest.raises(LeakError, match='field "x" holds the target value'):
        check(with_item("P", {"x": 412000.2}))
    check(with_item("P", {"x": 412000}), policy=LeakPolicy(holders={"C": frozenset({"price"})}))
    with pytest.raises(LeakError, match='field "x" holds the target value'):
        check(with_item("C", {"x": 412000}), policy=LeakPolicy(holders={"C": frozenset({"price"})}))


def test_static_prompts_are_searched_by_the_same_rule() -> None:
    guard_text("Value the house.", target=TARGET)
    guard_text("In 0 of 1 cases", target=1.0)
    guard_text("Pick yes.", target="yes")
    with pytest.raises(LeakError, match=r"system prompt of analyst_01: the target"):
        guard_text("About 412k.", target=TARGET, where="system prompt of analyst_01")
    guard_text("About 412k.", target=TARGET, allowed=[412000.3])


def test_a_message_does_not_tell_the_target() -> None:
    with pytest.raises(LeakError) as caught:
        check(make_packet(notes=("it went for 412k",)))
    assert "412" not in str(caught.value)
