"""Documents as they are read by a newcomer: block after block is run, and what a block shows is compared."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from consilience.cli import main

FENCE = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"# exit code (\d)$")
ANYTHING = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the text block right behind it, which shows what it prints."""

    language: str
    text: str
    shown: str


def blocks_of(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    blocks = []
    for at, fence in enumerate(found):
        behind = found[at + 1] if at + 1 < len(found) else None
        shows = behind is not None and behind[1] == "text" and not text[fence.end() : behind.start()].strip()
        blocks.append(Block(fence[1], fence[2], behind[2] if behind is not None and shows else ""))
    return blocks


def commands_in(block: Block) -> Iterator[tuple[list[str], int]]:
    """Yield the words of each command, and the exit code that its comment announces."""
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        announced = EXIT.search(line)
        if words:
            yield words, int(announced[1]) if announced else 0


def missing(shown: str, printed: str) -> list[str]:
    """Return the shown lines that were not printed, or not in this order; ``…`` is anything, and blanks are one."""
    left = iter([" ".join(line.split()) for line in printed.splitlines()])
    wanted = [" ".join(line.split()) for line in shown.splitlines()]
    return [line for line in wanted if line and not any(_fits(line, said) for said in left)]


def _fits(line: str, said: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part.strip()) for part in line.split(ANYTHING)), said) is not None


def play(
    document: Path,
    capsys: pytest.CaptureFixture[str],
    names: Mapping[str, str] | None = None,
    languages: Sequence[str] = ("console", "python"),
) -> int:
    """Run the blocks of a document in the current folder, in order and in one namespace; return how many were run."""
    namespace: dict[str, object] = {"__name__": document.stem}
    run = [block for block in blocks_of(document) if block.language in languages]
    for block in run:
        told = play_block(block, capsys, namespace, names or {})
        absent = missing(block.shown, told)
        assert absent == [], f"{document.name} shows what is not printed: {absent}\n{told}"
    return len(run)


def play_block(
    block: Block, capsys: pytest.CaptureFixture[str], namespace: dict[str, object], names: Mapping[str, str]
) -> str:
    """Run one block and return what it printed; commands of others than the package are not typed."""
    if block.language == "python":
        exec(compile(block.text, "block", "exec"), namespace)  # noqa: S102 - the documents' own examples
    else:
        for words, code in commands_in(block):
            typed = [_named(word, names) for word in words]
            if typed[0] == "consilience":
                assert main(typed[1:]) == code, f"{words}: {capsys.readouterr().err}"
    told = capsys.readouterr()
    return f"{told.out}\n{told.err}"


def _named(word: str, names: Mapping[str, str]) -> str:
    """Return what a word in capitals stands for: the newest file that fits its pattern."""
    if word not in names:
        return word
    return str(max(Path().glob(names[word]), key=lambda path: path.stat().st_mtime_ns))
