"""A run carried out from a project folder: every application is known, and its freeze counts."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from consilience.decisions.panel import DECISIONS
from consilience.experiments.fingerprint import run_facts
from consilience.experiments.frozen import Study
from consilience.experiments.general import GENERAL
from consilience.experiments.manifest import RunFacts
from consilience.experiments.orders import Job, Orders, Progress, RunReport, Shell
from consilience.experiments.plan import Application
from consilience.experiments.predictions import ASK_PREFIX, SIMULATED_PREFIX
from consilience.experiments.runner import run_arm
from consilience.forecasting.panel import FORECASTING
from consilience.models.calls import Stop
from consilience.valuation.pipeline import VALUATION

APPLICATIONS: Mapping[str, Application] = {each.name: each for each in (VALUATION, GENERAL, FORECASTING, DECISIONS)}


def now() -> datetime:
    """Return the time of day, in UTC."""
    return datetime.now(UTC)


def study_of(root: Path, *, results: Path | None = None) -> Study:
    """Return the study of a project folder, as the applications answer in it."""
    return Study.of(root, results=results, rosters={name: each.roles_for for name, each in APPLICATIONS.items()})


def facts_of(job: Job) -> RunFacts:
    """Return what surrounds a run, its deviations from the project's freeze among it.

    Raises:
        IntegrityError: The freeze is not what was written.
        ConfigError: A configuration file that was frozen cannot be read.
        DataError: Sales, splits, subsamples or weights that were frozen cannot be read.
    """
    results, run_id = job.folder.parents[1], job.folder.name
    asked = run_id.removeprefix(SIMULATED_PREFIX).startswith(ASK_PREFIX)  # a question of its own is no arm
    study = study_of(results.parent, results=results)
    return run_facts(study, run_id=run_id, plan=None if asked else job.plan)


async def carried_out(
    job: Job, orders: Orders, *, facts: RunFacts, watch: Callable[[Progress], None], stop: Stop | None = None
) -> RunReport:
    """Run or resume a job and return what it left.

    Args:
        job: What is run, and where.
        orders: How.
        facts: What surrounds it, as `facts_of` tells.
        watch: Is told of progress.
        stop: May be set at any time to end the run early; what is in flight is finished.

    Raises:
        ConsilienceError: As `run_arm` does.
    """
    shell = Shell(clock=now, run_secret=secrets.token_hex(16), facts=facts, watch=watch, stop=stop or Stop())
    return await run_arm(job, shell, orders)
