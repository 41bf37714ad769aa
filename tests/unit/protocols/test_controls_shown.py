"""What each control shows a member in its revision, told from the bytes of its prompts."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from consilience.core.kinds import compact
from consilience.core.outcomes import Outcome
from consilience.core.turn import Turn
from consilience.errors import PlanError
from consilience.evidence.reading import ParsedPrompt
from consilience.experiments.orders import RunReport
from consilience.journal.events import TurnAccepted
from consilience.models.base import plain_body
from consilience.models.request import Request
from consilience.models.scripted import Reply, Scripted
from consilience.protocols.controls import Displaced, EvidenceOnly, PeersOnly, Reask
from engine_cases import answer_json, carry_out, events_of, make_items, make_plan, panel, read, reply, seat_number
from protocol_cases import LOST, deliberate, moving

ITEMS = make_items(3)
STEP = 0.1
SECTIONS = {"P", "C", "M", "G"}


def point_of(seat: int) -> int:
    return 512_000 + 1_000 * seat


def speak(request: Request) -> Reply:
    prompt, seat = read(request), seat_number(request)
    mark = f"canary-{seat:02d}"
    if prompt.kind == "probability":
        return reply(answer=answer_json("probability", p_yes=0.1 * seat, reasoning_summary=mark, rationale=mark))
    seen = [one["id"] for rows in (prompt.packet or prompt.view).values() for one in rows]
    return reply(answer=answer_json(point=point_of(seat), reasoning_summary=mark, evidence_ids=seen))


def controlled(
    folder: Path, name: str, kind: str = "estimate", **parameters: Any
) -> tuple[RunReport, list[tuple[int, ParsedPrompt, Request]]]:
    """Run a control; return its revisions as (seat, prompt, request)."""
    items = make_items(3) if kind == "estimate" else [item_of(number, kind) for number in (1, 2, 3)]
    model = panel(speak)
    report = carry_out(folder, make_plan(items, protocol={name: parameters}), items, model)
    assert isinstance(model, Scripted)
    found = [(seat_number(one), read(one), one) for one in model.requests if read(one).task.startswith("revision")]
    assert len(found) == 3 * 5
    assert report.calls == 3 * 5 * 2
    return report, found


def item_of(number: int, kind: str) -> Any:
    item = ITEMS[number - 1]
    question = item.question.model_copy(update={"kind": kind, "scale": "linear", "unit": None})
    return item.model_copy(update={"question": question})


def others_in(request: Request, seat: int) -> list[int]:
    """Return whose words or numbers stand in the bytes of a request."""
    body = json.dumps(plain_body(request), ensure_ascii=False)
    return [n for n in range(1, 6) if n != seat and (f"canary-{n:02d}" in body or str(point_of(n)) in body)]


def test_asked_again_a_member_sees_its_own_answer_and_nobody_elses(tmp_path: Path) -> None:
    _, revisions = controlled(tmp_path / "run", "reask")
    for seat, prompt, request in revisions:
        assert (prompt.committee, prompt.critiques, prompt.flags, prompt.packet) == (None, (), (), None)
        assert prompt.own_answer is not None
        assert (prompt.own_answer["point"], prompt.own_answer["reasoning"]) == (point_of(seat), f"canary-{seat:02d}")
        assert others_in(request, seat) == []


def test_peers_alone_are_numbers_without_a_word(tmp_path: Path) -> None:
    _, revisions = controlled(tmp_path / "run", "peers_only")
    for seat, prompt, request in revisions:
        committee = prompt.committee or {}
        assert set(committee) == {"round", "median", "others"}
        assert {row["seat"]: row["point"] for row in committee["others"]} == {
            f"analyst_{n:02d}": point_of(n) for n in range(1, 6) if n != seat
        }
        assert {frozenset(row) for row in committee["others"]} == {frozenset({"seat", "point", "q05", "q95"})}
        body = json.dumps(plain_body(request))
        assert [n for n in range(1, 6) if f"canary-{n:02d}" in body] == [seat]
        assert (prompt.critiques, prompt.packet) == ((), None)


def test_evidence_alone_is_the_whole_packet_and_nobodys_answer(tmp_path: Path) -> None:
    report, revisions = controlled(tmp_path / "run", "evidence_only")
    for seat, prompt, request in revisions:
        assert prompt.committee is None
        assert set(prompt.packet or {}) == SECTIONS
        assert others_in(request, seat) == []
    assert any(set(prompt.view) < SECTIONS for _, prompt, _ in revisions)
    told = json.loads((tmp_path / "run" / "transcripts" / "item-01.json").read_bytes())
    cited = {len(turn["outcome"]["said"]["evidence_ids"]) for turn in told["turns"] if turn["kind"] == "revision"}
    assert cited == {6}  # all there is, and none of it lies outside what was shown
    assert not [turn for turn in told["turns"] if turn["flags"]]
    assert report.manifest["items"]["answered"] == 3


def displaced_by(folder: Path) -> dict[tuple[str | None, str | None], tuple[float, Any]]:
    """Return from the journal by item and seat how far the others were moved, and their consensus as shown."""
    found = {}
    for record in events_of(folder, TurnAccepted):
        assert isinstance(record.event, TurnAccepted)
        if record.where.kind == "revision":
            data = record.event.data
            found[record.where.item, record.where.seat] = (data["displaced"], data["consensus_of_others"])
    return found


def test_displaced_peers_are_moved_by_one_step_whose_sign_is_recorded(tmp_path: Path) -> None:
    _, revisions = controlled(tmp_path / "run", "displaced", step=STEP)
    recorded = displaced_by(tmp_path / "run")
    assert {abs(step) for step, _ in recorded.values()} == {STEP}
    assert {step > 0 for step, _ in recorded.values()} == {True, False}
    items = {read(request).tag: request for _, _, request in revisions}
    assert len(items) == 3
    signs = set()
    for seat, prompt, _ in revisions:
        rows = {row["seat"]: row["point"] for row in (prompt.committee or {})["others"]}
        (step,) = {
            step
            for step in (STEP, -STEP)
            if rows[_label(seat % 5 + 1)] == compact(point_of(seat % 5 + 1) * math.exp(step))
        }
        signs.add(step > 0)
        assert rows == {_label(n): compact(point_of(n) * math.exp(step)) for n in range(1, 6) if n != seat}
        (item,) = [one.question.id for one in ITEMS if _shows(prompt, one)]
        logged, consensus = recorded[item, _label(seat)]
        assert logged == step
        middle = sorted(point_of(n) for n in range(1, 6) if n != seat)[1:3]
        shown = math.exp(step) * math.sqrt(middle[0] * middle[1])
        assert consensus["median"] == pytest.approx(shown, rel=1e-5)
        assert prompt.own_answer is not None
        assert prompt.own_answer["point"] == point_of(seat)
    assert signs == {True, False}


def _label(seat: int) -> str:
    return f"analyst_{seat:02d}"


def _shows(prompt: ParsedPrompt, item: Any) -> bool:
    """Return whether a prompt is about an item, whose floor area tells."""
    return bool(prompt.view["P"][0]["floor_area_m2"] == item.packet.sections["P"].items[0].content["floor_area_m2"])


def test_displaced_probabilities_move_on_their_log_odds(tmp_path: Path) -> None:
    _, revisions = controlled(tmp_path / "run", "displaced", kind="probability", step=STEP)
    recorded = displaced_by(tmp_path / "run")
    for seat, prompt, _ in revisions:
        (item,) = [one.question.id for one in ITEMS if _shows(prompt, one)]
        step, _ = recorded[item, _label(seat)]
        for row in (prompt.committee or {})["others"]:
            p = 0.1 * int(row["seat"][-2:])
            odds = math.log(row["p_yes"] / (1 - row["p_yes"]))
            assert odds == pytest.approx(math.log(p / (1 - p)) + step)


def test_a_step_is_drawn_alike_in_every_run(tmp_path: Path) -> None:
    controlled(tmp_path / "one", "displaced", step=STEP)
    controlled(tmp_path / "two", "displaced", step=STEP)
    assert displaced_by(tmp_path / "one") == displaced_by(tmp_path / "two")


@pytest.mark.parametrize("control", [Reask(rounds=2), PeersOnly(rounds=2), EvidenceOnly(rounds=2), Displaced(rounds=2)])
def test_controls_run_all_their_rounds_on_one_table_each(control: Any) -> None:
    course, session = deliberate(control, moving(0.0))
    assert (course.rounds_run, course.stopped) == (2, None)
    assert [stage[0].turn.kind for stage in session.asked] == ["estimate", "revision", "revision"]
    assert [[ask.shown.table for ask in stage] for stage in session.asked[1:]] == [
        [table] * 3 for table in course.tables[:2]
    ]

    def nobody(_seat: str, _turn: Turn) -> Outcome:
        return LOST

    course, session = deliberate(control, nobody)
    assert course.stopped is not None
    assert (course.stopped.reason, len(session.asked)) == ("no_quorum", 1)


@pytest.mark.parametrize("step", [0.0, 1.0, -0.1])
def test_a_step_out_of_range_is_refused(step: float) -> None:
    with pytest.raises(PlanError, match="others displaced by"):
        Displaced(step=step)
