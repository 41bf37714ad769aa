"""A decision by scripted voters: the exact words a role sees, what a critical risk sets, and who is half missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import anyio
import pytest

from consilience.decisions.case import Case
from consilience.decisions.decide import DecisionTerms, Prepared, prepare
from consilience.decisions.reading import result_of
from consilience.decisions.result import DecisionResult
from consilience.evidence.reading import ParsedPrompt
from consilience.experiments.runner import run_arm
from consilience.models.prices import load_catalogue
from consilience.models.request import Request
from consilience.models.scripted import Scripted, prompt_text
from engine_cases import answer_json, make_shell, read, reply, seat_number

Votes = Callable[[int, Request], dict[str, Any] | None]
CANARY = "canary-reason"


def decide_by(folder: Path, votes: Votes, **changes: Any) -> tuple[DecisionResult, list[Request]]:
    """Return the result of a decision whose voters answer as told, and everything that was asked."""
    values: dict[str, Any] = {"question": "Ship on Friday?", "options": ["ship", "wait"]}
    allow = changes.pop("allow", ())
    case = Case.model_validate(values | changes)
    terms = DecisionTerms(
        committee="mixed_random",
        tier="mid",
        live=False,
        seed=0,
        catalogue=load_catalogue(),
        environ={},
        max_spend_nano=None,
        results=folder / "results",
        today=date(2026, 12, 1),
        retry_failed=False,
        allow=frozenset(allow),
    )
    prepared = prepare(case, terms, earned=lambda _: {})
    asked: list[Request] = []

    def speak(request: Request) -> str:
        asked.append(request)
        prompt = read(request)
        if prompt.task.startswith("critique"):
            return reply(critiques=[critique(row["seat"]) for row in rows_of(prompt)])
        said = votes(seat_number(request), request)
        return reply(abstention="I cannot know.") if said is None else reply(answer=said)

    models = {name: Scripted(name, speak) for name in prepared.job.models}
    prepared = Prepared(prepared.case, prepared.need, replace(prepared.job, models=models), prepared.orders)
    report = anyio.run(run_arm, prepared.job, make_shell(), prepared.orders)
    assert report.stopped_by is None
    return result_of(prepared, report), asked


def rows_of(prompt: ParsedPrompt) -> list[Any]:
    return list((prompt.committee or {})["others"])


def critique(seat: str) -> dict[str, Any]:
    return {"target_role": seat, "agrees": False, "points": ["Say more."], "evidence_ids": [], "suggested_value": None}


def vote(option: str, *, confidence: float = 0.8125, **changes: Any) -> dict[str, Any]:
    other = {"o1": "o2", "o2": "o1"}[option]
    told = {"ranking": [option, other], "approvals": [option], "reasoning_summary": CANARY}
    return answer_json("choice", choice=option, confidence=confidence, **(told | changes))


def split(seat: int, _: Request) -> dict[str, Any]:
    return vote("o1" if seat % 2 else "o2")


@pytest.mark.parametrize("reveal", ["arguments", "positions"])
def test_arguments_are_shown_without_verdict_or_confidence(tmp_path: Path, reveal: str) -> None:
    result, asked = decide_by(tmp_path, split, method="supermajority", threshold="2/3", reveal=reveal)
    assert result.missing == {}
    debated = [request for request in asked if CANARY in prompt_text(request)]
    assert len(debated) == 10  # five criticise, five vote again
    for request in debated:
        told = json.dumps(read(request).committee)
        assert [row["reasoning"] for row in rows_of(read(request))] == [CANARY] * len(rows_of(read(request)))
        for verdict in ("0.8125", '"o1"', '"o2"', "ship", "wait"):
            assert (verdict in told) is (reveal == "positions" and verdict not in {"ship", "wait"})


def test_no_ballot_of_the_final_vote_is_shown_to_anybody(tmp_path: Path) -> None:
    marks = {}

    def moving(seat: int, request: Request) -> dict[str, Any]:
        final = CANARY in prompt_text(request)
        if not final:
            return split(seat, request)
        marks[seat] = f"final-{seat}"
        return vote("o1", rationale=marks[seat], reasoning_summary=marks[seat])

    result, asked = decide_by(tmp_path, moving, method="supermajority", threshold="2/3")
    assert (result.winner, len(marks)) == ("o1", 5)
    assert not any(mark in prompt_text(request) for request in asked for mark in marks.values())


def ten_voters(folder: Path) -> Path:
    roles = []
    for number in range(10):
        path = folder / f"voter_{number}.md"
        path.write_text(
            f"---\nid: voter_{number}\nview: [all]\nframing: framing_{number}\n---\nJudge as voter {number}.\n",
            encoding="utf-8",
        )
        roles.append(f"./{path.name}")
    panel = folder / "ten.yaml"
    panel.write_text(json.dumps({"roles": [*roles, "moderator"]}), encoding="utf-8")
    return panel


@pytest.mark.parametrize("critical", [False, True])
def test_a_critical_risk_of_one_in_ten_asks_for_review_at_ninety_percent_agreement(
    tmp_path: Path, critical: bool
) -> None:
    def nine(seat: int, _: Request) -> dict[str, Any]:
        if seat != 4:
            return vote("o1")
        return vote("o2", risks=[{"text": "The backup was never restored.", "critical": critical}])

    panel = ten_voters(tmp_path)
    result, _ = decide_by(tmp_path, nine, panel=str(panel), quick=0, allow=("even", "axes", "copies"))
    assert (result.heads, result.winner, result.is_strong) == ((9, 10), "o1", True)
    assert [dissent.risks for dissent in result.minority] == [(("The backup was never restored.", critical),)]
    assert result.to_dict()["requires_human_review"] is critical
    assert result.review == ((f"{result.minority[0].role} dissents and marks a risk as critical",) if critical else ())


def test_half_of_the_members_down_is_no_quorum_and_no_consensus(tmp_path: Path) -> None:
    result, _ = decide_by(tmp_path, lambda seat, _: vote("o1") if seat <= 2 else None, quick=0)
    assert (result.outcome, result.winner, result.is_strong) == ("no_quorum", None, False)
    assert len(result.missing) == 3
    assert all("I cannot know." in why for why in result.missing.values())


def test_everybody_sure_of_everything_is_told_as_it_is(tmp_path: Path) -> None:
    result, asked = decide_by(tmp_path, lambda *_: vote("o2", confidence=1.0))
    assert (result.step, result.winner, result.heads, len(asked)) == ("quick_vote", "o2", (2, 2), 2)
    assert result.to_dict()["minority_says"] == "nobody dissented"


def test_a_vote_told_in_prose_is_none(tmp_path: Path) -> None:
    def prose(seat: int, _: Request) -> dict[str, Any]:
        if seat in {1, 2, 3}:
            return vote("o1")
        return vote("o2") | {"choice": "I would rather wait, unless the tests are green"}

    result, _ = decide_by(tmp_path, prose, quick=0)
    assert (result.winner, result.heads) == ("o1", (3, 3))
    assert len(result.missing) == 2


def final_of(*, first: str, final: str) -> Votes:
    """Return voters who say 1 or 2 in the first and the final vote, by seat, or nothing (``.``)."""

    def say(seat: int, request: Request) -> dict[str, Any] | None:
        letter = (final if CANARY in prompt_text(request) else first)[seat - 1]
        return None if letter == "." else vote(f"o{letter}")

    return say


def test_who_refuses_the_final_vote_is_missing_and_no_old_ballot_stands_for_it(tmp_path: Path) -> None:
    refused, _ = decide_by(tmp_path / "a", final_of(first="11122", final="1...1"), quick=0)
    assert (refused.outcome, refused.winner, refused.heads) == ("no_quorum", None, (2, 2))
    assert len(refused.missing) == 3
    assert all("I cannot know." in why for why in refused.missing.values())
    assert len(refused.completed) == 2
    assert any("3 of 5 cast no ballot" in why for why in refused.review)
    some, _ = decide_by(tmp_path / "b", final_of(first="11122", final="1.1.1"), quick=0)
    assert (some.outcome, some.winner, some.heads, len(some.missing)) == ("winner", "o1", (3, 3), 2)
    assert any("degraded" in why for why in some.review)
    assert [(flip.before, flip.after) for flip in some.flips] == [("o2", "o1")]


def test_a_safety_order_makes_no_winner_of_a_final_vote_that_all_refuse(tmp_path: Path) -> None:
    voters = final_of(first="1122.", final=".....")
    result, _ = decide_by(tmp_path, voters, quick=0, method="plurality", safety_order=["ship", "wait"])
    assert (result.outcome, result.winner, result.heads) == ("no_quorum", None, (0, 0))


def test_the_share_of_an_approval_is_that_of_the_ballots_that_approve(tmp_path: Path) -> None:
    def approve(seat: int, _: Request) -> dict[str, Any]:
        return vote("o1", approvals=["o1"]) if seat <= 2 else vote("o2", approvals=["o1", "o2"])

    result, _ = decide_by(tmp_path, approve, quick=0, method="approval")
    assert (result.winner, result.heads, result.is_strong) == ("o1", (5, 5), True)
    assert result.agreement_share == Fraction(1)
    assert (result.minority, result.counts) == ((), {"o1": 5, "o2": 3})
    assert result.review == ()


def test_a_quick_vote_without_ballots_for_the_method_goes_on(tmp_path: Path) -> None:
    result, _ = decide_by(tmp_path, lambda *_: vote("o1", confidence=1.0, ranking=None), method="borda")
    assert (result.outcome, result.step, result.heads) == ("no_quorum", None, (0, 0))
    assert [step.decided for step in result.steps] == [False, False]
