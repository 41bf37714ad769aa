"""One contract for every live adapter, over real HTTP: what is asked, how often, what it costs and how it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapter_cases import (
    ADAPTERS,
    ANTHROPIC,
    HONOURED,
    IGNORED,
    OPENAI,
    PATIENCE,
    PLAN,
    Adapter,
    Turn,
    run_live,
    take_turn,
)
from consilience.errors import AccountError
from consilience.evidence.reading import fenced, parse_prompt
from consilience.fakes.faults import Fault, FaultKind, status
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import COMPATIBLE_MODEL
from consilience.journal.events import AttemptError, AttemptReserved, AttemptResponse, RunStopped
from consilience.journal.ledger import ledger_rows
from engine_cases import events_of, money_by_record

every_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
BOTH = ("out_of_range", "invalid_json", "surrogate", "surrogate_escape", "empty")
LIMIT = PLAN.max_output_tokens


def charges(turn: Turn) -> list[tuple[int, int]]:
    """Return (charged, reserved) of every failed try."""
    reserved = {(event.ask, event.attempt): event.reserved_nano for event in turn.events(AttemptReserved)}
    return [(event.charged_nano, reserved[event.ask, event.attempt]) for event in turn.events(AttemptError)]


def errors(turn: Turn) -> list[dict[str, Any]]:
    return [event.error for event in turn.events(AttemptError)]


# What is asked


@every_adapter
def test_a_good_reply_is_one_hit_and_one_answer(adapter: Adapter, fake: FakeServer, tmp_path: Path) -> None:
    turn = take_turn(adapter, fake, tmp_path)
    assert (len(turn.hits), turn.outcome["status"]) == (1, "answered")
    (response,) = turn.events(AttemptResponse)
    usage = response.completion["usage"]
    assert (response.estimated, response.completion["stop_reason"]) == (False, "end")
    assert response.completion["request_id"].startswith("req_fake_")
    assert 0 < response.completion["latency_s"] < 20
    assert all(isinstance(tokens, int) for tokens in usage.values())
    assert usage["input"] + usage["cache_write_5m"] > 100
    assert usage["output_visible"] > 10
    (hit,) = turn.hits
    assert hit.json[adapter.limit] == LIMIT
    assert {"temperature", "top_p", "top_k", "seed", "stream"} & hit.json.keys() == set()
    assert "ROLE_ID: analyst_01" in adapter.system(hit.json)
    assert adapter.user(hit.json).rstrip().endswith("estimate (round 0). You are analyst_01.")


def test_the_vendors_are_asked_for_their_own_structured_output_at_medium_effort(
    fake: FakeServer, tmp_path: Path
) -> None:
    (ours,) = take_turn(ANTHROPIC, fake, tmp_path / "a").hits
    assert ours.json["output_config"]["effort"] == "medium"
    assert ours.json["output_config"]["format"]["type"] == "json_schema"
    assert ours.json["thinking"] == {"type": "adaptive"}
    (theirs,) = take_turn(OPENAI, fake, tmp_path / "o").hits
    assert theirs.json["reasoning"] == {"effort": "medium"}
    assert theirs.json["store"] is False
    form = theirs.json["text"]["format"]
    assert (form["type"], form["name"], form["strict"]) == ("json_schema", "estimate", True)
    assert form["schema"] == ours.json["output_config"]["format"]["schema"]


def test_a_server_that_heeds_schemas_is_sent_them_and_one_that_does_not_is_told_in_words(
    fake: FakeServer, tmp_path: Path
) -> None:
    honoured = take_turn(HONOURED, fake, tmp_path / "h")
    probe, asked = fake.calls()
    assert probe.json["response_format"]["json_schema"]["name"] == "probe"
    assert asked.json["response_format"]["json_schema"]["name"] == "estimate"
    assert "JSON schema" not in HONOURED.system(asked.json)
    ignored = take_turn(IGNORED, fake, tmp_path / "i")
    probe, asked = fake.calls()
    assert probe.json["response_format"]["json_schema"]["name"] == "probe"
    assert "response_format" not in asked.json
    assert '{"additionalProperties":false,"properties":{' in IGNORED.system(asked.json)
    assert [turn.outcome["status"] for turn in (honoured, ignored)] == ["answered", "answered"]


# Replies that cannot be read


@every_adapter
@pytest.mark.parametrize("kind", BOTH)
def test_a_reply_that_breaks_its_contract_is_asked_for_again_with_its_errors_and_nothing_else(
    adapter: Adapter, kind: FaultKind, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault(kind))
    assert (len(turn.hits), turn.outcome["status"]) == (2, "answered")
    first, second = (hit.json for hit in turn.hits)
    assert adapter.without_user(second) == adapter.without_user(first)
    asked, again = adapter.user(first), adapter.user(second)
    assert again.startswith(asked)  # what was cached stays a prefix
    sent = correction(adapter, first, again.removeprefix(asked))
    assert sent["last_reply"] == turn.replies[0]
    assert sent["errors"]
    assert [event.estimated for event in turn.events(AttemptResponse)] == [False, False]


def correction(adapter: Adapter, body: dict[str, Any], added: str) -> dict[str, Any]:
    tag = parse_prompt(f"{adapter.system(body)}\n{adapter.user(body)}").tag
    sent: dict[str, Any] = fenced(added, tag)
    assert sent.keys() == {"correction"}
    found: dict[str, Any] = sent["correction"]
    assert found.keys() == {"errors", "last_reply"}
    return found


@every_adapter
def test_two_corrections_are_the_most_and_each_shows_the_last_reply_alone(
    adapter: Adapter, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault("out_of_range"), Fault("invalid_json"), Fault("out_of_range"))
    assert (len(turn.hits), turn.outcome["status"]) == (3, "unreadable")
    first, second, third = (adapter.user(hit.json) for hit in turn.hits)
    body = turn.hits[0].json
    shown = [correction(adapter, body, again.removeprefix(first))["last_reply"] for again in (second, third)]
    assert shown == turn.replies[:2]
    assert any("q05" in problem for problem in turn.outcome["problems"])
    assert turn.cost_nano > 0
    assert turn.report.predictions["point"].null_count() == turn.report.predictions.height


# Ends that are no answer


@every_adapter
def test_a_reply_that_was_cut_off_gets_twice_the_room_once(adapter: Adapter, fake: FakeServer, tmp_path: Path) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault("truncated"))
    first, second = (hit.json for hit in turn.hits)
    assert (first[adapter.limit], second[adapter.limit]) == (LIMIT, 2 * LIMIT)
    assert {**second, adapter.limit: LIMIT} == first
    assert turn.outcome["status"] == "answered"


@every_adapter
def test_a_reply_that_was_cut_off_twice_fails(adapter: Adapter, fake: FakeServer, tmp_path: Path) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault("truncated"), Fault("truncated"))
    assert (len(turn.hits), turn.outcome["status"], turn.outcome["error"]) == (2, "failed", "Truncated")


@every_adapter
def test_what_is_corrected_after_a_cut_keeps_the_larger_room(
    adapter: Adapter, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault("truncated"), Fault("out_of_range"))
    assert [hit.json[adapter.limit] for hit in turn.hits] == [LIMIT, 2 * LIMIT, 2 * LIMIT]
    assert turn.outcome["status"] == "answered"


@every_adapter
@pytest.mark.parametrize("kind", ["refusal", "content_filter"])
def test_a_refusal_is_an_abstention_by_the_vendor(
    adapter: Adapter, kind: FaultKind, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault(kind))
    assert (len(turn.hits), turn.outcome["status"], turn.outcome["said"]["by"]) == (1, "abstained", "vendor")
    assert turn.outcome["said"]["reason"]
    assert turn.cost_nano > 0


@every_adapter
def test_another_models_answer_is_paid_and_not_used(adapter: Adapter, fake: FakeServer, tmp_path: Path) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault("other_model"))
    assert (len(turn.hits), turn.outcome["status"], turn.outcome["error"]) == (1, "failed", "OtherModel")
    assert turn.outcome["message"].endswith("was asked and some-other-model-1 answered")
    (response,) = turn.events(AttemptResponse)
    assert (response.cost_nano > 0, response.estimated) == (True, False)


@pytest.mark.parametrize("kind", ["context_stop", "context_exceeded"])
@every_adapter
def test_a_prompt_too_long_fails_and_says_what_to_do(
    adapter: Adapter, kind: FaultKind, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault(kind))
    assert (len(turn.hits), turn.outcome["status"]) == (1, "failed")
    if adapter is ANTHROPIC and kind == "context_stop":
        assert (turn.outcome["error"], turn.cost_nano > 0) == ("Stopped", True)
        assert "model_context_window_exceeded" in turn.outcome["message"]
    else:
        assert turn.outcome["error"] == "FinalModelError"
        assert "The prompt is longer than the model takes: show fewer sections." in turn.outcome["message"]
        assert charges(turn)[0][0] == 0


@every_adapter
@pytest.mark.parametrize("kind", ["usage_missing", "usage_none"])
def test_an_answer_without_a_bill_is_charged_as_reserved_and_its_row_marked(
    adapter: Adapter, kind: FaultKind, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault(kind))
    (reserved,), (response,) = turn.events(AttemptReserved), turn.events(AttemptResponse)
    assert (len(turn.hits), turn.outcome["status"]) == (1, "answered")
    assert (response.estimated, response.cost_nano, response.completion["usage"]) == (
        True,
        reserved.reserved_nano,
        None,
    )
    row = next(row for row in ledger_rows(events_of(turn.folder)) if row.kind == "estimate")
    assert (row.estimated, row.cost_nano) == (True, reserved.reserved_nano)


# What can heal


@every_adapter
@pytest.mark.parametrize("code", [429, 529, 500, 503])
def test_what_can_heal_is_tried_again_and_costs_nothing(
    adapter: Adapter, code: int, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, status(code))
    assert ([hit.status for hit in turn.hits], turn.outcome["status"]) == ([code, 200], "answered")
    assert [hit.body for hit in turn.hits] == [turn.hits[0].body] * 2
    assert ([error["status"] for error in errors(turn)], charges(turn)[0][0]) == ([code], 0)


@every_adapter
def test_five_tries_are_the_most(adapter: Adapter, fake: FakeServer, tmp_path: Path) -> None:
    turn = take_turn(adapter, fake, tmp_path, *[status(429), status(529)] * 5)
    assert ([hit.status for hit in turn.hits], turn.outcome["status"]) == ([429, 529, 429, 529, 429], "failed")
    assert turn.outcome["error"] == "TransientModelError"
    assert "run the same command later to resume" in turn.outcome["message"]


@every_adapter
def test_retry_after_is_obeyed_to_the_second(
    adapter: Adapter, fake: FakeServer, tmp_path: Path, waits: list[float]
) -> None:
    turn = take_turn(adapter, fake, tmp_path, status(429, retry_after="2"))
    assert ([hit.status for hit in turn.hits], waits) == ([429, 200], [2.0])


@every_adapter
def test_a_short_retry_after_is_really_waited(adapter: Adapter, fake: FakeServer, tmp_path: Path) -> None:
    turn = take_turn(adapter, fake, tmp_path, status(429, retry_after="0.05"))
    first, second = turn.hits
    assert (turn.outcome["status"], second.time - first.time >= 0.05) == ("answered", True)


@every_adapter
def test_a_retry_after_that_does_not_fit_fails_at_once_and_says_so(
    adapter: Adapter, fake: FakeServer, tmp_path: Path, waits: list[float]
) -> None:
    turn = take_turn(adapter, fake, tmp_path, status(429, retry_after="300"))
    assert ([hit.status for hit in turn.hits], waits, turn.outcome["status"]) == ([429], [], "failed")
    assert "waiting 300 s more would pass the limit of 180 s" in turn.outcome["message"]


@every_adapter
@pytest.mark.parametrize("value", [None, "soon"])
def test_without_a_retry_after_to_read_the_wait_grows_by_itself(
    adapter: Adapter, value: str | None, fake: FakeServer, tmp_path: Path, waits: list[float]
) -> None:
    limits = replace(PATIENCE, backoff_s=0.5, backoff_cap_s=30.0)
    faults = [status(429, retry_after=value)] * 2
    turn = take_turn(adapter, fake, tmp_path, *faults, limits=limits)
    assert [hit.status for hit in turn.hits] == [429, 429, 200]
    assert [wait < most for wait, most in zip(waits, (0.5, 1.0), strict=True)] == [True, True]


# Calls whose end is unknown


@every_adapter
@pytest.mark.parametrize("kind", ["drop", "error_body", "broken_body"])
def test_a_call_that_was_lost_is_charged_as_reserved_and_tried_again(
    adapter: Adapter, kind: FaultKind, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault(kind))
    assert (len(turn.hits), turn.outcome["status"]) == (2, "answered")
    ((charged, reserved),) = charges(turn)
    (error,) = errors(turn)
    assert (charged, error["status"], error["type"]) == (reserved, None, "TransientModelError")
    assert "was lost during a call of" in error["message"]
    assert turn.report.manifest["lost_attempts"] == 0


@every_adapter
def test_a_call_that_hangs_is_cut_off_charged_as_reserved_and_tried_again(
    adapter: Adapter, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault("hang"), limits=replace(PATIENCE, attempt_s=0.75))
    assert (len(turn.hits), turn.outcome["status"]) == (2, "answered")
    ((charged, reserved),) = charges(turn)
    assert charged == reserved
    assert "did not answer within" in errors(turn)[0]["message"]


@every_adapter
def test_a_response_that_the_vendor_calls_failed_is_tried_again(
    adapter: Adapter, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, Fault("failed"))
    assert (len(turn.hits), turn.outcome["status"]) == (2, "answered")
    ((charged, reserved),) = charges(turn)
    assert charged == (reserved if adapter is OPENAI else 0)  # one vendor says it with status 200 and perhaps a bill


@every_adapter
def test_whatever_goes_wrong_the_money_adds_up(adapter: Adapter, fake: FakeServer, tmp_path: Path) -> None:
    faults = (status(529), Fault("drop"), Fault("truncated"), Fault("out_of_range"), status(500), Fault("usage_none"))
    turn = take_turn(adapter, fake, tmp_path, *faults)
    assert (len(turn.hits), turn.outcome["status"]) == (6, "answered")
    spent, reserved = money_by_record(events_of(turn.folder))[-1]
    assert reserved == 0
    assert turn.report.manifest["spent_usd"] == pytest.approx(spent / 1e9)
    assert sum(row.cost_nano or 0 for row in ledger_rows(events_of(turn.folder))) == spent


# What cannot heal


@every_adapter
@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (status(400), "refused as it stands"),
        (status(422), "refused as it stands"),
        (status(413), "show fewer sections"),
        (Fault("schema_refused"), "The vendor refuses the answer's schema"),
    ],
    ids=["400", "422", "413", "schema"],
)
def test_a_request_that_is_refused_fails_its_turn_without_a_second_try(
    adapter: Adapter, fault: Fault, advice: str, fake: FakeServer, tmp_path: Path
) -> None:
    turn = take_turn(adapter, fake, tmp_path, fault)
    assert (len(turn.hits), turn.outcome["status"], turn.outcome["error"]) == (1, "failed", "FinalModelError")
    assert advice in turn.outcome["message"]
    assert charges(turn)[0][0] == 0


@every_adapter
@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (status(401), "Set {variable} to a valid key."),
        (status(402), "Add credit to the "),
        (status(403), "The key may not use this model"),
        (status(404), "Check the base URL"),
        (Fault("quota"), "Add credit to the "),
    ],
    ids=["401", "402", "403", "404", "quota"],
)
def test_what_concerns_the_account_stops_the_run_with_advice_and_no_second_try(
    adapter: Adapter, fault: Fault, advice: str, fake: FakeServer, tmp_path: Path
) -> None:
    fake.reset([*[None] * adapter.probes, fault], settings=adapter.settings)
    with pytest.raises(AccountError) as caught:
        run_live(adapter, fake, tmp_path / "run")
    variable = {"messages": "ANTHROPIC_API_KEY", "responses": "OPENAI_API_KEY"}.get(adapter.endpoint, "MY_SERVER_KEY")
    assert advice.format(variable=variable) in str(caught.value)
    assert len(fake.calls()) == adapter.probes + 1
    (stopped,) = events_of(tmp_path / "run", RunStopped)
    assert isinstance(stopped.event, RunStopped)
    assert (stopped.event.reason, stopped.event.message) == ("error", str(caught.value))
    report = run_live(adapter, fake, tmp_path / "run")  # the account is mended
    assert (report.calls, report.manifest["items"]["answered"]) == (1, 1)
    assert len(fake.calls()) == adapter.probes + 2


@every_adapter
def test_the_account_stops_everything_that_has_not_left(adapter: Adapter, fake: FakeServer, tmp_path: Path) -> None:
    """Calls in flight are finished and recorded; after the first refusal nothing more leaves."""
    fake.reset(lambda _: status(401), settings=adapter.settings)
    with pytest.raises(AccountError):
        run_live(adapter, fake, tmp_path / "run")
    assert [hit.status for hit in fake.calls()] == [401]


# A server that is not what it says


def test_a_model_that_the_server_calls_otherwise_is_known_by_that_name(fake: FakeServer, tmp_path: Path) -> None:
    every_time = [Fault("other_model")] * 2
    fake.reset(every_time, settings=HONOURED.settings)
    report = run_live(HONOURED, fake, tmp_path / "run")
    assert (report.calls, report.manifest["items"]["answered"]) == (2, 1)
    assert [event.completion["raw"]["model"] for event in events(report.folder)] == ["some-other-model-1"] * 2
    assert events(report.folder)[1].completion["model"] == COMPATIBLE_MODEL


def events(folder: Path) -> list[AttemptResponse]:
    return [record.event for record in events_of(folder, AttemptResponse) if isinstance(record.event, AttemptResponse)]
