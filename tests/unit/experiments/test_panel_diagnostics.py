"""What a run's panel was worth: effective numbers by basis, rounds, faithfulness, and the lines that tell it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from consilience.aggregation.movement import item_diagnostics
from consilience.core.answers import CritiqueSet
from consilience.core.deliberation import Deliberation, first_table
from consilience.core.outcomes import Answered, Outcome
from consilience.core.question import Kind
from consilience.evidence.verification import Citations, Flag
from consilience.experiments.diagnostics import (
    FamilyDiagnostics,
    Observed,
    PanelDiagnostics,
    cited,
    observe,
    panel_diagnostics,
    told,
    told_of_item,
)
from consilience.inference.effective import EffectiveNumbers, Undefined
from consilience.runtime.session import TurnRecord
from course_cases import LOST, ask, deliberation, make
from engine_cases import ROLES, make_item

TWELVE = range(12)


def seen(kind: Kind, *rounds: Sequence[Any], number: int = 0, truth: Any = None, **changes: Any) -> Observed:
    question = ask(kind, name=f"q{number:03d}", scale=changes.pop("scale", "linear"))
    return observe(question, deliberation(kind, *rounds, **changes), truth=truth)


def only(diagnostics: PanelDiagnostics) -> FamilyDiagnostics:
    (family,) = diagnostics.families
    return family


def numbers(made: EffectiveNumbers | Undefined) -> EffectiveNumbers:
    assert isinstance(made, EffectiveNumbers)
    return made


def estimates(n: int, *, shared: float, truths: bool = True) -> list[Observed]:
    rng = np.random.default_rng(3)
    made = []
    for number in range(n):
        truth = math.exp(rng.normal(12, 1))
        common = rng.standard_normal()
        said = [
            truth * math.exp(0.1 * (math.sqrt(shared) * common + math.sqrt(1 - shared) * own))
            for own in rng.standard_normal(3)
        ]
        known = truth if truths else None
        made.append(seen("estimate", said, number=number, truth=known, scale="log"))
    return made


def test_from_errors_where_the_truth_is_known() -> None:
    items = estimates(400, shared=0.5)
    made = only(panel_diagnostics(items)).final
    values = np.array([[one.final[seat][0] - one.truth[0] for seat in "abc"] for one in items if one.truth])  # type: ignore[index]
    assert (made.basis, made.n_items, made.n_left_out, made.members) == ("errors", 400, 0, ("a", "b", "c"))
    assert numbers(made.numbers).rho == pytest.approx(np.array(np.corrcoef(values.T))[np.triu_indices(3, 1)].mean())
    assert numbers(made.numbers).equal_weight == pytest.approx(3 / (1 + 2 * 0.5), rel=0.1)


def test_from_answers_where_it_is_not_and_labelled() -> None:
    items = estimates(50, shared=0.0, truths=False)
    made = only(panel_diagnostics(items)).final
    values = np.array([[one.final[seat][0] for seat in "abc"] for one in items])  # type: ignore[index]
    assert made.basis == "answers"
    assert numbers(made.numbers).rho == pytest.approx(np.array(np.corrcoef(values.T))[np.triu_indices(3, 1)].mean())
    # what makes houses differ makes answers alike, however independent the errors are
    assert numbers(made.numbers).equal_weight == pytest.approx(1.0, abs=0.05)
    assert isinstance(numbers(made.numbers).mean_square, Undefined)


def test_a_few_truths_among_many_items_are_no_basis() -> None:
    items = [
        replace(one, truth=one.truth if number < 9 else None) for number, one in enumerate(estimates(30, shared=0))
    ]
    assert only(panel_diagnostics(items)).final.basis == "answers"
    items = [
        replace(one, truth=one.truth if number < 10 else None) for number, one in enumerate(estimates(30, shared=0))
    ]
    made = only(panel_diagnostics(items)).final
    assert (made.basis, made.n_items, made.n_left_out) == ("errors", 10, 20)


@pytest.mark.parametrize(("n", "enough"), [(9, False), (10, True)])
def test_below_ten_items_no_number(n: int, enough: bool) -> None:
    made = only(panel_diagnostics(estimates(n, shared=0.2))).final
    assert isinstance(made.numbers, EffectiveNumbers) is enough
    if isinstance(made.numbers, Undefined):
        assert made.numbers.reason.startswith("too few items: all members answered 9")
        assert (made.basis, made.record()["effective"], made.record()["reason"]) == (
            "errors",
            None,
            made.numbers.reason,
        )


def test_only_items_that_all_answered_and_who_seldom_did_is_named() -> None:
    rows: list[tuple[float | None, ...]] = [(10.0 + n, 11.0 + n % 3, None, 12.0) for n in TWELVE]
    rows[4] = (10.0, None, None, 12.0)
    items = [seen("estimate", row, number=n, seats="abcd") for n, row in enumerate(rows)]
    made = only(panel_diagnostics(items)).final
    assert (made.members, made.absent, made.n_items, made.n_left_out) == (("a", "b", "d"), ("c",), 11, 1)
    assert numbers(made.numbers).n_members == 3
    for answers, absent in ((5, ("c",)), (6, ())):
        often = [seen("choice", ("x", "y", "z" if n < answers else None), number=n) for n in TWELVE]
        assert only(panel_diagnostics(often)).final.absent == absent


def test_a_single_seat_or_nobody_is_no_panel() -> None:
    alone = only(panel_diagnostics(seen("choice", ("x",), number=n, seats="a") for n in TWELVE)).final
    assert alone.numbers == Undefined("a single member")
    nobody = only(panel_diagnostics(seen("choice", (None, None), number=n, seats="ab", truth="x") for n in TWELVE))
    assert nobody.final.numbers == Undefined("nobody answered")
    assert nobody.rounds[0].crowd is None


def test_choices_by_what_is_wrong_and_by_agreement_beyond_chance() -> None:
    ballots = [("x", "x", "y"), ("y", "y", "x"), ("z", "z", "x"), ("x", "y", "x")] * 3
    known = only(panel_diagnostics(seen("choice", row, number=n, truth="x") for n, row in enumerate(ballots))).final
    wrong = np.array([[option != "x" for option in row] for row in ballots], dtype=float)
    assert numbers(known.numbers).rho == pytest.approx(np.array(np.corrcoef(wrong.T))[np.triu_indices(3, 1)].mean())
    assert known.mistakes is not None
    assert (known.mistakes.both_wrong, known.mistakes.share, known.mistakes.by_chance) == (6, 1.0, 0.5)
    unknown = only(panel_diagnostics(seen("choice", row, number=n) for n, row in enumerate(ballots))).final
    alike = [np.mean([row[i] == row[j] for row in ballots]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert numbers(unknown.numbers).rho == pytest.approx(np.mean([(share - 1 / 3) / (1 - 1 / 3) for share in alike]))
    assert (unknown.basis, unknown.n_items, unknown.mistakes) == ("answers", 12, None)


def test_copies_are_one_member_for_every_kind() -> None:
    said: dict[Kind, list[Any]] = {
        "estimate": [float(n) for n in range(1, 13)],
        "probability": [0.05 * n for n in TWELVE],
        "choice": ["xyz"[n % 3] for n in TWELVE],
        "distribution": [(n / 12, 1 - n / 12, 0.0) for n in TWELVE],
    }
    truths: dict[Kind, Any] = {"estimate": 3.0, "probability": 1, "choice": "x", "distribution": "y"}
    for kind, values in said.items():
        for truth in (None, truths[kind]):
            items = [seen(kind, (value,) * 3, number=n, truth=truth) for n, value in enumerate(values)]
            made = numbers(only(panel_diagnostics(items)).final.numbers)
            assert made.equal_weight == pytest.approx(1.0), kind
            assert made.equicorrelated == pytest.approx(1.0), kind


def test_rounds_by_hand() -> None:
    items = [
        seen("probability", (0.2, 0.4, 0.9), (0.6, 0.4, 0.4), number=1, truth=1),
        seen("probability", (0.2, 0.4, 0.9), (0.2, None, 0.9), (0.2, 0.2, 0.9), number=2, truth=0),
    ]
    unknown = seen("probability", (0.2, 0.4, 0.9), (0.2, 0.4, 0.9), number=3)
    extra = only(panel_diagnostics([*items, unknown])).rounds[1]
    assert (extra.n_items, extra.revised, extra.n_known, extra.revised_known) == (3, 8, 2, 5)
    first, second, third = only(panel_diagnostics(items)).rounds
    assert (first.n_items, first.answers, first.revised, first.changed, first.right) == (2, 6, 0, None, 1 + 2)
    assert first.spread == pytest.approx(0.35)
    assert (second.n_items, second.answers, second.revised, second.changed) == (2, 6, 5, 2)
    assert (second.right_to_wrong, second.wrong_to_right, second.right, second.n_known) == (1, 1, 3, 2)
    assert (third.n_items, third.revised, third.right_to_wrong) == (1, 3, 0)
    assert third.spread == pytest.approx(0.35)
    assert third.crowd is not None
    assert third.crowd.avg_error == pytest.approx((0.2**2 * 2 + 0.9**2) / 3)
    assert third.crowd.crowd_error == pytest.approx((1.3 / 3) ** 2)
    assert third.crowd.diversity == pytest.approx(third.crowd.avg_error - third.crowd.crowd_error)


def test_without_truth_no_flips_are_counted_as_none() -> None:
    (_, second) = only(panel_diagnostics([seen("estimate", (1, 2, 3), (2, 2, 3))])).rounds
    assert (second.revised, second.changed, second.right, second.right_to_wrong, second.crowd) == (
        3,
        None,
        None,
        None,
        None,
    )


def test_kinds_and_scales_are_never_mixed() -> None:
    items = [seen("estimate", (1, 2, 3), number=1), seen("estimate", (1, 2, 3), number=2, scale="log")]
    made = panel_diagnostics([*items, seen("choice", ("x", "y", "y"), number=3)])
    assert [family.family for family in made.families] == ["choice", "estimate (linear)", "estimate (log)"]
    assert told(made)[0].startswith("choice: effective members: unknown (too few items")


def test_a_seat_that_joins_at_the_end_is_not_missed_at_the_start() -> None:
    def joined(number: int) -> Observed:
        first = first_table("ab", [Answered(said_type="probability", said=make("probability", p)) for p in (0.1, 0.4)])
        last = first_table(
            "abs", [Answered(said_type="probability", said=make("probability", p)) for p in (0.1, 0.4, 0.9)]
        )
        return observe(ask("probability", name=f"q{number}"), Deliberation((first, last)), truth=number % 2)

    made = only(panel_diagnostics(joined(number) for number in TWELVE))
    assert (made.first.members, made.first.absent, made.final.members) == (("a", "b"), (), ("a", "b", "s"))


def record(role: int, outcome: Outcome, *flags: Flag) -> TurnRecord:
    """Return of a turn what citations are counted from."""
    said = SimpleNamespace(seat=SimpleNamespace(role=ROLES[role]), taken=SimpleNamespace(outcome=outcome), flags=flags)
    return cast("TurnRecord", said)


def test_faithfulness_of_every_answer_by_role() -> None:
    item = make_item(kind="choice")
    flag = Flag(code="unknown_evidence_id", evidence_id="Z9", detail="")
    records = [
        record(0, Answered(said_type="choice", said=make("choice", "x", "P", "Z9")), flag),
        record(0, Answered(said_type="choice", said=make("choice", "x", "P", "C01"))),
        record(1, Answered(said_type="critiques", said=CritiqueSet(critiques=()))),
        record(1, LOST),
        record(2, Answered(said_type="choice", said=make("choice", "y"))),
    ]
    found = cited(item, records, arm="F")
    assert [(one.role, one.cited, one.existing) for one in found] == [
        ("comparables", 2, 1),
        ("comparables", 2, 2),
        ("condition", 0, 0),
    ]
    made = panel_diagnostics([observe(ask("choice"), deliberation("choice", ("x", "y", "y")), truth=None, cited=found)])
    assert [(row.role, row.answers, row.flagged, row.share_existing) for row in made.faithfulness] == [
        (None, 3, 1, 0.75),
        ("comparables", 2, 1, 0.75),
        ("condition", 1, 0, None),
    ]
    assert told(made)[-1] == "answers flagged against their evidence: 1 of 3 (unknown_evidence_id 1)"
    assert made.record()["faithfulness"][1]["counts"] == {"unknown_evidence_id": 1}


def test_the_record_is_json() -> None:
    items = [seen("choice", ("x", "y", "z"), ("x", "x", "z"), number=n, truth="xyz"[n % 3]) for n in TWELVE]
    items.append(replace(seen("estimate", (1, 2, None), number=99), citations=(Citations("F", "r", 1, 1, ()),)))
    made = panel_diagnostics(items).record()
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["families"][0]["final"]["shared_mistakes"]["both_wrong"] > 0
    assert made["families"][0]["rounds"][1]["changed"] == 12
    assert panel_diagnostics([]).record() == {"families": [], "faithfulness": []}


def test_lines_of_a_run() -> None:
    rng = np.random.default_rng(1)
    items = []
    for n in TWELVE:
        said = rng.uniform(0.1, 0.9, 3).tolist()
        items.append(seen("probability", said, [*said[:2], said[0]], number=n, truth=n % 2))
    lines = told(panel_diagnostics(items))
    assert lines[0].startswith("effective members before the discussion: ")
    assert lines[1].endswith(" of 3 (equal weights, from errors on 12 items)")
    assert lines[2].startswith("mean spread by round: 0.")
    assert lines[3].startswith("flips in round 1: ")
    assert lines[3].endswith(" wrong to right, of 36 revisions")
    assert len(lines) == 4


def test_lines_of_an_item() -> None:
    said = deliberation("probability", (0.2, 0.8, 0.9), (0.5, 0.8, 0.95))
    assert told_of_item(item_diagnostics(ask("probability"), said)) == [
        "spread by round: 0.35, 0.225",
        "round 1: a moved toward b (50% of the gap), c (43% of the gap), and changed sides",
        "round 1: c moved away",
    ]
    alone = item_diagnostics(ask("probability"), deliberation("probability", (0.2,), seats="a"))
    assert told_of_item(alone) == []
