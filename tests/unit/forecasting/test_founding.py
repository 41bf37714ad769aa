"""Founding traces: known numbers come out again, agents without a forecast do not count, gaps are said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from consilience.aggregation.odds import sqrt_neff
from consilience.errors import DataError
from consilience.forecasting.founding import Imported, import_founding
from consilience.forecasting.founding_gaps import Gap
from founding_cases import PANELS, agent, aggregation, calls, debate, file, panel, step, supervisor


def gap(read: Imported, name: str) -> Gap:
    (found,) = (one for one in read.gaps if one.name == name)
    return found


def test_two_agents_with_ten_calls_and_forty_results() -> None:
    read = import_founding(file(agents=[agent("x", 0.65, 4), agent("y", 0.25, 4)], llm_calls=calls(10)))
    assert [one.p_yes for one in read.agents] == [0.65, 0.25]
    assert (read.calls, read.results, read.supervisor_results) == (10, 40, 0)
    assert gap(read, "undated_results").message.startswith("0 of 40 results carry a date")
    assert read.final.founding is None
    assert read.final.rule is None


@pytest.mark.parametrize("name", PANELS)
def test_known_panels_come_out_again(name: str) -> None:
    p, value, advocates, supervised, final, n = PANELS[name]
    read = import_founding(panel(name))
    assert read.aggregate is not None
    assert read.aggregate.rho == 0.3
    assert read.aggregate.rho_source == "effective_n"
    assert read.aggregate.ours == pytest.approx(value, abs=5e-5)
    assert read.aggregate.replayed == read.aggregate.ours == pytest.approx(sqrt_neff(p, rho=0.3).value)
    assert read.aggregate.raw.agrees is True
    assert read.aggregate.rules["mean"] == pytest.approx(sum(p) / 3)
    assert {"median", "geometric_odds", "sqrt_neff", "neyman"} <= set(read.aggregate.rules)
    assert read.calls == n
    assert read.final.rule == ("panel_only" if advocates is None else "blend")
    assert read.final.replayed["blend"] == pytest.approx(final, abs=5e-5)
    assert read.final.ours["blend"] == pytest.approx(final, abs=1e-4)
    assert read.final.confidence.ours == (0.6 if supervised else None)
    assert read.final.confidence.agrees is (True if supervised else None)


def test_the_debate_alone_is_exact_from_the_rounded_aggregate() -> None:
    read = import_founding(panel("debate"))
    assert read.final.replayed["blend"] == pytest.approx(0.43331, abs=1e-12)


@pytest.mark.parametrize(
    ("label", "final", "confidence"), [("high", 0.15, 0.8), ("low", 0.3561, 0.5), ("Medium", 0.2737, 0.6)]
)
def test_a_supervisor_enters_as_sure_as_it_says(label: str, final: float, confidence: float) -> None:
    read = import_founding(panel("hike", supervisor=supervisor(0.15, label), final_probability=final))
    assert read.final.rule == "blend"
    assert read.final.replayed["blend"] == pytest.approx(final, abs=5e-5)
    assert read.final.confidence.ours == confidence


def test_the_strict_preset_is_recognised() -> None:
    agreed = debate(0.08, 0.04) | {"consensus_reached": True}
    read = import_founding(
        file(
            agents=[agent("a", 0.05), agent("b", 0.05)],
            aggregation={"method": "mean", "raw_probability": 0.05, "input_probabilities": [0.05, 0.05]},
            debate=agreed,
            final_probability=0.0084,
        )
    )
    assert read.final.rule == "strict"
    assert read.aggregate is not None
    assert (read.aggregate.rho, read.aggregate.replayed) == (None, 0.05)


@pytest.mark.parametrize(
    ("made", "status", "why"),
    [
        ({"forecast_produced": False}, "failed", "step_budget"),
        ({"traces": [step(1, "search", "q", 5), step(2, "forced_default")]}, "failed", "step_budget"),
        ({"forecast_produced": False, "status": "accepted"}, "failed", "step_budget"),
        ({"p_yes": None, "status": "abstained", "failure_reason": "thin evidence"}, "abstained", "thin evidence"),
        ({"p_yes": None, "traces": [step(1, "abstain")]}, "abstained", "abstained"),
        ({"p_yes": None, "status": "failed", "failure_reason": "timeout"}, "failed", "timeout"),
        ({"status": "failed"}, "failed", "failed"),
        ({"p_yes": None, "traces": [step(1, "provider_error")]}, "failed", "provider_error"),
        ({"p_yes": None}, "failed", "no_probability"),
        ({"p_yes": 1.2}, "failed", "out_of_range"),
        ({"status": "rescued"}, "failed", "unknown_status"),
    ],
)
def test_an_agent_without_a_forecast_enters_no_average(made: dict[str, Any], status: str, why: str) -> None:
    lost = agent("lost", 0.5) | made
    inputs = [0.12, 0.22, 0.5]
    read = import_founding(
        file(agents=[agent("a", 0.12), agent("b", 0.22), lost], aggregation=aggregation(inputs, 0.2232))
    )
    one = read.agents[2]
    assert (one.status, one.reason, one.p_yes) == (status, why, None)
    assert one.founding_p_yes == lost["p_yes"]
    assert read.aggregate is not None
    assert read.aggregate.rules["mean"] == pytest.approx(0.17)
    assert read.aggregate.ours == pytest.approx(sqrt_neff([0.12, 0.22], rho=0.3).value)
    assert read.aggregate.replayed == pytest.approx(sqrt_neff(inputs, rho=0.3).value)
    assert read.aggregate.founding == 0.2232
    assert read.aggregate.raw.agrees is False
    missing = gap(read, "agents_without_forecast")
    assert (missing.count, missing.of) == (1, 3)
    assert f"lost ({why}" in missing.message


def test_a_panel_of_which_nobody_forecast_has_no_aggregate_of_ours() -> None:
    read = import_founding(
        file(agents=[agent("a", 0.5, forecast_produced=False)], aggregation=aggregation([0.5], 0.5, 1.0))
    )
    assert read.aggregate is not None
    assert (read.aggregate.ours, read.aggregate.founding, read.aggregate.rules) == (None, 0.5, {})
    assert read.final.ours == {}
    assert import_founding(file()).aggregate is None


def test_derived_fields_stand_beside_the_founding_ones() -> None:
    derived = import_founding(panel("three")).agents[0].derived
    assert derived["extremity"].founding == 0.76
    assert derived["extremity"].agrees is True
    assert (derived["sentiment"].founding, derived["sentiment"].ours) == ("bearish", "strongly_bearish")
    assert derived["key_findings"].ours == ["rates fell", "votes are due."]
    assert derived["key_findings"].agrees is False
    assert derived["uncertainties"].ours == ["However, turnout is unknown."]
    assert (derived["evidence_volume"].ours, derived["queries"].ours, derived["sources"].ours) == ("medium", 2, 10)


def test_unknown_actions_statuses_and_fields_are_kept_and_told() -> None:
    odd = agent("a", 0.3) | {"traces": [step(1, "Deep-Dive", mood="good"), step(2, "forecast")], "aura": 3}
    read = import_founding(file(agents=[odd], colour="red"))
    assert read.agents[0].actions == ("Deep-Dive", "forecast")
    assert "'Deep-Dive'" in gap(read, "unknown_actions").message
    assert gap(read, "unknown_fields").message.endswith("agents[].aura, agents[].traces[].mood, colour")
    assert read.trace.unknown() == {"colour": "red"}
    assert read.trace.agents[0].steps()[0].unknown() == {"mood": "good"}


def test_what_the_format_never_records_is_said_of_every_file() -> None:
    read = import_founding(panel("three"))
    for name in ("failed_calls", "sampling_settings", "latencies", "finish_reasons"):
        assert gap(read, f"{name}_not_recorded").answer == "yes"
    assert gap(read, "no_integrity").answer == "yes"
    told = [call | {"finish_reason": "stop"} for call in calls(3)]
    assert gap(import_founding(file(llm_calls=told)), "finish_reasons_not_recorded").answer == "no"
    some = gap(import_founding(file(llm_calls=[*told, *calls(1)])), "finish_reasons_not_recorded")
    assert (some.answer, some.count, some.message) == ("yes", 1, "3 of 4 calls tell of it")


def test_trimmed_texts_are_counted_by_place() -> None:
    read = import_founding(panel("three"))
    found = gap(read, "trimmed_texts")
    assert (found.answer, found.count) == ("yes", 30)
    assert "agents[].traces[].results[].snippet 30" in found.message
    whole = import_founding(file(agents=[agent("a", 0.3, 0, rationale="Whole… in the middle.")]))
    assert gap(whole, "trimmed_texts").answer == "no"


@pytest.mark.parametrize(
    ("published", "answer", "count"),
    [(None, "yes", 1), ("", "yes", 1), ("2025-01-02", "no", 0), ("3 days ago", "yes", 1), ("02/03/2025", "yes", 1)],
)
def test_results_are_dated_when_their_date_can_be_read(published: str | None, answer: str, count: int) -> None:
    one = step(1, "search", "q", 1)
    one["results"][0]["published"] = published
    found = gap(import_founding(file(agents=[agent("a", 0.3) | {"traces": [one]}])), "undated_results")
    assert (found.answer, found.count, found.of) == (answer, count, 1)
    assert gap(import_founding(file()), "undated_results").answer == "unknown"


@pytest.mark.parametrize(
    ("price", "prompt", "answer"),
    [
        (0.07, "The market says 0.07.", "yes"),
        (0.07, "The market says .07", "yes"),
        (0.07, "Priced at 7%", "yes"),
        (0.07, "Priced at 7.0 %", "yes"),
        (0.07, "up 17%, 0.075, 1.07, 0.071", "no"),
        (0.5, "at 50%", "yes"),
        (0.5, "0.55 or 150%", "no"),
        (1.0, "100%", "yes"),
        (0.125, "12.5%", "yes"),
        (None, "7%", "unknown"),
    ],
)
def test_whether_the_price_stands_in_a_prompt(price: float | None, prompt: str, answer: str) -> None:
    question = {"question": "Q?", "current_market_price": price}
    made = calls(1, prompt) + calls(1)
    made[1]["messages"][0] = {"role": "assistant", "content": "0.07 7% 50% 100% 12.5%"}
    found = gap(import_founding(file(question=question, llm_calls=made)), "market_price_in_prompt")
    assert found.answer == answer
    assert found.count == {"yes": 1, "no": 0, "unknown": None}[answer]
    assert gap(import_founding(file(question=question)), "market_price_in_prompt").answer == "unknown"


@pytest.mark.parametrize(
    ("params", "changes", "rho", "source"),
    [
        ({"rho": 0.5}, {}, 0.5, "params"),
        ({"rho": True}, {}, 0.3, "effective_n"),
        ({}, {"effective_n": 1.5}, 0.5, "effective_n"),
        ({}, {"effective_n": None, "extremization_factor": 1.2247}, 0.5, "extremization_factor"),
        ({}, {"effective_n": None, "extremization_factor": None}, 0.3, "assumed"),
        ({}, {"effective_n": 9.0, "extremization_factor": 4.0}, 0.3, "assumed"),
    ],
)
def test_the_correlation_is_said_worked_out_or_assumed(
    params: dict[str, Any], changes: dict[str, Any], rho: float, source: str
) -> None:
    p = [0.12, 0.22, 0.22]
    made = file(params=params, agents=[agent(f"a{x}", x) for x in p], aggregation=aggregation(p, 0.1) | changes)
    found = import_founding(made).aggregate
    assert found is not None
    assert (found.rho, found.rho_source) == (rho, source)


def test_weights_and_unknown_methods() -> None:
    p = [0.2, 0.9]
    weighted = aggregation(p, 0.2, 1.0) | {"input_weights": [1, 0], "effective_n": None, "extremization_factor": None}
    found = import_founding(file(agents=[agent("a", 0.2), agent("b", 0.9)], aggregation=weighted)).aggregate
    assert found is not None
    assert found.replayed == 0.2
    read = import_founding(
        file(
            agents=[agent("a", 0.2)],
            aggregation=aggregation([0.2], 0.2) | {"method": "oracle"},
            supervisor=supervisor(0.1, "sure"),
        )
    )
    assert read.aggregate is not None
    assert (read.aggregate.replayed, read.aggregate.ours, read.aggregate.founding) == (None, None, 0.2)
    assert gap(read, "aggregation_not_recomputed").answer == "yes"
    assert gap(read, "supervisor_confidence_unknown").answer == "yes"


@pytest.mark.parametrize("weights", [[1e308, 1e308, 1.0], [5e-324, 5e-324, 0.0]])
@pytest.mark.parametrize("factor", [1e308, -1e308, None])
def test_weights_of_any_size_weigh(weights: list[float], factor: float | None) -> None:
    found = aggregation([0.4, 0.2, 1.0], 0.3) | {"input_weights": weights, "extremization_factor": factor}
    read = import_founding(file(agents=[agent("a", 0.4)], aggregation=found | {"effective_n": None})).aggregate
    assert read is not None
    assert read.replayed == pytest.approx(0.5 + (2 / 1.3) ** 0.5 * (0.3 - 0.5))


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"question": {"question": "?"}, "agents": [{"agent_id": "a", "p_yes": 0.5, "p_yes": 0.9}]}',
        file(agents=[agent("a", 0.3) | {"p_yes": "0.3"}]).encode(),
        file(agents=[agent("a", 0.3) | {"p_yes": float("nan")}]).encode(),
        file(params={"temperature": float("inf")}).encode(),
        file(params={"temperature": 0.5}).replace("0.5", "1e999").encode(),
        json.dumps({"schema_version": 1, "question": {"text": "?"}, "agents": []}).encode(),
    ],
)
def test_what_is_no_founding_trace_is_refused(odd: bytes) -> None:
    with pytest.raises(DataError, match="no run trace of the founding notebooks"):
        import_founding(odd)


def test_an_import_reads_back() -> None:
    read = import_founding(panel("hike", question={"question": "Hike?", "resolved_outcome": None}))
    assert Imported.model_validate_json(read.model_dump_json()) == read
    assert import_founding(panel("hike").encode()).sha256 == import_founding(panel("hike")).sha256
