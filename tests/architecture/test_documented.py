"""Public functions of the rooms a user computes with show an example, and the examples run as tests."""

from __future__ import annotations

import ast

from source_tree import package

SHOWN_BY_EXAMPLE = ("core", "aggregation", "scoring", "inference")


def test_public_functions_have_a_docstring_with_an_example() -> None:
    found = [
        f"{source.at(node)} {node.name}"
        for source in package()
        if source.inside(*SHOWN_BY_EXAMPLE)
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        if ">>>" not in (ast.get_docstring(node) or "")
    ]
    assert found == []


def test_every_module_and_public_class_says_what_it_is() -> None:
    found = [f"{source.at(source.tree)} module" for source in package() if not ast.get_docstring(source.tree)]
    found += [
        f"{source.at(node)} {node.name}"
        for source in package()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert found == []
