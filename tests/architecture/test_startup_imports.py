"""What a start costs: neither the package nor its help loads anything heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    *("numpy", "polars", "scipy", "pyarrow", "pandas"),
    *("sklearn", "lightgbm", "matplotlib", "ray"),
    *("pydantic", "email"),  # a third of what the help took
    *("anthropic", "openai", "xllamacpp", "starlette", "uvicorn", "mcp"),
}


def loaded_by(*arguments: str) -> set[str]:
    """Return the top-level names of all modules that a fresh interpreter imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    lines = done.stderr.splitlines()
    timed = [line for line in lines if line.startswith("import time:")]
    said = [line for line in lines if line not in timed]
    assert done.returncode == 0, "\n".join(said)
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in timed}


@pytest.mark.parametrize(
    "arguments", [("-c", "import consilience"), ("-m", "consilience", "--help")], ids=["import", "help"]
)
def test_a_start_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert "consilience" in loaded
    assert loaded & HEAVY == set()
