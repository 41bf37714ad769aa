"""Answers become ballots: a row per rule that more than half of them can be counted under."""

from __future__ import annotations

import json
from typing import Any

import pytest

from consilience.aggregation.answers import AnswerRow, aggregate_answers, answer_columns, rule_names
from consilience.aggregation.dissent import dissenters
from consilience.core.answers import Choice
from consilience.core.question import Option, Question

QUESTION = Question(id="q", text="?", kind="choice", options=tuple(Option(id=name, label=name) for name in "xyz"))
RANKED = ["borda", "copeland", "minimax", "ranked_pairs", "schulze", "irv"]


def ballot(ranking: str, *, confidence: float = 0.5, told: bool = True) -> Choice:
    said: dict[str, Any] = {"evidence_ids": (), "reasoning_summary": "", "counterarguments": (), "missing_data": ()}
    given = tuple(ranking) if told else None
    return Choice(choice=ranking[0], confidence=confidence, ranking=given, rationale="", **said)


def rows(*ballots: Choice) -> dict[str, AnswerRow]:
    answers = [(f"s{index}", one) for index, one in enumerate(ballots)]
    return {row.rule: row for row in aggregate_answers(QUESTION, answers)}


def test_full_rankings_serve_every_rule() -> None:
    made = rows(ballot("xyz"), ballot("xyz"), ballot("yzx"), ballot("zyx"), ballot("zyx"))
    assert list(made) == [name for name in rule_names("choice") if name != "approval"]
    for row in made.values():
        assert list(row.cells) == answer_columns(QUESTION)
        assert sum(row.cells.values()) == pytest.approx(1, abs=1e-12)
        json.dumps(row.record(), allow_nan=False)
    assert made["plurality"].headline == {"winner": None, "tied": ["x", "z"], "agreement_share": "2/5"}
    assert made["borda"].headline == {"winner": "y", "tied": [], "agreement_share": "1/5"}
    assert made["schulze"].cells == {"option:x": 0.0, "option:y": 1.0, "option:z": 0.0}
    assert made["majority"].headline == {"winner": None, "tied": [], "agreement_share": "2/5"}
    assert made["majority"].record()["decided"] == "no_decision"
    assert made["majority"].cells == made["plurality"].cells


def test_a_choice_is_never_made_a_ranking() -> None:
    made = rows(ballot("xyz"), ballot("xzy"), ballot("yzx", told=False))
    assert list(made) == [name for name in rule_names("choice") if name != "approval"]
    assert made["borda"].record()["unused"] == {"s2": "it ranks no option"}
    assert made["borda"].record()["n"] == 2
    few = rows(ballot("xyz"), ballot("yzx", told=False))
    assert list(few) == [name for name in rule_names("choice") if name not in {*RANKED, "approval"}]


def test_confidence_can_elect_another_and_dissent_is_from_the_row_asked_for() -> None:
    ballots = [ballot("xyz", confidence=0.9), ballot("yxz", confidence=0.3), ballot("yxz", confidence=0.2)]
    answers = [(f"s{index}", one) for index, one in enumerate(ballots)]
    made = rows(*ballots)
    assert (made["plurality"].headline["winner"], made["confidence_weighted"].headline["winner"]) == ("y", "x")
    assert made["confidence_weighted"].cells["option:x"] == pytest.approx(0.9 / 1.4)
    assert "confidence_uncalibrated" in made["confidence_weighted"].record()["flags"]
    assert dissenters(made["plurality"], answers) == ("s0",)
    assert dissenters(made["confidence_weighted"], answers) == ("s1", "s2")
    assert dissenters(made["unanimity"], answers) == ("s0", "s1", "s2")


def test_confidence_of_nothing_decides_nothing() -> None:
    made = rows(ballot("xyz", confidence=0.0), ballot("yxz", confidence=0.0))["confidence_weighted"]
    assert made.record()["decided"] == "no_decision"
    assert made.cells == {"option:x": 0.5, "option:y": 0.5, "option:z": 0.0}
