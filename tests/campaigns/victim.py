"""The process that the campaign kills: runs one arm in a child for every order it reads, so that imports are paid once.

Its model is the real adapter, and its vendor the strict fake in the campaign's process: what is counted there survives
whatever is killed here.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anthropic

from campaigns.ground import CAPPED, ITEMS, PLAN
from consilience.errors import ConsilienceError
from consilience.journal.files import RealFiles
from consilience.models.anthropic import Anthropic
from engine_cases import carry_out, make_shell

assert anthropic.__version__  # imported here, once

MODEL = "claude-haiku-5-5"
KEY = "sk-canary-0123456789"
LIVE = PLAN.model_copy(update={"models": (MODEL,)})


@dataclass
class Deadly(RealFiles):
    """The disk of a process that dies at its nth operation: before it, in the middle of it, or right after it."""

    nth: int
    when: str
    count: int = 0

    def _due(self, when: str) -> bool:
        return self.count == self.nth and self.when == when

    def _enter(self) -> None:
        self.count += 1
        if self._due("before"):
            die()

    def _leave(self) -> None:
        if self._due("after"):
            die()

    def open_append(self, path: Path) -> int:
        self._enter()
        handle = super().open_append(path)
        self._leave()
        return handle

    def write(self, handle: int, data: bytes) -> None:
        self._enter()
        if self._due("amid"):
            super().write(handle, data[: len(data) // 2])
            die()
        super().write(handle, data)
        self._leave()

    def fsync(self, handle: int) -> None:
        self._enter()
        super().fsync(handle)
        self._leave()

    def replace(self, source: Path, target: Path) -> None:
        self._enter()
        super().replace(source, target)
        self._leave()

    def fsync_dir(self, folder: Path) -> None:
        self._enter()
        super().fsync_dir(folder)
        self._leave()

    def truncate(self, path: Path, size: int) -> None:
        self._enter()
        super().truncate(path, size)
        self._leave()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def obey(order: dict[str, Any]) -> int:
    """Run as told; return the exit code."""
    if order.get("file_bytes"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], order["file_bytes"]))
    files = Deadly(order["nth"], order["when"]) if order.get("nth") else RealFiles()
    try:
        carry_out(
            Path(order["folder"]),
            LIVE,
            ITEMS,
            Anthropic(MODEL, KEY, order["base_url"]),
            orders=CAPPED,
            shell=make_shell(files=files),
        )
    except ConsilienceError as error:
        say(f"{type(error).__name__}: {error}")
        return error.exit_code
    return 0


def say(text: str) -> None:
    sys.stdout.write(json.dumps(text) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(obey(json.loads(line)))
        say(str(child))
        _, status = os.waitpid(child, 0)
        say(f"ended {os.waitstatus_to_exitcode(status)}")
