"""Faults that strike a whole process: killed, interrupted, doubled. Its calls are counted at the vendor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapter_cases import reserved_on_disk
from campaigns.ground import CALLS, CAP, Case, Ground, check_money, check_whole
from campaigns.victim import MODEL
from consilience.core.canonical import canonical_json
from consilience.errors import DataError, JournalError, StoppedError
from consilience.evidence.reading import parse_prompt
from consilience.fakes.calls import Call
from consilience.fakes.faults import Fault
from consilience.fakes.hits import Hit
from consilience.fakes.server import FakeServer, running_fake
from consilience.fakes.settings import Settings
from consilience.journal.events import AttemptLost, AttemptResponse
from consilience.journal.reader import read_events
from engine_cases import events_of, say_to
from mcp_cases import keys_of

VICTIM = Path(__file__).with_name("victim.py")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
KILLED = -signal.SIGKILL


@dataclass
class Victim:
    """A process whose children run an arm each."""

    process: subprocess.Popen[str]
    child: int = 0

    def start(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        self.child = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return str(json.loads(self.process.stdout.readline()))

    def ended(self) -> tuple[int, str]:
        """Return the exit code of the child, and what it said."""
        said = ""
        while not (line := self._line()).startswith("ended "):
            said = line
        return int(line.removeprefix("ended ")), said

    def live(self, **order: Any) -> tuple[int, str]:
        self.start(**order)
        return self.ended()

    def kill(self) -> None:
        try:
            os.kill(self.child, signal.SIGKILL)
        except ProcessLookupError:  # it had just ended
            return


@contextmanager
def victim() -> Iterator[Victim]:
    command = [sys.executable, str(VICTIM)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | ONE_THREAD, **pipes) as process:
        yield Victim(process)
        assert process.stdin is not None
        process.stdin.close()


def say(call: Call) -> str | None:
    try:
        return say_to(parse_prompt(call.text))
    except DataError:  # no question of ours, such as a probe of the server
        return None


def behave(fake: FakeServer, **changes: Any) -> None:
    """Let a fake behave otherwise from now on; what it counted is kept."""
    fake._fake.settings = Settings(responder=say, **changes)


def check_paid(fake: FakeServer, run: Path, *, calls: int = CALLS) -> None:
    """What the vendor counted is what the record says: nothing unreserved, nothing asked again but what was lost."""
    came = Counter(canonical_json(hit.json) for hit in fake.calls())
    assert came.total() > 0
    assert not came - reserved_on_disk(run)
    lost = Counter(record.event.key for record in events_of(run, AttemptLost))  # type: ignore[union-attr]
    assert calls <= came.total() <= calls + lost.total()
    assert max(came.values()) <= 1 + max(lost.values(), default=0)
    assert [hit.refused for hit in fake.calls() if hit.refused] == []
    paid = [record.event.key for record in events_of(run, AttemptResponse)]  # type: ignore[union-attr]
    assert len(paid) == len(set(paid)) == calls


def _killed(ground: Ground, live: Callable[[Victim, FakeServer, Path], tuple[int, str]]) -> None:
    """Kill a run at random until it was killed so often that it may end; then look at what it left."""
    kills = 0
    with victim() as process, running_fake() as fake:
        for run in ground.each():
            fake.reset((), say)
            mine = 0
            while (ended := live(process, fake, run))[0] == KILLED:
                mine += 1
                if mine >= 12:
                    behave(fake)
                    ended = process.live(folder=str(run), base_url=fake.base_url)
                    break
            assert ended[0] == 0, ended
            kills += mine
            check_whole(run)
            check_paid(fake, run)
            ground.found = f"{kills} kills"


def at_disk_operations(ground: Ground) -> None:
    """SIGKILL before, in the middle of, or after the nth operation on the disk."""

    def live(process: Victim, fake: FakeServer, run: Path) -> tuple[int, str]:
        when = ground.rng.choice(("before", "amid", "after"))
        return process.live(folder=str(run), base_url=fake.base_url, nth=ground.rng.randrange(1, 9), when=when)

    _killed(ground, live)


def at_calls(ground: Ground) -> None:
    """SIGKILL when the nth call has reached the vendor: before it is answered, or once the answer is on its way."""

    def live(process: Victim, fake: FakeServer, run: Path) -> tuple[int, str]:
        left, hang = [ground.rng.randrange(1, 9)], ground.rng.random() < 0.5
        ready = threading.Event()

        def strike(hit: Hit) -> Fault | None:
            ready.wait(10)
            left[0] -= hit.call_index is not None
            if left[0] == 0 and hang:
                process.kill()
            elif left[0] == 0:
                threading.Timer(ground.rng.uniform(0, 0.004), process.kill).start()
            return None

        behave(fake, script=strike)
        process.start(folder=str(run), base_url=fake.base_url)
        ready.set()
        return process.ended()

    _killed(ground, live)


def at_moments(ground: Ground) -> None:
    """SIGKILL at any moment."""

    def live(process: Victim, fake: FakeServer, run: Path) -> tuple[int, str]:
        process.start(folder=str(run), base_url=fake.base_url)
        timer = threading.Timer(ground.rng.uniform(0.2, 1.2), process.kill)
        timer.start()
        ended = process.ended()
        timer.cancel()
        timer.join()
        return ended

    _killed(ground, live)


def small_files(ground: Ground) -> None:
    """No file may grow past a size (RLIMIT_FSIZE), until it may."""
    stopped = 0
    with victim() as process, running_fake() as fake:
        for run in ground.each():
            fake.reset((), say)
            process.start(folder=str(run), base_url=fake.base_url, file_bytes=ground.rng.randrange(1_000, 90_000))
            code, said = process.ended()
            stopped += code != 0
            assert code in {0, JournalError.exit_code, DataError.exit_code}, said
            assert code == 0 or "File too large" in said
            assert process.live(folder=str(run), base_url=fake.base_url)[0] == 0
            check_whole(run)
            check_paid(fake, run)
    ground.found = f"{stopped} runs were stopped"


def two_at_once(ground: Ground) -> None:
    """Two processes resume one run in the same instant: one does it, the other is told who works on it."""
    refused = 0
    with victim() as one, victim() as other, running_fake() as fake:
        for run in ground.each():
            fake.reset((), say, settings=Settings(latency_s=0.02))
            one.start(folder=str(run), base_url=fake.base_url)
            other.start(folder=str(run), base_url=fake.base_url)
            (first, said), (second, also) = one.ended(), other.ended()
            assert 0 in {first, second}, (said, also)
            told = "".join(text for code, text in ((first, said), (second, also)) if code)
            refused += bool(told)
            assert not told or "another process works on the run" in told
            check_whole(run)
            assert len(fake.calls()) == CALLS
            check_paid(fake, run)
    ground.found = f"{refused} were refused, the others came when the first had ended"
    assert refused > ground.tried // 2


def _questions(project: Path) -> list[str]:
    """Return the words of a command that asks 10 calls of the vendor."""
    words = ["ask", "Rain?", "--kind", "probability", "--protocol", "delphi", "--rounds", "1", "--live"]
    return [sys.executable, "-m", "consilience", "--project", str(project), *words, "--model", MODEL]


def _interrupted(ground: Ground, *, times: int) -> None:
    with running_fake() as fake:
        for project in ground.each():
            project.mkdir()
            environment = os.environ | ONE_THREAD | keys_of(fake)
            fake.reset((), say, settings=Settings(latency_s=0.15))
            with subprocess.Popen(
                _questions(project), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process:
                assert fake.wait_for_calls(ground.rng.choice((1, 2, 5, 6)), 60)
                for _ in range(times):
                    process.send_signal(signal.SIGINT)
                    if times > 1:
                        threading.Event().wait(0.02)
                _, said = process.communicate(timeout=60)
            (run,) = (project / "results" / "runs").iterdir()
            answered = sum(isinstance(record.event, AttemptResponse) for record in read_events(run))
            came = len(fake.calls())
            if times == 1:
                assert answered == came, said  # what was in flight is finished
                assert "the same command" in said
                assert process.returncode == StoppedError.exit_code, said
            else:
                assert process.returncode == 130, said
            behave(fake)
            done = subprocess.run(_questions(project), env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            lost = len(events_of(run, AttemptLost))
            assert (times > 1) or lost == 0
            assert 10 <= len(fake.calls()) <= 10 + lost
            check_paid(fake, run, calls=10)
            check_money(run, cap=CAP)


def interrupted_once(ground: Ground) -> None:
    """Ctrl-C: what is in flight is finished and kept."""
    _interrupted(ground, times=1)


def interrupted_twice(ground: Ground) -> None:
    """Ctrl-C twice: the process ends at once, and what was in flight is charged and asked again."""
    _interrupted(ground, times=2)


KILL = (
    "counted at the vendor: no answered call is made again, what was in flight is charged; the cap held; verify passes"
)

CASES = (
    Case(
        "SIGKILL before, amid or after any operation on the disk",
        KILL,
        at_disk_operations,
        many=25,
        by="test_a_run_killed_at_20_random_moments_makes_exactly_the_missing_calls",
    ),
    Case(
        "SIGKILL when a call has reached the vendor",
        KILL,
        at_calls,
        many=20,
        by="test_a_run_killed_at_20_random_moments_makes_exactly_the_missing_calls",
    ),
    Case(
        "SIGKILL at any moment", KILL, at_moments, many=8, by="test_a_killed_writer_loses_no_record_it_called_durable"
    ),
    Case(
        "no file may grow past a size (RLIMIT_FSIZE), until it may",
        f"the run stops and says why; {KILL}",
        small_files,
        many=25,
        by="test_a_failing_disk_stops_dispatch_and_loses_nothing",
    ),
    Case(
        "two processes on one run in the same instant",
        "one works, the other is refused and told who does; every call is made once",
        two_at_once,
        many=25,
        by="test_two_processes_on_one_run_are_refused",
    ),
    Case(
        "Ctrl-C once",
        "what is in flight is finished and kept; the same command makes exactly the missing calls",
        interrupted_once,
        many=8,
        by="test_the_first_interrupt_asks_and_the_second_stops",
    ),
    Case(
        "Ctrl-C twice",
        "the process ends at once; what was in flight is charged, and nothing else is asked again",
        interrupted_twice,
        many=8,
        by="test_the_first_interrupt_asks_and_the_second_stops",
    ),
)
