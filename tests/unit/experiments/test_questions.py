from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_cases import question
from consilience.errors import DataError
from consilience.experiments.questions import question_line, read_questions


def written(path: Path, *values: Any, ahead: str = "") -> Path:
    file = path / "questions.jsonl"
    file.write_text(ahead + "".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8")
    return file


def asked(item_id: str = "q1", *, kind: str = "estimate", **changes: Any) -> dict[str, Any]:
    value = question(1)
    value["question"] |= {"id": item_id, "kind": kind}
    value["packet"]["item_id"] = item_id
    if kind != "estimate":
        del value["question"]["scale"], value["question"]["unit"], value["truth"]
    if kind in {"distribution", "choice"}:
        value["question"]["options"] = [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]
    return value | changes


def test_a_byte_order_mark_and_empty_lines_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, asked("a"), asked("b"), ahead="\ufeff\n")
    assert [item.question.id for item in read_questions(path)] == ["a", "b"]


def test_an_item_is_read_as_it_was_written_but_for_what_only_an_evaluation_knows(tmp_path: Path) -> None:
    (item,) = read_questions(written(tmp_path, asked(strata={"tier": "pilot"}, cluster="c")))
    (again,) = read_questions(written(tmp_path, question_line(item)))
    assert (again.truth, again.cluster, again.strata) == (None, None, {"tier": "pilot"})
    assert (again.question, again.packet, again.digest) == (item.question, item.packet, item.digest)


@pytest.mark.parametrize(
    ("kind", "truths"),
    [("estimate", [1, 1.5]), ("probability", [0, 1, 1.0]), ("distribution", ["yes"]), ("choice", ["no"])],
)
def test_truths_of_the_kind_are_taken(tmp_path: Path, kind: str, truths: list[Any]) -> None:
    for truth in truths:
        (item,) = read_questions(written(tmp_path, asked(kind=kind, truth=truth)))
        assert item.truth == truth


@pytest.mark.parametrize(
    ("kind", "truth", "said"),
    [
        ("estimate", "much", "is a text"),
        ("estimate", 0, "is not above 0"),
        ("estimate", -2.5, "is not above 0"),
        ("estimate", True, "truth"),
        ("probability", 0.5, "is neither 0 nor 1"),
        ("probability", "yes", "is a text"),
        ("choice", "maybe", "is no option id; known: yes, no"),
        ("distribution", 1, "is no option id"),
    ],
)
def test_a_truth_of_another_sort_names_line_and_item(tmp_path: Path, kind: str, truth: Any, said: str) -> None:
    path = written(tmp_path, asked("fine"), asked("odd", kind=kind, truth=truth))
    with pytest.raises(DataError, match=r"questions\.jsonl, line 2 \(item odd\): ") as caught:
        read_questions(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "name", [".", "..", ".hidden", "con", "NUL", "Aux.txt", "com1", "LPT9.a", "a/b", "x" * 129, ""]
)
def test_ids_that_can_name_no_file_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"line 1.*: question\.id: "):
        read_questions(written(tmp_path, asked(name)))


@pytest.mark.parametrize("name", ["console", "a.con", "com10", "null", "_", "-", "1"])
def test_ids_that_only_look_like_devices_are_taken(tmp_path: Path, name: str) -> None:
    assert read_questions(written(tmp_path, asked(name)))[0].question.id == name


def test_ids_that_differ_only_in_case_name_both_lines(tmp_path: Path) -> None:
    for other in ("Tower", "tower"):
        with pytest.raises(DataError, match=f"line 3: the id {other} stands on line 1 already"):
            read_questions(written(tmp_path, asked("tower"), asked("b"), asked(other)))


def test_what_is_no_question_is_named(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    for text, said in (
        ("", "holds no question"),
        ("{\n", "line 1: the line"),
        ('["question"]\n', "line 1: the line"),
        ('{"question": {"id": 7}}\n', "line 1: question"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=said):
            read_questions(path)
    with pytest.raises(DataError, match="cannot read"):
        read_questions(tmp_path / "absent.jsonl")
