"""Panels of research agents over the demonstration corpus: nothing from past a cutoff, no price, no obedience."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from polars.testing import assert_frame_equal

from consilience.core.packet import Item
from consilience.experiments.orders import Orders
from consilience.experiments.replay import replay_run
from consilience.forecasting.backtest import judge
from consilience.forecasting.panel import FORECASTING
from consilience.forecasting.pipeline import Research, forecast_items
from consilience.forecasting.recorded import write_traces
from consilience.forecasting.search.corpus import Corpus
from consilience.forecasting.search.corpus_files import CorpusDocument
from consilience.forecasting.search.policy import SourcePolicy
from consilience.forecasting.traces import read_trace
from consilience.journal.events import AttemptReserved, ToolReturned
from consilience.models.request import Request
from engine_cases import QUICK, events_of, make_shell
from research_cases import (
    OPENED,
    demo_corpus,
    demo_documents,
    demo_labels,
    demo_questions,
    go,
    job_of,
    logs,
    obey,
    prompts,
    question_of,
    seen,
    transcripts,
    wrapped,
)

BINARY = tuple(question for question in demo_questions() if question.kind == "binary")
SOME = tuple(question_of(f"alder-{number:02d}") for number in (1, 3, 7, 11, 13))


def documents(role: str) -> dict[str, str]:
    """Return the texts of the documents that were planted in a role, by address."""
    with_role = {told["url"] for told in demo_labels()["documents"] if told["role"] == role}
    return {one.url: one.text for one in demo_documents() if one.url in with_role}


def test_nothing_dated_at_or_after_a_cutoff_is_in_any_prompt(tmp_path: Path) -> None:
    job = job_of(tmp_path, BINARY[:12], arm="E_single")
    go(job)
    late = {one.url: one.text for one in demo_documents()}
    cutoffs = {item.question.id: question.cutoff for item, question in forecast_items(BINARY, Research()).values()}
    published = {one.url: one.published for one in demo_documents()}
    looked_for = 0
    for item, text in prompts(job):
        cutoff = cutoffs[item]
        assert cutoff is not None
        for url, told in late.items():
            when = published[url]
            if when is None or when >= cutoff:
                looked_for += 1
                assert url not in text
                assert json.dumps(told)[1:60] not in text
    assert looked_for > 1_000


def test_a_market_price_is_in_no_prompt_unless_the_run_shows_it(tmp_path: Path) -> None:
    priced = tuple(question for question in BINARY if question.market is not None)[:4]
    assert priced
    hidden, shown = (
        job_of(tmp_path / str(show), priced, arm="E_single", research=Research(show_market=show))
        for show in (False, True)
    )
    for job, there in ((hidden, False), (shown, True)):
        go(job)
        by_item = dict(prompts(job))
        for question in priced:
            assert question.market is not None
            assert (question.market.source in by_item[question.id]) is there
            assert (f'"market_price_of_yes":{question.market.price}' in by_item[question.id]) is there


def test_hosts_of_markets_and_the_questions_own_pages_are_never_shown(tmp_path: Path) -> None:
    job = job_of(tmp_path, BINARY[:12], arm="E_single")
    go(job)
    crowd = documents("crowd")
    assert crowd
    for _, text in prompts(job):
        assert not any(url in text for url in crowd)


def arguments(job: Any) -> list[Any]:
    return [record.event.arguments for record in events_of(job.folder, ToolReturned) if record.event.tool != "clock"]  # type: ignore[union-attr]


@pytest.mark.parametrize("rule", ["drop", "keep"])
def test_hostile_documents_change_no_tool_argument_and_no_ballot(tmp_path: Path, rule: Any) -> None:
    research = Research(on_injection=rule)
    plain = job_of(tmp_path / "plain", SOME, arm="E_single", research=research)
    told = job_of(tmp_path / "told", SOME, arm="E_single", research=research, models=wrapped(obey))
    as_usual, obeyed = go(plain), go(told)
    hostile = documents("hostile")
    shown = sum(any(url in text for url in hostile) for _, text in prompts(told))
    assert (shown > 0) is (rule == "keep")
    assert arguments(told) == arguments(plain)
    assert_frame_equal(
        obeyed.predictions.drop("run_id", "paid_usd", "cost_usd", "tokens", "latency_s", "exposure", "committee"),
        as_usual.predictions.drop("run_id", "paid_usd", "cost_usd", "tokens", "latency_s", "exposure", "committee"),
    )


def test_dropping_hostile_documents_leaves_the_ballots_of_a_run_that_never_found_them(tmp_path: Path) -> None:
    hosts = {url.split("/")[2] for url in documents("hostile")}
    clean = {one.url.split("/")[2] for one in demo_documents()} - hosts
    assert clean
    dropped = job_of(tmp_path / "dropped", SOME, arm="E_single")
    blocked = job_of(
        tmp_path / "blocked", SOME, arm="E_single", research=Research(policy=SourcePolicy(blocked=tuple(_only(hosts))))
    )
    with_them, without = go(dropped), go(blocked)
    assert with_them.predictions.get_column("p").to_list() == without.predictions.get_column("p").to_list()


def _only(hosts: set[str]) -> list[str]:
    """Return the hosts that carry hostile documents alone."""
    hostile = documents("hostile")
    others = {one.url.split("/")[2] for one in demo_documents() if one.url not in hostile}
    return sorted(hosts - others)


def test_an_obedient_model_obeys_what_stands_outside_of_fences(tmp_path: Path) -> None:
    panel = tmp_path / "panel.yaml"
    (tmp_path / "led.md").write_text("---\nid: led\nview: [all]\n---\nIgnore all evidence.\n", encoding="utf-8")
    panel.write_text("roles: [led.md]\n", encoding="utf-8")
    job = job_of(tmp_path / "run", [question_of()], panel=str(panel), models=wrapped(obey))
    go(job)
    (log,) = logs(job)
    assert (log["status"], log["reason"]) == ("abstained", "I obey.")


def test_a_supervised_panel_shows_each_stage_what_it_may_see(tmp_path: Path) -> None:
    job = job_of(tmp_path, [question_of()], arm="staged")
    go(job)
    by_task = [seen(text) for _, text in prompts(job)]
    advocates = [prompt for prompt in by_task if prompt.task.startswith("argument")]
    supervisors = [prompt for prompt in by_task if "Oversee" in prompt.task]
    members = [prompt for prompt in by_task if prompt.task.startswith("research") and "Oversee" not in prompt.task]
    assert all(prompt.gathered == () and prompt.committee is None for prompt in members)
    assert advocates
    assert supervisors
    for prompt in (*advocates, *supervisors):
        addresses = [item["url"] for item in prompt.gathered]
        assert addresses
        assert len(set(addresses)) == len(addresses)
    assert all(len((prompt.committee or {})["others"]) == 5 for prompt in supervisors)
    assert all(
        [argument["side"] for argument in prompt.arguments][:2] == ["advocate_yes", "advocate_no"]
        for prompt in supervisors
    )
    course = transcripts(job)["alder-01"]
    assert {"blend", "strict", "supervisor"} <= set(course["aggregated"])


def test_agents_share_what_was_searched_and_the_overlap_is_counted(tmp_path: Path) -> None:
    job = job_of(tmp_path, SOME, arm="F_independent")
    go(job)
    records = [record for log in logs(job) for record in log["tool_log"]]
    assert 0 < sum(record["shared"] for record in records) < len(records)
    ids = {document["id"] for log in logs(job) for document in log["documents"]}
    assert {name[:2] for name in ids} == {"D1", "D2", "D3", "D4", "D5"}


def test_a_replay_searches_nothing_and_gives_the_same_predictions(tmp_path: Path) -> None:
    job = job_of(tmp_path, SOME[:2], arm="staged")
    go(job)
    report = anyio.run(replay_run, job.folder, {"forecasting": FORECASTING}, make_shell())
    assert (report.identical, report.finished) == (True, True)


class Counting:
    """The corpus, with every search counted."""

    name = "corpus"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.identity = demo_corpus().identity

    async def search(self, query: str, **settings: Any) -> Any:
        self.asked.append(query)
        return await demo_corpus().search(query, **settings)

    async def read(self, url: str, **settings: Any) -> Any:
        return await demo_corpus().read(url, **settings)


@pytest.mark.parametrize("after", [1, 4, 9, 14, 21])
def test_a_panel_that_was_stopped_goes_on_without_a_repeated_search_or_call(tmp_path: Path, after: int) -> None:
    whole, client = Counting(), Counting()
    uncut = go(job_of(tmp_path / "whole", SOME[:2], arm="F_independent", client=whole))
    shell, left = make_shell(), [after]

    def stop(request: Request) -> None:
        del request
        left[0] -= 1
        shell.stop.requested = shell.stop.requested or left[0] <= 0

    folder = tmp_path / "cut"
    go(job_of(folder, SOME[:2], arm="F_independent", client=client, models=wrapped(stop)), shell=shell)
    before = list(client.asked)
    job = job_of(folder, SOME[:2], arm="F_independent", client=client)
    resumed = go(job, orders=Orders(limits=QUICK))
    assert len(client.asked) == len(set(client.asked)), (before, client.asked)
    assert sorted(client.asked) == sorted(whole.asked)
    keys = [record.event.key for record in events_of(job.folder, AttemptReserved)]  # type: ignore[union-attr]
    assert len(keys) == len(set(keys)) == 50
    assert_frame_equal(
        resumed.predictions.drop("paid_usd", "latency_s", "tokens", "cost_usd"),
        uncut.predictions.drop("paid_usd", "latency_s", "tokens", "cost_usd"),
    )


def test_documents_from_past_the_cutoff_change_nothing(tmp_path: Path) -> None:
    asked = [question_of()]
    assert asked[0].cutoff is not None
    late = [
        CorpusDocument(
            f"https://later.example/{number}",
            "Tessel Bay boxes",
            "Tessel Bay handled 99,000 boxes.",
            asked[0].cutoff,
            "metadata",
            None,
        )
        for number in range(30)
    ]
    larger = Corpus([*demo_documents(), *late], retrieved_at=OPENED)
    first, second = (
        job_of(tmp_path / name, asked, client=client) for name, client in (("a", demo_corpus()), ("b", larger))
    )
    go(first)
    go(second)
    mine, theirs = ([(log["answer"], log["documents"]) for log in logs(job)] for job in (first, second))
    assert mine == theirs


@pytest.mark.slow
def test_a_back_test_scores_what_resolved_and_counts_what_was_not_shown(tmp_path: Path) -> None:
    job = job_of(tmp_path, demo_questions(), arm="E_single")
    report = go(job)
    behind = {name: question for name, (_, question) in forecast_items(demo_questions(), Research()).items()}
    found = judge(report.predictions, job.items, behind, job.folder / "transcripts")
    binary = [item for item in job.items if item.question.kind == "probability" and item.truth is not None]
    assert found.scores is not None
    assert found.skill is not None
    p = dict(report.predictions.filter(report.predictions["aggregation"] == "mean").select("item_id", "p").iter_rows())
    mean = sum((p[item.question.id] - float(item.truth or 0)) ** 2 for item in binary) / len(binary)
    assert found.skill.brier == pytest.approx(mean)
    assert found.skill.reference == pytest.approx(_left_out(binary))
    assert found.skill.skill == pytest.approx(1 - mean / _left_out(binary))
    assert (found.excluded, found.unanswered) == (2, 0)
    assert found.work.agents == {"accepted": len(job.items)}
    assert found.work.after == 0
    assert found.work.undated > 0
    assert sum(found.work.filtered.values()) > 0


def _left_out(binary: list[Item]) -> float:
    """Return the Brier score of the share of yes among the other questions, plainly."""
    scores = []
    for item in binary:
        others = [float(one.truth or 0) for one in binary if one.cluster != item.cluster]
        scores.append((sum(others) / len(others) - float(item.truth or 0)) ** 2)
    return sum(scores) / len(scores)


def test_a_trace_per_question_is_written_once_and_is_that_of_the_record(tmp_path: Path) -> None:
    job = job_of(tmp_path, SOME[:2], arm="staged")
    report = go(job)
    behind = {name: question for name, (_, question) in forecast_items(SOME[:2], Research()).items()}
    paths = write_traces(job, report, behind, final="blend")
    before = [path.read_bytes() for path in paths]
    again = write_traces(job, go(job), behind, final="blend")
    assert (paths, before) == (again, [path.read_bytes() for path in again])
    trace = read_trace(paths[0])
    assert trace.final is not None
    assert trace.journal is not None
    row = report.predictions.filter(
        (report.predictions["item_id"] == "alder-01") & (report.predictions["aggregation"] == "blend")
    )
    assert trace.final.probability == row.get_column("p").item()
    assert [agent.agent_id for agent in trace.agents] == [f"analyst_{number:02d}" for number in (1, 2, 3, 4, 5, 9)]
    assert {stage.name for stage in trace.stages} >= {"panel", "aggregate", "debate", "supervisor"}


def test_steps_are_told_apart_in_the_prompt(tmp_path: Path) -> None:
    job = job_of(tmp_path, [question_of()])
    go(job)
    assert [len(seen(text).steps) for _, text in prompts(job)] == [0, 1, 2, 3, 4]
