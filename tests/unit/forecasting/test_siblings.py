"""Which questions tell the answer of which."""

from __future__ import annotations

from datetime import date
from typing import Any

from consilience.core.question import Option
from consilience.forecasting.questions import ForecastQuestion, Resolution
from consilience.forecasting.siblings import sibling_reveals

PAGE = "https://example.org/q/7"


def question(identity: str, text: str, **fields: Any) -> ForecastQuestion:
    return ForecastQuestion.model_validate({"id": identity, "text": text, "kind": "binary"} | fields)


def rules(*questions: ForecastQuestion) -> list[tuple[str, str, str]]:
    return [(found.revealing, found.revealed, found.rule) for found in sibling_reveals(questions)]


def test_the_same_text_and_a_ladder_reveal_each_other() -> None:
    a, b = question("a", "NATO article 5 in 2025?"), question("b", "NATO Article 5, in 2025?")
    c = question("c", "NATO article 5 in 2026?")
    assert rules(a, b) == [("a", "b", "same"), ("b", "a", "same")]
    assert rules(b, c) == [("b", "c", "ladder"), ("c", "b", "ladder")]


def test_months_are_steps_of_a_ladder() -> None:
    assert len(rules(question("a", "A cut in March 2025?"), question("b", "A cut in June 2025?"))) == 2


def test_a_question_opened_when_the_other_was_known_reveals_it() -> None:
    first = question(
        "a", "Who wins?", url=PAGE, resolution=Resolution(outcome=1.0, source="s", known_on=date(2025, 3, 1))
    )
    later = question("b", "Will the winner stay?", url=PAGE + "/#top", open_date=date(2025, 3, 1))
    assert rules(first, later) == [("b", "a", "opened_after")]
    before = question("b", "Will the winner stay?", url=PAGE, open_date=date(2025, 2, 28))
    assert rules(first, before) == []


def test_a_link_to_the_others_page_makes_a_sibling_that_may_name_its_outcome() -> None:
    options = (Option(id="h", label="Harrowick Herons"), Option(id="l", label="Linnford Lanterns"))
    cup = question(
        "a",
        "Which club wins the cup?",
        url=PAGE,
        kind="multiple_choice",
        options=options,
        resolution=Resolution(outcome="h", source="s"),
    )
    parade = question("b", "A parade?", description=f"For the Harrowick  herons, see {PAGE}.")
    lantern = question("c", "A parade there?", description=f"For the Linnford Lanterns, see {PAGE}.")
    assert rules(cup, parade, lantern) == [("b", "a", "names_outcome")]


def test_strangers_are_no_siblings() -> None:
    one = question("a", "Will it rain?", url="https://example.org/a", family="weather")
    other = question("b", "Will it be cold?", url="https://example.org/b", family="weather")
    assert rules(one, other) == []
    assert rules() == []
