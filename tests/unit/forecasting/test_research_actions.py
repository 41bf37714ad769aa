from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import JsonValue, TypeAdapter

from consilience.core.answers import Distribution, Estimate, Probability
from consilience.core.question import Kind
from consilience.core.schema import lint_schema, wire_schema
from consilience.forecasting.research.actions import (
    AGENT_ACTIONS,
    SUPERVISOR_ACTIONS,
    Abstain,
    Action,
    Forecast,
    Note,
    Read,
    Rejected,
    Search,
    Update,
    action_contract,
    action_schema,
)
from consilience.forecasting.research.replies import LONGEST_PROBLEM, LONGEST_REPLY, Standing, read_action
from consilience.forecasting.search.executor import LONGEST_QUERY
from engine_cases import OPTIONS, answer_json, question

RETRIEVED: dict[str, JsonValue] = {
    "D01": {"id": "D01", "title": "Rates", "text": "The bank cut its rate by 0.25 points, to 4.50 %."},
    "D02": {"id": "D02", "title": "Votes", "text": "Nine of twelve members voted for it."},
}
GIVEN: dict[str, JsonValue] = {"B1": {"id": "B1", "share": 0.31}}
KINDS = get_args(Kind)
OPTION_IDS = tuple(option.id for option in OPTIONS)
REVIEW = {"confidence": "low", "disagreements": ["Turnout"], "resolved": [], "unresolved": ["Turnout"]}


def standing(kind: str = "probability", **changes: Any) -> Standing:
    values: dict[str, Any] = {
        "question": question(kind),
        "retrieved": RETRIEVED,
        "given": GIVEN,
        "closed_book": False,
        "may_search": True,
    }
    return Standing(**(values | changes))


def act(action: str, **fields: Any) -> str:
    return json.dumps({"action": action, **fields})


def forecast(kind: str = "probability", **changes: Any) -> str:
    return act("forecast", answer=answer_json(kind, **changes))


def rejected(text: str, at: Standing | None = None) -> str:
    found = read_action(text, at or standing())
    assert isinstance(found, Rejected), found
    assert found.message
    return found.type


def with_p(written: str) -> str:
    return forecast(p_yes=0.123).replace("0.123", written)


