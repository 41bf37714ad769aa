from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from consilience.core.answers import AnyAnswer
from consilience.core.contracts import ENVELOPES
from consilience.forecasting.research.derived import (
    Derived,
    all_findings,
    all_uncertainties,
    derive,
    evidence_volume,
    extremity,
    key_findings,
    rationale_of,
    sentiment,
    uncertainties,
)
from engine_cases import answer_json

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "probability.json"


def answer(kind: str = "probability", **changes: Any) -> AnyAnswer:
    envelope = {"answer": answer_json(kind, **changes), "critiques": None, "abstention": None}
    read: Any = ENVELOPES[kind].model_validate_json(json.dumps(envelope))
    said: AnyAnswer = read.answer
    return said


@pytest.mark.shared_data
def test_extremity_is_that_of_the_founding_captures() -> None:
    for p, wanted in json.loads(VECTORS.read_text(encoding="utf-8"))["extremity"]["conf_rule"]:
        assert extremity(p) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("p", "wanted"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.0), (0.05, 0.9), (0.75, 0.5)])
def test_extremity_is_twice_the_distance_from_one_half(p: float, wanted: float) -> None:
    assert extremity(p) == pytest.approx(wanted)


@pytest.mark.parametrize("p", [-0.001, 1.001, float("nan"), float("inf")])
def test_what_is_no_probability_has_neither_extremity_nor_sentiment(p: float) -> None:
    with pytest.raises(ValueError, match="a probability lies in"):
        extremity(p)
    with pytest.raises(ValueError, match="a probability lies in"):
        sentiment(p)


@pytest.mark.parametrize(
    ("p", "wanted"),
    [
        (1.0, "strongly_bullish"),
        (0.8000001, "strongly_bullish"),
        (0.8, "bullish"),
        (0.6000001, "bullish"),
        (0.6, "neutral"),
        (0.5, "neutral"),
        (0.4000001, "neutral"),
        (0.4, "bearish"),
        (0.2000001, "bearish"),
        (0.2, "strongly_bearish"),
        (0.0, "strongly_bearish"),
    ],
)
def test_a_limit_belongs_to_the_lower_class(p: float, wanted: str) -> None:
    assert sentiment(p) == wanted


@pytest.mark.parametrize(
    ("sources", "queries", "wanted"),
    [
        (0, 0, "low"),
        (4, 1, "low"),
        (5, 0, "medium"),
        (0, 2, "medium"),
        (10, 2, "medium"),
        (9, 3, "medium"),
        (100, 1, "medium"),
        (10, 3, "high"),
    ],
)
def test_evidence_volume(sources: int, queries: int, wanted: str) -> None:
    assert evidence_volume(sources=sources, queries=queries) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ()),
        ("Rates fell and votes are due.", ()),
        (
            "* one\n- two\n• three\n1. four\n2) five\n+ seven\n– eight\n— nine",
            "one two three four five seven eight nine",
        ),
        ("Reasons:\n  - deep\n\t* tab\nSo yes.", "deep tab"),
        ("-no space\n*emphasis* here\n**Bold**: text\n-5 % was seen\n1.5 million\n2025. A year\n123) too long", ()),
        ("---\n***\n- - -\n* * *\n1. \n-", ()),
        ("- lone", "lone"),
        ("- **Base rate**: 3 of 10.", ("**Base rate**: 3 of 10.",)),
        ("- one\r\n- two\u2028- three\x85- four", "one two three four"),
        ("-\u00a0one\n•\u2003two\n1.\u3000三", ("one", "two", "三")),
        ("٣. عدد", ("عدد",)),
        ("- first (1) a (2) b", ("first (1) a (2) b",)),
        # inline markers
        ("For (1) cuts, (2) votes; and (3) time. Hence yes.", ("cuts", "votes", "time.")),
        (
            "For (1) cuts (2) the U.S. vote of Jan. 5 at 3.5 % of G.D.P. in D.C. Then no. More.",
            ("cuts", "the U.S. vote of Jan. 5 at 3.5 % of G.D.P. in D.C. Then no."),
        ),
        (
            "(1) Dr. Smith left. He did. (2) Polls fell to 41.5! Nobody knows.",
            ("Dr. Smith left. He did.", "Polls fell to 41.5!"),
        ),
        ("(1) One (2) two\n\nAnother paragraph.", ("One", "two")),
        ("(1) One (2) two goes\non. End.", ("One", "two goes on.")),
        ("(1) 一。(2) 二。三。", ("一。", "二。")),
        ("Only (1) reason.", ()),
        ("(2) two and (3) three", ()),
        ("f(1) and g(2) are values", ()),
        ("(1) one (3) three (2) two", ("one (3) three", "two")),
        ("(1) (2)", ()),
        ("(1), (2) and so on", ()),
        ("(1) sand (2) brand", ("sand", "brand")),
        ("(2024) and (1) a or (2) b", ("a", "b")),
        ("(1) a 🎲 (2) b 🎲? C.", ("a 🎲", "b 🎲?")),
    ],
)
def test_key_findings(text: str, wanted: str | tuple[str, ...]) -> None:
    assert key_findings(text) == (tuple(wanted.split()) if isinstance(wanted, str) else wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ()),
        ("The distribution is wide. A rebuttal came. Contribute. Attributed to all. Asterisks.", ()),
        ("The distribution is wide, but flat.", ("The distribution is wide, but flat.",)),
        ("Much is Uncertain. RISKS exist. All is well.", ("Much is Uncertain.", "RISKS exist.")),
        (
            "Caveats: few. Although late, it came. An unknown man.",
            ("Caveats: few.", "Although late, it came.", "An unknown man."),
        ),
        (
            "It is _however_ so. It is *unclear*. (Riskier.) “But why?” he said.",
            ("It is _however_ so.", "It is *unclear*.", "(Riskier.)", "“But why?” he said."),
        ),
        ("High-risk debt is up. Brisk trade.", ("High-risk debt is up.",)),
        ("Risk in the U.S. economy is 3.5 %, e.g. banks. Fine.", ("Risk in the U.S. economy is 3.5 %, e.g. banks.",)),
        (
            "Mr. Lee saw risk at No. 5 on Dec. 3 vs. the St. James plan. Good.",
            ("Mr. Lee saw risk at No. 5 on Dec. 3 vs. the St. James plan.",),
        ),
        ("Risk rose to 5. Then it fell.", ("Risk rose to 5.",)),
        ("The answer is no. But it may change.", ("But it may change.",)),
        ("It came in Dec. However late.", ("However late.",)),
        ("Wait... but why? Yes!But joined. Done", ("Wait... but why?", "Yes!But joined.")),
        ("Wait… But why", ("But why",)),
        (
            "- Risk one\n- Fine\n1. But two\n\nHowever\nwrapped lines.\n# Risks\nKey uncertainties:\nGood.",
            ("Risk one", "But two", "However wrapped lines."),
        ),
        ("However, three things remain quite unclear:\n- a", ("However, three things remain quite unclear:",)),
        ("風險。However 很大。完", ("However 很大。",)),
        ("zero\u200bhowever width. CaféBut no.", ("zero\u200bhowever width.",)),
        ("(1) Risk one\n(2) fine\n(3) but three", ("(1) Risk one", "(3) but three")),
        ("See risk at https://example.org/a.b?c=1.2! Fine.", ("See risk at https://example.org/a.b?c=1.2!",)),
    ],
)
def test_uncertainties(text: str, wanted: tuple[str, ...]) -> None:
    assert uncertainties(text) == wanted


