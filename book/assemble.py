"""The folder that the docs tool builds from: the documents, and beside them the reference made of the code.

A document may lead to any file that becomes a page. A link to another file would be dead in the book, and is refused.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from book.commands import commands_page
from book.entries import gates_page, protocols_page, rules_page, sources_page
from book.listed import errors_page, events_page, metrics_page
from book.python import python_pages
from book.settings import arms_page, budgets_page, panels_page

ROOT: Final = Path(__file__).resolve().parents[1]
MOVED: Final = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
    "benchmarks/PEERS.md": "peers.md",
}
"""Documents that lie outside ``docs``, and the pages they become."""

PAGES: Final[dict[str, Callable[[], str]]] = {
    "commands": commands_page,
    "rules": rules_page,
    "protocols": protocols_page,
    "metrics": metrics_page,
    "arms": arms_page,
    "panels": panels_page,
    "budgets": budgets_page,
    "gates": gates_page,
    "sources": sources_page,
    "events": events_page,
    "errors": errors_page,
}
"""The pages of the reference that are made of the code, by name."""

MARKDOWN: Final = ((r"(?m)^( +)Example:$", r"\1Examples:"), (r"(?m)^( .*\w)::$", r"\1:"), (r"(?m)^ +::\n", ""))
"""What docstrings write otherwise than the docs tool reads it: the head of examples, and colons before an equation."""

FENCE: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(?<=\]\()([^()\s#]+)(?=[)#])")


def reference() -> dict[str, str]:
    """Return the pages of the reference by their place in the book."""
    made = {f"reference/{name}.md": make() for name, make in PAGES.items()}
    return made | {f"reference/python/{name}.md": text for name, text in python_pages().items()}


def place_in_book(document: PurePosixPath) -> str | None:
    """Return the page that a file of the project becomes; None where it becomes none.

    Example:
        >>> place_in_book(PurePosixPath("docs/howto-arms.md")), place_in_book(PurePosixPath("README.md"))
        ('howto-arms.md', None)
    """
    if document.parts[:1] == ("docs",):
        return str(document.relative_to("docs"))
    return MOVED.get(str(document))


def relinked(text: str, document: PurePosixPath) -> str:
    """Return a document with its links as they lead from its page.

    Raises:
        ValueError: A link leads to a file that becomes no page.

    Example:
        >>> relinked("See [why](docs/decisions/0013-votes.md).", PurePosixPath("CONTRIBUTING.md"))
        'See [why](decisions/0013-votes.md).'
    """
    here = PurePosixPath(place_in_book(document) or "")

    def moved(found: re.Match[str]) -> str:
        if "://" in found[1]:
            return found[1]
        target = PurePosixPath(os.path.normpath(document.parent / found[1]))
        page = place_in_book(target)
        if page is None:
            raise ValueError(f"{document} leads to {found[1]}, which is no page of the book")
        return PurePosixPath(os.path.relpath(page, here.parent)).as_posix()

    prose_and_blocks = FENCE.split(text)
    return "".join(part if at % 2 else LINK.sub(moved, part) for at, part in enumerate(prose_and_blocks))


def documents() -> Iterable[PurePosixPath]:
    """Return the files that become pages or stand on them, from the project's root."""
    kept = [path for path in (ROOT / "docs").rglob("*") if path.is_file()]
    return [*(PurePosixPath(path.relative_to(ROOT).as_posix()) for path in sorted(kept)), *map(PurePosixPath, MOVED)]


def assemble(folder: Path) -> None:
    """Lay out all pages, and the sources whose docstrings are read, in a folder that is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    for document in documents():
        page = folder / "pages" / str(place_in_book(document))
        if document.suffix == ".md":
            _write(page, relinked((ROOT / document).read_text(encoding="utf-8"), document))
        else:
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / document, page)
    for name, text in reference().items():
        _write(folder / "pages" / name, text)
    for source in (ROOT / "src").rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        for written, read in MARKDOWN:
            text = re.sub(written, read, text)
        _write(folder / "sources" / source.relative_to(ROOT / "src"), text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
