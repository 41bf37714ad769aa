"""Tests about the tests: each asserts something, none waits, none accepts any error, all lie in their place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from source_tree import TESTS, Source, dotted, package, rooms, suite

Function = ast.FunctionDef | ast.AsyncFunctionDef
CHECKS = frozenset({"raises", "warns", "fail"})


def functions(source: Source) -> Iterator[Function]:
    for node in ast.walk(source.tree):
        if isinstance(node, Function):
            yield node


def called(node: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            yield inner, dotted(inner.func)


def checks_itself(function: Function) -> bool:
    if any(isinstance(node, ast.Assert) for node in ast.walk(function)):
        return True
    return any(
        (name.startswith("pytest.") and name.rpartition(".")[2] in CHECKS)
        or name.rpartition(".")[2].startswith("assert_")
        for _, name in called(function)
    )


def asserting(source: Source) -> set[str]:
    """Return the functions of a file that assert, themselves or through another of the same file."""
    local = list(functions(source))
    found = {function.name for function in local if checks_itself(function)}
    while True:
        more = {
            function.name
            for function in local
            if function.name not in found and any(name.rpartition(".")[2] in found for _, name in called(function))
        }
        if not more:
            return found
        found |= more


def test_every_test_asserts_something() -> None:
    found = [
        f"{source.at(function)} {function.name}"
        for source in suite()
        for function in functions(source)
        if function.name.startswith("test_") and function.name not in asserting(source)
    ]
    assert found == []


def test_no_test_accepts_just_any_error() -> None:
    found = [
        source.at(call)
        for source in suite()
        for call, name in called(source.tree)
        if name in {"pytest.raises", "raises"}
        and any(dotted(argument) in {"Exception", "BaseException"} for argument in call.args)
    ]
    assert found == []


def test_no_test_sleeps() -> None:
    """``sleep(0)`` only lets others run; virtual clocks have other names."""
    found = [
        source.at(call)
        for source in suite()
        for call, name in called(source.tree)
        if name.rpartition(".")[2] == "sleep"
        and not (len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0)
    ]
    assert found == []


def test_no_test_is_marked_to_fail_or_skipped_without_a_reason() -> None:
    found = []
    for source in suite():
        for node in ast.walk(source.tree):
            bare = isinstance(node, ast.Attribute) and dotted(node) in {"pytest.mark.skip", "pytest.mark.xfail"}
            if bare:
                found.append(source.at(node))
        reasoned = {
            call.func
            for call, name in called(source.tree)
            if name in {"pytest.mark.skip", "pytest.mark.xfail"}
            and any(keyword.arg == "reason" for keyword in call.keywords)
        }
        found = [place for place in found if place not in {source.at(node) for node in reasoned}]
    assert found == []


def test_unit_tests_mirror_the_rooms() -> None:
    mirrored = {path.name for path in (TESTS / "unit").iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    assert mirrored - rooms() == set()


def test_every_room_with_code_has_unit_tests() -> None:
    with_code = {source.room for source in package() if source.room in rooms() and "." in source.name}
    mirrored = {path.name for path in (TESTS / "unit").iterdir() if any(path.glob("test_*.py"))}
    assert with_code - mirrored == set()


def test_file_names_are_unique() -> None:
    """The tests are no package, so two files of one name would hide each other; pytest tells fixtures' files apart."""
    counted = Counter(source.path.name for source in suite() if source.path.name != "conftest.py")
    assert [name for name, times in counted.items() if times > 1] == []


def test_what_the_default_suite_leaves_to_a_campaign_it_proves_elsewhere() -> None:
    tests = {node.name for source in suite() for node in functions(source) if node.name.startswith("test_")}
    cases = [case for source in suite() for case in declared_cases(source)]
    assert len(cases) > 20
    assert [named for named in cases if named not in tests] == []


def declared_cases(source: Source) -> Iterator[str]:
    """Yield the tests that the cases of a campaign name, written out or by a constant of the file."""
    if source.path.parent.name != "campaigns":
        return
    known = {
        target.id: node.value.value
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call, name in called(source.tree):
        for keyword in call.keywords:
            value = keyword.value
            if name in {"Case", "Place"} and keyword.arg == "by" and not isinstance(value, ast.Attribute):
                yield str(value.value if isinstance(value, ast.Constant) else known[dotted(value)])
