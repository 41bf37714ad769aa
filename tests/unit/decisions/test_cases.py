"""A decision as a team brings it: what options are called, who owns them, and what cannot be told apart."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from consilience.core.visible import hidden, visible
from consilience.decisions.case import Case, read_case
from consilience.errors import ConfigError

ROLES = ("risk_analyst", "optimist", "neutral_analyst")


def case(*options: Any, **changes: Any) -> Case:
    return Case.model_validate({"question": "Which?", "options": options, **changes})


def test_declared_ids_are_those_of_ballots_rules_and_records() -> None:
    brought = case({"id": "wait", "label": "until Monday"}, "now", safety_order=["o2", "until Monday"])
    assert [option.id for option in brought.item(today=date(2026, 12, 1)).question.options] == ["wait", "o2"]
    assert brought.protocol(ROLES, weights=None, seed=0).safety_order == ("o2", "wait")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([{"id": "o2", "label": "blue"}, {"id": "o1", "label": "red"}], "names option 2"),
        ([{"id": "o2", "label": "blue"}, "red"], "share an id"),
        ([{"id": "wait", "label": "go"}, {"id": "go", "label": "wait"}], "the label of option 2"),
        (["o2", "red"], "the label of option 1"),
        ([{"id": "a", "label": "x"}, {"id": "a", "label": "y"}], "share an id"),
        ([{"id": "a b", "label": "x"}, "y"], "no id of an option"),
        ([{"id": "../a", "label": "x"}, "y"], "no id of an option"),
        ([{"id": "", "label": "x"}, "y"], "no id of an option"),
        ([{"id": "a\n", "label": "x"}, "y"], "no id of an option"),
        ([{"id": "a" * 65, "label": "x"}, "y"], "no id of an option"),
    ],
)
def test_ids_that_could_name_two_options_or_none_are_refused(options: list[Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        case(*options)


def test_an_id_that_is_its_own_options_label_names_it() -> None:
    assert case({"id": "wait", "label": "wait"}, "go").option_id("wait") == "wait"


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("wait\u200b", r"U\+200B"),
        ("\u202ewait", r"U\+202E"),
        ("wait\u2066", r"U\+2066"),
        ("wa\u00adit", r"U\+00AD"),
        ("wait\ufeff", r"U\+FEFF"),
        ("wait\0", r"U\+0000"),
        ("wait\x1b[31m", r"U\+001B"),
        ("wait\u3164", r"U\+3164"),
        ("wait\u200d", "are both"),  # it belongs to emoji and to words of some scripts, and tells nothing apart
        ("wait\ufe0f", "are both"),
        (" wait\u00a0", "are both"),
        ("\u200c", "empty"),
    ],
)
def test_options_that_only_differ_where_nobody_sees_it_are_refused(label: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        case("wait", label).item(today=date(2026, 12, 1))


def test_what_belongs_to_a_word_or_an_emoji_is_no_hidden_character() -> None:
    family, persian = "\U0001f468\u200d\U0001f469", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert hidden(family + persian + "a\nb\u00e9\u2764\ufe0f") == ()
    assert visible("e\u0301") == visible("\u00e9")
    assert [option.label for option in case(family, persian).item(today=date(2026, 12, 1)).question.options] == [
        family,
        persian,
    ]


def test_a_role_that_is_said_to_own_two_options_is_refused() -> None:
    brought = case({"label": "a", "own": "optimist"}, {"label": "b", "own": "optimist"}, "c")
    with pytest.raises(ConfigError, match="optimist is said to own o1 and o2"):
        brought.protocol(ROLES, weights=None, seed=0)
    two = case({"label": "a", "own": "optimist"}, {"label": "b", "own": "risk_analyst"}, "c")
    assert two.protocol(ROLES, weights=None, seed=0).own == ("o2", "o1", "")


def test_a_weighted_vote_needs_weights() -> None:
    with pytest.raises(ConfigError, match="no weights"):
        case("a", "b", method="weighted").protocol(ROLES, weights=None, seed=0)


@pytest.mark.parametrize(("written", "share"), [("0.75", "0.75"), ("2/3", "2/3"), ("1", "1"), ('"3/4"', "3/4")])
def test_a_threshold_may_be_a_number(tmp_path: Path, written: str, share: str) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(
        f"question: q\noptions: [a, b]\nmethod: supermajority\nthreshold: {written}\n",
        encoding="utf-8",
    )
    assert read_case(path).threshold == share
