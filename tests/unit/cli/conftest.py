"""The command line called in this process, and one demo for all tests that look at recorded runs."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli_cases import Cli, Done, write_questions
from consilience.cli import main


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Call ``consilience`` with these arguments; nothing of the machine's own settings counts."""
    for name in ("CONSILIENCE_MAX_SPEND_USD", "AV_MAX_SPEND_USD"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Done:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Done(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A project in which the demo has run, once for all workers; ``said.txt`` holds what it printed."""
    base = tmp_path_factory.getbasetemp()
    root = (base if worker_id == "master" else base.parent) / "finished-demo"
    root.mkdir(exist_ok=True)
    with (root / "one-worker").open("w") as turnstile:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        if not (root / "said.txt").exists():
            command = [sys.executable, "-m", "consilience", "demo", "--project", str(root)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            (root / "said.txt").write_text(done.stdout)
    return root


@pytest.fixture
def demo_project(finished_demo: Path, tmp_path: Path) -> Path:
    """A copy of the demo's own project: a town and three finished runs."""
    return shutil.copytree(finished_demo / "results" / "demo", tmp_path / "study")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Three questions with evidence, as one JSON object per line."""
    return write_questions(tmp_path / "questions.jsonl", 3)
