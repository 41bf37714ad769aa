"""What a run is given from outside, and what it gives back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import polars as pl

from consilience.core.packet import Item
from consilience.core.question import UNFIT_ID_PATTERN
from consilience.errors import BudgetError, ConfigError, StoppedError
from consilience.experiments.diagnostics import PanelDiagnostics
from consilience.experiments.engines.base import Engine, Local
from consilience.experiments.manifest import RunFacts
from consilience.experiments.plan import Plan
from consilience.journal.events import ToolReturned, Where
from consilience.journal.files import FileLayer, RealFiles
from consilience.models.base import Model
from consilience.models.batch import BatchVendor
from consilience.models.calls import Limits, Stop
from consilience.models.prices import Catalogue
from consilience.runtime.answerer import Answerer

RUN_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def checked_run_id(run_id: str) -> str:
    """Return an id that can name a run's folder, whoever chose it.

    Raises:
        ConfigError: It cannot: it is a path, is empty, hides something, or is a device on some system.

    Example:
        >>> checked_run_id("_ask-decide-mine")
        '_ask-decide-mine'
    """
    if not RUN_ID.fullmatch(run_id) or re.match(UNFIT_ID_PATTERN, run_id):
        raise ConfigError(
            f"{run_id!r} cannot name a run",
            hint="Use 1 to 128 letters, digits, dots, dashes and underscores, no dot or dash first; no path.",
        )
    return run_id


@dataclass(frozen=True)
class Job:
    """What is to be run, and where.

    Attributes:
        plan: What is asked.
        items: The questions with their evidence.
        run_id: The run's id.
        folder: The run's folder.
        models: By model id; those the plan names.
        catalogue: Prices and limits.
        batch: The vendors' batch endpoints by provider, for a run in batch mode; None calls one by one.
        answerer: Takes some kinds of turn in steps of its own, as the plan fixes it; None where every turn is one call.

    Raises:
        ConfigError: The id cannot name a folder.
    """

    plan: Plan
    items: Sequence[Item]
    run_id: str
    folder: Path
    models: Mapping[str, Model]
    catalogue: Catalogue
    batch: Mapping[str, BatchVendor] | None = None
    answerer: Answerer | None = None

    def __post_init__(self) -> None:
        checked_run_id(self.run_id)


@dataclass(frozen=True)
class Progress:
    """How far a run is; given to whoever watches, after every turn and every item."""

    items_done: int
    items_total: int
    turns: int
    failures: int
    tokens: int
    calls: int
    spent_nano: int
    cap_nano: int | None


@dataclass(frozen=True)
class Shell:
    """What a run needs from the outside world.

    Attributes:
        clock: The time of day.
        run_secret: Given to a new run; kept in its ``protocol.json``.
        facts: Versions and hashes for the manifest.
        watch: Is told of progress.
        stop: May be set at any time to stop the run.
        files: The disk under the journal.
    """

    clock: Callable[[], datetime]
    run_secret: str
    facts: RunFacts
    watch: Callable[[Progress], None] = lambda _: None
    stop: Stop = field(default_factory=Stop)
    files: FileLayer = field(default_factory=RealFiles)


@dataclass(frozen=True)
class Orders:
    """How a run is carried out; nothing here changes what is asked.

    Attributes:
        max_spend_nano: The cap in nano-dollars; None for none.
        concurrency: Items in flight; in batch mode all of them are.
        limits: How models are called; None takes ``configs/budgets.yaml``.
        accept: Deviations from the recorded protocol that are allowed by name (``code``).
        retry_failed: Ask turns again that have no answer.
        paid_nano: Payment per item as recorded elsewhere, for replay.
        batched: Keys of calls that were made in batches as recorded elsewhere, for replay.
        tools: What tools gave by turn and step, as recorded elsewhere, for replay; then none is used.
        engine: Where turns are taken; the answers are the same wherever.
    """

    max_spend_nano: int | None = None
    concurrency: int = 4
    limits: Limits | None = None
    accept: frozenset[str] = frozenset()
    retry_failed: bool = False
    paid_nano: Mapping[str, int] | None = None
    batched: frozenset[str] = frozenset()
    tools: Mapping[tuple[Where, int], ToolReturned] = field(default_factory=dict)
    engine: Engine = field(default_factory=Local)


@dataclass(frozen=True)
class RunReport:
    """What a run left.

    Attributes:
        run_id: Its id.
        folder: Its folder.
        calls: Calls that left in this process.
        torn_bytes: Bytes of a torn last record that were kept aside.
        lost: Attempts of an earlier process without outcome, charged at their reservation.
        predictions: One row per item and rule.
        manifest: As written.
        panel: What the members were worth to each other; None where there is no panel.
        stopped_by: What ended it early, or None.
    """

    run_id: str
    folder: Path
    calls: int
    torn_bytes: int
    lost: int
    predictions: pl.DataFrame
    manifest: dict[str, Any]
    panel: PanelDiagnostics | None
    stopped_by: BudgetError | StoppedError | None