# What becomes of odd replies, as declared.
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        # as the value of a probability
        (with_p('"0.9%"'), "wrong_type"),
        (with_p('".75"'), "wrong_type"),
        (with_p('"0.75"'), "wrong_type"),
        (with_p('"65%"'), "wrong_type"),
        (with_p('"1 million"'), "wrong_type"),
        (with_p("true"), "wrong_type"),
        (with_p("null"), "wrong_type"),
        (with_p("[0.5]"), "wrong_type"),
        (with_p('{"value": 0.5}'), "wrong_type"),
        (with_p("NaN"), "not_finite"),
        (with_p("-Infinity"), "not_finite"),
        (with_p("1e400"), "not_finite"),
        (with_p("1" + "0" * 400), "not_finite"),
        (with_p("1" + "0" * 5000), "out_of_range"),
        (with_p("65"), "out_of_range"),
        (with_p("-0.0001"), "out_of_range"),
        (with_p("1.0000001"), "out_of_range"),
        (with_p(".75"), "not_json"),
        (with_p("0.9%"), "not_json"),
        (with_p("1 million"), "not_json"),
        (with_p("65%"), "not_json"),
        (with_p("0,65"), "not_json"),
        (with_p("+0.5"), "not_json"),
        (with_p("0"), "forecast"),
        (with_p("1"), "forecast"),
        (with_p("1e-9"), "forecast"),
        (with_p("0.30000000000000004"), "forecast"),
        # as the whole reply
        ("", "not_json"),
        ("0.9%", "not_json"),
        (".75", "not_json"),
        ("1 million", "not_json"),
        ("NaN", "not_json"),
        ("true", "not_json"),
        ("65%", "not_json"),
        ('"65%"', "not_json"),
        ("I would say 65%.", "not_json"),
        ("🎲", "not_json"),
        ("[]", "list"),
        ("[0.65]", "list"),
        ("```json\n[0.65]\n```", "list"),
        (f"[{forecast()}]", "list"),
        (f"[{forecast()}, {forecast()}]", "list"),
        ("[Note] I cannot say.", "not_json"),
        (forecast() + forecast(), "two_objects"),
        (act("search", query="a") + "\n" + act("search", query="b"), "two_objects"),
        (forecast() + " or {", "two_objects"),
        ('{"action": "search", "action": "abstain", "query": "a"}', "duplicate_key"),
        ('{"is a list": 1, "is a list": 2}', "duplicate_key"),
        ('{"the reply is not a JSON number": 1, "the reply is not a JSON number": 2}', "duplicate_key"),
        ("{'action': 'abstain'}", "not_json"),
        ("{action: abstain}", "not_json"),
        ('{"action": "abstain", }', "not_json"),
        ('{"action": "abstain" // why\n}', "not_json"),
        ("{}", "missing_field"),
        # dressed
        (f"Here it is:\n{forecast()}\nThank you.", "forecast"),
        (f"```json\n{forecast()}\n```", "forecast"),
        (f"\ufeff{forecast()}", "forecast"),
        (act("search", query="pluie 🌧 à Québec 東京"), "search"),
        (act("search", query="rain").replace("rain", "\\ud83c\\udf27"), "search"),
        (act("search", query="rain").replace("rain", "\\ud83c"), "not_text"),
        (act("search", query="\ud83c"), "not_text"),
        # too much
        ("x" * 10_000_000, "too_long"),
        ("{" * 10_000_000, "too_long"),
        (act("abstain", reason="x" * 10_000_000), "too_long"),
        ('{"a":' * 20_000, "too_deep"),
        ('{"action": "forecast", "answer": ' + "[" * 40_000 + "]" * 40_000 + "}", "too_deep"),
        ('{"action": "forecast", "answer": ' + "[" * 400 + "]" * 400 + "}", "too_deep"),
        ('{"action": "search", "query": ' + "[" * 900 + "]" * 900 + "}", "wrong_type"),
    ],
)
def test_odd_replies_have_a_declared_outcome(text: str, outcome: str) -> None:
    found = read_action(text, standing())
    assert (found.type if isinstance(found, Rejected) else found.action) == outcome


def test_a_reply_cut_anywhere_is_truncated() -> None:
    whole = forecast()
    assert {rejected(whole[:at]) for at in range(1, len(whole))} == {"truncated"}


@pytest.mark.parametrize(
    "cut", ['{"a": "\\', '{"a": "\\u12', '{"a": -', '{"a": tru', '{"a": [1, 2', '{"a": 1.', '{"a": 1e']
)
def test_a_reply_cut_within_a_value_is_truncated(cut: str) -> None:
    assert rejected(cut) == "truncated"


def test_how_a_reply_was_dressed_is_kept() -> None:
    found = read_action(f"So:\n```json\n{act('abstain', reason='Nothing is known.')}\n```", standing())
    assert found == Abstain(reason="Nothing is known.", notes=("prose_around_object", "code_fence"))


def test_each_action_is_read() -> None:
    at = standing()
    assert read_action(act("search", query="  rate\tcut ", reason="Why."), at) == Search(
        query="rate\tcut", reason="Why."
    )
    assert read_action(act("read", evidence_id="D01"), at) == Read(evidence_id="D01")
    assert read_action(act("note", evidence_id="D02", type="context"), at) == Note(evidence_id="D02", type="context")
    found = read_action(forecast(evidence_ids=["D01", "B1"]), at)
    assert isinstance(found, Forecast)
    assert found.answer == Probability.model_validate_json(
        json.dumps(answer_json("probability", evidence_ids=["D01", "B1"]))
    )


