"""Start-up: the package, its help, and a bare interpreter, each in a fresh process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from typing import Any

RUNS = 15
COMMANDS = {
    "import consilience": (("-c", "import consilience"), 0.15),
    "consilience --help": (("-m", "consilience", "--help"), 0.30),
}


def _once(arguments: tuple[str, ...]) -> float:
    # Bytecode is kept, as on any user's machine: without it every start would compile the package anew.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    return time.perf_counter() - start


def run() -> list[dict[str, Any]]:
    """Return wall seconds per start, the three commands taken in turn so that the machine's moods strike all alike."""
    commands = {"python -c pass": ("-c", "pass")} | {name: arguments for name, (arguments, _) in COMMANDS.items()}
    for arguments in commands.values():
        _once(arguments)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, arguments in commands.items():
            times[name].append(_once(arguments))
    median = {name: statistics.median(taken) for name, taken in times.items()}
    bare = median["python -c pass"]
    return [
        {
            "name": name,
            "value": median[name],
            "unit": "s",
            "goal": goal,
            "peer": "python -c pass",
            "ratio": median[name] / bare,
            "note": f"median of {RUNS} starts, best {min(times[name]):.3f} s; a bare interpreter takes {bare:.3f} s",
        }
        for name, (_, goal) in COMMANDS.items()
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
