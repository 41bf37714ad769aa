"""`ask` end to end, offline: every kind, from its own thread inside a loop, resumed, capped, stopped."""

from __future__ import annotations

import inspect
import json
import re
import threading
from base64 import b64decode
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
import polars as pl
import pytest

import consilience
from ask_cases import ballots, let_speak
from consilience import Choice, Distribution, Estimate, Panel, Probability, Result, Role, aask, ask
from consilience.core.visible import hidden, visible
from consilience.errors import BudgetError, ConfigError, PlanError, QuorumError, StoppedError
from consilience.experiments.predictions import read_predictions
from consilience.journal.verify import verify
from consilience.models.calls import Stop
from consilience.models.request import Request
from consilience.models.scripted import Reply
from engine_cases import reply

DAY = date(2026, 11, 1)
OPTIONS = ("tea 🍵", "</data-x>", "coffee")
DOCUMENT = "Offers were 398,000, 412,000 and 430,000 USD; 35 % failed before 2031-01-01."


def put(folder: Path, text: str = "Which?", **changes: Any) -> Result:
    values: dict[str, Any] = {"kind": "choice", "options": OPTIONS, "today": DAY, "results": folder, "environ": {}}
    return ask(text, **(values | changes))


@pytest.mark.parametrize("protocol", ["independent", "debate"])
@pytest.mark.parametrize("kind", [Estimate, Probability, Distribution, Choice], ids=lambda kind: kind.__name__)
def test_every_kind_is_answered_offline(tmp_path: Path, kind: Any, protocol: str) -> None:
    options = OPTIONS if kind in {Distribution, Choice} else ()
    result = put(tmp_path, kind=kind, options=options, protocol=protocol, rounds=None, context=[DOCUMENT])
    assert result.simulated
    assert result.run_id.startswith(f"_ask-{kind.__name__.lower()}-")
    assert [member.status for member in result.members] == ["answered"] * 5
    assert all(isinstance(member.answer, kind) for member in result.members)
    assert result.status == "answered"
    assert result.why is None
    assert result.calls in ({5} if protocol == "independent" else {15, 25})  # a debate may settle after one round
    assert result.cost_usd is not None
    assert result.cost_usd > 0
    assert verify(result.folder).ok
    assert result.trace.is_file()
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["value"] == read_aggregate(result)
    assert document["members"][0]["seat"] == "analyst_01"


def read_aggregate(result: Result) -> Any:
    return json.loads(result.trace.read_bytes())["aggregated"][result.rule]


def test_an_estimate_has_a_value_and_an_interval_within_its_bounds(tmp_path: Path) -> None:
    result = put(tmp_path, kind="estimate", options=(), scale="log", unit="USD", upper=400_000.0, context=[DOCUMENT])
    assert isinstance(result.value, float)
    assert result.interval is not None
    assert result.interval[0] <= result.value <= result.interval[1] <= 400_000
    assert (result.probability, result.distribution, result.choice, result.tally) == (None, None, None, None)


def test_a_distribution_sums_to_one_and_is_read_by_label(tmp_path: Path) -> None:
    result = put(tmp_path, kind="distribution")
    assert result.distribution == result.value
    assert result.distribution is not None
    assert list(result.distribution) == list(OPTIONS)
    assert sum(result.distribution.values()) == pytest.approx(1.0)


def test_a_probability_is_the_one_in_the_prediction_file(tmp_path: Path) -> None:
    result = put(tmp_path, kind="probability", options=())
    frame = read_predictions(result.folder / "predictions.parquet")
    assert result.rule == "geometric_odds"  # five seats are declared
    assert frame.row(by_predicate=pl.col("aggregation") == result.rule, named=True)["p"] == result.value
    assert result.value == result.probability


