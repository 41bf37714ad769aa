"""Docstrings and values as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

SECTION = re.compile(r"(Args|Attributes|Raises|Example|Examples|Returns|Yields):")
NAMED = re.compile(r"(\w+)(?: \([^)]*\))?: (.*)")


def text_of(thing: object) -> str:
    """Return a docstring without its indentation; a class that has none of its own has none."""
    owner = thing if inspect.isclass(thing) or inspect.isroutine(thing) else type(thing)
    return inspect.cleandoc(owner.__doc__ or "")


def body(text: str) -> str:
    r"""Return what a docstring says before its first section.

    Example:
        >>> body("A sum.\n\nOf all.\n\nRaises:\n    DataError: Never.")
        'A sum.\n\nOf all.'
    """
    lines = text.splitlines()
    ends = (at for at, line in enumerate(lines) if SECTION.fullmatch(line))
    said = "\n".join(lines[: next(ends, len(lines))]).strip()
    return re.sub(r"(?m)(\w)::$", r"\1:", re.sub(r"(?m)^::$\n?", "", said))


def first_sentence(text: str) -> str:
    r"""Return the first paragraph on one line.

    Example:
        >>> first_sentence("A sum\nof all.\n\nMore.")
        'A sum of all.'
    """
    return " ".join(body(text).split("\n\n", maxsplit=1)[0].split())


def named_in(text: str, section: str) -> dict[str, str]:
    r"""Return what a section of a docstring says of each name.

    Example:
        >>> named_in("A.\n\nAttributes:\n    rounds: R, from 1\n        to 20.\n    flags: Shown.", "Attributes")
        {'rounds': 'R, from 1 to 20.', 'flags': 'Shown.'}
    """
    found: dict[str, str] = {}
    inside, name = False, ""
    for line in text.splitlines():
        if SECTION.fullmatch(line):
            inside = line == f"{section}:"
        elif inside and line.strip():
            told = NAMED.fullmatch(line.strip())
            if told and len(line) - len(line.lstrip()) == 4:
                name = told[1]
                found[name] = told[2]
            elif name:
                found[name] += f" {line.strip()}"
    return found


def code(value: object) -> str:
    """Return a value as it is typed in a configuration, in a code span."""
    if value is None or value == "":
        return "none" if value is None else "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(map(code, value)) or "none"
    return f"`{value}`"


def cell(text: str) -> str:
    """Return text that fits into one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; without rows, nothing."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    names = list(head)
    return "\n".join([f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}", *lines]) if lines else ""


def parameters(thing: object) -> str:
    """Return the fields of a dataclass that its user sets, with default and meaning, as a table."""
    if not is_dataclass(thing):
        return ""
    owner = thing if isinstance(thing, type) else type(thing)
    told = {name: says for each in reversed(owner.__mro__) for name, says in _attributes(each).items()}
    rows = [(f"`{each.name}`", _default(each), cell(told.get(each.name, ""))) for each in fields(thing) if each.init]
    return table(("parameter", "default", "says"), rows)


def _attributes(owner: type) -> dict[str, str]:
    return named_in(inspect.cleandoc(owner.__dict__.get("__doc__") or ""), "Attributes")


def _default(each: Field[Any]) -> str:
    if each.default is not MISSING:
        return code(each.default)
    return code(each.default_factory()) if each.default_factory is not MISSING else "required"


def page(title: str, *parts: str) -> str:
    """Return a page of its parts, empty ones left out."""
    return "\n\n".join([f"# {title}", *(part for part in parts if part)]) + "\n"
