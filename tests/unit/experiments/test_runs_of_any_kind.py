"""Probability, distribution and choice runs through the whole engine: frame, transcript, recompute, refusals."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import polars as pl
import pytest

from consilience.aggregation.answers import answer_columns, rule_names
from consilience.core.packet import Item
from consilience.errors import ConfigError, DataError
from consilience.experiments.evaluate import evaluate
from consilience.experiments.orders import RunReport
from consilience.experiments.predictions import (
    ASK_PREFIX,
    load_runs,
    predictions_frame,
    read_predictions,
    write_predictions,
)
from consilience.experiments.replay import recompute as recompute_async
from consilience.models.request import Request
from engine_cases import DEBATE, INDEPENDENT, answer_json, carry_out, make_item, make_plan, panel, reply, seat_number

KINDS = ("probability", "distribution", "choice")
SHARES = ["option:o0", "option:o1", "option:o2"]
UNREAD = {"approval", "borda", "copeland", "minimax", "ranked_pairs", "schulze", "irv"}
"""Rules that read approvals or rankings, which nobody gives here."""


def run(folder: Path, item: Item, say: Any = None, protocol: Any = INDEPENDENT) -> RunReport:
    models = panel() if say is None else panel(say)
    return carry_out(folder, make_plan([item], protocol=protocol), [item], models)


def recompute(folder: Path, *, aggregation: str) -> pl.DataFrame:
    return anyio.run(partial(recompute_async, folder, aggregation=aggregation))


def told(folder: Path) -> dict[str, Any]:
    (path,) = (folder / "transcripts").iterdir()
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def heads(report: RunReport) -> tuple[Any, ...]:
    """Return the options' shares of the ballots."""
    return report.predictions.filter(pl.col("aggregation") == "plurality").select(SHARES).row(0)


