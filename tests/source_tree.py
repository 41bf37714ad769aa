"""The package's and the suite's source, parsed once, for tests about how they are written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "consilience"
TESTS = ROOT / "tests"


@dataclass(frozen=True)
class Source:
    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    def at(self, node: ast.AST) -> str:
        return f"{self.path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"

    def inside(self, *places: str) -> bool:
        return any(self.name == place or self.name.startswith(f"{place}.") for place in places)


@cache
def parsed(folder: Path) -> tuple[Source, ...]:
    found = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Source(name, path, text, ast.parse(text, filename=str(path))))
    return tuple(found)


def package() -> tuple[Source, ...]:
    return parsed(PACKAGE)


def suite() -> tuple[Source, ...]:
    return parsed(TESTS)


def rooms() -> set[str]:
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names one import statement brings, ``from a import b`` as both ``a`` and ``a.b``."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for a name or a chain of attributes, else what is left of one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def under(name: str, roots: frozenset[str]) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)
