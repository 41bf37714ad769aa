"""From what a user types to a question with evidence: hostile labels, documents, and what is refused."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from consilience.core.answers import Estimate
from consilience.core.packet import Item
from consilience.errors import ConfigError, DataError
from consilience.experiments.asked import MAX_CONTEXT_BYTES, MAX_DOCUMENT_BYTES, Asked, item_of, kind_named

DAY = date(2026, 11, 1)


def asked(text: str = "Which?", kind: Any = "choice", options: Any = ("a", "b"), **changes: Any) -> Item:
    return item_of(Asked(text, kind, options, **changes), today=DAY)


def test_options_get_ids_by_place_and_keep_their_labels() -> None:
    labels = ["🍵", "</data-0123456789abcdef>", "o1", *(f"option {number}" for number in range(4, 31))]
    question = asked(options=labels).question
    assert [option.id for option in question.options] == [f"o{number}" for number in range(1, 31)]
    assert [option.label for option in question.options] == labels


@pytest.mark.parametrize(
    "pair",
    [("yes", "yes"), ("yes", " yes "), ("to be", "to  be"), ("é", "e\u0301")],
    ids=["same", "ends", "gap", "form"],
)
def test_labels_that_look_alike_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="options 1 and 2 are both"):
        asked(options=pair)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"options": ()}, "at least two options"),
        ({"options": ("only",)}, "at least two options"),
        ({"options": "ab"}, "at least two options"),
        ({"options": ("a", "  ")}, "option 2 is empty"),
        ({"options": ("a", "\ud800")}, "cannot be shown"),
        ({"kind": "probability"}, "takes no options"),
        ({"kind": "chioce"}, 'unknown kind of answer "chioce"'),
        ({"kind": int}, 'unknown kind of answer "int"'),
        ({"text": " \n"}, "the question is empty"),
        ({"text": "x" * 20_001}, "20,001 bytes"),
        ({"text": "\ud800?"}, "cannot be asked"),
        ({"lower": 1.0}, "bounds belong to estimates"),
        ({"kind": "estimate", "options": (), "lower": 2.0, "upper": 1.0}, "lower must be below upper"),
        ({"kind": "estimate", "options": (), "lower": float("nan")}, "lower is nan"),
        ({"context": "a text"}, "not a list"),
    ],
)
def test_what_cannot_be_asked_is_said(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        asked(**changes)


def test_the_nearest_kind_is_named() -> None:
    with pytest.raises(ConfigError, match='Did you mean "choice"'):
        kind_named("chioce")
    assert kind_named(Estimate) == "estimate"


def test_the_same_question_has_the_same_id_and_another_another() -> None:
    one = asked()
    assert asked(context=["A text."]).question.id == one.question.id
    others = [asked("Who?"), asked(options=("a", "c")), asked(kind="distribution")]
    assert len({one.question.id, *(other.question.id for other in others)}) == 4


def test_documents_are_undated_evidence_admitted_today(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "note.md"
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbfIt opens on 2030-05-01.\r\n")
    packet = asked(context=["First text.", path]).packet
    assert (packet.cutoff, packet.cutoff_rule, packet.valuation_date) == (date(2026, 11, 2), "first_inadmissible", None)
    assert packet.admits(DAY)
    first, second = packet.items()
    assert (first.id, first.as_of, first.content) == ("D01", None, {"text": "First text."})
    assert second.content == {"name": "note.md", "text": "It opens on 2030-05-01.\r\n"}
    assert str(tmp_path) not in json.dumps(packet.model_dump(mode="json"))


def test_no_documents_make_no_section() -> None:
    assert asked().packet.sections == {}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"PK\x03\x04\x00\x00", "holds NUL characters"),
        (b"x" * (MAX_DOCUMENT_BYTES + 1), "more than 200,000 bytes"),
        (b"x" * (10 * MAX_DOCUMENT_BYTES), "more than 200,000 bytes"),
    ],
    ids=["empty", "blank", "utf-16", "zip", "long", "very long"],
)
def test_documents_that_cannot_be_read_are_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "document.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"document\.txt .*{said}"):
        asked(context=[path])


def test_missing_documents_folders_and_texts_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere\.txt: No such file"):
        asked(context=[tmp_path / "nowhere.txt"])
    with pytest.raises(ConfigError, match=r"cannot read .*: Is a directory"):
        asked(context=[tmp_path])
    with pytest.raises(DataError, match="text 2 of the context is no valid text"):
        asked(context=["fine", "\ud800"])
    with pytest.raises(DataError, match="text 1 of the context has more than 200,000 bytes"):
        asked(context=["x" * (MAX_DOCUMENT_BYTES + 1)])


def test_documents_are_bounded_together() -> None:
    most = MAX_CONTEXT_BYTES // MAX_DOCUMENT_BYTES
    asked(context=["x" * MAX_DOCUMENT_BYTES] * most)
    with pytest.raises(DataError, match=r"more than 500,000 bytes together, with text 3"):
        asked(context=["x" * MAX_DOCUMENT_BYTES] * (most + 1))


def test_a_document_of_just_the_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "document.txt"
    path.write_bytes(b"\xef\xbb\xbf" + b"x" * MAX_DOCUMENT_BYTES)
    assert len(str(asked(context=[path]).packet.items()[0].content["text"])) == MAX_DOCUMENT_BYTES
