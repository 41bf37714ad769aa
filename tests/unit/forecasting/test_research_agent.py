"""One agent at work: what it may do, what every refused reply costs, and when it has forecast at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from consilience.core.outcomes import Failed
from consilience.errors import TransientModelError
from consilience.forecasting.pipeline import Research
from consilience.forecasting.search.none import NoSearch
from consilience.forecasting.traces import AgentTrace
from consilience.models.request import Request
from consilience.models.scripted import completion
from research_cases import (
    QUERY,
    forecasting,
    go,
    in_order,
    job_of,
    logs,
    prompts,
    question_of,
    scripted,
    seen,
    transcripts,
)

NOTE = json.dumps({"action": "note", "evidence_id": "D01", "type": "base_rate"})


def worked(folder: Path, *replies: str, research: Research | None = None, **changes: Any) -> dict[str, Any]:
    job = job_of(folder, [question_of()], models=scripted(in_order(*replies)), research=research, **changes)
    go(job)
    (log,) = logs(job)
    return log


def test_an_agent_that_searches_and_cites_has_forecast(tmp_path: Path) -> None:
    log = worked(tmp_path, QUERY, NOTE, forecasting(0.35))
    assert (log["status"], log["answer"]["p_yes"]) == ("accepted", 0.35)
    assert [step["action"] for step in log["steps"]] == ["search", "note", "forecast"]
    assert [document["id"] for document in log["documents"]] == ["D01", "D02", "D03", "D04", "D05"]
    assert {gate["name"]: gate["status"] for gate in log["gates"]} == {
        "coverage": "pass",
        "freshness": "pass",
        "consistency": "pass",
        "support": "pass",
    }


def test_an_agent_that_runs_out_of_steps_has_no_probability_and_enters_no_average(tmp_path: Path) -> None:
    job = job_of(tmp_path, [question_of()], models=scripted(in_order(QUERY)))
    report = go(job)
    (log,) = logs(job)
    assert (log["status"], log["answer"]) == ("failed", None)
    assert log["reason"].startswith("OutOfSteps")
    assert report.predictions.get_column("p").null_count() == report.predictions.height
    assert report.predictions.get_column("n_answered").unique().to_list() == [0]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (forecasting().replace("0.3", '"0.9%"'), "wrong_type"),
        (forecasting().replace("0.3", '".75"'), "wrong_type"),
        (forecasting().replace("0.3", '"1 million"'), "wrong_type"),
        (forecasting().replace("0.3", "NaN"), "not_finite"),
        (forecasting().replace("0.3", "true"), "wrong_type"),
        (forecasting().replace("0.3", '"65%"'), "wrong_type"),
        (f"[{forecasting()}]", "list"),
        (f"{forecasting()} {forecasting()}", "two_objects"),
        (forecasting()[:40], "truncated"),
        (forecasting(1.5), "out_of_range"),
        ("I think it is likely.", "not_json"),
        (forecasting(cited=["D77"]), "unknown_evidence"),
        (json.dumps({"action": "dance"}), "unknown_action"),
        (json.dumps({"action": "search", "query": "x", "cutoff": "2040-01-01"}), "unknown_field"),
        (json.dumps({"action": "search", "query": "  "}), "empty_query"),
    ],
)
def test_a_refused_reply_costs_a_step_and_is_told_with_its_reason(tmp_path: Path, reply: str, reason: str) -> None:
    job = job_of(tmp_path, [question_of()], models=scripted(in_order(QUERY, reply, forecasting(0.4))))
    go(job)
    (log,) = logs(job)
    assert [step["rejected"] for step in log["steps"]] == [None, reason, None]
    assert log["answer"]["p_yes"] == 0.4
    last = seen(prompts(job)[-1][1])
    assert last.steps[1]["refused"]["type"] == reason
    assert "step 3 of 5" in last.task


def test_a_forecast_without_any_source_is_refused_unless_the_book_is_closed(tmp_path: Path) -> None:
    open_book = worked(tmp_path / "open", forecasting(cited=[]))
    assert {step["rejected"] for step in open_book["steps"]} == {"no_source"}
    closed = worked(tmp_path / "closed", forecasting(0.2, cited=[]), client=NoSearch())
    assert (closed["status"], closed["answer"]["p_yes"], closed["tool_log"]) == ("accepted", 0.2, [])


def test_a_control_without_search_searches_nothing_whatever_the_client(tmp_path: Path) -> None:
    job = job_of(tmp_path, [question_of()], arm="control_no_search", models=scripted(in_order(forecasting(cited=[]))))
    go(job)
    assert {log["status"] for log in logs(job)} == {"accepted"}
    assert all(log["tool_log"] == [] for log in logs(job))
    assert all("There is nothing to search" in seen(text).task for _, text in prompts(job))


def test_the_last_step_says_that_no_more_searching_is_possible(tmp_path: Path) -> None:
    job = job_of(tmp_path, [question_of()], models=scripted(in_order(QUERY)))
    go(job)
    told = ["No more searching is possible" in seen(text).task for _, text in prompts(job)]
    assert told == [False] * 4 + [True]
    (log,) = logs(job)
    assert log["steps"][-1]["rejected"] == "search_exhausted"


def test_an_abstention_is_no_probability(tmp_path: Path) -> None:
    log = worked(tmp_path, json.dumps({"action": "abstain", "reason": "Nothing bears on it."}))
    assert (log["status"], log["answer"], log["reason"]) == ("abstained", None, "Nothing bears on it.")


def test_a_quote_must_stand_in_what_was_found(tmp_path: Path) -> None:
    quoted = forecasting(quotes=[{"evidence_id": "D01", "text": "The moon is made of cheese."}])
    log = worked(tmp_path, QUERY, quoted)
    assert {step["rejected"] for step in log["steps"][1:]} == {"quote_not_found"}


def test_enforced_gates_send_back_once_and_then_end_the_work(tmp_path: Path) -> None:
    log = worked(tmp_path, QUERY, forecasting(), research=Research(gates="enforce"))
    assert [step["rejected"] for step in log["steps"]] == [None, "gate", None]
    assert log["status"] == "abstained"
    assert log["reason"].startswith("gates failed: coverage")
    reported = worked(tmp_path / "report", QUERY, forecasting())
    assert reported["status"] == "accepted"
    mended = worked(tmp_path / "mended", QUERY, forecasting(), NOTE, forecasting(), research=Research(gates="enforce"))
    assert (mended["status"], len(mended["gates"])) == ("accepted", 8)


def test_the_number_of_steps_and_of_documents_is_the_runs(tmp_path: Path) -> None:
    log = worked(tmp_path, QUERY, research=Research(max_steps=2, max_search_results=1))
    assert (len(log["steps"]), len(log["documents"])) == (2, 1)


def test_a_repeated_query_is_answered_from_memory_and_does_not_count(tmp_path: Path) -> None:
    log = worked(tmp_path, QUERY, QUERY, forecasting())
    assert [record["repeated"] for record in log["tool_log"]] == [False, True]
    assert AgentTrace.model_validate_json(json.dumps(log)).counts.before == log["tool_log"][0]["before"]


def test_reading_shows_more_than_a_search_and_keeps_the_id(tmp_path: Path) -> None:
    job = job_of(
        tmp_path,
        [question_of()],
        models=scripted(
            in_order(QUERY, json.dumps({"action": "read", "evidence_id": "D05"}), forecasting(cited=["D05"]))
        ),
    )
    go(job)
    last = seen(prompts(job)[-1][1])
    (document,) = last.steps[1]["result"]["documents"]
    assert document["id"] == "D05"


def test_a_call_that_fails_is_a_failed_agent(tmp_path: Path) -> None:
    def fail(request: Request) -> Any:
        del request
        raise TransientModelError("overloaded", hint="Wait.", status=529)

    job = job_of(tmp_path, [question_of()], models=scripted(fail))
    go(job)
    (log,) = logs(job)
    assert (log["status"], log["reason"]) == ("failed", "TransientModelError: overloaded. Wait.")
    assert transcripts(job)["alder-01"]["without_answer"] == {"analyst_01": Failed.model_fields["status"].default}


def test_a_refusal_of_the_vendor_is_an_abstention(tmp_path: Path) -> None:
    refuse = scripted(lambda request: completion(request, "I cannot help with that.", stop_reason="refusal"))
    job = job_of(tmp_path, [question_of()], models=refuse)
    go(job)
    (log,) = logs(job)
    assert (log["status"], log["reason"]) == ("abstained", "I cannot help with that.")


def test_a_reply_cut_at_its_limit_costs_a_step(tmp_path: Path) -> None:
    def cut(request: Request) -> Any:
        return completion(request, QUERY[:20], stop_reason="max_tokens")

    job = job_of(tmp_path, [question_of()], models=scripted(cut))
    go(job)
    (log,) = logs(job)
    assert {step["rejected"] for step in log["steps"]} == {"truncated"}


@pytest.mark.parametrize("kind", ["multiple_choice", "numeric", "date", "discrete"])
def test_every_kind_of_question_is_researched_by_simulated_agents(tmp_path: Path, kind: str) -> None:
    from research_cases import demo_questions  # noqa: PLC0415 - beside its only use

    asked = next(question for question in demo_questions() if question.kind == kind)
    job = job_of(tmp_path, [asked], arm="F_independent")
    report = go(job)
    assert report.manifest["items"]["answered"] == 1
