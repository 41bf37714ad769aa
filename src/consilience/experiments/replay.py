"""A recorded run without a single call: replayed through the same engine, or aggregated under another rule."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from consilience.aggregation.answers import AnswerRow, FittedPanel, answer_columns
from consilience.aggregation.pooling import PooledProbability
from consilience.aggregation.probabilities import PROBABILITY_RULES
from consilience.core.deliberation import present
from consilience.core.packet import Item
from consilience.errors import (
    ConfigError,
    DataError,
    FinalModelError,
    IntegrityError,
    ModelError,
    PlanError,
    TransientModelError,
    UnreachedModelError,
)
from consilience.experiments.casting import recorded_cast
from consilience.experiments.orders import Job, Orders, Shell
from consilience.experiments.plan import Application, Plan
from consilience.experiments.protocol import Frozen, read_frozen
from consilience.experiments.recorded import recorded_course, recorded_items
from consilience.experiments.rows import aggregate, expected_rules
from consilience.experiments.runner import run_arm
from consilience.experiments.weights import Weights, refuse_in_sample
from consilience.journal.events import AttemptError, AttemptResponse, ToolReturned, Where
from consilience.journal.reader import RunState, expand, fold
from consilience.models.base import Model
from consilience.models.batch import TIER
from consilience.models.calls import Limits
from consilience.models.prices import Catalogue, ModelSpec, listed_name
from consilience.models.replay import replay_of
from consilience.models.request import Completion, completion_from_json
from consilience.registry import nearest

ONE_TRY = Limits(attempts=1)


@dataclass(frozen=True)
class ReplayReport:
    """What a replay gave.

    Attributes:
        run_id: The run replayed.
        finished: Whether the run is; the predictions of one that is not may be older than its record.
        identical: Whether the predictions are byte for byte those recorded.
        answers: Recorded answers that were read again; no call was made.
        predictions: As replayed.
    """

    run_id: str
    finished: bool
    identical: bool
    answers: int
    predictions: pl.DataFrame


async def replay_run(folder: Path, applications: Mapping[str, Application], shell: Shell) -> ReplayReport:
    """Run the engine of a finished run again on recorded answers and compare the predictions byte for byte.

    Args:
        folder: The run folder.
        applications: By name; the run's own gives identity to its simulated models.
        shell: Clock and facts; nothing is written into the run folder.

    Raises:
        IntegrityError: The record was changed, or holds no answer to a call (role and turn are named).
        DataError: The run has no predictions yet.
    """
    frozen = read_frozen(folder)
    plan = frozen.plan
    state = fold(folder)
    run_id = _check_protocol(folder, frozen, state)
    recorded = _recorded(state)
    catalogue = _catalogue(frozen)
    reader = applications[plan.application].reader
    originals = recorded_cast(plan, frozen.content["models"], catalogue=catalogue, reader=reader)
    models: dict[str, Model] = {name: replay_of(original, recorded) for name, original in originals.items()}
    with tempfile.TemporaryDirectory() as scratch:
        paid = {item: event.data["paid_nano"] for item, event in state.items_finished.items()}
        items = [item for item in recorded_items(folder, plan) if item.question.id in paid]
        make = applications[plan.application].answerer
        answerer = None if make is None or plan.answering is None else make(plan.answering)
        job = Job(plan, items, run_id, Path(scratch) / "run", models, catalogue, answerer=answerer)
        orders = Orders(limits=ONE_TRY, paid_nano=paid, batched=_batched(state), tools=_tools(state))
        replaying = Shell(clock=shell.clock, run_secret=frozen.content["run_secret"], facts=shell.facts)
        report = await run_arm(job, replaying, orders)
        again = (report.folder / "predictions.parquet").read_bytes()
    path = folder / "predictions.parquet"
    if not path.is_file():
        raise DataError(f"{folder.name} has no predictions yet", hint="Run its command again to finish it.")
    return ReplayReport(folder.name, state.finished, again == path.read_bytes(), report.calls, report.predictions)


def _check_protocol(folder: Path, frozen: Frozen, state: RunState) -> str:
    """Return the run's own id; its folder may have been renamed or copied."""
    if state.started is None or state.started.protocol_sha256 != frozen.sha256:
        raise IntegrityError(
            f"{folder / 'protocol.json'} is not the one the journal was started with",
            hint="Restore it from a copy of the run.",
        )
    return state.started.run_id


def _recorded(state: RunState) -> dict[str, Completion | ModelError]:
    """Return by key what every call ended in; a later answer stands before an earlier error."""
    found: dict[str, Completion | ModelError] = {}
    for attempt in state.attempts.values():
        if isinstance(attempt.outcome, AttemptError):
            found[attempt.outcome.key] = _error(attempt.outcome.error)
    for key, response in state.answers.items():
        found[key] = completion_from_json(expand(response.completion, state.texts))
    return found


