"""Everything around one run that is not its plan: items, models, clock, facts, progress, Ctrl-C."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import numpy as np

from consilience.api.running import APPLICATIONS, carried_out, facts_of
from consilience.cli.console import counted, note
from consilience.cli.data import TOWN_SEED
from consilience.cli.watch import interruptible, watching
from consilience.core.packet import Item
from consilience.errors import DataError, PlanError
from consilience.experiments.arms import PLAIN, treatment
from consilience.experiments.casting import cast, variables
from consilience.experiments.general import GENERAL
from consilience.experiments.orders import Job, Orders, RunReport, checked_run_id
from consilience.experiments.plan import Application, Plan, committee_models
from consilience.experiments.predictions import SIMULATED_PREFIX
from consilience.experiments.questions import read_questions
from consilience.experiments.settings import Settings, keys_and_urls
from consilience.models.base import Model
from consilience.models.calls import Stop
from consilience.models.prices import Catalogue
from consilience.valuation.pipeline import SUBSAMPLE_SEED as DRAW_SEED
from consilience.valuation.pipeline import VALUATION, Project, build_items, load_items, synthetic_project
from consilience.valuation.sampling import draw_subsamples, select_items
from consilience.valuation.schema import read_analytic
from consilience.valuation.splits import read_splits


@dataclass(frozen=True)
class Wanted:
    """Which items a run is about.

    Attributes:
        split: Of the sales; None for a set of questions.
        n: How many of the split's subsample.
        questions: File of questions; None for sales.
        synthetic: The sales of the synthetic town.
        packets: The form of their packets, as the arm declares it.
    """

    split: str | None
    n: int
    questions: Path | None
    synthetic: bool
    packets: str = PLAIN

    def by(self, arm: str) -> Wanted:
        """Return the same items in the form of packets that an arm declares.

        Raises:
            ConfigError: No such arm.
        """
        return replace(self, packets=treatment(arm).packets)

    @property
    def application(self) -> Application:
        """Whose roles and simulated analysts answer."""
        return VALUATION if self.questions is None else GENERAL


def items_of(wanted: Wanted, *, project: Project, town: Project) -> list[Item]:
    """Return the items of a run; the town and the subsample are made and stored where they are absent."""
    if wanted.questions is not None:
        if wanted.packets != PLAIN:
            raise PlanError(
                f"a file of questions brings its own packets, which are not {wanted.packets}",
                hint="Ask this arm about sales.",
            )
        return read_questions(wanted.questions)
    if wanted.synthetic:
        synthetic_project(town, seed=TOWN_SEED)
    else:
        _expect_built(project)
    source = town if wanted.synthetic else project
    return load_items(source, split=wanted.split or "", n=wanted.n, packets=wanted.packets)


def _expect_built(project: Project) -> None:
    for path, verb in ((project.analytic, "data build"), (project.splits, "data splits")):
        if not path.exists():
            raise DataError(
                f"there is no file {path}", hint=f"Make it with consilience {verb}, or ask --synthetic or --questions."
            )


def items_unwritten(wanted: Wanted, *, project: Project, town: Project) -> list[Item]:
    """Return the items that `items_of` would, writing nothing into the project."""
    if wanted.synthetic and not town.subsamples.exists():
        with tempfile.TemporaryDirectory() as scratch:
            return items_of(wanted, project=project, town=Project(Path(scratch)))
    source = town if wanted.synthetic else project
    if wanted.questions is not None or source.subsamples.exists():
        return items_of(wanted, project=project, town=town)
    _expect_built(source)
    sales = read_analytic(source.analytic)
    splits = read_splits(source.splits, sales=sales)
    drawn = draw_subsamples(sales, splits, rng=np.random.default_rng(DRAW_SEED))
    chosen = select_items(drawn, split=wanted.split or "", n=wanted.n)
    return build_items(source, chosen, packets=wanted.packets)


def run_name(plan: Plan, chosen: str | None, *, synthetic: bool) -> str:
    """Return the run's id: the chosen one or the plan's own, marked where models or data are made up.

    Raises:
        ConfigError: It cannot name a folder.
    """
    if chosen is None:
        return plan.run_id if plan.simulated or not synthetic else f"{SIMULATED_PREFIX}{plan.run_id}"
    checked_run_id(chosen)
    if (plan.simulated or synthetic) and not chosen.startswith(SIMULATED_PREFIX):
        chosen = f"{SIMULATED_PREFIX}{chosen}"
        note(f"models or data of this run are made up, so its id is {chosen}")
    return chosen


def models_of(plan: Plan, catalogue: Catalogue, *, root: Path) -> dict[str, Model]:
    """Return who speaks for each model of a plan, by model id.

    Raises:
        ConfigError: A live model has no key.
    """
    return casting_of(plan, catalogue, root=root)()


def casting_of(plan: Plan, catalogue: Catalogue, *, root: Path) -> Callable[[], dict[str, Model]]:
    """Return what makes the models of a plan anew wherever it is called, with the keys that this process sees."""
    reader = APPLICATIONS[plan.application].reader
    environ = keys_and_urls(root, os.environ)
    read = {name: environ[name] for name in variables(plan.models, catalogue) if name in environ}
    return partial(
        cast, plan.models, catalogue=catalogue, environ=read, reader=reader, seed=plan.seed, caches=plan.caches
    )


def check_keys(settings: Settings, *, root: Path) -> None:
    """Raise before any work where a live model could not be called.

    Raises:
        ConfigError: A key or base URL is missing; says what to set.
    """
    names = committee_models(settings.committee, tier=settings.tier, catalogue=settings.catalogue)
    environ = keys_and_urls(root, os.environ)
    cast(names, catalogue=settings.catalogue, environ=environ, reader=GENERAL.reader, seed=settings.seed)


def carry_out(job: Job, orders: Orders) -> RunReport:
    """Run or resume a job, shown on stderr; the first Ctrl-C lets it finish what is in flight."""
    word = " (simulated)" if job.plan.simulated else ""
    facts = facts_of(job)
    for text in facts.deviations:
        note(f"protocol deviation: {text}")
    stop = Stop()
    with watching(f"{job.plan.arm}{word}") as watch, interruptible(stop):
        report = anyio.run(partial(carried_out, job, orders, facts=facts, watch=watch, stop=stop))
    if report.torn_bytes:
        note(
            f"a record of {counted(report.torn_bytes, 'byte')} was cut off by an earlier end; it is kept aside and was "
            "not used"
        )
    if report.lost:
        note(f"{counted(report.lost, 'call')} of an earlier process had no outcome: charged at the reservation of each")
    return report
