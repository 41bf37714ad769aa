from __future__ import annotations

import json
from datetime import date

import pytest
from pydantic import ValidationError

from consilience.core.packet import EvidenceItem, Packet, Section
from consilience.core.role import Role
from consilience.evidence.views import full_view, shown, view
from evidence_cases import make_packet


@pytest.fixture
def packet() -> Packet:
    return make_packet()


def role(*codes: str) -> Role:
    return Role(id="judge", view=codes, text="Judge.")


def test_a_role_sees_its_sections_and_ids_are_unchanged(packet: Packet) -> None:
    seen = view(packet, role("P", "C"))
    assert seen.codes == ("C", "P")
    assert seen.evidence_ids_visible == ("C01", "C02", "P")
    assert [item["id"] for item in json.loads(seen.json_text)["C"]] == ["C01", "C02"]
    assert "unmapped" not in seen.json_text
    assert "M1" not in seen.json_text


def test_roles_with_the_same_sections_share_one_view(packet: Packet) -> None:
    assert view(packet, role("C", "P")) is view(packet, role("P", "C"))
    assert view(packet, role("all")) is full_view(packet)
    assert view(packet, role("P", "X")) is view(packet, role("P"))
    assert view(packet, role("P")) is not full_view(packet)


def test_bytes_depend_on_the_digest_alone_not_on_the_order_things_were_built_in(packet: Packet) -> None:
    turned = packet.model_copy(update={"sections": dict(reversed(packet.sections.items()))})
    again = Packet.model_validate_json(packet.model_dump_json())
    assert turned.digest == packet.digest == again.digest
    fresh = view(again, role("C", "G", "P"))
    assert fresh.json_text == view(turned, role("P", "G", "C")).json_text
    assert fresh.sha256 == view(packet, role("P", "C", "G")).sha256


def test_shown_puts_identity_first_and_marks_snapshots() -> None:
    item = EvidenceItem(id="P", as_of=date(2016, 1, 1), snapshot=True, content={"b": 1, "a": [None, True]})
    assert shown(item) == '{"id":"P","as_of":"2016-01-01","snapshot":true,"a":[null,true],"b":1}'
    assert shown(EvidenceItem(id="P", content={})) == '{"id":"P"}'


@pytest.mark.parametrize("name", ["id", "as_of", "snapshot"])
def test_content_cannot_disguise_its_item(name: str) -> None:
    with pytest.raises(ValidationError, match=f'has a field "{name}"'):
        EvidenceItem(id="P", content={name: "C01"})


def test_an_empty_packet_has_an_empty_view() -> None:
    empty = Packet(item_id="x", cutoff=date(2020, 1, 1), cutoff_rule="first_inadmissible", sections={})
    assert full_view(empty).json_text == "{}"
    nothing = Packet(
        item_id="y",
        cutoff=date(2020, 1, 1),
        cutoff_rule="first_inadmissible",
        sections={"G": Section(code="G", title="Geography", items=())},
    )
    assert full_view(nothing).json_text == '{"G":[]}'
