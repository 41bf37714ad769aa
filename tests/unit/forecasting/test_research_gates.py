from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import JsonValue

from consilience.core.answers import AnyAnswer
from consilience.core.contracts import ENVELOPES
from consilience.forecasting.research.actions import EvidenceType
from consilience.forecasting.research.gates import (
    HealthLimits,
    Vitals,
    consistency,
    coverage,
    freshness,
    health,
    run_gates,
    support,
)
from consilience.forecasting.research.state import AgentState, Classified, GateResult, GatheredEvidence
from consilience.forecasting.search.records import ToolRecord
from engine_cases import answer_json

CUTOFF = datetime(2025, 2, 20, tzinfo=UTC)
AS_OF = datetime(2025, 2, 19, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
CONTENTS: dict[str, JsonValue] = {"D01": {"text": "The bank cut its rate by 0.25 points."}, "D02": None}


def evidence(name: str, kind: EvidenceType | None = None, **changes: Any) -> GatheredEvidence:
    values: dict[str, Any] = {
        "id": name,
        "url": f"https://example.org/{name}",
        "title": "Rates",
        "sha256": "0" * 64,
        "published": CUTOFF - MOMENT,
        "date_source": "metadata",
        "retrieved_at": AS_OF,
        "classified": () if kind is None else (Classified(type=kind, step=0),),
    }
    return GatheredEvidence(**(values | changes))


def state(*items: GatheredEvidence, **changes: Any) -> AgentState:
    values: dict[str, Any] = {"question_id": "q1", "cutoff": CUTOFF, "run_id": "r1", "evidence": items}
    return AgentState(**(values | changes))


def answer(kind: str = "probability", **changes: Any) -> AnyAnswer:
    envelope = {"answer": answer_json(kind, **changes), "critiques": None, "abstention": None}
    read: Any = ENVELOPES[kind].model_validate_json(json.dumps(envelope))
    said: AnyAnswer = read.answer
    return said


def searched(*kept: str) -> ToolRecord:
    return ToolRecord(tool="search", query="q", status="success", cutoff=None, policy="p", kept=kept, step=0, attempt=1)


def vitals(*probabilities: float, **changes: Any) -> Vitals:
    values: dict[str, Any] = {"status": "accepted", "probabilities": probabilities, "replies": 4, "rejected": 0}
    return Vitals(**(values | {"horizons": max(1, len(probabilities)), "answered": len(probabilities)} | changes))


THREE = (evidence("D01", "base_rate"), evidence("D02", "context"), evidence("D03"))


@pytest.mark.parametrize(
    ("items", "status", "said"),
    [
        (THREE, "pass", "3 pieces of evidence, 1 of them base rates"),
        (THREE[:2], "fail", "lacking: 1 more pieces of evidence"),
        (THREE[1:], "fail", "lacking: 1 more pieces of evidence and a base rate"),
        ((*THREE[1:], evidence("D04", "evidence_for")), "fail", "lacking: a base rate"),
        ((), "fail", "lacking: 3 more pieces of evidence and a base rate"),
    ],
)
def test_coverage_is_three_items_and_a_base_rate(items: tuple[GatheredEvidence, ...], status: str, said: str) -> None:
    found = coverage(state(*items))
    assert found.status == status
    assert said in found.message


def test_coverage_counts_only_the_last_classification() -> None:
    changed = evidence("D01", classified=(Classified(type="base_rate", step=0), Classified(type="context", step=1)))
    assert coverage(state(changed, *THREE[1:])).status == "fail"


def test_coverage_counts_what_was_given() -> None:
    assert coverage(state(*THREE[1:]), given={"B1": "base_rate"}).status == "pass"
    assert coverage(state(*THREE[1:]), given={"X1": "context"}).status == "fail"
    assert coverage(state(THREE[1]), given={"B1": "base_rate"}).status == "fail"


def test_coverage_of_a_closed_book_run_and_of_an_import() -> None:
    assert coverage(state(), closed_book=True).status == "nothing_to_enforce"
    assert coverage(state(trace=(searched("D01"),))).status == "not_answerable"
    assert coverage(state(trace=(searched(),))).status == "fail"


@pytest.mark.parametrize(
    ("retrieved", "status", "kind"),
    [
        (AS_OF, "pass", None),
        (AS_OF - timedelta(hours=24), "pass", None),
        ((AS_OF - timedelta(hours=24)).astimezone(timezone(timedelta(hours=9))), "pass", None),
        (AS_OF - timedelta(hours=24) - MOMENT, "fail", "older"),
        (AS_OF + MOMENT, "fail", "after that instant"),
        (None, "fail", "without a time"),
        (AS_OF.replace(tzinfo=None), "fail", "without a time"),
    ],
)
def test_freshness_is_twenty_four_hours(retrieved: datetime | None, status: str, kind: str | None) -> None:
    found = freshness({"D01": AS_OF, "D02": retrieved}, as_of=AS_OF)
    assert found.status == status
    assert found.details == ({} if kind is None else {kind: ["D02"]})


def test_freshness_of_nothing_cannot_be_judged() -> None:
    assert freshness({}, as_of=AS_OF).status == "not_answerable"


@pytest.mark.parametrize(
    ("published", "status", "kind"),
    [
        (CUTOFF - MOMENT, "pass", None),
        (CUTOFF, "fail", "at or after the cutoff"),
        (datetime(2025, 2, 19, 23, 30, tzinfo=timezone(-timedelta(hours=5))), "fail", "at or after the cutoff"),
        (datetime(2025, 2, 20, 4, 30, tzinfo=timezone(timedelta(hours=5))), "pass", None),
        (None, "fail", "undated"),
        (datetime(2025, 2, 18), "fail", "with a date that cannot be read"),  # noqa: DTZ001 - no zone is meant
        ("2025-02-18T10:00:00Z", "pass", None),
        ("18 February 2025", "pass", None),
        ("2025-02-20", "fail", "at or after the cutoff"),
        ("03/02/2025", "fail", "with a date that cannot be read"),
        ("soon", "fail", "with a date that cannot be read"),
        ("", "fail", "with a date that cannot be read"),
        ("3 days ago", "fail", "with a date that cannot be read"),
        ("2025-02-30", "fail", "with a date that cannot be read"),
    ],
)
def test_consistency_is_a_readable_date_before_the_cutoff(
    published: datetime | str | None, status: str, kind: str | None
) -> None:
    found = consistency({"D01": CUTOFF - MOMENT, "D02": published}, cutoff=CUTOFF)
    assert found.status == status
    assert found.details == ({} if kind is None else {kind: ["D02"]})


def test_without_a_cutoff_there_is_nothing_to_enforce_and_that_is_said() -> None:
    found = consistency({"D01": None, "D02": CUTOFF}, cutoff=None)
    assert found.status == "nothing_to_enforce"
    assert "no cutoff" in found.message
    assert found.details == {"undated": ["D01"]}
    assert consistency({}, cutoff=None).status == "nothing_to_enforce"


def test_a_trace_without_typed_evidence_is_not_answerable() -> None:
    assert consistency({}, cutoff=CUTOFF).status == "not_answerable"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"evidence_ids": ["D01"]}, "pass"),
        ({"evidence_ids": ["D01", "D02"]}, "pass"),
        ({"evidence_ids": []}, "nothing_to_enforce"),
        ({"evidence_ids": ["D01", "D09"]}, "fail"),
        ({"quotes": [{"evidence_id": "D01", "text": "cut its rate by .25"}]}, "fail"),
        ({"quotes": [{"evidence_id": "D01", "text": "cut its rate by 0.25"}]}, "pass"),
        ({"quotes": [{"evidence_id": "D01", "text": "cut its rate by 0.50"}]}, "fail"),
        ({"quotes": [{"evidence_id": "D09", "text": "cut"}]}, "fail"),
        ({"quotes": [{"evidence_id": "D02", "text": "cut"}]}, "not_answerable"),
        ({"evidence_ids": ["D09"], "quotes": [{"evidence_id": "D02", "text": "cut"}]}, "fail"),
    ],
)
def test_support_is_ids_that_exist_and_quotes_that_are_found(changes: dict[str, Any], status: str) -> None:
    assert support(answer(**changes), CONTENTS).status == status


