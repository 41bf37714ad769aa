"""The decisions log: outcomes stay, a changed line is named, and only outcomes make a hit rate or a weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.decisions.log import Decided, Resolved, earned_weights, hit_rate, latest, read_outcomes, resolve
from consilience.errors import ConfigError, IntegrityError, PlanError

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
OPTIONS = {"o1": "ship", "o2": "wait"}


def made(
    number: int, winner: str | None = "o1", ballots: Sequence[tuple[str, str]] = (), *, simulated: bool = True
) -> Decided:
    outcome = "tie" if winner is None else "winner"
    return Decided(
        f"run-{number:02d}",
        f"2026-11-{number % 28 + 1:02d}T00:00:00Z",
        "Ship?",
        OPTIONS,
        outcome,
        winner,
        tuple(ballots),
        simulated,
        f"{number:064d}",
    )


def resolved(decided: Decided, outcome: str | None) -> Resolved:
    return Resolved(
        at=NOW,
        run_id=decided.run_id,
        outcome=outcome,
        note="seen",
        decision_sha256=decided.sha256,
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
    assert not path.exists()


def test_two_options_called_like_each_others_ids_are_told_apart_by_id(tmp_path: Path) -> None:
    crossed = replace(made(1), options={"o1": "o2", "o2": "o1"})
    assert resolve(tmp_path / "log.jsonl", crossed, "o1", note="seen", at=NOW).outcome == "o1"


def test_the_hit_rate_is_of_winners_with_a_known_outcome_and_nothing_else() -> None:
    decisions = [made(1, "o1"), made(2, "o1"), made(3, None), made(4, "o2"), made(5, "o2")]
    outcomes = [resolved(one, outcome) for one, outcome in zip(decisions, ("o1", "o2", "o1", None), strict=False)]
    rate = hit_rate(decisions, outcomes)
    assert (rate.right, rate.n, rate.without, rate.unknown) == (1, 2, {"tie": 1}, 2)
    assert [rate.low, rate.high] == pytest.approx([0.0945, 0.9055], abs=1e-4)
    nothing = hit_rate(decisions, [])
    assert (nothing.n, nothing.low, nothing.high, nothing.unknown) == (0, None, None, 5)


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


def test_a_record_changed_after_its_outcome_was_recorded_is_refused() -> None:
    decided = made(1, "o1", [("a", "o1")])
    outcome = resolved(decided, "o1")
    changed = replace(decided, winner="o2", sha256="f" * 64)
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
