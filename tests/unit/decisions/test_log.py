"""The decisions log: outcomes stay, a changed line is named, and only outcomes make a hit rate or a weight."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.decisions.log import (
    Decided,
    Resolved,
    decided_of,
    earned_weights,
    hit_rate,
    latest,
    read_outcomes,
    resolve,
)
from consilience.errors import ConfigError, DataError, IntegrityError, PlanError

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
OPTIONS = {"o1": "ship", "o2": "wait"}


def made(
    number: int,
    winner: str | None = "o1",
    ballots: Sequence[tuple[str, str]] = (),
    *,
    step: str = "full_vote",
    simulated: bool = True,
) -> Decided:
    outcome = "tie" if winner is None else "winner"
    return Decided(
        f"run-{number:02d}",
        f"2026-11-{number % 28 + 1:02d}T00:00:00Z",
        "Ship?",
        OPTIONS,
        outcome,
        winner,
        None if winner is None else step,
        tuple(ballots),
        simulated,
    )


def resolved(decided: Decided, outcome: str | None) -> Resolved:
    return Resolved(
        at=NOW,
        run_id=decided.run_id,
        outcome=outcome,
        note="seen",
        decision_sha256=decided.sha256,
        torn_bytes=0,
        previous_sha256=None,
    )


def test_an_outcome_is_recorded_once_and_a_correction_stands_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    assert resolve(path, made(1), "wait", note=" seen ", at=NOW).outcome == "o2"
    with pytest.raises(PlanError, match="was recorded on 2026-12-01"):
        resolve(path, made(1), "ship", note="no", at=NOW)
    resolve(path, made(2), None, note="nobody looked", at=NOW)
    resolve(path, made(1), "o1", note="read wrongly", at=NOW, corrects=True)
    records = read_outcomes(path)
    assert [(one.run_id, one.outcome, one.note) for one in records] == [
        ("run-01", "o2", "seen"),
        ("run-02", None, "nobody looked"),
        ("run-01", "o1", "read wrongly"),
    ]
    assert latest(records)["run-01"].outcome == "o1"


@pytest.mark.parametrize("line", [0, 1, 2])
@pytest.mark.parametrize("act", ["change", "take out", "tear"])
def test_a_line_changed_taken_out_or_torn_is_named(tmp_path: Path, line: int, act: str) -> None:
    path = tmp_path / "decisions.jsonl"
    for number in range(4):
        resolve(path, made(number), "ship", note="seen", at=NOW)
    lines = path.read_bytes().splitlines(keepends=True)
    changed = {"change": lines[line].replace(b"seen", b"sean"), "take out": b"", "tear": lines[line][:30] + b"\n"}[act]
    path.write_bytes(b"".join([*lines[:line], changed, *lines[line + 1 :]]))
    with pytest.raises(IntegrityError, match=f"line {line + 2 if act == 'change' else line + 1} of"):
        read_outcomes(path)
    before = path.read_bytes()
    with pytest.raises(IntegrityError):
        resolve(path, made(9), "ship", note="seen", at=NOW)
    assert path.read_bytes() == before


def test_what_cannot_be_recorded_is_refused_and_records_nothing(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    with pytest.raises(ConfigError, match=r'"shp"') as caught:
        resolve(path, made(1), "shp", note="seen", at=NOW)
    assert "ship" in str(caught.value.hint)
    with pytest.raises(ConfigError, match="without a note"):
        resolve(path, made(1), "ship", note="  ", at=NOW)
    with pytest.raises(PlanError, match="no outcome of run-01"):
        resolve(path, made(1), "ship", note="seen", at=NOW, corrects=True)
    with pytest.raises(DataError, match="could not be read again"):
        resolve(path, made(1), "ship", note="caf\udce9", at=NOW)  # as a terminal that is not UTF-8 hands it over
    same = replace(made(1), options={"o1": "ship", "o2": "ship"})
    with pytest.raises(ConfigError, match="several options are called") as caught:
        resolve(path, same, "ship", note="seen", at=NOW)
    assert 'o1 ("ship"), o2 ("ship")' in caught.value.hint
    assert read_outcomes(path) == ()


def test_outcomes_taken_out_or_changed_at_the_end_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    for number in range(3):
        resolve(path, made(number), "ship", note="seen", at=NOW)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for left, at in (
        (b"", 1),
        (lines[0], 2),
        (b"".join(lines[:2]), 3),
        (whole[:-1], 3),
        (b"".join(lines[:2]) + lines[2].replace(b'"o1"', b'"o2"'), 3),
    ):
        path.write_bytes(left)
        with pytest.raises(IntegrityError, match=f"the 3 outcomes that were recorded: line {at} was changed"):
            read_outcomes(path)
        with pytest.raises(IntegrityError, match="the 3 outcomes"):
            resolve(path, made(9), "ship", note="seen", at=NOW)
        assert path.read_bytes() == left
    path.unlink()
    with pytest.raises(IntegrityError, match="taken away"):
        read_outcomes(path)


def test_the_log_only_grows_and_an_unfinished_line_is_replaced_and_told(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    resolve(path, made(1), "ship", note="seen", at=NOW)
    whole, inode = path.read_bytes(), path.stat().st_ino
    path.write_bytes(whole + whole[:40])  # power went before the second line was whole
    assert len(read_outcomes(path)) == 1
    assert resolve(path, made(2), "ship", note="seen", at=NOW).torn_bytes == 40
    assert path.read_bytes().startswith(whole)
    assert path.stat().st_ino == inode
    assert len(read_outcomes(path)) == 2


def test_a_name_that_is_the_id_of_one_option_and_the_label_of_another_is_refused(tmp_path: Path) -> None:
    crossed = replace(made(1), options={"o1": "o2", "o2": "wait"})
    log = tmp_path / "log.jsonl"
    with pytest.raises(ConfigError, match='several options are called "o2"') as caught:
        resolve(log, crossed, "o2", note="seen", at=NOW)
    assert 'o1 ("o2"), o2 ("wait")' in caught.value.hint
    assert resolve(log, crossed, "wait", note="seen", at=NOW).outcome == "o2"


def test_the_hit_rate_is_of_winners_with_a_known_outcome_and_nothing_else() -> None:
    decisions = [made(1, "o1"), made(2, "o1"), made(3, None), made(4, "o2"), made(5, "o2")]
    outcomes = [resolved(one, outcome) for one, outcome in zip(decisions, ("o1", "o2", "o1", None), strict=False)]
    rate = hit_rate(decisions, outcomes)
    assert (rate.right, rate.n, rate.without, rate.unknown, rate.unknowable) == (1, 2, {"tie": 1}, 1, 1)
    assert [rate.low, rate.high] == pytest.approx([0.0945, 0.9055], abs=1e-4)
    nothing = hit_rate(decisions, [])
    assert (nothing.n, nothing.low, nothing.high, nothing.unknown) == (0, None, None, 5)


@pytest.mark.parametrize("step", ["tie_rule", "single_agent"])
def test_what_no_vote_of_the_panel_decided_is_neither_a_hit_nor_a_miss(step: str) -> None:
    decisions = [made(1, "o1", step=step), made(2, "o1", step=step), made(3, "o1")]
    outcomes = [resolved(one, outcome) for one, outcome in zip(decisions, ("o1", "o2", "o1"), strict=True)]
    rate = hit_rate(decisions, outcomes)
    assert (rate.right, rate.n, rate.without) == (1, 1, {step: 2})


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["o1", "o2", None]),
            st.sampled_from(["full_vote", "tie_rule"]),
            st.sampled_from(["o1", "o2", None, "later"]),
        ),
        max_size=20,
    )
)
def test_every_decision_is_counted_once_and_by_name(told: list[tuple[str | None, str, str | None]]) -> None:
    decisions = [made(number, winner, step=step) for number, (winner, step, _) in enumerate(told)]
    outcomes = [resolved(one, said) for one, (_, _, said) in zip(decisions, told, strict=True) if said != "later"]
    rate = hit_rate(decisions, outcomes)
    assert rate.n + sum(rate.without.values()) + rate.unknown + rate.unknowable == len(told)
    assert rate.right == sum(winner == said and step == "full_vote" for winner, step, said in told if winner)


def test_weights_do_not_look_at_who_won() -> None:
    told = [("o1", "o2"), ("o2", "o1"), ("o1", "o1")] * 5
    decisions = [made(number, "o1", [("a", own)]) for number, (own, _) in enumerate(told)]
    others = [replace(one, winner="o2") for one in decisions]
    sides = [
        earned_weights(side, [resolved(one, out) for one, (_, out) in zip(side, told, strict=True)])
        for side in (decisions, others)
    ]
    assert sides[0] == sides[1]


def test_weights_from_more_than_two_options_say_so() -> None:
    decisions = [replace(made(number, "o1", [("a", "o1")]), options=OPTIONS | {"o3": "ask"}) for number in range(10)]
    weights = earned_weights(decisions, [resolved(one, "o1") for one in decisions])
    assert weights["a"].flags == ("many_options",)
    assert weights["a"].weight == pytest.approx(math.log(11))


def test_a_voter_that_agrees_with_winners_that_turn_out_wrong_earns_nothing() -> None:
    decisions = [made(number, "o1", [("follower", "o1"), ("dissenter", "o2")]) for number in range(20)]
    weights = earned_weights(decisions, [resolved(one, "o2") for one in decisions])
    assert (weights["follower"].weight, weights["follower"].flags) == (0.0, ("worse_than_chance",))
    assert weights["dissenter"].weight == pytest.approx(math.log(21))
    assert hit_rate(decisions, [resolved(one, "o2") for one in decisions]).right == 0


def test_ballots_in_decisions_without_an_outcome_teach_nothing() -> None:
    decisions = [made(number, "o1", [("a", "o1")]) for number in range(20)]
    few = earned_weights(decisions, [resolved(one, "o1") for one in decisions[:4]], ["b"])
    assert (few["a"].n, few["a"].flags) == (4, ("pooled",))
    assert few["a"].weight == few["b"].weight == pytest.approx(math.log(5))
    assert few["b"].n == 0


def test_simulated_and_real_decisions_never_teach_about_each_other() -> None:
    with pytest.raises(PlanError, match="mixed"):
        earned_weights([made(1), made(2, simulated=False)], [])
    with pytest.raises(PlanError, match="mixed"):
        hit_rate([made(1), made(2, simulated=False)], [])
    for count in (hit_rate, earned_weights):
        with pytest.raises(PlanError, match="run-01 is there twice"):
            count([made(1), made(1)], [])


def test_a_record_changed_after_its_outcome_was_recorded_is_refused() -> None:
    decided = made(1, "o1", [("a", "o1")])
    outcome = resolved(decided, "o1")
    changed = replace(decided, winner="o2")
    with pytest.raises(IntegrityError, match="run-01 was changed"):
        hit_rate([changed], [outcome])
    with pytest.raises(IntegrityError, match="run-01 was changed"):
        earned_weights([changed], [outcome])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=60))
def test_weights_are_the_log_odds_of_shrunken_shares_of_outcomes(told: list[tuple[str, bool]]) -> None:
    decisions = [made(number, "o1", [(role, "o1" if right else "o2")]) for number, (role, right) in enumerate(told)]
    weights = earned_weights(decisions, [resolved(one, "o1") for one in decisions])
    for role, weight in weights.items():
        own = [right for name, right in told if name == role]
        shown = own if len(own) >= 10 else [right for _, right in told]
        share = (sum(shown) + 1) / (len(shown) + 2)
        assert weight.weight == pytest.approx(max(0.0, math.log(share / (1 - share))))


def test_a_copied_decision_is_refused_not_counted_twice(tmp_path: Path) -> None:
    told = {
        "run_id": "run-01",
        "audit": {"ended_at": "2026-11-01T00:00:00Z", "question": {"text": "Ship?"}},
        "options": OPTIONS,
        "outcome": "winner",
        "winner": "o1",
        "step": "full_vote",
        "votes": [{"role": "a", "option": "o1"}, {"role": "b", "option": None}],
        "simulated": True,
    }
    for folder in ("run-01", "run-01 copy"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "decision.json").write_text(json.dumps(told))
    with pytest.raises(IntegrityError, match="it is a copy of run-01"):
        decided_of(tmp_path / "run-01 copy" / "decision.json")
    path = tmp_path / "run-01" / "decision.json"
    decided = decided_of(path)[1]
    assert decided.ballots == (("a", "o1"),)
    outcome = resolved(decided, "o1")
    path.write_text(json.dumps(told | {"a_later_field": 1}))
    assert hit_rate([decided_of(path)[1]], [outcome]).right == 1
