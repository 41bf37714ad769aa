"""What the prompt layout saves at the vendors: a debate with both cache breakpoints, with one, and without any."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import anyio

from consilience.core.packet import Item
from consilience.experiments.casting import cast
from consilience.experiments.manifest import RunFacts
from consilience.experiments.orders import Job, Orders, Shell
from consilience.experiments.plan import Choices, Plan, make_plan
from consilience.experiments.runner import run_arm
from consilience.fakes.calls import simulated_responder
from consilience.fakes.server import FakeServer, running_fake
from consilience.models.prices import load_catalogue
from consilience.runtime.briefing import Settings
from consilience.valuation.analysts import read_property
from consilience.valuation.pipeline import VALUATION, Project, load_items, synthetic_project

SEED = 7
HOUSES = 5
NOTE = "12 roles, 2 rounds, 5 houses; fake vendor, list prices; one run, since nothing in it varies"
CATALOGUE = load_catalogue()


def debate(fake: FakeServer, houses: list[Item], committee: str) -> dict[str, Any]:
    """Return the manifest of a debate."""
    fake.reset(responder=simulated_responder(read_property, seed=SEED))
    choices = Choices(
        arm="G_debate", rounds=(2,), committee=committee, tier="mid", split="validation", seed=SEED, live=True
    )
    plan = make_plan(VALUATION, houses, choices, catalogue=CATALOGUE)
    environ = {"ANTHROPIC_API_KEY": "no-key", "OPENAI_API_KEY": "no-key"}
    environ |= {"ANTHROPIC_BASE_URL": fake.base_url, "OPENAI_BASE_URL": fake.openai_base_url}
    models = cast(plan.models, catalogue=CATALOGUE, environ=environ, reader=read_property, seed=SEED)
    shell = Shell(clock=lambda: datetime.now(UTC), run_secret="0" * 32, facts=RunFacts("0", None, "0"))
    with tempfile.TemporaryDirectory() as scratch:
        job = Job(plan, houses, "debate", Path(scratch) / "run", models, CATALOGUE)
        report = anyio.run(run_arm, job, shell, Orders())
    assert report.calls == len(fake.calls())
    return report.manifest


def marking(*, view: bool, system: bool) -> AbstractContextManager[Any]:
    """Let runs set only these breakpoints."""
    layout: Callable[..., Settings] = Plan.settings

    def changed(self: Plan, *, run_secret: str) -> Settings:
        planned = layout(self, run_secret=run_secret)
        return replace(
            planned,
            reuse_view=planned.reuse_view if view else frozenset(),
            reuse_system=planned.reuse_system and system,
        )

    return mock.patch.object(Plan, "settings", changed)


def rows_of(name: str, manifest: dict[str, Any], *, peer: str, cost: float) -> list[dict[str, Any]]:
    """Return a debate's cached share and its cost against another's."""
    spent = manifest["spent_usd"]
    return [
        {
            "name": f"cached share of the input, {name}",
            "value": manifest["cached_share"],
            "unit": "of the input",
            "note": NOTE,
        },
        {
            "name": f"cost of the debate, {name}",
            "value": spent,
            "unit": "USD",
            "peer": peer,
            "ratio": spent / cost,
            "note": NOTE,
        },
    ]


def run() -> list[dict[str, Any]]:
    """Return all rows."""
    with tempfile.TemporaryDirectory() as scratch, running_fake() as fake:
        project = Project(Path(scratch))
        synthetic_project(project, seed=SEED)
        houses = load_items(project, split="validation", n=HOUSES)
        both = debate(fake, houses, "all_anthropic")
        with marking(view=False, system=True):
            one = debate(fake, houses, "all_anthropic")
        with marking(view=False, system=False):
            none = debate(fake, houses, "all_anthropic")
        automatic = debate(fake, houses, "all_openai")
    plain = none["spent_usd"]
    return [
        *rows_of("breakpoints after system and view", both, peer="system's breakpoint alone", cost=one["spent_usd"]),
        *rows_of("breakpoint after system alone", one, peer="no breakpoint", cost=plain),
        *rows_of("no breakpoint", none, peer="no breakpoint", cost=plain),
        *rows_of("the vendor's own choice of prefixes", automatic, peer="no breakpoint", cost=plain),
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