def test_every_field_may_be_present_and_null() -> None:
    blank: dict[str, Any] = dict.fromkeys(("query", "evidence_id", "type", "answer", "reason"))
    assert read_action(json.dumps(blank | {"action": "search", "query": "rate"}), standing()) == Search(query="rate")
    empty = blank | {"evidence_id": "", "type": " "}
    assert read_action(json.dumps(empty | {"action": "search", "query": "rate"}), standing()) == Search(query="rate")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_answer_is_read_under_its_contract(kind: str) -> None:
    found = read_action(forecast(kind), standing(kind))
    assert isinstance(found, Forecast)
    assert type(found.answer).__name__.lower() == kind
    others = [other for other in KINDS if other != kind]
    assert {rejected(forecast(other), standing(kind)) for other in others} <= {"missing_field", "unknown_field"}


def test_a_renormalised_answer_says_so() -> None:
    rows = [{"option_id": name, "p": p} for name, p in zip(OPTION_IDS, (0.5, 0.25, 0.2505), strict=True)]
    found = read_action(forecast("distribution", probabilities=rows), standing("distribution"))
    assert isinstance(found, Forecast)
    assert isinstance(found.answer, Distribution)
    assert [change.rule for change in found.adjusted] == ["renormalised"]
    assert sum(found.answer.as_dict().values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        ("probability", {"reasoning_summary": "word " * 121}, "contract"),
        ("probability", {"evidence_ids": "D01"}, "wrong_type"),
        ("probability", {"p": 0.3}, "unknown_field"),
        ("estimate", {"q05": 9e9}, "contract"),
        ("estimate", {"q05": -1.0}, "contract"),
        ("distribution", {"probabilities": [{"option_id": "o1", "p": 1.0}]}, "contract"),
        ("choice", {"choice": "o9"}, "contract"),
    ],
)
def test_an_answer_that_breaks_its_contract_is_rejected(kind: str, changes: dict[str, Any], reason: str) -> None:
    assert rejected(forecast(kind, **changes), standing(kind)) == reason


def test_a_missing_field_of_the_answer_is_named() -> None:
    answer = answer_json("probability")
    del answer["p_yes"]
    found = read_action(act("forecast", answer=answer), standing())
    assert found == Rejected(type="missing_field", message="answer.p_yes: Field required")


@pytest.mark.parametrize(
    "field",
    ["cutoff", "domains", "include_domains", "exclude_domains", "max_results", "before", "Query", "confidence", ""],
)
def test_the_model_passes_nothing_but_what_an_action_takes(field: str) -> None:
    assert rejected(act("search", query="rate", **{field: "2030-01-01"})) == "unknown_field"
    assert rejected(act("search", query="rate", **{field: None})) == "unknown_field"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (act("buy", query="rate"), "unknown_action"),
        (act("Search", query="rate"), "unknown_action"),
        (json.dumps({"action": None, "query": "rate"}), "missing_field"),
        (json.dumps({"action": ["search"], "query": "rate"}), "wrong_type"),
        (json.dumps({"query": "rate"}), "missing_field"),
        (act("search"), "missing_field"),
        (act("search", query=None), "missing_field"),
        (act("search", query=""), "empty_query"),
        (act("search", query=" \u2003\n"), "empty_query"),
        (act("search", query=7), "wrong_type"),
        (act("search", query="x" * (LONGEST_QUERY + 1)), "query_too_long"),
        (act("search", query="rate", evidence_id="D01"), "superfluous_field"),
        (act("search", query="rate", answer=answer_json("probability")), "superfluous_field"),
        (act("forecast", query="rate", answer=answer_json("probability")), "superfluous_field"),
        (act("forecast"), "missing_field"),
        (act("forecast", answer="65%"), "wrong_type"),
        (act("forecast", answer=0.65), "wrong_type"),
        (act("forecast", answer=[answer_json("probability")]), "wrong_type"),
        (act("forecast", answer={}), "missing_field"),
        (act("abstain"), "missing_field"),
        (act("abstain", reason=" "), "missing_field"),
        (act("abstain", reason=["no"]), "wrong_type"),
        (act("read"), "missing_field"),
        (act("read", evidence_id="D09"), "unknown_evidence"),
        (act("read", evidence_id="d01"), "unknown_evidence"),
        (act("read", evidence_id="D01 "), "unknown_evidence"),
        (act("read", evidence_id="B1"), "not_allowed"),
        (act("read", evidence_id="https://example.org/"), "unknown_evidence"),
        (act("note", evidence_id="D01"), "missing_field"),
        (act("note", evidence_id="D01", type="rumour"), "out_of_range"),
        (act("note", evidence_id="D09", type="context"), "unknown_evidence"),
        (act("note", evidence_id="B1", type="base_rate"), "not_allowed"),
        (act("update", answer=answer_json("probability")), "not_allowed"),
        (forecast(evidence_ids=["D01", "D09"]), "unknown_evidence"),
        (forecast(quotes=[{"evidence_id": "D09", "text": "cut"}]), "unknown_evidence"),
        (forecast(quotes=[{"evidence_id": "D01", "text": "cut its rate by 0.50 points"}]), "quote_not_found"),
        (forecast(quotes=[{"evidence_id": "D02", "text": "cut its rate"}]), "quote_not_found"),
        (forecast(quotes=[{"evidence_id": "D01", "text": ""}]), "quote_not_found"),
    ],
)
def test_an_invalid_action_is_rejected_with_its_reason(text: str, reason: str) -> None:
    assert rejected(text) == reason


