"""Start-up: an import or a help in a fresh process, each in its own environment, taken in turn."""

from __future__ import annotations

import resource
import statistics
import subprocess
import time
from collections.abc import Iterable
from typing import Any

from environments import Peer, PeerError, environment

RUNS = 9
SLOW_RUNS = 3
STARTS = (
    ("python -c pass", "consilience", ("-c", "pass"), RUNS),
    ("import consilience", "consilience", ("-c", "import consilience"), RUNS),
    ("consilience --help", "consilience", ("-m", "consilience", "--help"), RUNS),
    ("import langgraph.graph", "langgraph", ("-c", "import langgraph.graph"), RUNS),
    ("import autogen_agentchat.agents", "autogen", ("-c", "import autogen_agentchat.agents"), RUNS),
    ("import pydantic_ai", "pydantic_ai", ("-c", "import pydantic_ai"), RUNS),
    ("import inspect_ai", "inspect", ("-c", "import inspect_ai"), RUNS),
    ("inspect --help", "inspect", ("-m", "inspect_ai", "--help"), RUNS),
    ("import arch.bootstrap", "arch", ("-c", "import arch.bootstrap"), RUNS),
    ("import openavmkit.pipeline", "openavmkit", ("-c", "import openavmkit.pipeline"), SLOW_RUNS),
)
GOALS = {"import consilience": 0.15, "consilience --help": 0.3}


def _once(peer: Peer, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return wall and CPU seconds of one start."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(
        [str(peer.python), *arguments], capture_output=True, text=True, check=False, env=environment()
    )
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise PeerError(said[-1][:300] if said else f"ended with {done.returncode}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(peers: dict[str, Peer | PeerError]) -> Iterable[dict[str, Any]]:
    """Return wall and CPU seconds per start."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name, *_ in STARTS}
    failed: dict[str, str] = {}
    for number in range(RUNS + 1):
        for name, peer_name, arguments, runs in STARTS:
            peer = peers[peer_name]
            if number > runs or name in failed:
                continue
            try:
                if isinstance(peer, PeerError):
                    raise peer
                took = _once(peer, arguments)
            except PeerError as error:
                failed[name] = str(error)
                continue
            if number:  # the first start compiles
                times[name].append(took)
    help_cpu = statistics.median(cpu for _, cpu in times["consilience --help"])
    for name, *_ in STARTS:
        if name in failed:
            yield {"start": name, "not run": failed[name]}
            continue
        wall, cpu = (statistics.median(column) for column in zip(*times[name], strict=True))
        yield {
            "start": name,
            "wall s": wall,
            "best wall s": min(taken for taken, _ in times[name]),
            "CPU-s": cpu,
            "CPU × our help": cpu / help_cpu,
            "goal, wall s": GOALS.get(name),
        }
