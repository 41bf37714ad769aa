"""Runs in batch mode against the fake, over real HTTP, with places to interfere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anthropic
import anyio
import openai

from consilience.core.packet import Item
from consilience.experiments.casting import batch_vendors
from consilience.experiments.orders import Job, Orders, RunReport, Shell
from consilience.experiments.plan import Plan
from consilience.experiments.runner import run_arm
from consilience.journal.files import RealFiles
from consilience.models.anthropic import Anthropic
from consilience.models.base import Model
from consilience.models.batch import BatchVendor, Line
from consilience.models.openai import OpenAI
from consilience.models.prices import Catalogue, load_catalogue
from engine_cases import QUICK, make_items, make_plan, make_shell

assert anthropic.__version__
assert openai.__version__  # imported here, since their first import takes longer than a batch is kept open

CANARY = "sk-canary-0123456789"
CLAUDE, GPT = "claude-sonnet-5-5", "gpt-6.1-sol"
HASTY = replace(QUICK, batch_quiet_s=0.04, batch_poll_s=0.002)
ITEMS = make_items(3)
DEBATE_PLAN = make_plan(ITEMS, models=(CLAUDE, GPT), committee="mixed_random")
CALLS, STAGES = 3 * 5 * 3, 3


class Swift(RealFiles):
    """The disk without waiting for it, so that the calls of a round come close together on any machine."""

    def fsync(self, handle: int) -> None:
        del handle


@dataclass
class Tapped:
    """A vendor's batch endpoint with somebody at the line.

    Attributes:
        vendor: The endpoint.
        bodies: Changes what is submitted.
        submitted: Is called once a batch was submitted.
        polled: Is called before every poll.
    """

    vendor: BatchVendor
    bodies: Callable[[Mapping[str, Mapping[str, Any]]], Mapping[str, Mapping[str, Any]]] = lambda bodies: bodies
    submitted: Callable[[], None] = lambda: None
    polled: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        return self.vendor.name

    async def submit(self, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        batch_id = await self.vendor.submit(self.bodies(bodies))
        self.submitted()
        return batch_id

    async def ended(self, batch_id: str) -> bool:
        self.polled()
        return await self.vendor.ended(batch_id)

    async def lines(self, batch_id: str, model: str) -> Sequence[Line] | Any:
        return await self.vendor.lines(batch_id, model)


def run_live(
    folder: Path,
    base_url: str,
    *,
    batch: bool = True,
    plan: Plan = DEBATE_PLAN,
    items: Sequence[Item] = ITEMS,
    shell: Shell | None = None,
    catalogue: Catalogue | None = None,
    taps: Mapping[str, Any] | None = None,
    orders: Orders | None = None,
) -> RunReport:
    """Run or resume an arm whose seats are both vendors', in batches or one by one."""
    every: dict[str, Model] = {
        CLAUDE: Anthropic(CLAUDE, CANARY, base_url, None),
        GPT: OpenAI(GPT, CANARY, f"{base_url}/v1"),
    }
    models = {name: every[name] for name in plan.models}
    vendors = {name: Tapped(vendor, **(taps or {})) for name, vendor in batch_vendors(models).items()}
    job = Job(plan, items, "_test", folder, models, catalogue or load_catalogue(), vendors if batch else None)
    return anyio.run(run_arm, job, replace(shell or make_shell(), files=Swift()), orders or Orders(limits=HASTY))
