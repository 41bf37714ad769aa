from __future__ import annotations

import os
import random
import signal
import socketserver
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from consilience.experiments.predictions import read_predictions
from consilience.journal.events import AttemptLost, AttemptReserved, AttemptResponse
from consilience.journal.reader import fold
from consilience.journal.verify import verify
from engine_cases import events_of

RUNNER = Path(__file__).with_name("kill_runner.py")
ITEMS = 16
TURNS = ITEMS * 5 * 3
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}


class CallServer(socketserver.ThreadingTCPServer):
    """Counts calls outside the process that makes them, and kills it at one of them when asked."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), CallHandler)
        self.counted: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.known = threading.Event()
        self.victim = 0
        self.kill_at: int | None = None
        self.answer_first = False

    def new_life(self, kill_at: int | None, *, answer_first: bool) -> None:
        self.known.clear()
        self.kill_at = kill_at
        self.answer_first = answer_first

    def kill(self) -> None:
        try:
            os.kill(self.victim, signal.SIGKILL)
        except ProcessLookupError:  # it had just ended
            return


class CallHandler(socketserver.StreamRequestHandler):
    server: CallServer

    def handle(self) -> None:
        key = self.rfile.readline().decode().strip()
        if not key:  # killed before it asked anything
            return
        self.server.known.wait()
        with self.server.lock:
            self.server.counted[key] += 1
            due = False
            if self.server.kill_at is not None:
                self.server.kill_at -= 1
                due = self.server.kill_at == 0
        if due and not self.server.answer_first:
            self.server.kill()
        try:
            self.wfile.write(b"y")
        except OSError:  # the caller is dead
            return
        if due:
            self.server.kill()


class Lives:
    """One run after another in the same folder, each to its end or its death."""

    def __init__(self, process: subprocess.Popen[str], server: CallServer) -> None:
        self.process = process
        self.server = server

    def live(
        self, folder: Path, *, kill_at: int | None = None, answer_first: bool = False, after_s: float | None = None
    ) -> int:
        """Return the exit code; -9 when it was killed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.server.new_life(kill_at, answer_first=answer_first)
        print(folder, self.server.server_address[1], ITEMS, sep="\t", file=self.process.stdin, flush=True)
        self.server.victim = int(self.process.stdout.readline())
        self.server.known.set()
        if after_s is not None:
            threading.Event().wait(after_s)
            self.server.kill()
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with serving() as found:
        yield found


@contextmanager
def serving() -> Iterator[Lives]:
    command = [sys.executable, str(RUNNER)]
    with (
        CallServer() as server,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD
        ) as process,
    ):
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield Lives(process, server)
        server.shutdown()
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def whole(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The predictions of a run that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    lives.server.counted.clear()
    assert lives.live(folder) == 0
    assert lives.server.counted.total() == len(lives.server.counted) == TURNS
    return read_predictions(folder / "predictions.parquet")


def killed_run(lives: Lives, folder: Path, rng: random.Random, most: int) -> int:
    """Kill a run at random moments, at most so often, until it is done; return how often it was killed."""
    lives.server.counted.clear()
    for kills in range(most):
        if rng.random() < 0.7:
            code = lives.live(folder, kill_at=rng.randint(1, 14), answer_first=rng.random() < 0.5)
        else:
            code = lives.live(folder, after_s=rng.uniform(0.0, 0.05))
        if code == 0:
            return kills
        assert code == -signal.SIGKILL
    assert lives.live(folder) == 0
    return most


def assert_nothing_lost_and_nothing_repeated(lives: Lives, folder: Path, whole: pl.DataFrame) -> None:
    calls = lives.server.counted
    reserved = events_of(folder, AttemptReserved)
    lost = Counter(record.event.key for record in events_of(folder, AttemptLost))  # type: ignore[union-attr]
    answered = Counter(record.event.key for record in events_of(folder, AttemptResponse))  # type: ignore[union-attr]
    assert len(answered) == answered.total() == TURNS
    assert calls.keys() == answered.keys()
    assert len(reserved) == TURNS + lost.total()
    # A key was called once, and once more for each time it may have been in flight at a kill: all flagged and charged.
    assert all(1 <= calls[key] <= 1 + lost[key] for key in calls)
    assert TURNS <= calls.total() <= TURNS + lost.total()
    state = fold(folder)
    attempts = state.attempts.values()
    charged = sum(
        attempt.reserved.reserved_nano or 0 for attempt in attempts if isinstance(attempt.outcome, AttemptLost)
    )
    answers = sum(attempt.charged_nano or 0 for attempt in attempts if isinstance(attempt.outcome, AttemptResponse))
    assert state.spent_nano == charged + answers
    assert (charged > 0) == (lost.total() > 0)
    checked = verify(folder)
    assert (checked.ok, checked.finished) == (True, True)
    free = ("latency_s", "paid_usd")
    assert read_predictions(folder / "predictions.parquet").drop(free).equals(whole.drop(free))


def test_a_run_killed_at_20_random_moments_makes_exactly_the_missing_calls(
    lives: Lives, whole: pl.DataFrame, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    kills = killed_run(lives, folder, random.Random(20), most=20)  # noqa: S311 - moments, no secrets
    assert kills == 20
    assert_nothing_lost_and_nothing_repeated(lives, folder, whole)
    before = lives.server.counted.total()
    assert before > TURNS  # some were in flight when it was killed
    assert lives.live(folder) == 0
    assert lives.server.counted.total() == before


@pytest.mark.slow
def test_a_campaign_of_200_kills(lives: Lives, whole: pl.DataFrame, tmp_path: Path) -> None:
    kills, runs = 0, 0
    while kills < 200:
        runs += 1
        folder = tmp_path / str(runs)
        kills += killed_run(lives, folder, random.Random(runs), most=200)  # noqa: S311 - the same
        assert_nothing_lost_and_nothing_repeated(lives, folder, whole)
    assert kills >= 200
