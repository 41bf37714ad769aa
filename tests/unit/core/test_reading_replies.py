from __future__ import annotations

import json
from typing import Any

import pytest

from consilience.core.answers import Abstention, Choice, CritiqueSet, Distribution, Estimate, Probability
from consilience.core.contracts import Expected, extract_object, read_reply
from consilience.core.outcomes import Abstained, Adjusted, Answered, outcome_from_json, outcome_to_json
from consilience.core.question import Option, Question, option_label
from consilience.errors import ContractError
from engine_cases import OPTIONS, answer_json, question, reply

OTHERS = ("analyst_02", "analyst_03")


def expected(kind: str = "estimate", *, yields: Any = "answer", **changes: Any) -> Expected:
    return Expected(question(kind, **changes), yields, OTHERS)


def said(text: str, kind: str = "estimate", **changes: Any) -> Any:
    outcome = read_reply(text, expected(kind, **changes))
    assert isinstance(outcome, Answered)
    return outcome.said


def problems(text: str, kind: str = "estimate", *, yields: Any = "answer", **changes: Any) -> str:
    with pytest.raises(ContractError) as caught:
        read_reply(text, expected(kind, yields=yields, **changes))
    assert caught.value.problems
    return "; ".join(caught.value.problems)


def probability(written: str) -> str:
    """Return a reply in which the probability stands as it is written here."""
    return reply(answer=answer_json("probability", p_yes="HERE")).replace('"HERE"', written)


def point(written: str) -> str:
    return reply(answer=answer_json(point=300_000) | {"point": "HERE"}).replace('"HERE"', written)


@pytest.mark.parametrize("number", ["0", "1", "0.0", "1.0", "0.65", "6.5e-1", "1e-12"])
def test_a_probability_is_kept_as_given(number: str) -> None:
    assert said(probability(number), "probability").p_yes == float(number)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("0.9%", "not valid JSON"),
        (".75", "not valid JSON"),
        ("+0.5", "not valid JSON"),
        ("00.5", "not valid JSON"),
        ("1/2", "not valid JSON"),
        ("0,5", "not valid JSON"),
        ("yes", "not valid JSON"),
        ("95", "less than or equal to 1"),
        ("-0.1", "greater than or equal to 0"),
        ("1.0000001", "less than or equal to 1"),
        ("true", "valid number"),
        ("false", "valid number"),
        ('"65%"', "valid number"),
        ('"0.65"', "valid number"),
        ("[0.65]", "valid number"),
        ('{"p": 0.65}', "valid number"),
        ("null", "valid number"),
        ("NaN", "NaN is not a JSON number"),
        ("Infinity", "Infinity is not a JSON number"),
        ("-Infinity", "-Infinity is not a JSON number"),
        ("1e999", "finite number"),
        ("9" * 5_000, "not valid JSON"),
    ],
)
def test_no_probability_is_ever_guessed(written: str, why: str) -> None:
    assert why in problems(probability(written), "probability")


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("1 million", "not valid JSON"),
        ("300,000", "not valid JSON"),
        ("$300000", "not valid JSON"),
        ("300k", "not valid JSON"),
        ('"300000"', "valid number"),
        ("true", "valid number"),
        ("0x493E0", "not valid JSON"),
        ("1e400", "finite number"),
    ],
)
def test_no_number_is_ever_fished_out(written: str, why: str) -> None:
    assert why in problems(point(written))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Option 2 (confidence 90%)",
        "I would say 300,000.",
        "290",
        "null",
        "[]",
        "[[[]]]",
    ],
)
def test_prose_is_no_answer(text: str) -> None:
    assert "holds no JSON object" in problems(text) or "not valid JSON" in problems(text)


