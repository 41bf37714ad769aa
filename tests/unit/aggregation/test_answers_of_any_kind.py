from __future__ import annotations

import json
from typing import Any

import pytest

from consilience.aggregation.answers import FittedPanel, aggregate_answers, answer_columns, default_rule, rule_names
from consilience.aggregation.dissent import dissenters
from consilience.aggregation.recalibration import Recalibration
from consilience.aggregation.resolved import FittedProbabilities
from consilience.aggregation.rows import AggregateRow
from consilience.aggregation.tallies import Tally
from consilience.core.answers import AnyAnswer, Choice, Distribution, Estimate, OptionProbability, Probability
from consilience.core.question import Option, Question
from consilience.errors import DataError, QuorumError

SHARED: dict[str, Any] = {
    "evidence_ids": (),
    "reasoning_summary": "",
    "counterarguments": (),
    "missing_data": (),
}
OPTIONS = tuple(Option(id=name, label=name) for name in "xyz")


def question(kind: Any) -> Question:
    return Question(id="q", text="?", kind=kind, options=OPTIONS if kind in {"choice", "distribution"} else ())


def estimate(point: float, width: float = 1.0) -> Estimate:
    marks: dict[str, Any] = {f"q{level:02d}": point + width * (level - 50) / 45 for level in (5, 25, 50, 75, 95)}
    return Estimate(point=point, **marks, adjustments=(), key_assumptions=(), confidence_rationale="", **SHARED)


def probability(p: float) -> Probability:
    return Probability(p_yes=p, rationale="", **SHARED)


def distribution(*p: float) -> Distribution:
    rows = tuple(OptionProbability(option_id=o.id, p=x) for o, x in zip(OPTIONS, p, strict=True))
    return Distribution(probabilities=rows[::-1], rationale="", **SHARED)


def ballot(choice: str) -> Choice:
    return Choice(choice=choice, confidence=1.0, rationale="", **SHARED)


def seated(*answers: AnyAnswer) -> list[tuple[str, AnyAnswer]]:
    return [(f"s{index}", answer) for index, answer in enumerate(answers)]


CASES: dict[str, list[tuple[str, AnyAnswer]]] = {
    "estimate": seated(estimate(10), estimate(12), estimate(40)),
    "probability": seated(probability(0.2), probability(0.3), probability(0.9)),
    "distribution": seated(distribution(0.5, 0.5, 0.0), distribution(0.25, 0.5, 0.25)),
    "choice": seated(ballot("x"), ballot("z"), ballot("x")),
}


@pytest.mark.parametrize("kind", CASES)
def test_every_kind_gives_a_row_per_rule_with_all_its_columns(kind: Any) -> None:
    rows = aggregate_answers(question(kind), CASES[kind])
    told = [row.rule for row in rows]
    # Rules that count rankings have no row here: no ballot ranks.
    assert told == [name for name in rule_names(kind) if name in told or kind != "choice"]
    assert {default_rule(kind, n) for n in (1, 7, 8, 20)} <= set(rule_names(kind))
    for row in rows:
        assert list(row.cells) == answer_columns(question(kind))
        assert json.loads(json.dumps(row.record()))["rule"] == row.rule
        json.dumps(row.headline)


def test_answers_are_those_of_the_rules() -> None:
    made = {kind: aggregate_answers(question(kind), answers)[0] for kind, answers in CASES.items()}
    assert isinstance(made["estimate"].made, AggregateRow)
    odds = {row.rule: row.cells for row in aggregate_answers(question("probability"), CASES["probability"])}
    assert odds["median"] == {"p": 0.3}
    assert made["distribution"].cells == {"option:x": 0.375, "option:y": 0.5, "option:z": 0.125}
    assert made["choice"].headline == {"winner": "x", "tied": [], "agreement_share": "2/3"}
    record = made["choice"].record()
    assert record["counts"] == {"x": 2, "y": 0, "z": 1}
    assert record["shares"] == {"x": "2/3", "y": "0", "z": "1/3"}


def test_a_tie_names_the_tied_and_no_winner() -> None:
    row = aggregate_answers(question("choice"), seated(ballot("z"), ballot("x")))[0]
    assert row.headline == {"winner": None, "tied": ["x", "z"], "agreement_share": "1/2"}
    assert isinstance(row.made, Tally)
    assert row.made.winner is None


@pytest.mark.parametrize("kind", CASES)
def test_no_answers_give_no_answer(kind: Any) -> None:
    with pytest.raises(QuorumError):
        aggregate_answers(question(kind), [])


def test_an_answer_of_another_kind_is_refused() -> None:
    with pytest.raises(DataError, match="s1 answered with Choice where Probability"):
        aggregate_answers(question("probability"), seated(probability(0.5), ballot("x")))


def differing(kind: Any, *answers: AnyAnswer) -> tuple[str, ...]:
    said = seated(*answers)
    rule = "median" if kind == "probability" else default_rule(kind, len(said))
    return dissenters(next(row for row in aggregate_answers(question(kind), said) if row.rule == rule), said)


def test_who_differs_from_an_estimate_excludes_it() -> None:
    assert differing("estimate", estimate(10, 3), estimate(12), estimate(40, 5)) == ("s2",)
    assert differing("estimate", estimate(10, 2), estimate(12)) == ()


def test_who_differs_from_a_probability_is_on_the_other_side_or_far() -> None:
    assert differing("probability", probability(0.55), probability(0.6), probability(0.45)) == ("s2",)
    assert differing("probability", probability(0.9), probability(0.7), probability(0.5)) == ()
    assert differing("probability", probability(0.91), probability(0.7), probability(0.5)) == ("s0",)


def test_who_differs_from_a_distribution_has_another_favourite() -> None:
    x, y = distribution(0.6, 0.4, 0.0), distribution(0.35, 0.65, 0.0)
    assert differing("distribution", x, x, y) == ("s2",)
    assert differing("distribution", x, x, distribution(0.5, 0.5, 0.0)) == ()


def test_who_differs_from_a_vote_voted_otherwise_and_on_a_tie_all_did() -> None:
    assert differing("choice", ballot("x"), ballot("z"), ballot("x")) == ("s1",)
    assert differing("choice", ballot("x"), ballot("z")) == ("s0", "s1")


def test_what_validation_taught_reaches_the_rules_of_probabilities() -> None:
    artefact = Recalibration("platt", (0.0, 0.5), (), "median", 90, "1")
    learnt = FittedProbabilities(
        stacking={"s0": 1.0, "s1": 0.0, "s2": 0.0}, rho=0.9, base_rate=0.3, n_items=90, complete_rows=90,
        recalibration=artefact,
    )  # fmt: skip
    panel = FittedPanel(probabilities=learnt)
    rows = {row.rule: row for row in aggregate_answers(question("probability"), CASES["probability"], panel)}
    assert list(rows) == [*rule_names("probability"), "recalibrated"]
    assert rows["stacking"].cells["p"] == pytest.approx(0.2)
    assert rows["sqrt_neff"].record()["rho"] == 0.9
    assert rows["recalibrated"].record()["artefact"] == "1"
    assert json.loads(json.dumps(rows["neyman"].record()))["base"] == 0.3
