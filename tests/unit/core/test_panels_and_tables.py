from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from consilience.core.answers import Abstention, AnyAnswer, Choice, CritiqueSet, Distribution, Estimate, Probability
from consilience.core.deliberation import Deliberation, first_table, has_quorum, next_table, present
from consilience.core.kinds import KINDS, compact, interquartile_range
from consilience.core.outcomes import Abstained, Answered, Failed, Outcome, Unreadable
from consilience.core.panel import diversity_warnings, mixed_models, seat_labels, seats_of, seeded_order
from consilience.core.question import Question
from consilience.core.role import Role
from engine_cases import OPTIONS, ROLES, answer_json, question

MODELS: dict[str, type[Any]] = {
    "estimate": Estimate,
    "probability": Probability,
    "distribution": Distribution,
    "choice": Choice,
}


def answer(kind: str = "estimate", **changes: Any) -> Any:
    return MODELS[kind].model_validate(answer_json(kind, **changes), strict=False)


def answered(point: float) -> Outcome:
    return Answered(said_type="estimate", said=answer(point=point))


LOST: tuple[Outcome, ...] = (
    Failed(error="TransientModelError", message="overloaded"),
    Unreadable(problems=("no JSON",)),
    Abstained(said=Abstention(reason="No.")),
)


@pytest.mark.parametrize("lost", LOST)
def test_a_member_without_a_new_answer_keeps_its_latest_and_says_of_which_round(lost: Outcome) -> None:
    seats = ("a", "b")
    first = first_table(seats, (answered(1.0), lost))
    second = next_table(first, (lost, answered(2.0)), round_=1)
    third = next_table(second, (lost, lost), round_=2)
    assert [(name, one.point) for name, one in present(third) if isinstance(one, Estimate)] == [("a", 1.0), ("b", 2.0)]
    assert [row.carried_at(2) for row in third] == [0, 1]
    assert [row.carried_at(1) for row in second] == [0, None]
    assert [row.carried_at(0) for row in first] == [None, None]
    assert third[0].outcome == lost
    assert Deliberation((first, second, third)).rounds_run == 2


@pytest.mark.parametrize("lost", LOST)
def test_a_member_that_never_answered_is_absent(lost: Outcome) -> None:
    table = next_table(first_table(("a",), (lost,)), (lost,), round_=1)
    assert (present(table), table[0].answered_round) == ([], None)


def test_critiques_are_no_answer() -> None:
    critiques = Answered(said_type="critiques", said=CritiqueSet(critiques=()))
    assert present(first_table(("a",), (critiques,))) == []


@pytest.mark.parametrize(
    ("seats", "answers", "holds"),
    [(1, 0, False), (1, 1, True), (2, 1, False), (3, 2, True), (4, 2, False), (12, 6, False), (12, 7, True)],
)
def test_a_quorum_is_more_than_half(seats: int, answers: int, holds: bool) -> None:
    outcomes = [answered(1.0)] * answers + [LOST[0]] * (seats - answers)
    assert has_quorum(first_table([str(n) for n in range(seats)], outcomes)) is holds


def spread(kind: Any, answers: list[AnyAnswer], **changes: Any) -> float:
    return KINDS[kind].spread(answers, question(kind, **changes))


def leading(kind: Any, answers: list[AnyAnswer], **changes: Any) -> Any:
    return KINDS[kind].leading(answers, question(kind, **changes))


def test_estimates_lead_by_their_median_and_spread_by_the_log_quartiles() -> None:
    points = [answer(point=value) for value in (100.0, 200.0, 400.0, 800.0, 1_600.0)]
    assert leading("estimate", points) == {"median": 400}
    assert spread("estimate", points) == pytest.approx(2 * math.log(2))
    assert spread("estimate", points, scale="linear") == 600.0
    assert leading("estimate", points[:2]) == {"median": compact(math.sqrt(20_000))}
    assert leading("estimate", points[:2], scale="linear") == {"median": 150}


def test_probabilities_and_distributions_lead_and_spread() -> None:
    some = [answer("probability", p_yes=p) for p in (0.1, 0.2, 0.9)]
    assert leading("probability", some) == {"median": 0.2}
    assert spread("probability", some) == pytest.approx(0.4)
    shares = [
        answer("distribution", probabilities=[{"option_id": f"o{n}", "p": p} for n, p in enumerate(row)])
        for row in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    ]
    assert leading("distribution", shares) == {"mean": {"o0": 0.5, "o1": 0.5, "o2": 0}}
    assert spread("distribution", shares) == 0.5


def test_a_tie_has_no_leader() -> None:
    votes = [answer("choice", choice=name) for name in ("o0", "o1")]
    assert leading("choice", votes) == {"leading": None}
    assert leading("choice", [*votes, votes[0]]) == {"leading": "o0"}
    assert spread("choice", [*votes, votes[0]]) == pytest.approx(1 / 3)
    assert spread("choice", votes[:1]) == 0.0


