"""The health gate over what several agents left."""

from __future__ import annotations

from typing import Any

from consilience.forecasting.health import panel_health


def log(name: str, p: float | None, *, status: str = "accepted", rejected: int = 0, replies: int = 5) -> dict[str, Any]:
    steps = [{"rejected": "not_json" if at < rejected else None} for at in range(replies)]
    answer = None if p is None else {"p_yes": p}
    return {"agent_id": name, "status": status, "answer": answer, "steps": steps}


def over(*logs: tuple[str, dict[str, Any]]) -> list[Any]:
    found = panel_health(logs)
    assert found is not None
    return list(found.details["over"])  # type: ignore[arg-type]


def test_a_lone_artefact_has_no_health() -> None:
    assert panel_health([]) is None
    assert panel_health([("q", log("a", 0.5))]) is None


def test_members_at_exactly_half_and_at_the_extremes_are_told() -> None:
    assert over(("q", log("a", 0.5)), ("q", log("b", 0.4))) == ["exact_half"]
    assert over(("q", log("a", 0.001)), ("r", log("a", 0.999))) == ["extreme"]
    assert over(("q", log("a", 0.3)), ("q", log("b", 0.4))) == []


def test_refused_replies_count_of_all_and_answers_of_those_accepted() -> None:
    lost = log("b", None, status="failed", rejected=5)
    assert over(("q", log("a", 0.3)), ("q", lost)) == ["retries"]
    found = panel_health([("q", log("a", None, status="abstained")), ("q", log("b", None, status="failed"))])
    assert found is not None
    assert found.details["accepted"] == 0
    assert found.details["shares"]["exact_half"] is None  # type: ignore[index, call-overload]


def test_days_of_one_question_are_horizons_of_one_artefact() -> None:
    days = [("q", log("a", 0.3)), ("q", log("a", None, status="failed")), ("q", log("b", 0.3)), ("q", log("b", 0.2))]
    found = panel_health(days)
    assert found is not None
    assert found.details["shares"]["missing_horizons"] == 0.25  # type: ignore[index, call-overload]
    assert found.status == "fail"


def test_other_kinds_of_answer_have_no_probability_of_yes() -> None:
    quantity = log("a", None) | {"answer": {"q50": 4.0}}
    assert over(("q", quantity), ("q", quantity | {"agent_id": "b"})) == []