def test_a_query_may_be_as_long_as_the_search_takes() -> None:
    found = read_action(act("search", query="x" * LONGEST_QUERY), standing())
    assert isinstance(found, Search)


def test_adjusted_evidence_must_exist() -> None:
    row = {"evidence_id": "D09", "adjusted_value": 1.0, "reason": "So."}
    assert rejected(forecast("estimate", adjustments=[row]), standing("estimate")) == "unknown_evidence"
    found = read_action(forecast("estimate", adjustments=[row | {"evidence_id": "D01"}]), standing("estimate"))
    assert isinstance(found, Forecast)
    assert isinstance(found.answer, Estimate)


def test_a_quote_in_other_punctuation_is_found() -> None:
    quote = {"evidence_id": "D01", "text": "“Cut its rate by 0.25 points — to 4.5%”"}
    assert isinstance(read_action(forecast(quotes=[quote]), standing()), Forecast)


def test_a_forecast_needs_a_kept_source_unless_the_run_is_closed_book() -> None:
    assert rejected(forecast(), standing(retrieved={})) == "no_source"
    assert rejected(forecast(evidence_ids=["B1"]), standing(retrieved={})) == "no_source"
    assert isinstance(read_action(forecast(), standing(retrieved={}, closed_book=True)), Forecast)
    assert rejected(forecast(evidence_ids=["D01"]), standing(retrieved={}, closed_book=True)) == "unknown_evidence"


def test_no_search_when_none_is_possible() -> None:
    last = standing(may_search=False)
    assert rejected(act("search", query="rate"), last) == "search_exhausted"
    assert isinstance(read_action(act("read", evidence_id="D01"), last), Read)
    closed = standing(closed_book=True)
    assert rejected(act("search", query="rate"), closed) == "not_allowed"
    assert rejected(act("read", evidence_id="D01"), closed) == "not_allowed"


def test_a_supervisor_updates_and_does_not_forecast() -> None:
    at = standing(supervisor=True)
    answer = answer_json("probability", evidence_ids=["D01"])
    found = read_action(act("update", answer=answer, **REVIEW), at)
    assert isinstance(found, Update)
    assert (found.confidence, found.disagreements, found.resolved, found.unresolved) == (
        "low",
        ("Turnout",),
        (),
        ("Turnout",),
    )
    assert read_action(act("search", query="turnout", disagreements=["Turnout"]), at) == Search(
        query="turnout", disagreements=("Turnout",)
    )
    assert rejected(forecast(), at) == "not_allowed"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"confidence": None}, "missing_field"),
        ({"confidence": "very high"}, "out_of_range"),
        ({"confidence": 0.8}, "wrong_type"),
        ({"resolved": None}, "missing_field"),
        ({"unresolved": "Turnout"}, "wrong_type"),
        ({"disagreements": [1]}, "wrong_type"),
        ({"answer": answer_json("probability")}, "no_source"),
        ({"answer": answer_json("probability", evidence_ids=["B1"])}, "no_source"),
        ({"answer": answer_json("probability", evidence_ids=["D09"])}, "unknown_evidence"),
    ],
)
def test_a_supervisors_update_is_rejected_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    whole = {"answer": answer_json("probability", evidence_ids=["D01"])} | REVIEW | changes
    assert rejected(act("update", **whole), standing(supervisor=True)) == reason