GOOD = reply(answer=answer_json())


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        (GOOD, ()),
        (f" \n{GOOD}\n ", ()),
        (f"\ufeff{GOOD}", ("byte_order_mark",)),
        (f"```json\n{GOOD}\n```", ("code_fence",)),
        (f"```\n{GOOD}\n```\n", ("code_fence",)),
        (f"Here it is:\n{GOOD}", ("prose_around_object",)),
        (f"Here is my answer, {GOOD}", ("prose_around_object",)),
        (f"{GOOD}, as you asked.", ("prose_around_object",)),
        (f"As [1] says: {GOOD} See [2].", ("prose_around_object",)),
        (f"Sure!\n```json\n{GOOD}\n```\nI hope this helps.", ("prose_around_object", "code_fence")),
    ],
)
def test_what_stands_around_one_object_is_tolerated_and_noted(text: str, notes: tuple[str, ...]) -> None:
    outcome = read_reply(text, expected())
    assert isinstance(outcome, Answered)
    assert (outcome.said, outcome.notes) == (said(GOOD), notes)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{GOOD}{GOOD}", "more than one"),
        (f"{GOOD}\nor rather\n{GOOD}", "more than one"),
        (f"{GOOD}, {GOOD}", "more than one"),
        (f"[{GOOD}]", "is a list"),
        (f"[{GOOD}, {GOOD}]", "a list"),
        (f"[1, {GOOD}]", "is a list"),
        (f"[{GOOD}, 1]", "is a list"),
        (f"Here: [[{GOOD}]]", "is a list"),
        (GOOD[:-1], "not valid JSON"),
        (GOOD[: len(GOOD) // 2], "not valid JSON"),
        (f"{{{GOOD}", "not valid JSON"),
        (GOOD.replace('"point"', '"point": 1, "point"', 1), 'key "point" stands twice'),
        (GOOD.replace('{"answer"', '{"answer": null, "answer"', 1), 'key "answer" stands twice'),
        ("{}", "answer: Field required; critiques: Field required; abstention: Field required"),
        (GOOD.replace(', "abstention": null', ""), "abstention: Field required"),
        (GOOD.replace('"abstention": null', '"abstention": null, "note": 1'), "note: Extra inputs"),
        (GOOD.replace("'", '"').replace('"answer"', "'answer'"), "not valid JSON"),
        (GOOD.replace("null", "None"), "not valid JSON"),
        (GOOD.replace('"So."', '"a\nb"'), "not valid JSON"),
        ('{"a":' * 50_000, "not valid JSON"),
        (GOOD.replace("So.", "\ud800"), "reply:"),
        (GOOD.replace("So.", "\\ud800"), "reply:"),
    ],
)
def test_anything_else_is_refused(text: str, why: str) -> None:
    assert why in problems(text)


def changed(kind: str = "estimate", **changes: Any) -> str:
    return reply(answer=answer_json(kind, **changes))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"q25": 100.0}, "quantiles must not decrease"),
        ({"q95": 1.0}, "quantiles must not decrease"),
        (
            {"q50": 300_001.0, "q75": 1e6, "q95": 1e6, "q25": 300_000.5, "q05": 300_000.5},
            "point must lie between q05 and q95",
        ),
        ({"q95": 299_999.0, "q75": 299_999.0, "q50": 299_999.0}, "point must lie between q05 and q95"),
        ({"q05": -5.0}, "answer.q05: must be above 0"),
        ({"q05": 0}, "answer.q05: must be above 0"),
        ({"reasoning_summary": "word " * 121}, "has 121 words; at most 120"),
        ({"evidence_ids": "C01"}, "answer.evidence_ids"),
        ({"evidence_ids": [1]}, "answer.evidence_ids.0"),
        ({"confidence": 0.9}, "answer.confidence: Extra inputs"),
        ({"adjustments": [{"evidence_id": "C01", "adjusted_value": "1", "reason": ""}]}, "adjusted_value"),
        ({"quotes": [{"evidence_id": "C01"}]}, "quotes.0.text: Field required"),
    ],
)
def test_an_estimate_keeps_its_rules(changes: dict[str, Any], why: str) -> None:
    assert why in problems(changed(**changes))


def test_the_longest_summary_is_read() -> None:
    assert said(changed(reasoning_summary="word " * 120)).point == 300_000


def test_a_linear_estimate_may_be_negative_and_keeps_its_bounds() -> None:
    low = answer_json() | dict.fromkeys(("point", "q05", "q25", "q50", "q75", "q95"), -3)
    assert said(reply(answer=low), scale="linear").point == -3
    text = problems(reply(answer=low), scale="linear", lower=-2.5, upper=10.0)
    assert "answer.point: must not be below -2.5" in text
    assert "answer.q95" in text
    assert "must not be above" in problems(GOOD, scale="linear", upper=10.0)


