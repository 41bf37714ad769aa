from __future__ import annotations

from typing import Any

import pytest

from consilience.errors import IntegrityError, JournalError
from consilience.journal.events import (
    EVENT_TYPES,
    NOWHERE,
    ItemFinished,
    RunResumed,
    TextStored,
    TurnAccepted,
    Where,
    from_json,
    to_json,
)

WHERE = Where(item="a", round=1, seat="analyst_01", kind="revision", sample=0)
GOOD = {"seq": 3, "at": "t", **to_json(TurnAccepted(key="k", asks=2, outcome={"p": None}), WHERE)}


def test_an_event_is_read_as_it_was_written() -> None:
    assert from_json(dict(GOOD)) == (3, "t", WHERE, TurnAccepted(key="k", asks=2, outcome={"p": None}))


def test_lone_surrogates_and_nul_survive() -> None:
    event = TextStored(sha256="s", text="\ud800\x00")
    assert from_json({"seq": 1, "at": "t", **to_json(event, NOWHERE)})[3] == event


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"asks": True}, "asks"),
        ({"asks": 1.0}, "asks"),
        ({"key": None}, "key"),
        ({"outcome": []}, "outcome"),
        ({"seq": "3"}, "seq"),
        ({"round": "1"}, "round"),
        ({"surplus": 1}, "surplus"),
        ({"type": "turn.lost"}, "unknown"),
        ({"type": []}, "unknown"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(IntegrityError, match=problem):
        from_json({**GOOD, **change})


@pytest.mark.parametrize("missing", ["seq", "at", "key", "asks", "outcome"])
def test_a_missing_field_is_named(missing: str) -> None:
    with pytest.raises(IntegrityError, match=f'"{missing}" is missing'):
        from_json({name: value for name, value in GOOD.items() if name != missing})


def test_what_could_not_be_read_back_is_not_written() -> None:
    with pytest.raises(JournalError, match='"asks" is str, not int'):
        to_json(TurnAccepted(key="k", asks="2", outcome={}), NOWHERE)  # type: ignore[arg-type]
    assert to_json(RunResumed(accepted=[], torn_bytes=0), NOWHERE)["type"] == "run.resumed"


def test_no_field_of_an_event_hides_a_coordinate() -> None:
    taken = {"seq", "type", "at", *Where._fields}
    assert {name: taken & cls.__dataclass_fields__.keys() for name, cls in EVENT_TYPES.items()} == {
        name: {"type"} & cls.__dataclass_fields__.keys() for name, cls in EVENT_TYPES.items()
    }
    assert ItemFinished().data == {}


def test_coordinates_sort_with_absent_ones_first() -> None:
    places = [WHERE, Where(item="a"), NOWHERE, Where(item="a", round=0)]
    assert sorted(places, key=Where.sort_key) == [NOWHERE, Where(item="a"), Where(item="a", round=0), WHERE]
    assert NOWHERE.label() == "the run"
