"""A small packet that several tests of this room look at."""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import JsonValue

from consilience.core.packet import EvidenceItem, Packet, Section
from consilience.core.question import Question


def make_packet(**changes: Any) -> Packet:
    subject: dict[str, JsonValue] = {
        "area": 1800,
        "lat": 47.612,
        "prior_sale_date": "2010-05-04",
        "prior_sale_price": 250000,
    }
    sections = {
        "P": Section(code="P", title="Subject", items=(EvidenceItem(id="P", content=subject),)),
        "C": Section(
            code="C",
            title="Comparable sales",
            items=(
                EvidenceItem(id="C01", as_of=date(2015, 1, 9), content={"price": 400000, "note": "Corner lot."}),
                EvidenceItem(id="C02", as_of=date(2014, 12, 1), content={"price": 440000}),
            ),
        ),
        "M": Section(code="M", title="Market", items=(EvidenceItem(id="M1", content={"median": 420000}),)),
        "G": Section(code="G", title="Geography", items=(EvidenceItem(id="G1", content={"flood": "unmapped"}),)),
    }
    values: dict[str, Any] = {
        "item_id": "sale-1",
        "valuation_date": date(2015, 3, 2),
        "cutoff": date(2015, 3, 1),
        "cutoff_rule": "last_admissible",
        "notes": ("radius 1 km",),
        "sections": sections,
    }
    return Packet(**(values | changes))


def make_question() -> Question:
    return Question(id="sale-1", text="Price of the house?", kind="estimate", scale="log", unit="USD")