def test_a_row_shows_what_others_may_see() -> None:
    assert set(KINDS["estimate"].row(answer())) == {"point", "q05", "q95"}
    assert KINDS["probability"].row(answer("probability", confidence=0.5)) == {"p_yes": 0.3, "confidence": 0.5}
    assert KINDS["choice"].row(answer("choice")) == {"choice": "o1", "confidence": 0.5}
    assert set(KINDS["distribution"].row(answer("distribution"))["probabilities"]) == {o.id for o in OPTIONS}


@pytest.mark.parametrize("kind", MODELS)
def test_a_row_of_another_kind_is_a_mistake_of_ours(kind: str) -> None:
    other = answer("probability" if kind != "probability" else "choice")
    with pytest.raises(TypeError, match=f"not an? {kind}"):
        KINDS[kind].row(other)


def test_a_single_value_does_not_spread() -> None:
    assert (interquartile_range([]), interquartile_range([3.0]), interquartile_range([3.0, 3.0])) == (0.0, 0.0, 0.0)


def test_labels_are_neutral_unless_asked_otherwise() -> None:
    assert seat_labels(ROLES)[:2] == ("analyst_01", "analyst_02")
    assert seat_labels(ROLES, labels="role")[0] == "comparables"
    assert len(set(seat_labels([ROLES[0]] * 120))) == 120


def test_orders_are_seeded_permutations_that_differ_by_recipient() -> None:
    orders = {seat: seeded_order(12, 7, "item", "revision", 1, seat) for seat in seat_labels(ROLES)}
    assert all(sorted(order) == list(range(12)) for order in orders.values())
    assert len(set(orders.values())) == len(orders)
    assert seeded_order(5, 7, "item") == seeded_order(5, 7, "item")
    assert seeded_order(3, "a", "b") == seeded_order(3, "a", "b") != ()
    assert Counter(seeded_order(3, seed)[0] for seed in range(600)).most_common()[-1][1] > 150


def test_models_are_balanced_over_the_seats_and_drawn_per_item() -> None:
    drawn = {mixed_models(["a", "b"], 12, seed=7, item_id=f"item-{n}") for n in range(20)}
    assert {Counter(row)["a"] for row in drawn} == {6}
    assert len(drawn) > 15
    assert sorted(Counter(mixed_models(["a", "b"], 5, seed=7, item_id="x")).values()) == [2, 3]
    assert mixed_models(["a"], 3, seed=1, item_id="x") == ("a", "a", "a")


def test_a_panel_of_different_members_passes_without_a_warning() -> None:
    seats = seats_of(ROLES, ["m", "n", "m", "n", "m"])
    assert diversity_warnings(seats, voters=True) == ()


def test_what_makes_less_than_a_panel_is_said() -> None:
    same = seats_of([ROLES[0], ROLES[0]], ["m", "m"])
    assert diversity_warnings(same) == (
        "analyst_02 is a copy of analyst_01 (same role text, view, model and framing)",
        "members differ in nothing only; at least two of role text, view, model, framing should differ",
    )
    framed = [ROLES[0], ROLES[0].model_copy(update={"framing": "loss"})]
    assert diversity_warnings(seats_of(framed, ["m", "m"])) == (
        "members differ in framing only; at least two of role text, view, model, framing should differ",
    )
    four = seats_of(ROLES[:4], ["m", "n", "m", "n"])
    assert diversity_warnings(four, voters=True) == ("4 voters can tie; an odd number cannot in a yes/no vote",)
    assert "at least 5 are needed" in diversity_warnings(seats_of(ROLES[:3], "mnm"), voters=True, critical=True)[0]
    assert "at least 3 are needed" in diversity_warnings(seats_of(ROLES[:1], "m"), voters=True)[0]


def test_every_seat_has_a_model() -> None:
    with pytest.raises(ValueError, match="zip"):
        seats_of(ROLES, ["m"])


@pytest.mark.parametrize("name", ["Skeptic", "1st", "a b", "", "a" * 65, "a/b"])
def test_role_ids_are_plain(name: str) -> None:
    with pytest.raises(ValueError, match="id"):
        Role(id=name, view=("P",), text="Judge.")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"kind": "probability", "unit": "m"}, "belong to estimates"),
        ({"kind": "probability", "lower": 0.0}, "belong to estimates"),
        ({"kind": "probability", "scale": "log"}, "belong to estimates"),
        ({"kind": "estimate", "scale": "log", "lower": -5.0}, "log scale"),
        ({"kind": "estimate", "lower": 2.0, "upper": 1.0}, "below upper"),
    ],
)
def test_a_question_takes_only_what_fits_its_kind(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        Question(id="q", text="What?", **fields)
