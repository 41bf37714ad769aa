"""The command line as tests call it, and questions to ask."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        lines = self.out.splitlines()
        assert len(lines) == 1, "one JSON document on stdout and nothing else"
        found: dict[str, Any] = json.loads(lines[0])
        return found


Cli = Callable[..., Done]


def verbs_of(command: Any, *before: str) -> Iterator[tuple[str, ...]]:
    """Yield every verb below a command that does something, the words of each."""
    below: dict[str, Any] = getattr(command, "commands", {})
    for name, each in below.items():
        yield from verbs_of(each, *before, name)
    if not below:
        yield before


def write_questions(path: Path, n: int) -> Path:
    """Write questions with evidence, one JSON object per line."""
    path.write_text("".join(f"{json.dumps(question(number))}\n" for number in range(n)))
    return path


def question(number: int) -> dict[str, Any]:
    item_id = f"q{number}"
    evidence = [{"id": f"E{at}", "content": {"value": 90.0 + 7 * number + at}} for at in range(3)]
    return {
        "question": {"id": item_id, "text": "How much?", "kind": "estimate", "scale": "log", "unit": "EUR"},
        "packet": {
            "item_id": item_id,
            "cutoff": "2024-01-01",
            "cutoff_rule": "last_admissible",
            "sections": {"E": {"code": "E", "title": "Evidence", "items": evidence}},
        },
        "truth": 1234.5 + number,
    }


def run_of(project: Path, arm: str) -> str:
    """Return the id of a project's run of an arm."""
    (found,) = [path.name for path in (project / "results" / "runs").iterdir() if re.match(f"_?{arm}", path.name)]
    return found