def test_support_judges_adjusted_evidence_and_no_missing_answer() -> None:
    row = {"evidence_id": "D09", "adjusted_value": 1.0, "reason": "So."}
    found = support(answer("estimate", adjustments=[row]), CONTENTS)
    assert (found.status, found.details) == ("fail", {"ids that do not exist": ["D09"]})
    assert support(None, CONTENTS).status == "not_answerable"


@pytest.mark.parametrize(
    ("artefacts", "shares", "over"),
    [
        ([vitals(0.3), vitals(0.7)], (0, 0, 0, 0), []),
        ([vitals(0.5), vitals(0.5), vitals(0.3), vitals(0.4)], (0.5, 0, 0, 0), ["exact_half"]),
        ([vitals(0.5000001), vitals(0.49)], (0, 0, 0, 0), []),
        ([vitals(0.0), vitals(1.0), vitals(0.995)], (0, 1, 0, 0), ["extreme"]),
        ([vitals(0.01), vitals(0.99)], (0, 0, 0, 0), []),
        ([vitals(0.001)] * 4 + [vitals(0.3)], (0, 0.8, 0, 0), []),
        ([vitals(0.3, rejected=1), vitals(0.3, rejected=1)], (0, 0, 0.25, 0), ["retries"]),
        ([vitals(0.3, 0.4, horizons=4)], (0, 0, 0, 0.5), ["missing_horizons"]),
        ([vitals(0.3), vitals(status="failed", rejected=4)], (0, 0, 0.5, 0), ["retries"]),
        ([vitals(status="abstained", replies=5)], (None, None, 0, None), []),
        ([vitals(answered=1)], (None, None, 0, 0), []),
    ],
)
def test_health_is_four_shares(artefacts: list[Vitals], shares: tuple[float | None, ...], over: list[str]) -> None:
    found = health(artefacts)
    names = ("exact_half", "extreme", "retries", "missing_horizons")
    assert found.details["shares"] == dict(zip(names, shares, strict=True))
    assert found.details["over"] == over
    assert found.status == ("fail" if over else "pass")


def test_health_of_nothing_cannot_be_judged() -> None:
    assert health([]).status == "not_answerable"
    assert health([vitals(status="failed", replies=0)]).status == "not_answerable"


def test_health_has_limits_of_the_callers_own() -> None:
    assert health([vitals(0.5)], HealthLimits(exact_half=1.0)).status == "pass"


def test_the_gates_of_an_agent_in_order() -> None:
    found = run_gates(state(*THREE), answer(evidence_ids=["D01"]), CONTENTS, as_of=AS_OF)
    assert [(one.name, one.status) for one in found] == [
        ("coverage", "pass"),
        ("freshness", "pass"),
        ("consistency", "pass"),
        ("support", "pass"),
    ]
    assert all(GateResult.model_validate_json(one.model_dump_json()) == one for one in found)
    closed = run_gates(state(cutoff=None), answer(), {}, as_of=AS_OF, closed_book=True)
    assert [one.status for one in closed] == [
        "nothing_to_enforce",
        "not_answerable",
        "nothing_to_enforce",
        "nothing_to_enforce",
    ]