def _error(recorded: Mapping[str, Any]) -> ModelError:
    kinds = {kind.__name__: kind for kind in (UnreachedModelError, TransientModelError)}
    kind = kinds.get(recorded["type"], FinalModelError)
    return kind(recorded["message"], hint=recorded["hint"], status=recorded["status"])


def _tools(state: RunState) -> dict[tuple[Where, int], ToolReturned]:
    """Return what tools gave, texts put back."""
    return {
        at: ToolReturned(**{**vars(event), "result": expand(event.result, state.texts)})
        for at, (_, event) in state.tools.items()
    }


def _batched(state: RunState) -> frozenset[str]:
    """Return the keys whose recorded answers came in batches, at half the price."""
    answered = (attempt for attempt in state.attempts.values() if isinstance(attempt.outcome, AttemptResponse))
    tiers = {attempt.reserved.key: attempt.reserved.tier for attempt in answered}
    return frozenset(key for key, tier in tiers.items() if tier == TIER)


def _catalogue(frozen: Frozen) -> Catalogue:
    """Return the price rows the run was made with."""
    rows = {
        listed_name(name): ModelSpec.model_validate_json(json.dumps(row))
        for name, row in frozen.content["prices"].items()
    }
    return Catalogue(models=rows, tiers={})


async def recompute(folder: Path, *, aggregation: str, weights: Weights | None = None) -> pl.DataFrame:
    """Return a run's answers under one rule, from recorded answers alone.

    Columns: item_id, aggregation, n_answered, the numbers, the band over correlations of errors where none was measured
    (``rho=0`` …), and the rule's flags. Items without a quorum have null numbers; items of a kind that the rule does
    not serve have no row.

    Args:
        folder: The run folder.
        aggregation: Name of the rule.
        weights: Frozen weights for the fitted rules; None takes those of the run itself.

    Raises:
        ConfigError: No rule of this name serves the run's questions.
        PlanError: The weights were fitted on these very items, or hold none for this panel.
        IntegrityError: The record was changed.
    """
    plan, state = read_frozen(folder).plan, fold(folder)
    items = [item for item in recorded_items(folder, plan) if item.question.id in state.items_finished]
    if weights is not None:
        refuse_in_sample(weights, items=plan.items, split=plan.split)
    courses = {item.question.id: await recorded_course(state, plan, item) for item in items}
    protocol = plan.make_protocol()
    serving = {
        item.question.id: _rules(expected_rules(item.question.kind, courses[item.question.id], protocol), item, weights)
        for item in items
    }
    known = {name for names in serving.values() for name in names}
    if aggregation not in known:
        raise ConfigError(f'unknown aggregation rule "{aggregation}"', hint=nearest(aggregation, known))
    rows: list[dict[str, Any]] = []
    columns: dict[str, None] = {}
    for item in items:
        if aggregation not in serving[item.question.id]:
            continue
        course = courses[item.question.id]
        fitted = plan.fitted(item.question, plan.seats(item.question.id), arm=plan.arm)
        fitted = fitted if weights is None else _fitted(weights, plan, item)
        columns |= dict.fromkeys(answer_columns(item.question))
        row: dict[str, Any] = {
            "item_id": item.question.id,
            "aggregation": aggregation,
            "n_answered": len(present(course.final)),
        }
        for made in aggregate(item.question, course, fitted):
            if made.rule == aggregation:
                row |= made.cells | {"flags": ", ".join(made.made.flags)} | _band(made)
                columns |= dict.fromkeys(_band(made))
        rows.append(row)
    numbers = dict.fromkeys(columns, pl.Float64)
    return pl.DataFrame(
        rows,
        schema={
            "item_id": pl.String,
            "aggregation": pl.String,
            "n_answered": pl.Int64,
            **numbers,
            "flags": pl.String,
        },
    )


def _band(row: AnswerRow) -> dict[str, float]:
    """Return what a probability would be under other correlations of errors, where none was measured."""
    band = row.made.band if isinstance(row.made, PooledProbability) else None
    return {f"rho={rho}": p for rho, p in (band or {}).items()}


def _rules(told: list[str], item: Item, weights: Weights | None) -> list[str]:
    """Return the rules that may give a row; with weights also those that need an artefact."""
    return told if weights is None or item.question.kind != "probability" else [*PROBABILITY_RULES.names(), *told]


def _fitted(weights: Weights, plan: Plan, item: Item) -> FittedPanel:
    weighted = plan.model_copy(update={"weights": weights})
    found = weighted.fitted(item.question, plan.seats(item.question.id), arm=plan.arm)
    if found is None:
        known = ", ".join(sorted({f"{panel.arm} by {', '.join(panel.models)}" for panel in weights.panels}))
        raise PlanError(
            f"the weights hold nothing for {plan.arm} by {', '.join(plan.models)} on questions like {item.question.id}",
            hint=f"They are of {known}.",
        )
    return found
