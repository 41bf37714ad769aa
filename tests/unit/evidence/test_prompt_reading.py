from __future__ import annotations

from datetime import date

import pytest

from consilience.core.packet import Packet
from consilience.core.question import Question
from consilience.errors import DataError
from consilience.evidence.reading import fenced, parse_prompt
from consilience.evidence.rendering import render_system, render_turn_block, render_view_block
from consilience.evidence.views import full_view
from evidence_cases import make_packet, make_question

TAG = "0123456789abcdef"


@pytest.fixture
def packet() -> Packet:
    return make_packet()


@pytest.fixture
def question() -> Question:
    return make_question()


def test_everything_shown_is_read_back(packet: Packet, question: Question) -> None:
    text = (
        render_system(preamble="p", seat_label="analyst_07", role_text="r", output_rules="o")
        + render_view_block(question=question, view=full_view(packet), tag=TAG)
        + render_turn_block(
            tag=TAG,
            task_line="Revise.",
            state={"round": 2},
            critiques=[{"points": ["a"]}],
            flags=[{"code": "x"}],
            own_answer={"point": 1.5},
        )
    )
    read = parse_prompt(text)
    assert (read.seat, read.tag, read.kind, read.task) == ("analyst_07", TAG, "estimate", "Revise.")
    assert (read.valuation_date, read.cutoff) == (date(2015, 3, 2), date(2015, 3, 1))
    assert read.cutoff_rule == "last admissible day"
    assert read.question == {"text": "Price of the house?", "scale": "log", "unit": "USD"}
    assert read.sections["C"] == "Comparable sales"
    assert read.notes == ("radius 1 km",)
    assert read.view["C"][1] == {"id": "C02", "as_of": "2014-12-01", "price": 440000}
    assert read.committee == {"round": 2}
    assert read.critiques == ({"points": ["a"]},)
    assert read.flags == ({"code": "x"},)
    assert read.own_answer == {"point": 1.5}


def test_a_first_turn_has_no_committee(packet: Packet, question: Question) -> None:
    block = render_view_block(question=question, view=full_view(packet), tag=TAG)
    read = parse_prompt(block + render_turn_block(tag=TAG, task_line="Estimate."))
    assert (read.seat, read.committee, read.own_answer, read.critiques, read.flags) == (None, None, None, (), ())


def test_other_texts_are_refused(packet: Packet, question: Question) -> None:
    block = render_view_block(question=question, view=full_view(packet), tag=TAG)
    for text in ("", "TASK: x\n", block, block + "TASK: a\nTASK: b\n"):
        with pytest.raises(DataError, match="not a prompt"):
            parse_prompt(text)
    with pytest.raises(DataError, match="no view"):
        parse_prompt(block.replace(" view>", " other>") + "TASK: a\n")


def test_fences_out_of_place_are_refused() -> None:
    once = f"<data-{TAG} view>\n1\n</data-{TAG}>\n"
    with pytest.raises(DataError, match="out of place"):
        fenced(once + f"</data-{TAG}>", TAG)
    with pytest.raises(DataError, match="two fences"):
        fenced(once + once, TAG)