def test_lists_are_short_and_say_how_many_there_were() -> None:
    text = "\n".join(f"- But finding {number}." for number in range(12))
    found = derive(answer(rationale=text), sources=0, queries=0)
    assert found.key_findings == tuple(f"But finding {number}." for number in range(10))
    assert found.uncertainties == tuple(f"But finding {number}." for number in range(5))
    assert (found.findings_found, found.uncertainties_found) == (12, 12)
    assert len(all_findings(text)) == len(all_uncertainties(text)) == 12


def test_a_stated_confidence_stands_beside_the_extremity() -> None:
    found = derive(answer(p_yes=0.25, confidence=0.9), sources=12, queries=4)
    assert (found.label, found.extremity, found.stated_confidence) == ("heuristic", 0.5, 0.9)
    assert (found.sentiment, found.evidence_volume) == ("bearish", "high")
    assert derive(answer(p_yes=0.25), sources=0, queries=0).stated_confidence is None
    assert Derived.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("kind", ["estimate", "distribution", "choice"])
def test_other_kinds_have_no_extremity_and_no_sentiment(kind: str) -> None:
    found = derive(answer(kind, reasoning_summary="But late."), sources=0, queries=0)
    assert (found.extremity, found.sentiment) == (None, None)
    assert found.stated_confidence == (0.5 if kind == "choice" else None)
    assert found.uncertainties == ("But late.",)


def test_the_reasons_are_rationale_and_summary() -> None:
    assert rationale_of(answer("estimate", confidence_rationale="Few sales.", reasoning_summary=" ")) == "Few sales."
    assert rationale_of(answer("choice", rationale="A.", reasoning_summary="B.")) == "A.\n\nB."


@pytest.mark.parametrize(
    "unit",
    [
        ".",
        "!",
        '!"',
        "a. ",
        "U.S. ",
        "- ",
        "-",
        " ",
        "\n",
        "\n ",
        "(1) ",
        "(1)(2)",
        "1.",
        "x",
        "。",
        "...",
        ". ",
        "* a\n",
        "a:",
        "  x",
        ')".',
    ],
)
def test_deriving_takes_linear_time(unit: str) -> None:
    text = unit * (30_000 // len(unit))
    started = time.perf_counter()
    for start, end in (("", ""), ("(1) a (2) ", "x"), ("- ", "!"), ("but ", "x.y")):
        derive(answer(rationale=start + text + end), sources=0, queries=0)
    assert time.perf_counter() - started < 2
