from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consilience.core.canonical import canonical_json
from consilience.errors import IntegrityError
from consilience.journal.events import (
    AttemptLost,
    AttemptReserved,
    AttemptResponse,
    BatchSubmitted,
    TextStored,
    Where,
)
from consilience.journal.reader import AttemptKey, RunState, Texts, chain, expand, fold, read_events
from consilience.journal.verify import verify
from consilience.journal.writer import JournalWriter

Write = Callable[..., JournalWriter]
TURN = Where(item="a", round=0, seat="analyst_01", kind="estimate", sample=0)


def test_fold_holds_what_resume_needs(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    write(tmp_path, small_run)
    state = fold(tmp_path)
    assert state.started == small_run[0][0]
    assert state.finished
    assert state.items_started == {"a": small_run[1][0]}
    assert state.items_finished == {"a": small_run[7][0]}
    assert state.turns == {TURN: small_run[6][0]}
    assert state.answers == {"k1": small_run[5][0]}
    assert state.spent_nano == 700
    assert state.lost() == {}
    assert state.next_attempt(TURN, 0) == 2
    assert state.next_attempt(TURN, 1) == 0


def test_an_attempt_without_outcome_is_lost_and_charged_as_reserved(
    tmp_path: Path, write: Write, small_run: list[Any]
) -> None:
    write(tmp_path, small_run[:5], finish=False)
    state = fold(tmp_path)
    assert list(state.lost()) == [AttemptKey(TURN, 0, 1)]
    assert (state.spent_nano, state.finished) == (1_000, False)
    write(tmp_path, [(AttemptLost(key="k1", ask=0, attempt=1, charged_nano=1_000), TURN)], finish=False)
    state = fold(tmp_path)
    assert (state.lost(), state.spent_nano, state.next_attempt(TURN, 0)) == ({}, 1_000, 2)


def test_an_unknown_cost_is_unknown(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    unpriced = AttemptReserved(**{**small_run[2][0].__dict__, "reserved_nano": None})
    answer = AttemptResponse(**{**small_run[5][0].__dict__, "attempt": 0, "cost_nano": None})
    write(tmp_path, [small_run[0], (unpriced, TURN), (answer, TURN)])
    state = fold(tmp_path)
    assert [attempt.charged_nano for attempt in state.attempts.values()] == [None]
    assert state.spent_nano == 0


@pytest.mark.parametrize(
    ("order", "problem"),
    [([0, 2, 2], "reserved before"), ([0, 3], "never reserved"), ([0, 2, 3, 3], "outcome already")],
)
def test_contradictions_are_named(
    tmp_path: Path, write: Write, small_run: list[Any], order: list[int], problem: str
) -> None:
    write(tmp_path, [small_run[index] for index in order], finish=False)
    with pytest.raises(IntegrityError, match=f"journal record {len(order)} .*item a, round 0.*{problem}"):
        fold(tmp_path)


def test_an_outcome_under_another_key_is_named(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    other = AttemptLost(key="k2", ask=0, attempt=0, charged_nano=0)
    write(tmp_path, [small_run[0], small_run[2], (other, TURN)], finish=False)
    with pytest.raises(IntegrityError, match="never reserved"):
        fold(tmp_path)


@pytest.mark.parametrize(
    ("forged", "problem"),
    [
        ({"seq": 7}, "numbered 7"),
        ({"events": 5}, "run.finished names another count or head"),
        ({"head": "0" * 64}, "run.finished names another count or head"),
        ({"type": "run.over"}, "'run.over' is unknown"),
        ({"more": 1}, "unknown fields more"),
    ],
)
def test_a_record_that_fits_the_chain_but_not_the_journal_is_named(
    tmp_path: Path, write: Write, small_run: list[Any], forged: dict[str, Any], problem: str
) -> None:
    write(tmp_path, small_run[:2])
    path = tmp_path / "events-00001.jsonl"
    *before, last = path.read_bytes().splitlines(keepends=True)
    event = canonical_json({**json.loads(last)["event"], **forged})
    digest = chain(json.loads(before[-1])["hash"], event)
    path.write_bytes(b"".join(before) + b'{"hash":"' + digest.encode() + b'","event":' + event + b"}\n")
    bad = verify(tmp_path).first_bad
    assert bad is not None
    assert bad.record == 3
    assert problem in bad.reason


def test_bodies_stay_on_disk(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    write(tmp_path, small_run)
    assert all(attempt.reserved.body == {} for attempt in fold(tmp_path).attempts.values())
    assert [r.event.body for r in read_events(tmp_path) if isinstance(r.event, AttemptReserved)] == [
        {"prompt": "Price?"}
    ] * 2


def test_a_missing_text_is_an_error_and_a_changed_one_too(tmp_path: Path, write: Write, small_run: list[Any]) -> None:
    with pytest.raises(IntegrityError, match="text ab is not in the journal"):
        expand([{"$text": "ab"}], {})
    write(tmp_path, [small_run[0], (TextStored(sha256="f" * 64, text="other"), Where())])
    texts = fold(tmp_path).texts
    with pytest.raises(IntegrityError, match="not what was written"):
        texts["f" * 64]


def test_no_journal_is_an_empty_state(tmp_path: Path) -> None:
    state = fold(tmp_path)
    assert state == RunState(state.texts)
    assert list(Texts(tmp_path)) == []


def test_batches_are_folded_by_their_calls_and_a_call_in_one_has_no_outcome_yet(
    tmp_path: Path, write: Write, small_run: list[Any]
) -> None:
    first = BatchSubmitted(provider="openai", batch_id="batch_1", calls=["c1", "c2"])
    second = BatchSubmitted(provider="anthropic", batch_id="msgbatch_2", calls=["c3"])
    write(tmp_path, [*small_run[:5], (first, Where()), (second, Where())], finish=False)
    state = fold(tmp_path)
    assert state.batches == {
        "c1": ("openai", "batch_1"),
        "c2": ("openai", "batch_1"),
        "c3": ("anthropic", "msgbatch_2"),
    }
    assert list(state.lost()) == [AttemptKey(TURN, 0, 1)]
    assert verify(tmp_path).ok
