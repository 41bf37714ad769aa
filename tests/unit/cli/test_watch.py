from __future__ import annotations

import io
import os
import re
import signal

import pytest

from consilience.cli.watch import interruptible, told, watching
from consilience.experiments.orders import Progress
from consilience.models.calls import Stop


def at(done: int, cap: int | None = 50_000_000) -> Progress:
    return Progress(
        items_done=done,
        items_total=4,
        turns=12 * done,
        failures=done,
        tokens=30_000 * done,
        calls=0,
        spent_nano=10**7,
        cap_nano=cap,
    )


def test_progress_names_items_turns_failures_and_money() -> None:
    assert told(at(2)) == "2 of 4 items, 24 turns, 2 without answer, 60,000 tokens, $0.01 of $0.05 spent"
    assert told(at(2, None)).endswith("$0.01 spent, no cap")


def test_a_pipe_gets_a_line_now_and_then_and_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter([0.0, 1.0, 6.0, 7.0, 8.0])
    with watching("F (simulated)", clock=lambda: next(seconds)) as watch:
        for done in (1, 2, 3, 4):
            watch(at(done))
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert len(lines) == 2
    assert lines[0].startswith("F (simulated): 2 of 4 items")
    assert lines[0].endswith("about 6 s left")
    assert lines[1] == f"F (simulated): {told(at(4))}"


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_live_line_loses_nothing_on_a_narrow_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    for name, value in (("COLUMNS", str(width)), ("NO_COLOR", "1"), ("FORCE_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    with watching("G_debate_r2 (simulated)") as watch:
        watch(at(4))
    said = re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "", screen.getvalue())
    assert "\N{HORIZONTAL ELLIPSIS}" not in said
    words = {word for line in said.splitlines() for word in line.split()}
    assert {*["G_debate_r2", "(simulated)"], *told(at(4)).split()} <= words


def test_the_first_interrupt_asks_and_the_second_stops(capfd: pytest.CaptureFixture[str]) -> None:
    stop, left = Stop(), list[int]()
    before = signal.getsignal(signal.SIGINT)
    with interruptible(stop, leave=left.append):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
        assert left == []
        os.kill(os.getpid(), signal.SIGINT)
    assert left == [130]
    assert signal.getsignal(signal.SIGINT) is before
    said = capfd.readouterr().err
    assert "Ctrl-C again stops at once" in said
    assert "the same command resumes the run" in said