def rows(**shares: Any) -> list[dict[str, Any]]:
    return [{"option_id": name, "p": share} for name, share in shares.items()]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (rows(o0=0.5, o1=0.5), "must name each of o0, o1, o2 exactly once"),
        (rows(o0=0.5, o1=0.25, o2=0.25, o3=0.0), "exactly once"),
        ([*rows(o0=0.5, o1=0.25, o2=0.25), *rows(o0=0.0)], "exactly once"),
        (rows(o0=0.5, o1=0.25, O2=0.25), "exactly once"),
        (rows(o0=0.5, o1=0.5, o2=0.5), "sum to 1.5; they must sum to 1"),
        (rows(o0=50, o1=25, o2=25), "less than or equal to 1"),
        (rows(o0=0.5, o1=0.25, o2=0.2485), "sum to 0.9985"),
        (rows(o0=1.2, o1=-0.1, o2=-0.1), "less than or equal to 1"),
        ({"o0": 0.5, "o1": 0.25, "o2": 0.25}, "valid array"),
        (rows(o0="50%", o1=0.25, o2=0.25), "valid number"),
    ],
)
def test_a_distribution_names_every_option_once_and_sums_to_one(given: Any, why: str) -> None:
    assert why in problems(changed("distribution", probabilities=given), "distribution")


def test_a_sum_within_a_thousandth_is_renormalised_and_recorded() -> None:
    text = changed("distribution", probabilities=rows(o0=0.5, o1=0.25, o2=0.2505))
    outcome = read_reply(text, expected("distribution"))
    assert isinstance(outcome, Answered)
    assert isinstance(outcome.said, Distribution)
    assert sum(outcome.said.as_dict().values()) == pytest.approx(1.0, abs=1e-15)
    assert outcome.adjusted == (Adjusted(rule="renormalised", before=1.0005, after=1.0),)
    assert said(changed("distribution"), "distribution").as_dict() == {"o0": 0.5, "o1": 0.25, "o2": 0.25}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"choice": "Option 1"}, "answer.choice: must be one of o0, o1, o2"),
        ({"choice": "O1"}, "must be one of"),
        ({"choice": "B"}, "must be one of"),
        ({"choice": 1}, "valid string"),
        ({"confidence": 90}, "less than or equal to 1"),
        ({"confidence": "90%"}, "valid number"),
        ({"confidence": True}, "valid number"),
        ({"ranking": ["o1", "o0"]}, "must name each of"),
        ({"ranking": ["o1", "o0", "o0"]}, "must name each of"),
        ({"ranking": ["o0", "o1", "o2"]}, "its first option must be the choice"),
        ({"ranking": ["o1", "o0", "o2", "o3"]}, "must name each of"),
    ],
)
def test_a_choice_names_options_by_id_and_ranks_them_all(changes: dict[str, Any], why: str) -> None:
    assert why in problems(changed("choice", **changes), "choice")


def test_a_bare_risk_is_not_critical() -> None:
    given = said(changed("choice", risks=["It rains.", {"text": "It burns.", "critical": True}]), "choice")
    assert isinstance(given, Choice)
    assert [(risk.text, risk.critical) for risk in given.risks] == [("It rains.", False), ("It burns.", True)]
    assert said(changed("choice", ranking=["o1", "o2", "o0"]), "choice").ranking == ("o1", "o2", "o0")


def test_more_options_than_letters_are_told_apart_by_id() -> None:
    many = tuple(Option(id=f"id{number}", label=f"Option {number}") for number in range(40))
    text = changed("choice", choice="id27", ranking=None)
    assert said(text, "choice", options=many).choice == "id27"
    assert "must be one of" in problems(changed("choice", choice=option_label(27)), "choice", options=many)
    assert [option_label(index) for index in (25, 26, 27, 51, 52)] == ["Z", "AA", "AB", "AZ", "BA"]
    assert len({option_label(index) for index in range(2_000)}) == 2_000


