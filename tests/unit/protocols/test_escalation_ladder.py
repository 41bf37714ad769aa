"""A vote that escalates: which step decides, what is demanded of it, what is shown, and how a tie is settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from consilience.core.answers import Abstention
from consilience.core.deliberation import Deliberation
from consilience.core.outcomes import Abstained, Outcome, Unreadable
from consilience.core.question import Option
from consilience.core.turn import Turn
from consilience.errors import ConfigError, PlanError
from consilience.protocols.escalation import DEBATE, FULL, QUICK, TIE, Escalation
from engine_cases import question
from protocol_cases import LOST, FakeSession, answered, critic, seated

REFUSED = Abstained(said=Abstention(reason="I will not.", by="vendor"))
X, Y, Z = "o0", "o1", "o2"
ALL = (X, Y, Z)


def vote(choice: str, confidence: float = 0.9, *, ranked: bool = True, **changes: Any) -> Outcome:
    ranking = [choice, *(option for option in ALL if option != choice)] if ranked else None
    return answered("choice", **({"choice": choice, "confidence": confidence, "ranking": ranking} | changes))


def climb(
    rules: Escalation,
    first: Sequence[Outcome],
    *final: Sequence[Outcome],
    moderator: Outcome | None = None,
    options: int = 3,
) -> tuple[Deliberation, FakeSession]:
    """Let members vote, and after every pass of the debate vote again."""

    def say(seat: str, turn: Turn) -> Outcome:
        number = int(seat[-2:]) - 1
        if turn.kind == "critique":
            return critic()
        if turn.kind == "moderation":
            assert moderator is not None
            return moderator
        return first[number] if turn.kind == "estimate" else final[turn.round - 1][number]

    asked = question("choice", options=tuple(Option(id=name, label=name) for name in ALL[:options]))
    session = FakeSession(asked, seated(len(first), "moderator"), say)
    return anyio.run(rules.run, session), session


def steps(course: Deliberation) -> list[tuple[str, bool]]:
    return [(step["step"], step["decided"]) for step in course.notes["steps"]]


def turns(session: FakeSession) -> list[str]:
    return [turn.kind for _, turn in session.turns()]


def test_two_who_agree_and_are_sure_decide_and_nobody_else_is_asked() -> None:
    course, session = climb(Escalation(), [vote(X, 0.9), vote(X, 0.8), vote(Y), vote(Y), vote(Y)])
    assert (course.notes["outcome"], course.notes["winner"], course.notes["step"]) == ("winner", X, QUICK)
    assert [seat for seat, _ in session.turns()] == ["analyst_01", "analyst_02"]


@pytest.mark.parametrize(
    "first",
    [
        [vote(X, 0.95), vote(Y, 0.15)],  # by share of confidence alone this would pass
        [vote(X, 0.85), vote(X, 0.84)],  # both agree, and are not sure enough
        [vote(X, 1.0), LOST],
        [vote(X, 1.0), REFUSED],
    ],
)
def test_a_quick_vote_that_is_not_enough_goes_on_to_all(first: list[Outcome]) -> None:
    course, session = climb(Escalation(), [*first, vote(X), vote(X), vote(X)])
    assert steps(course)[0] == (QUICK, False)
    assert (course.notes["step"], course.notes["winner"]) == (FULL, X)
    assert [seat for seat, _ in session.turns()][:5] == [f"analyst_{number:02d}" for number in range(1, 6)]


def test_exactly_the_share_demanded_is_enough() -> None:
    course, _ = climb(Escalation(), [vote(X, 0.85), vote(X, 0.85), vote(Y)])
    assert course.notes["step"] == QUICK
    rules = Escalation(quick=0, full_share=0.6, passes=0)
    course, _ = climb(rules, [vote(X), vote(X), vote(X), vote(Y), vote(Y)])
    assert (course.notes["step"], course.notes["winner"]) == (FULL, X)


@pytest.mark.parametrize("method", ["unanimity", "supermajority"])
def test_a_method_that_demands_a_share_of_all_has_no_quick_vote(method: str) -> None:
    course, _ = climb(Escalation(method=method), [vote(X, 1.0)] * 5)
    assert (steps(course), course.notes["winner"]) == ([(FULL, True)], X)


def test_three_of_five_are_no_two_thirds_and_two_of_three_are() -> None:
    rules = Escalation(method="supermajority", full_share=0.5, passes=0)
    five, _ = climb(rules, [vote(X), vote(X), vote(X), vote(Y), vote(Y)])
    three, _ = climb(rules, [vote(X), vote(X), vote(Y)])
    assert (five.notes["outcome"], three.notes["outcome"]) == ("no_decision", "winner")
    higher = Escalation(method="supermajority", threshold="3/4", full_share=0.5, passes=0)
    assert climb(higher, [vote(X), vote(X), vote(Y)])[0].notes["outcome"] == "no_decision"


def test_a_majority_of_three_fifths_is_debated_and_the_final_vote_counts_by_the_same_rule() -> None:
    split = [vote(X), vote(X), vote(X), vote(Y), vote(Y)]
    course, session = climb(Escalation(quick=0), split, [vote(X)] * 4 + [vote(Y)])
    assert (course.notes["step"], course.notes["winner"]) == (DEBATE, X)
    assert turns(session) == ["estimate"] * 5 + ["critique"] * 5 + ["revision"] * 5


def test_the_debate_has_no_more_passes_than_declared() -> None:
    split = [vote(X), vote(X), vote(Y), vote(Y), vote(Z)]
    rules = Escalation(quick=0, passes=3)
    course, session = climb(rules, split, split, split, split)
    assert turns(session).count("critique") == 15
    assert [name for name, _ in steps(course)] == [FULL, DEBATE, DEBATE, DEBATE, TIE]
    assert (course.notes["outcome"], course.notes["needs_human"]) == ("no_decision", True)
    sooner, _ = climb(rules, split, split, [vote(Y)] * 5)
    assert [name for name, _ in steps(sooner)] == [FULL, DEBATE, DEBATE]


def test_the_final_vote_is_asked_of_all_at_once_so_that_nobody_sees_a_ballot() -> None:
    split = [vote(X), vote(X), vote(Y), vote(Y), vote(Z)]
    _, session = climb(Escalation(quick=0), split, split)
    final = session.asked[-1]
    assert [ask.turn.kind for ask in final] == ["revision"] * 5
    assert all(row.answer is not None for ask in final for row in ask.shown.table or ())
    assert {tuple(row.answered_round for row in ask.shown.table or ()) for ask in final} == {(0,) * 5}


@pytest.mark.parametrize(("reveal", "others"), [("positions", "reasons"), ("arguments", "arguments")])
def test_what_is_revealed_in_the_debate(reveal: Any, others: str) -> None:
    split = [vote(X), vote(X), vote(Y), vote(Y), vote(Z)]
    _, session = climb(Escalation(quick=0, reveal=reveal), split, split)
    assert {ask.shown.others for stage in session.asked[1:] for ask in stage} == {others}


TIED = [vote(X), vote(X), vote(Y), vote(Y)]


@pytest.mark.parametrize(
    ("ties", "moderator", "winner", "by", "human"),
    [
        (("safety_order", "human"), None, Y, "safety_order", False),
        (("human",), None, None, None, True),
        (("moderator", "human"), vote(X), X, "moderator", False),
        (("moderator", "human"), vote(Z), None, None, True),  # no longer in question
        (("moderator", "human"), REFUSED, None, None, True),
        (("moderator",), LOST, None, None, False),
        ((), None, None, None, False),
        (("moderator", "safety_order"), LOST, Y, "safety_order", False),
    ],
)
def test_a_tie_is_settled_in_the_declared_order_and_by_what_is_recorded(
    ties: tuple[str, ...], moderator: Outcome | None, winner: str | None, by: str | None, *, human: bool
) -> None:
    rules = Escalation(method="plurality", quick=0, passes=0, ties=ties, safety_order=(Y, Z, X))
    course, session = climb(rules, TIED, moderator=moderator)
    assert (course.notes["winner"], course.notes["decided_by"]) == (winner, by)
    assert course.notes["needs_human"] is human
    assert course.notes["outcome"] == ("winner" if winner else "tie")
    assert course.notes["among"] == [X, Y]
    assert turns(session).count("moderation") == int("moderator" in ties)


def test_lots_are_drawn_only_where_asked_for_and_alike_for_the_same_seed() -> None:
    drawn = {
        seed: climb(Escalation(method="plurality", quick=0, passes=0, ties=("random",), draw=seed), TIED)[0].notes
        for seed in range(12)
    }
    assert {told["winner"] for told in drawn.values()} == {X, Y}
    assert {told["decided_by"] for told in drawn.values()} == {"random"}
    again, _ = climb(Escalation(method="plurality", quick=0, passes=0, ties=("random",), draw=3), TIED)
    assert again.notes["winner"] == drawn[3]["winner"]


def test_the_moderator_is_shown_the_whole_record_and_what_is_in_question() -> None:
    rules = Escalation(method="plurality", quick=0, passes=0, ties=("moderator",))
    _, session = climb(rules, TIED, moderator=vote(Y))
    ((ask,),) = [stage for stage in session.asked if stage[0].turn.kind == "moderation"]
    assert (ask.seat, ask.shown.among, ask.shown.whole_packet) == ("analyst_05", (X, Y), True)
    assert len(ask.shown.table or ()) == 4


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        ([LOST, LOST, LOST, vote(X), vote(X)], "no_quorum"),
        ([LOST, LOST, vote(X), vote(X), vote(X)], "winner"),
        ([REFUSED] * 5, "no_quorum"),
        ([vote(X)], "winner"),
    ],
)
def test_a_quorum_is_more_than_half_of_all_members(first: list[Outcome], outcome: str) -> None:
    course, _ = climb(Escalation(quick=0, passes=0), first)
    assert course.notes["outcome"] == outcome


def test_a_refusal_is_no_vote_for_anything() -> None:
    course, _ = climb(Escalation(quick=0, passes=0), [REFUSED, REFUSED, vote(X), vote(X), vote(Y)])
    tally = course.notes["steps"][0]["tally"]
    assert (tally["n"], tally["counts"]) == (3, {X: 2, Y: 1, Z: 0})


def test_a_ballot_without_a_ranking_is_none_for_a_rule_that_reads_rankings() -> None:
    bare = [vote(X, ranked=False)] * 3 + [vote(Y)] * 2
    course, _ = climb(Escalation(method="borda", quick=0, passes=0), bare)
    assert course.notes["outcome"] == "no_quorum"
    assert set(course.notes["steps"][0]["unused"]) == {"analyst_01", "analyst_02", "analyst_03"}


def test_a_member_cannot_vote_for_its_own_option_and_its_ranking_goes_on_to_the_next() -> None:
    rules = Escalation(quick=0, passes=0, own=(X, "", ""))
    course, _ = climb(rules, [vote(X), vote(Y), vote(Y)])
    assert course.notes["steps"][0]["tally"]["counts"] == {X: 0, Y: 3, Z: 0}
    bare, _ = climb(rules, [vote(X, ranked=False), vote(Y), vote(Y)])
    assert bare.notes["steps"][0]["tally"]["unused"] == {"analyst_01": "it chooses no option"}


def test_declared_weights_decide_a_weighted_vote() -> None:
    rules = Escalation(method="weighted", quick=0, passes=0, full_share=0.6, weights=(3.0, 1.0, 1.0))
    course, _ = climb(rules, [vote(X), vote(Y), vote(Y)])
    assert course.notes["winner"] == X


@pytest.mark.parametrize("members", [1, 2])
def test_one_or_two_voters_have_no_quick_vote_of_their_own(members: int) -> None:
    course, _ = climb(Escalation(passes=0), [vote(X, 1.0)] * members)
    assert steps(course) == [(FULL, True)]


def test_the_course_can_take_the_whole_plan_and_no_more() -> None:
    split = [vote(X), vote(Y), vote(X), vote(Y), vote(Z)]
    rules = Escalation(ties=("moderator",), passes=2)
    course, session = climb(rules, split, split, split, moderator=vote(X))
    planned = rules.plan(session.seating)
    assert session.turns() == [(one.seat, one.turn) for one in planned]
    assert course.variants.keys() == {"moderator"}


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Escalation(method="majorty"), ConfigError, "majority"),
    (lambda: Escalation(ties=("dice",)), ConfigError, "dice"),
    (lambda: Escalation(ties=("random", "human")), PlanError, "random before its end"),
    (lambda: Escalation(ties=("human", "human")), PlanError, "twice"),
    (lambda: Escalation(full_share=0.0), PlanError, "share"),
    (lambda: Escalation(quick_share=1.1), PlanError, "share"),
    (lambda: Escalation(passes=4), PlanError, "passes"),
    (lambda: Escalation(quick=1), PlanError, "quick"),
    (lambda: Escalation(threshold="2/3"), PlanError, "supermajority"),
    (lambda: Escalation(method="supermajority", threshold="1/2"), PlanError, "threshold"),
    (lambda: Escalation(method="supermajority", threshold="two thirds"), PlanError, "two thirds"),
    (lambda: Escalation(weights=(1.0,)), PlanError, "weighted"),
    (lambda: Escalation(method="weighted", weights=(1.0, -1.0)), PlanError, "at least 0"),
    (lambda: Escalation(method="weighted", weights=(1.0, float("nan"))), PlanError, "at least 0"),
    (lambda: Escalation(method="weighted", weights=(1.0, float("inf"))), PlanError, "at least 0"),
    (lambda: Escalation(method="weighted", weights=(0.0, 0.0)), PlanError, "not all of them 0"),
    (lambda: climb(Escalation(quick=9), TIED), PlanError, "quick vote of 9"),
    (lambda: climb(Escalation(safety_order=(X, Y)), TIED), PlanError, "safety order"),
    (lambda: climb(Escalation(method="weighted", weights=(1.0,)), TIED), PlanError, "weights"),
    (lambda: climb(Escalation(own=("q", "", "", "")), TIED), PlanError, "own option"),
    (lambda: climb(Escalation(quorum=9), TIED), PlanError, "quorum"),
]


@pytest.mark.parametrize(("make", "error", "said"), WRONG)
def test_rules_that_contradict_each_other_are_refused(
    make: Callable[[], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        make()
    assert said in str(caught.value)


UNREADABLE = Unreadable(problems=("no JSON",))
SPLIT = [vote(X), vote(X), vote(X), vote(Y), vote(Y)]


@pytest.mark.parametrize("none", [LOST, REFUSED, UNREADABLE])
@pytest.mark.parametrize(
    ("final", "outcome", "counts"),
    [
        ("X....", "no_quorum", None),  # not 4 : 1 by ballots of the vote before
        (".....", "no_quorum", None),
        ("X...X", "no_quorum", None),
        ("X..XX", "winner", {X: 3, Y: 0, Z: 0}),
        ("X..XY", "winner", {X: 2, Y: 1, Z: 0}),
        ("X.XYY", "tie", {X: 2, Y: 2, Z: 0}),
    ],
)
def test_a_ballot_that_is_not_cast_in_the_final_vote_is_none(
    none: Outcome, final: str, outcome: str, counts: dict[str, int] | None
) -> None:
    votes = {"X": vote(X), "Y": vote(Y), ".": none}
    rules = Escalation(quick=0, method="plurality", ties=(), safety_order=(X, Y, Z))
    course, _ = climb(rules, SPLIT, [votes[letter] for letter in final])
    last = [step for step in course.notes["steps"] if step["step"] == DEBATE][-1]
    assert course.notes["outcome"] == outcome
    assert (last["tally"]["counts"] if "tally" in last else None) == counts
    assert [row.answer is None for row in course.final] == [letter == "." for letter in final]


def test_no_old_ballot_makes_a_winner_of_a_final_vote_that_all_refuse() -> None:
    rules = Escalation(quick=0, method="plurality", safety_order=(X, Y, Z))
    course, _ = climb(rules, [*TIED, REFUSED], [REFUSED] * 5)
    assert (course.notes["outcome"], course.notes["winner"]) == ("no_quorum", None)
    assert steps(course) == [(FULL, False), (DEBATE, False)]


def test_whoever_was_silent_at_first_may_vote_in_the_end() -> None:
    rules = Escalation(quick=0, full_share=0.8)
    course, _ = climb(rules, [vote(X), vote(Y), vote(Y), LOST, REFUSED], [vote(X)] * 5)
    assert course.notes["steps"][-1]["tally"]["counts"] == {X: 5, Y: 0, Z: 0}


@pytest.mark.parametrize("ties", [("random",), ("safety_order",), ("safety_order", "random")])
@pytest.mark.parametrize("draw", range(6))
def test_a_lead_that_is_too_small_is_no_tie_and_nothing_overrules_it(ties: tuple[str, ...], draw: int) -> None:
    rules = Escalation(quick=0, passes=0, ties=ties, draw=draw, safety_order=(Z, Y, X))
    course, _ = climb(rules, SPLIT)
    assert (course.notes["outcome"], course.notes["winner"]) == ("no_decision", None)
    assert "no tie" in course.notes["steps"][-1]["why"]


def test_a_moderator_may_confirm_a_lead_that_is_too_small_and_choose_nothing_else() -> None:
    rules = Escalation(quick=0, passes=0, ties=("moderator", "human"))
    confirmed, session = climb(rules, SPLIT, moderator=vote(X))
    assert (confirmed.notes["winner"], confirmed.notes["decided_by"]) == (X, "moderator")
    assert session.asked[-1][0].shown.among == (X,)
    other, _ = climb(rules, SPLIT, moderator=vote(Y))
    assert (other.notes["winner"], other.notes["needs_human"]) == (None, True)
    assert other.notes["among"] == [X, Y]  # the person is told of all that have a ballot


@pytest.mark.parametrize("draw", range(6))
def test_lots_are_drawn_among_those_that_tie_for_the_lead_alone(draw: int) -> None:
    rules = Escalation(quick=0, passes=0, ties=("random",), draw=draw)
    course, _ = climb(rules, [vote(X), vote(X), vote(Y), vote(Y), vote(Z)])
    assert course.notes["winner"] in {X, Y}


def test_of_options_without_any_support_none_is_taken() -> None:
    rules = Escalation(method="approval", quick=0, passes=0, ties=("safety_order", "random"), safety_order=(X, Y, Z))
    course, _ = climb(rules, [vote(X, approvals=())] * 3)
    assert (course.notes["winner"], course.notes["steps"][-1]["why"]) == (
        None,
        "no option has a ballot: safety order and random not applied",
    )


QUICK_BALLOTS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("borda", {"ranked": False}, {}, False),  # no ballot for the method, so no quick decision by it
    ("borda", {}, {}, True),
    ("irv", {}, {}, True),
    ("approval", {}, {}, False),
    ("approval", {"approvals": (X,)}, {}, True),
    ("approval", {"approvals": (X, Y)}, {}, False),  # a tie by the method
    ("weighted", {}, {"weights": (0.0, 0.0, 1.0, 1.0, 1.0)}, False),
    ("weighted", {}, {"weights": (1.0, 2.0, 1.0, 1.0, 1.0)}, True),
]


@pytest.mark.parametrize(("method", "ballot", "rules", "quick"), QUICK_BALLOTS)
def test_a_quick_vote_decides_nothing_that_the_method_does_not(
    method: str, ballot: dict[str, Any], rules: dict[str, Any], quick: bool
) -> None:
    course, _ = climb(Escalation(method=method, passes=0, **rules), [vote(X, **ballot)] * 5)
    assert steps(course)[0] == (QUICK, quick)


def test_prose_in_the_place_of_a_ranking_is_no_ballot_for_a_rule_that_reads_rankings() -> None:
    prose = vote(X, ranking=["first ship", "then wait"])
    course, _ = climb(Escalation(method="schulze", quick=0, passes=0), [prose, prose, vote(Y), vote(Y), vote(Y)])
    tally = course.notes["steps"][0]["tally"]
    assert (tally["n"], tally["winners"]) == (3, (Y,))
    assert set(tally["unused"]) == {"analyst_01", "analyst_02"}