def test_the_same_question_is_answered_from_its_record(tmp_path: Path) -> None:
    first, again = put(tmp_path), put(tmp_path)
    assert (first.calls, again.calls) == (5, 0)
    assert {**again.to_dict(), "calls": 5} == first.to_dict()
    others = [
        put(tmp_path, seed=1),
        put(tmp_path, today=date(2026, 11, 2)),
        put(tmp_path, context=["More."]),
        put(tmp_path, protocol="debate", rounds=1),
        put(tmp_path, panel="generalist"),
        put(tmp_path, tier="small"),
        put(tmp_path, model="gpt-6-luna"),
    ]
    assert len({first.run_id, *(other.run_id for other in others)}) == 8


def test_a_panel_of_ones_own_is_asked_and_told_by_its_files_name(tmp_path: Path) -> None:
    (tmp_path / "own_role.md").write_text("---\nid: broker\nview: [D]\n---\nFollow the money.\n")
    path = tmp_path / "own.yaml"
    path.write_text("roles: [calibrator, ./own_role.md, skeptic]\n")
    result = put(tmp_path / "results", panel=path)
    assert [member.role for member in result.members] == ["calibrator", "broker", "skeptic"]
    protocol = json.loads((result.folder / "protocol.json").read_bytes())
    assert protocol["plan"]["treatment"]["panel"] == "own.yaml"
    assert str(tmp_path) not in json.dumps(protocol["plan"])
    assert put(tmp_path / "results", panel=str(path)).calls == 0
    (tmp_path / "own_role.md").write_text("---\nid: broker\nview: [D]\n---\nFollow the people.\n")
    assert put(tmp_path / "results", panel=path).run_id != result.run_id
    alone = tmp_path / "alone.yaml"
    alone.write_text("roles: [calibrator]\n")
    with pytest.raises(PlanError, match="debate needs 2 members"):
        put(tmp_path, panel=alone, protocol="debate")


def test_a_vote_names_winner_share_and_who_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_speak(monkeypatch, ballots("31332"))
    result = put(tmp_path)
    assert result.choice == result.value == "coffee"
    assert result.agreement_share == Fraction(3, 5)
    assert [(one.member.seat, one.reasons) for one in result.minority_report] == [
        ("analyst_02", "For o1."),
        ("analyst_05", "For o2."),
    ]
    assert result.tied == ()


def test_a_tie_is_a_tie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_speak(monkeypatch, ballots("1122-"))
    result = put(tmp_path)
    assert (result.choice, result.value, result.tied) == (None, None, OPTIONS[:2])
    assert result.agreement_share == Fraction(1, 2)
    assert len(result.minority_report) == 4
    assert result.status == "answered"
    assert result.to_dict()["value"] == {"winner": None, "tied": ["o1", "o2"], "agreement_share": "1/2"}


def test_a_lost_quorum_gives_no_answer_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_speak(monkeypatch, ballots("1-?-1"))
    result = put(tmp_path)
    assert (result.status, result.value, result.row, result.minority_report) == ("no_quorum", None, None, ())
    assert result.why is not None
    assert "2 of 5 answered and more than half must" in result.why
    assert "analyst_02, analyst_04 abstained: I cannot know." in result.why
    assert "analyst_03 unreadable: answer.choice: must be one of o1, o2, o3" in result.why
    with pytest.raises(QuorumError, match="the panel has no answer"):
        result.demand()
    let_speak(monkeypatch, ballots("12311"))
    assert put(tmp_path).calls == 0
    mended = put(tmp_path, retry_failed=True)
    assert (mended.calls, mended.choice) == (3, "tea 🍵")


def test_a_generalist_alone_may_abstain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_speak(monkeypatch, ballots("-"))
    result = put(tmp_path, panel="generalist")
    assert (result.status, len(result.members)) == ("abstained", 1)
    let_speak(monkeypatch, ballots("2"))
    alone = put(tmp_path / "other", panel="generalist")
    assert alone.choice == "</data-x>"
    assert alone.agreement_share == 1


def test_options_of_any_length_are_no_options(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"100,004 bytes together, 100,001 of them in option 2"):
        put(tmp_path, options=["tea", "x" * 100_001])