def critique(target: str = "analyst_02", **changes: Any) -> dict[str, Any]:
    base = {"target_role": target, "agrees": True, "points": [], "evidence_ids": [], "suggested_value": None}
    return base | changes


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([critique("analyst_01")], '"analyst_01" cannot be addressed here'),
        (
            [critique("analyst_09")],
            '"analyst_09" cannot be addressed here; seats that can be addressed: analyst_02, analyst_03',
        ),
        ([critique("skeptic")], "cannot be addressed here"),
        ([critique("analyst_0")], "cannot be addressed here"),
        ([critique(), critique()], "two critiques address the same member"),
        ([critique(agrees="yes")], "valid boolean"),
        ([critique(suggested_value="300k")], "valid number"),
    ],
)
def test_critiques_address_other_members_once(given: Any, why: str) -> None:
    assert why in problems(reply(critiques=given), yields="critiques")


def test_critiques_are_read_and_none_is_fine() -> None:
    outcome = read_reply(reply(critiques=[critique(), critique("analyst_03")]), expected(yields="critiques"))
    assert isinstance(outcome, Answered)
    assert isinstance(outcome.said, CritiqueSet)
    assert [given.target_role for given in outcome.said.critiques] == ["analyst_02", "analyst_03"]
    assert read_reply(reply(critiques=[]), expected(yields="critiques")).status == "answered"


def test_an_abstention_is_no_answer_of_any_kind() -> None:
    for kind in ("estimate", "probability", "distribution", "choice"):
        outcome = read_reply(reply(abstention="Nothing to go by."), expected(kind))
        assert outcome == Abstained(said=Abstention(reason="Nothing to go by.", by="member"))
    assert read_reply(reply(abstention=""), expected(yields="critiques")).status == "abstained"


@pytest.mark.parametrize(
    ("text", "yields", "found"),
    [
        (reply(), "answer", "nothing"),
        (reply(answer=answer_json(), abstention="No."), "answer", "answer and abstention"),
        (reply(answer=answer_json(), critiques=[]), "answer", "answer and critiques"),
        (reply(answer=answer_json()), "critiques", "answer"),
        (reply(critiques=[]), "answer", "critiques"),
    ],
)
def test_exactly_what_the_task_asks_for_is_filled(text: str, yields: Any, found: str) -> None:
    assert problems(text, yields=yields).endswith(f"the reply fills {found}")


def test_the_errors_name_every_field() -> None:
    text = problems(changed(q25="a", q50=None, evidence_ids=3))
    assert text.count(";") >= 2
    assert all(name in text for name in ("answer.q25", "answer.q50", "answer.evidence_ids"))


def test_outcomes_survive_the_record() -> None:
    for kind, cls in (
        ("estimate", Estimate),
        ("probability", Probability),
        ("distribution", Distribution),
        ("choice", Choice),
    ):
        outcome = read_reply(changed(kind), expected(kind))
        assert isinstance(outcome, Answered)
        assert isinstance(outcome.said, cls)
        assert outcome_from_json(json.loads(json.dumps(outcome_to_json(outcome)))) == outcome
    critiques = read_reply(reply(critiques=[critique()]), expected(yields="critiques"))
    assert outcome_from_json(outcome_to_json(critiques)) == critiques


def test_what_is_no_outcome_is_refused() -> None:
    with pytest.raises(ValueError, match="status"):
        outcome_from_json({"status": "maybe"})


def test_the_object_is_cut_out_as_written() -> None:
    assert extract_object('x {"a": "}{"} y') == ('{"a": "}{"}', ("prose_around_object",))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"kind": "choice"}, "at least two options"),
        ({"kind": "choice", "options": OPTIONS[:1]}, "at least two options"),
        ({"kind": "distribution", "options": (OPTIONS[0], OPTIONS[0])}, "share an id"),
        ({"kind": "estimate", "options": OPTIONS}, "takes no options"),
        ({"kind": "probability", "scale": "log"}, "belong to estimates"),
        ({"kind": "probability", "upper": 1.0}, "belong to estimates"),
        ({"kind": "estimate", "lower": 2.0, "upper": 1.0}, "lower must be below upper"),
        ({"kind": "estimate", "id": "../x"}, "pattern"),
        ({"kind": "estimate", "text": ""}, "at least 1 character"),
    ],
)
def test_a_question_is_consistent(values: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Question(**({"id": "q", "text": "What?"} | values))
