"""The process that `test_kill` kills: runs one arm in a child for every line it reads, so that imports are paid once.

Every model call is told to a server in the test's process before it is answered here: what is counted there survives
whatever is killed here.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from consilience.models.base import Identity, call_key
from consilience.models.request import Completion, Request
from consilience.models.simulated import Simulated
from consilience.valuation.analysts import read_property
from engine_cases import MODEL, carry_out, make_items, make_plan


@dataclass(frozen=True)
class Counted:
    """A simulated model whose calls are counted elsewhere."""

    simulated: Simulated
    port: int
    min_cacheable_tokens: int | None = None

    @property
    def id(self) -> str:
        return self.simulated.id

    @property
    def identity(self) -> Identity:
        return self.simulated.identity

    def wire_body(self, request: Request) -> dict[str, Any]:
        return self.simulated.wire_body(request)

    async def complete(self, request: Request) -> Completion:
        key = call_key(self.identity, self.wire_body(request), replicate=request.replicate)
        async with await anyio.connect_tcp("127.0.0.1", self.port) as line:
            await line.send(f"{key}\n".encode())
            await line.receive(1)
        return await self.simulated.complete(request)


def run(folder: Path, port: int, count: int) -> None:
    items = make_items(count)
    carry_out(folder, make_plan(items), items, Counted(Simulated(MODEL, read_property, 7), port))


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for line in sys.stdin:
        folder, port, count = line.split("\t")
        child = os.fork()
        if child == 0:
            run(Path(folder), int(port), int(count))
            sys.exit()
        tell(child)
        _, status = os.waitpid(child, 0)
        tell(os.waitstatus_to_exitcode(status))