@pytest.mark.parametrize("protocol", [INDEPENDENT, DEBATE], ids=["independent", "debate"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_runs_resumes_and_is_recomputed(tmp_path: Path, kind: str, protocol: Any) -> None:
    item = make_item(kind=kind)
    report = run(tmp_path / "run", item, protocol=protocol)
    frame = report.predictions
    unread = UNREAD if kind == "choice" else set()
    assert {
        (row["aggregation"], row["status"]) for row in frame.select("aggregation", "status").iter_rows(named=True)
    } == {(rule, "no_quorum" if rule in unread else "answered") for rule in rule_names(item.question.kind)}
    assert [name for name in frame.columns if name == "p" or ":" in name] == answer_columns(item.question)
    assert frame["point"].null_count() == frame.height
    said = frame.filter(pl.col("status") == "answered").select(answer_columns(item.question))
    assert said.null_count().row(0) == (0,) * len(answer_columns(item.question))
    again = run(tmp_path / "run", item, protocol=protocol)
    assert (again.calls, again.predictions.equals(frame)) == (0, True)
    for rule in rule_names(item.question.kind):
        computed = recompute(tmp_path / "run", aggregation=rule)
        kept = frame.filter(pl.col("aggregation") == rule)
        columns = ["item_id", "aggregation", "n_answered", *answer_columns(item.question)]
        assert computed.select(columns).equals(kept.select(columns))
    with pytest.raises(ConfigError, match="trimmed_mean_20"):
        recompute(tmp_path / "run", aggregation="trimmed_mean_20")


def test_where_no_correlation_was_measured_the_band_over_it_is_told(tmp_path: Path) -> None:
    run(tmp_path / "run", make_item(kind="probability"))
    (row,) = recompute(tmp_path / "run", aggregation="sqrt_neff").to_dicts()
    band = [row[f"rho={rho}"] for rho in ("0", "0.3", "0.5", "0.7", "0.9", "1")]
    assert row["flags"] == "rho_unmeasured"
    assert band[-1] == row["p"]
    assert [abs(p - 0.5) for p in band] == sorted((abs(p - 0.5) for p in band), reverse=True)
    assert band[0] != band[-1]
    assert "rho=0" not in recompute(tmp_path / "run", aggregation="mean").columns


def test_a_probability_is_pooled_by_every_rule(tmp_path: Path) -> None:
    report = run(tmp_path / "run", make_item(kind="probability"))
    made = dict(report.predictions.select("aggregation", "p").iter_rows())
    assert made["median"] == 0.3  # the seats say .1, .2, .3, .4, .5
    assert made["mean"] == pytest.approx(0.3)
    assert made["geometric_odds"] < 0.3
    assert told(tmp_path / "run")["aggregated"] == made
    records = {record["rule"]: record for record in told(tmp_path / "run")["aggregation_records"]}
    assert records["sqrt_neff"]["flags"] == ["rho_unmeasured"]
    assert list(records["sqrt_neff"]["band"]) == ["0", "0.3", "0.5", "0.7", "0.9", "1"]
    assert told(tmp_path / "run")["aggregated_interval"] == {}


def test_a_vote_is_counted_and_its_shares_are_exact_in_the_transcript(tmp_path: Path) -> None:
    report = run(tmp_path / "run", make_item(kind="choice"))
    assert heads(report) == (0.4, 0.6, 0.0)  # seats 1, 3 and 5 vote o1
    won: dict[str, Any] = {"winner": "o1", "tied": [], "agreement_share": "3/5"}
    undecided = won | {"winner": None}
    assert told(tmp_path / "run")["aggregated"] == {
        **dict.fromkeys(("plurality", "majority", "weighted", "confidence_weighted"), won),
        **dict.fromkeys(("supermajority", "unanimity"), undecided),
    }
    records = told(tmp_path / "run")["aggregation_records"]
    assert {record["rule"]: record["decided"] for record in records}["unanimity"] == "no_decision"
    for record in records:
        assert record["counts"] == {"o0": 2, "o1": 3, "o2": 0}
        assert (record["denominator"], record["of"], record["unused"]) == ("cast", 5, {})


def vote(choices: str) -> Any:
    """Let seats vote for the option of their digit; ``-`` abstains, ``?`` cannot be read."""

    def say(request: Request) -> str:
        choice = choices[seat_number(request) - 1]
        if choice == "-":
            return reply(abstention="I cannot know.")
        answer = (
            {"choice": "Option 1 (confidence 90%)"} if choice == "?" else answer_json("choice", choice=f"o{choice}")
        )
        return reply(answer=answer)

    return say


def test_a_tie_is_answered_and_has_no_winner(tmp_path: Path) -> None:
    report = run(tmp_path / "run", make_item(kind="choice"), vote("00112"))
    assert set(report.predictions["status"]) == {"answered", "no_quorum"}
    assert heads(report) == (0.4, 0.4, 0.2)
    assert told(tmp_path / "run")["aggregated"]["plurality"] == {
        "winner": None,
        "tied": ["o0", "o1"],
        "agreement_share": "2/5",
    }


def test_neither_abstentions_nor_unreadable_replies_are_ballots(tmp_path: Path) -> None:
    report = run(tmp_path / "run", make_item(kind="choice"), vote("0-01?"))
    assert set(report.predictions["n_answered"]) == {3}
    assert heads(report) == (pytest.approx(2 / 3), pytest.approx(1 / 3), 0.0)
    assert told(tmp_path / "run")["without_answer"] == {"analyst_02": "abstained", "analyst_05": "unreadable"}


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_quorum_there_is_no_answer_but_there_are_rows(tmp_path: Path, kind: str) -> None:
    item = make_item(kind=kind)
    report = run(tmp_path / "run", item, lambda _request: reply(abstention="I cannot know."))
    frame = report.predictions
    assert frame["status"].to_list() == ["no_quorum"] * frame.height
    assert frame.select(answer_columns(item.question)).null_count().sum_horizontal()[0] == frame.height * len(
        answer_columns(item.question)
    )
    assert told(tmp_path / "run")["aggregated"] == {}
    assert recompute(tmp_path / "run", aggregation=rule_names(item.question.kind)[0]).height == 1


def test_kinds_may_be_mixed_in_one_run(tmp_path: Path) -> None:
    items = [make_item(1), make_item(2, kind="probability"), make_item(3, kind="choice")]
    report = carry_out(tmp_path / "run", make_plan(items, protocol=INDEPENDENT), items, panel())
    medians = report.predictions.filter(pl.col("aggregation") == "median")
    assert medians["item_id"].to_list() == ["item-01", "item-02"]
    assert medians["p"].to_list() == [None, 0.3]
    assert recompute(tmp_path / "run", aggregation="plurality")["item_id"].to_list() == ["item-03"]
    assert read_predictions(tmp_path / "run" / "predictions.parquet").equals(report.predictions)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_any_kind_are_evaluated(tmp_path: Path, kind: str) -> None:
    report = run(tmp_path / "run", make_item(kind=kind))
    truth = pl.DataFrame({"item_id": ["item-01"], "truth": [1.0], "option": ["a" if kind != "probability" else None]})
    found = evaluate(report.predictions, truth, baseline_arm="test", n_resamples=10)
    told = found.probabilities if kind == "probability" else found.choices
    assert told is not None
    assert {one.n for one in told.results if one.primary} == {1}
    assert found.overall.arms == ()


def row(**changed: Any) -> dict[str, Any]:
    common = {"item_id": "a", "arm": "F", "committee": "c", "aggregation": "plurality", "run_id": "_r"}
    return common | {"status": "answered", "n_answered": 3, "n_seats": 3, "exposure": "unknown"} | changed


def test_options_that_do_not_sum_to_one_are_refused() -> None:
    assert predictions_frame([row(**{"option:a": 1 / 3, "option:b": 2 / 3})]).height == 1
    with pytest.raises(DataError, match="do not sum to 1"):
        predictions_frame([row(**{"option:a": 0.4, "option:b": 0.5})])


def test_single_questions_are_left_out_unless_named(tmp_path: Path) -> None:
    for name in (f"_{ASK_PREFIX}choice-1", f"{ASK_PREFIX}choice-2", "_other"):
        path = tmp_path / "runs" / name / "predictions.parquet"
        write_predictions(predictions_frame([row(run_id=name, p=0.5)]), path)
    loaded = load_runs(tmp_path, include_simulated=True)
    assert loaded.run_ids == ("_other",)
    assert loaded.single_questions == (f"_{ASK_PREFIX}choice-1", f"{ASK_PREFIX}choice-2")
    named = load_runs(tmp_path, [f"{ASK_PREFIX}choice-2"])
    assert (named.run_ids, named.single_questions) == ((f"{ASK_PREFIX}choice-2",), ())