PAYLOADS = json.loads((Path(__file__).resolve().parents[2] / "golden" / "payloads.json").read_text(encoding="utf-8"))


def test_hostile_options_and_documents_change_no_ballot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [one["text"][:400].encode("utf-8", "replace").decode() for one in PAYLOADS]
    written = {visible(text): " ".join(text.split()) for text in reversed(texts) if visible(text)}
    labels = [label for label in reversed(written.values()) if not hidden(label)]
    assert len(labels) >= 40
    models = let_speak(monkeypatch, ballots("12112"))
    result = put(tmp_path, options=labels, context=[text for text in texts if text.strip()])
    assert result.tally is not None
    assert result.tally.n == 5
    assert result.choice == labels[0]
    assert {request.contract.name for model in models for request in model.requests} == {"choice"}
    html = result._repr_html_()
    assert "<script" not in html.lower()
    assert html.count("<tr>") == 6


def test_it_works_inside_a_running_loop_and_leaves_the_loop_alone(tmp_path: Path) -> None:
    loop_thread = threading.get_ident()
    seen: list[int] = []

    async def cell() -> tuple[Result, Result]:
        sync = put(tmp_path, watch=lambda _: seen.append(threading.get_ident()))
        return sync, await aask("Which?", kind="choice", options=OPTIONS, today=DAY, results=tmp_path, environ={})

    sync, awaited = anyio.run(cell)
    assert loop_thread not in seen
    assert seen
    assert (sync.run_id, awaited.calls) == (awaited.run_id, 0)


def test_sync_and_async_take_the_same_arguments() -> None:
    assert inspect.signature(ask) == inspect.signature(aask)
    assert (ask.__name__, inspect.iscoroutinefunction(ask)) == ("ask", False)
    assert {"ask", "aask", "Probability"} <= set(dir(consilience))


def test_the_cap_holds_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    with pytest.raises(BudgetError):
        put(tmp_path, max_spend_usd=0)
    with pytest.raises(BudgetError):
        put(tmp_path, environ={"CONSILIENCE_MAX_SPEND_USD": "0.03"})
    result = put(tmp_path, max_spend_usd="5")
    assert result.choice or result.tied
    assert result.calls == 5
    with pytest.raises(ConfigError, match="no amount in dollars"):
        put(tmp_path, max_spend_usd=-1)


def test_a_stop_ends_it_and_asking_again_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Stop()

    def say(request: Request) -> Reply:
        stop.requested = True
        return ballots("11111")(request)

    let_speak(monkeypatch, say)
    with pytest.raises(StoppedError):
        put(tmp_path, protocol="debate", stop=stop)
    let_speak(monkeypatch, _debater)
    result = put(tmp_path, protocol="debate", stop=None)
    assert result.choice == "tea 🍵"
    assert 0 < result.calls < 25