def test_a_rejection_is_short_and_can_be_sent() -> None:
    many = {f"field {number} {'x' * 900}": 1 for number in range(100)}
    found = read_action(json.dumps({"action": "search", "query": "rate"} | many), standing())
    assert isinstance(found, Rejected)
    assert len(found.message) < 21 * (LONGEST_PROBLEM + 30)
    assert found.message.endswith("and 81 more")
    long = read_action(act("forecast", answer=answer_json("probability") | {"x" * 1_000: 1}), standing())
    assert isinstance(long, Rejected)
    assert "characters)" in long.message


@pytest.mark.parametrize("unit", ["{", "[", '"', "\\", '{"a":', "[{", "```", "a ", '{"a":1}', "\ufeff"])
def test_reading_takes_linear_time(unit: str) -> None:
    text = unit * (LONGEST_REPLY // len(unit))
    started = time.perf_counter()
    assert isinstance(read_action(text, standing()), Rejected)
    assert isinstance(read_action('{"action": "' + text[:-20], standing()), Rejected)
    assert time.perf_counter() - started < 2


def branches(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for part in node.values():
            yield from branches(part)
    elif isinstance(node, list):
        for part in node:
            yield from branches(part)


@pytest.mark.parametrize("supervisor", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_vendors_accept_the_schema_of_every_kind(kind: Kind, supervisor: bool) -> None:
    contract = action_contract(kind, OPTION_IDS, supervisor=supervisor)
    lint_schema(contract.schema, name=contract.name)
    fields: Any = contract.schema["properties"]
    assert list(contract.schema["required"]) == list(fields)
    assert fields["action"]["enum"] == list(SUPERVISOR_ACTIONS if supervisor else AGENT_ACTIONS)
    assert all({"type": "null"} in field["anyOf"] for name, field in fields.items() if name != "action")
    assert fields["answer"] == wire_schema(kind, OPTION_IDS)["properties"]["answer"]
    assert not any("$ref" in branch for branch in branches(contract.schema))
    assert contract.sha256 != action_contract(kind, OPTION_IDS, supervisor=not supervisor).sha256


def test_the_schema_holds_nothing_that_decides_what_a_search_may_find() -> None:
    fields = {
        name for supervisor in (False, True) for name in _names(action_schema("probability", supervisor=supervisor))
    }
    assert not {
        name for name in fields if any(word in name for word in ("cutoff", "domain", "result", "limit", "date"))
    }


def _names(schema: Any) -> Iterator[str]:
    for branch in branches(schema):
        yield from branch.get("properties", {})


def test_actions_go_to_json_and_back() -> None:
    adapter: TypeAdapter[Action] = TypeAdapter(Action)
    review = act("update", answer=answer_json("choice", evidence_ids=["D01"]), **REVIEW)
    said = [
        read_action(act("search", query="rate"), standing()),
        read_action(act("read", evidence_id="D01"), standing()),
        read_action(act("note", evidence_id="D01", type="context"), standing()),
        read_action(act("abstain", reason="No."), standing()),
        *(read_action(forecast(kind), standing(kind)) for kind in KINDS),
        read_action(review, standing("choice", supervisor=True)),
    ]
    for action in said:
        assert not isinstance(action, Rejected)
        assert adapter.validate_json(adapter.dump_json(action)) == action
