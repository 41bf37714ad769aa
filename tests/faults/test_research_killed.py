"""SIGKILL anywhere in a panel of research agents: resumed, no answered call and no returned search is repeated."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from consilience.experiments.verification import verify_run
from consilience.journal.events import AttemptResponse, ToolReturned
from consilience.journal.reader import read_events

pytestmark = pytest.mark.slow

COMMAND = ["-m", "consilience", "backtest", "--demo", "--n", "5", "--arm", "staged", "--concurrency", "2"]
KILLS = 8


def start(project: Path) -> subprocess.Popen[bytes]:
    questions = [sys.executable, *COMMAND, "--project", str(project)]
    return subprocess.Popen(questions, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process ends within some milliseconds."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.005)
    return process.poll() is not None


def folder_of(project: Path) -> Path:
    (found,) = (project / "results" / "runs").iterdir()
    return found


def bytes_of(project: Path) -> int:
    return sum(path.stat().st_size for path in project.glob("results/runs/*/events-*.jsonl"))


def test_a_killed_panel_goes_on_without_a_repeated_search_or_call(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    assert start(whole).wait() == 0
    size = bytes_of(whole)
    cut = tmp_path / "cut"
    cut.mkdir()
    for kill in range(1, KILLS + 1):
        process = start(cut)
        while bytes_of(cut) < size * kill / (KILLS + 1) and not ended(process):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(cut).wait() == 0
    tools: Counter[object] = Counter()
    answers: Counter[object] = Counter()
    for record in read_events(folder_of(cut)):
        if isinstance(record.event, ToolReturned):
            tools[record.where, record.event.step] += 1
        elif isinstance(record.event, AttemptResponse):
            answers[record.where, record.event.ask] += 1
    assert set(tools.values()) == set(answers.values()) == {1}
    assert verify_run(folder_of(cut)).ok
    drop = ("paid_usd", "latency_s", "tokens", "cost_usd")
    mine, theirs = (pl.read_parquet(folder_of(project) / "predictions.parquet").drop(drop) for project in (cut, whole))
    assert_frame_equal(mine, theirs)
