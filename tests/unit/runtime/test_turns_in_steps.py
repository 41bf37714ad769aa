"""A turn of several steps: each is recorded, none is taken twice, and a replay takes none at all."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from polars.testing import assert_frame_equal

from consilience.core.contracts import Expected, read_reply
from consilience.core.outcomes import Answered, Failed, Outcome
from consilience.core.packet import EvidenceItem
from consilience.core.turn import TurnKind
from consilience.errors import ConsilienceError, ModelError, ResumeMismatchError, TransientModelError
from consilience.evidence.rendering import render_system
from consilience.experiments.orders import Job, Orders, RunReport
from consilience.experiments.plan import Plan
from consilience.experiments.runner import run_arm
from consilience.journal.events import AttemptReserved, RunStopped, ToolReturned, Where
from consilience.journal.reader import expand, fold
from consilience.models.base import Model
from consilience.models.request import Block, Message, Request
from consilience.models.scripted import Scripted
from consilience.runtime.answerer import Inquired, Inquiry
from consilience.runtime.briefing import contract_of
from consilience.runtime.steps import Steps
from engine_cases import (
    MODEL,
    QUICK,
    ROLES,
    answer_json,
    events_of,
    make_catalogue,
    make_item,
    make_plan,
    make_shell,
    read,
    reply,
    speak,
)

ITEM = make_item(kind="probability")
TWO = ROLES[:2]
LONG = "A long page. " * 400


@dataclass
class Looker:
    """Asks once, uses a tool, asks again with what the tool gave, and answers."""

    turns: Collection[TurnKind] = field(default_factory=lambda: frozenset[TurnKind]({"estimate"}))
    used: list[str] = field(default_factory=list)
    query: str = "rain"

    def room(self, turn: TurnKind) -> Sequence[int]:
        return (0, 5_000) if turn == "estimate" else (0,)

    async def answer(self, inquiry: Inquiry, steps: Steps) -> Inquired:
        try:
            await steps.ask(_request(inquiry, "First."), 0)
            found = await steps.use("look", {"query": self.query}, 0, self._look(inquiry))
            call = await steps.ask(_request(inquiry, found["text"][:40]), 1)
        except ModelError as error:
            return Inquired(Failed(error=type(error).__name__, message=error.message))
        outcome: Outcome = read_reply(call.completion.text, Expected(inquiry.question, "answer"))
        item = EvidenceItem(id=f"D{inquiry.number}01", content={"text": found["text"][:40]})
        return Inquired(outcome, (item,), {"looked": found["n"]}, {"looks": 1})

    def _look(self, inquiry: Inquiry) -> Any:
        async def look() -> dict[str, Any]:
            self.used.append(inquiry.seat.label)
            return {"n": len(self.used), "text": f"{inquiry.seat.label}: {LONG}"}

        return look


def _request(inquiry: Inquiry, task: str) -> Request:
    system = render_system(
        preamble=inquiry.preamble, seat_label=inquiry.seat.label, role_text=inquiry.seat.role.text, output_rules="-"
    )
    blocks = (Block(inquiry.view_block, cache=False), Block(f"TASK: estimate. {task}\n", cache=False))
    return Request(
        model=inquiry.seat.model,
        system=(Block(system, cache=False),),
        messages=(Message("user", blocks),),
        tools=(),
        contract=contract_of("probability", ()),
        max_output_tokens=inquiry.max_output_tokens,
        effort=inquiry.effort,
        sampling=None,
        replicate=inquiry.replicate,
    )


def plan_of(protocol: dict[str, dict[str, Any]], **changes: Any) -> Plan:
    return make_plan([ITEM], protocol=protocol, roles=TWO, answering={"looks": 1}, **changes)


def go(
    folder: Path,
    model: Model,
    looker: Looker,
    *,
    protocol: dict[str, dict[str, Any]] | None = None,
    orders: Orders | None = None,
) -> RunReport:
    plan = plan_of(protocol or {"independent": {}})
    job = Job(plan, [ITEM], "_test", folder, {MODEL: model}, make_catalogue(), answerer=looker)
    return anyio.run(run_arm, job, make_shell(), orders or Orders(limits=QUICK))


def transcript(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "transcripts" / "item-01.json").read_bytes())
    return told


def test_every_step_is_recorded_and_stands_in_the_transcript(tmp_path: Path) -> None:
    looker = Looker()
    report = go(tmp_path / "run", Scripted(MODEL, speak), looker)
    turns = transcript(tmp_path / "run")["turns"]
    assert [len(turn["asks"]) for turn in turns] == [2, 2]
    assert [turn["log"] for turn in turns] == [{"looked": 1}, {"looked": 2}]
    assert report.calls == 4
    tools = [record.event for record in events_of(tmp_path / "run", ToolReturned)]
    texts = fold(tmp_path / "run").texts
    assert sorted(expand(vars(event), texts)["result"]["text"][:10] for event in tools) == ["analyst_01", "analyst_02"]


def test_what_was_gathered_is_shown_in_later_turns_to_whom_gathered_it_alone(tmp_path: Path) -> None:
    seen: dict[tuple[str, str], list[str]] = {}

    def say(request: Request) -> str:
        prompt = read(request)
        seen[str(prompt.seat), prompt.task.split()[0]] = [item["id"] for item in prompt.gathered]
        return speak(request)

    go(tmp_path / "run", Scripted(MODEL, say), Looker(), protocol={"delphi": {"rounds": 1, "settled_change": 0.0}})
    assert seen["analyst_01", "revision"] == ["D101"]
    assert seen["analyst_02", "revision"] == ["D201"]
    assert seen["analyst_01", "estimate."] == []


def test_a_gathered_id_can_be_cited_and_another_members_cannot(tmp_path: Path) -> None:
    said = reply(answer=answer_json("probability", evidence_ids=["D101"]))
    go(tmp_path / "run", Scripted(MODEL, lambda _: said), Looker())
    flags = [[flag["code"] for flag in turn["flags"]] for turn in transcript(tmp_path / "run")["turns"]]
    assert flags[0] == []
    assert flags[1] == ["unknown_evidence_id"]


@pytest.mark.parametrize("answered_before", range(5))
def test_a_run_that_was_cut_short_takes_no_step_twice(tmp_path: Path, answered_before: int) -> None:
    uncut = go(tmp_path / "whole", Scripted(MODEL, speak), Looker())
    left = [answered_before]
    stop = make_shell().stop

    def say(request: Request) -> str:
        left[0] -= 1
        if left[0] <= 0:
            stop.requested = True
        return speak(request)

    looker, folder = Looker(), tmp_path / "run"
    job = Job(plan_of({"independent": {}}), [ITEM], "_test", folder, {MODEL: Scripted(MODEL, say)}, make_catalogue())
    anyio.run(run_arm, replace(job, answerer=looker), make_shell(stop=stop), Orders(limits=QUICK))
    model = Scripted(MODEL, speak)
    resumed = go(folder, model, looker)
    assert len(looker.used) == 2
    assert len(events_of(folder, AttemptReserved)) == 4
    assert_frame_equal(resumed.predictions.drop("paid_usd"), uncut.predictions.drop("paid_usd"))
    assert len(events_of(folder, RunStopped)) <= 1


def test_a_finished_run_is_read_again_without_a_call_or_a_tool(tmp_path: Path) -> None:
    go(tmp_path / "run", Scripted(MODEL, speak), Looker())
    before = (tmp_path / "run" / "transcripts" / "item-01.json").read_bytes()
    silent, looker = Scripted(MODEL, []), Looker()
    assert go(tmp_path / "run", silent, looker).calls == 0
    assert (looker.used, silent.requests) == ([], [])
    assert (tmp_path / "run" / "transcripts" / "item-01.json").read_bytes() == before


def test_a_replay_is_given_what_tools_gave(tmp_path: Path) -> None:
    go(tmp_path / "run", Scripted(MODEL, speak), Looker())
    state = fold(tmp_path / "run")
    tools = {
        at: ToolReturned(**{**vars(event), "result": expand(event.result, state.texts)})
        for at, (_, event) in state.tools.items()
    }
    assert sorted(where.seat or "" for where, _ in tools) == ["analyst_01", "analyst_02"]
    looker = Looker()
    go(tmp_path / "again", Scripted(MODEL, speak), looker, orders=Orders(limits=QUICK, tools=tools))
    assert looker.used == []
    assert transcript(tmp_path / "again") == transcript(tmp_path / "run")


def test_other_arguments_than_recorded_are_refused(tmp_path: Path) -> None:
    go(tmp_path / "run", Scripted(MODEL, speak), Looker())
    with pytest.raises(ResumeMismatchError, match="analyst_01"):
        go(tmp_path / "run", Scripted(MODEL, []), Looker(query="snow"))


def test_a_failed_step_ends_the_turn_and_is_told_the_same_from_the_record(tmp_path: Path) -> None:
    def say(request: Request) -> str:
        if read(request).seat == "analyst_02":
            raise TransientModelError("overloaded", hint="Wait.", status=529)
        return speak(request)

    go(tmp_path / "run", Scripted(MODEL, say), Looker())
    first = transcript(tmp_path / "run")
    assert first["without_answer"] == {"analyst_02": "failed"}
    go(tmp_path / "run", Scripted(MODEL, []), Looker())
    assert transcript(tmp_path / "run") == first


def test_a_turn_without_an_answer_begins_anew_when_what_failed_is_retried(tmp_path: Path) -> None:
    def say(request: Request) -> str:
        if read(request).seat == "analyst_02" and "First" not in read(request).task:
            raise TransientModelError("overloaded", hint="Wait.", status=529)
        return speak(request)

    go(tmp_path / "run", Scripted(MODEL, say), Looker())
    looker = Looker()
    go(tmp_path / "run", Scripted(MODEL, speak), looker, orders=Orders(limits=QUICK, retry_failed=True))
    assert looker.used == ["analyst_02"]
    assert transcript(tmp_path / "run")["without_answer"] == {}


def test_the_worst_case_of_an_item_counts_every_step(tmp_path: Path) -> None:
    del tmp_path
    from consilience.experiments.foresight import foresee  # noqa: PLC0415 - beside its only use

    plain = foresee(plan_of({"independent": {}}), [ITEM], catalogue=make_catalogue())
    steps = foresee(plan_of({"independent": {}}), [ITEM], catalogue=make_catalogue(), answerer=Looker())
    assert steps.turns == plain.turns == 2
    assert steps.worst_tokens - 2 * plain.worst_tokens == 2 * 5_000


def test_errors_of_a_run_are_ours(tmp_path: Path) -> None:
    class Broken(Looker):
        async def answer(self, inquiry: Inquiry, steps: Steps) -> Inquired:
            await steps.ask(_request(inquiry, "First."), 0)
            raise ResumeMismatchError(f"{Where(inquiry.question.id).label()} changed", hint="Start anew.")

    with pytest.raises(ConsilienceError, match="changed"):
        go(tmp_path / "run", Scripted(MODEL, speak), Broken())


def test_an_answer_after_steps_is_an_answer_like_any_other(tmp_path: Path) -> None:
    go(tmp_path / "run", Scripted(MODEL, speak), Looker())
    ended = fold(tmp_path / "run").turns[Where("item-01", 0, "analyst_01", "estimate", 0)]
    assert ended.outcome["status"] == Answered.model_fields["status"].default
    assert ended.data["looks"] == 1