def _debater(request: Request) -> Reply:
    text = request.messages[-1].blocks[-1].text
    return reply(critiques=[]) if "TASK: critique" in text else ballots("11111")(request)


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"panel": "defualt"}, ConfigError, 'unknown panel "defualt". Did you mean "default"'),
        ({"protocol": "debat"}, ConfigError, 'Did you mean "debate"'),
        ({"panel": "nowhere.yaml"}, ConfigError, "cannot read nowhere.yaml"),
        ({"panel": "generalist", "protocol": "debate"}, PlanError, "debate needs 2 members"),
        ({"rounds": 2}, PlanError, "has no rounds"),
        ({"model": "gpt-7"}, ConfigError, 'unknown model "gpt-7"'),
        ({"model": "gpt-6-luna", "committee": "all_openai"}, ConfigError, "both say who answers"),
        ({"committee": "mixed"}, ConfigError, "unknown committee"),
        ({"tier": "big"}, ConfigError, "unknown tier"),
        ({"live": True}, ConfigError, "ANTHROPIC_API_KEY is not set"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        put(tmp_path, **changes)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_stops_the_run_and_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Stop()

    class Interrupted:
        def __init__(self, *_: Any, **__: Any) -> None: ...
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...
        def submit(self, *_: Any) -> Interrupted:
            return self

        def result(self) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setattr("consilience.api.asking.ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(tmp_path, stop=stop)
    assert stop.requested


def test_html_is_escaped_and_says_simulated(tmp_path: Path) -> None:
    result = put(tmp_path, "<script>alert(1)</script> \u202e?", kind="probability", options=())
    html = result._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "\u202e" not in html
    assert "Simulated" in html
    estimate = partial(put, tmp_path, kind="estimate", options=(), context=[DOCUMENT])
    assert "90 % interval" in estimate()._repr_html_()
    nothing = put(tmp_path, "How much?", kind="estimate", options=())
    assert "no answer: 0 of 5 answered" in nothing._repr_html_()


@pytest.mark.parametrize(("kind", "columns"), [("estimate", "point"), ("probability", "p_yes"), ("choice", "choice")])
def test_a_frame_holds_every_answer_of_every_round(tmp_path: Path, kind: Any, columns: str) -> None:
    options = OPTIONS if kind == "choice" else ()
    result = put(tmp_path, kind=kind, options=options, protocol="debate", rounds=1, context=[DOCUMENT])
    frame = result.to_polars()
    assert frame.columns[:4] == ["seat", "role", "model", "round"]
    assert columns in frame.columns
    assert sorted(frame["round"].unique()) == [0, 1]
    last = frame.filter(pl.col("round") == 1).sort("seat")
    said = {member.seat: member.answer for member in result.members}
    assert last[columns].to_list() == [getattr(said[seat], columns) for seat in last["seat"]]
    differing = {one.member.seat for one in result.minority_report}
    assert set(frame.filter(pl.col("differs"))["seat"]) == differing


def test_a_frame_of_distributions_has_a_column_per_option(tmp_path: Path) -> None:
    frame = put(tmp_path, kind="distribution").to_polars()
    assert [name for name in frame.columns if name.startswith("option:")] == ["option:o1", "option:o2", "option:o3"]
    assert frame.select(pl.sum_horizontal("^option:.*$")).to_series().to_list() == pytest.approx([1.0] * 5)


def test_a_notebook_shows_the_fan_over_rounds_as_an_image(tmp_path: Path) -> None:
    result = put(tmp_path, "<b>\u202e", kind="estimate", options=(), protocol="debate", rounds=1, context=[DOCUMENT])
    (encoded,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', result._repr_html_())
    drawn = b64decode(encoded)
    assert b"round 1" in drawn
    assert drawn.count(b"<circle") == len(result.to_polars()) + 1
    assert b"<script" not in drawn
    assert "<img" not in put(tmp_path)._repr_html_()


def test_a_panel_may_be_made_in_python(tmp_path: Path) -> None:
    roles = tuple(Role(id=name, view=("all",), text=f"Judge as {name}.") for name in ("bull", "bear", "crab"))
    result = put(tmp_path, kind="probability", options=(), panel=Panel("zoo", roles, labels="role"))
    assert [member.seat for member in result.members] == ["bull", "bear", "crab"]
    assert put(tmp_path, kind="probability", options=(), panel=Panel("zoo", roles[:2])).run_id != result.run_id
    for name in ("default", "own.yaml"):
        with pytest.raises(ConfigError, match="a panel of your own"):
            put(tmp_path, panel=Panel(name, roles))
    with pytest.raises(ConfigError, match="has no roles"):
        Panel("nobody", ())
    with pytest.raises(ConfigError, match="two roles called"):
        Panel("twins", (roles[0], roles[0]))


def test_the_words_of_the_specification_run(tmp_path: Path) -> None:
    answer = ask("Will X happen by 2027-06-30?", kind=Probability, panel="forecast5", results=tmp_path, environ={})
    assert isinstance(answer.value, float)
    assert answer.interval is None
    assert isinstance(answer.minority_report, tuple)
    assert answer.cost_usd is not None
    assert answer.trace.is_file()
