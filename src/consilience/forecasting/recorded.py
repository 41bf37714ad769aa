"""The run traces of a run's questions, made of its transcripts; whoever replays the run makes the same ones."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import polars as pl

from consilience.aggregation.answers import NUMBER_COLUMNS, OPTION_PREFIX, default_rule
from consilience.core.packet import Item
from consilience.core.question import Kind
from consilience.errors import ConfigError, DataError, PlanError
from consilience.experiments.calibrations import Calibration
from consilience.experiments.orders import Job, RunReport
from consilience.experiments.plan import Plan
from consilience.forecasting.health import panel_health
from consilience.forecasting.items import CORE_KINDS
from consilience.forecasting.questions import ForecastQuestion, QuestionKind
from consilience.forecasting.research.agent import RESEARCH, SUPERVISION
from consilience.forecasting.submission import panel_function
from consilience.forecasting.traces import (
    AgentTrace,
    CodeVersion,
    FinalForecast,
    JournalReference,
    RunTrace,
    StageName,
    StageTrace,
    read_trace,
    write_trace,
)
from consilience.journal.events import Record
from consilience.journal.reader import read_events
from consilience.registry import nearest

PANEL_ONLY: Final = "panel_only"
FINAL_RULES: Final = (PANEL_ONLY, "blend", "strict")
"""Rules that make the forecast of the stages; ``panel_only`` is the panel's primary rule."""
FOLDER: Final = "traces"
TRACE_HASH: Final = 8


def final_row(rule: str, kind: Kind, n_seats: int) -> str:
    """Return the aggregation whose row a final rule reads.

    Raises:
        ConfigError: There is no such rule.
    """
    if rule not in FINAL_RULES:
        raise ConfigError(f'unknown final rule "{rule}"', hint=nearest(rule, FINAL_RULES))
    return default_rule(kind, n_seats) if rule == PANEL_ONLY else rule


def check_calibration(calibration: Calibration, items: Iterable[Item]) -> None:
    """Pass in silence where a calibration was learnt from what was known before every question's cutoff.

    Raises:
        PlanError: It was fitted on a question, or knows of later ones than its cutoff allows.
    """
    for item in items:
        if item.question.id in calibration.items or item.packet.cutoff <= calibration.until:
            raise PlanError(
                f"question {item.question.id} is no later than {calibration.until}, which the calibration was fitted "
                "up to, or was among those it was fitted on",
                hint="A calibration serves later questions only.",
            )


def write_traces(
    job: Job,
    report: RunReport,
    questions: Mapping[str, ForecastQuestion],
    *,
    final: str,
    calibration: Calibration | None = None,
) -> list[Path]:
    """Write one run trace per item that has a transcript, and return their paths.

    A trace that is there is not written over: where the record has grown since, or other code reads it, the new one
    stands beside it, under its hash.

    Args:
        job: What was run.
        report: What it left.
        questions: The question behind each item, as it was asked.
        final: Name of the final rule.
        calibration: A frozen recalibration of the panel's probabilities, fitted on earlier questions; None for none.

    Raises:
        ConfigError: There is no such rule.
        DataError: A file cannot be written.
        IntegrityError: A trace that is there was changed.
        PlanError: The calibration was fitted on the question, or on later ones.
    """
    last: Record | None = next(iter(deque(read_events(job.folder), maxlen=1)), None)
    if last is None:
        return []
    paths = []
    for item_id in sorted(job.plan.items):
        transcript = job.folder / "transcripts" / f"{item_id}.json"
        if not transcript.is_file():
            continue
        told: dict[str, Any] = json.loads(transcript.read_bytes())
        agents = tuple(_agents(told["turns"]))
        rows, asked = report.predictions.filter(pl.col("item_id") == item_id), questions[item_id]
        trace = RunTrace(
            question=asked,
            settings=_settings(job.plan, final),
            code=CodeVersion(package=report.manifest["package_version"], commit=report.manifest.get("git_commit")),
            created_at=datetime.fromisoformat(last.at),
            agents=agents,
            stages=tuple(_stages(told)),
            final=_final(rows, final, asked.kind, told, _function(asked, agents), calibration),
            journal=JournalReference(run_id=report.run_id, path=f"runs/{job.folder.name}", head=last.hash),
        )
        paths.append(_write(trace, job.folder / FOLDER, item_id if final == PANEL_ONLY else f"{item_id}.{final}"))
    return paths


def _write(trace: RunTrace, folder: Path, stem: str) -> Path:
    path, sealed = folder / f"{stem}.json", trace.sealed()
    if path.is_file() and read_trace(path).hashes != sealed.hashes:
        path = folder / f"{stem}.{sealed.hashes['trace'][:TRACE_HASH]}.json"
    write_trace(trace, path)
    return path


def _settings(plan: Plan, final: str) -> dict[str, Any]:
    answering = {name: value for name, value in (plan.answering or {}).items() if name not in {"questions", "prompts"}}
    chosen = plan.model_dump(
        mode="json", include={"arm", "protocol", "committee", "tier", "models", "seed", "replicate"}
    )
    return {**chosen, "final": final, "research": answering}


def _agents(turns: Sequence[Mapping[str, Any]]) -> list[AgentTrace]:
    kept = [turn["log"] for turn in turns if turn["kind"] in {RESEARCH, SUPERVISION} and turn.get("log")]
    return [AgentTrace.model_validate_json(json.dumps(log)) for log in kept]


def _searched(turn: Mapping[str, Any]) -> bool:
    return turn["kind"] == RESEARCH and bool(turn.get("log"))


def _stages(told: Mapping[str, Any]) -> list[StageTrace]:
    counts: dict[str, Any] = dict(
        Counter(turn["outcome"]["status"] for turn in told["turns"] if turn["kind"] == RESEARCH)
    )
    found = panel_health((told["item_id"], turn["log"]) for turn in told["turns"] if _searched(turn))
    health: Any = None if found is None else found.model_dump(mode="json")
    stages = [
        StageTrace(name="panel", status=told["status"], record={"counts": counts, "health": health}),
        StageTrace(name="aggregate", status=told["status"], record={"rules": told["aggregated"]}),
    ]
    argued = [turn for turn in told["turns"] if turn["kind"] == "argument"]
    if "debate" in told["course"]:
        said: Any = [{"seat": turn["seat"], "round": turn["round"], "outcome": turn["outcome"]} for turn in argued]
        stages.append(
            StageTrace(name="debate", status=told["course"]["debate"], record={**told["course"], "arguments": said})
        )
    later: tuple[tuple[StageName, str], ...] = (("judge", "judgement"), ("supervisor", SUPERVISION))
    for name, kind in later:
        turn = next((turn for turn in told["turns"] if turn["kind"] == kind), None)
        if turn is not None:
            stages.append(StageTrace(name=name, status=turn["outcome"]["status"], record={"outcome": turn["outcome"]}))
    return stages


def _function(question: ForecastQuestion, agents: Sequence[AgentTrace]) -> tuple[float, ...] | str | None:
    """Return the panel's distribution function of a quantity, None where it has none, or in words why it failed."""
    try:
        made = panel_function(question, agents)
    except DataError as error:
        return error.message
    return None if made is None else made.values


def _final(
    rows: pl.DataFrame,
    rule: str,
    kind: QuestionKind,
    told: Mapping[str, Any],
    function: tuple[float, ...] | str | None,
    calibration: Calibration | None,
) -> FinalForecast:
    """Return the forecast that a final rule makes; all None where there is no quorum.

    Raises:
        PlanError: The calibration was fitted on the question, or on later ones.
    """
    n_seats = int(rows.get_column("n_seats").max() or 1) if rows.height else 1  # type: ignore[arg-type]
    name = final_row(rule, CORE_KINDS[kind], n_seats)
    row = next(iter(rows.filter(pl.col("aggregation") == name).to_dicts()), {})
    record: Mapping[str, Any] = next((one for one in told["aggregation_records"] if one["rule"] == name), {})
    p, flags = row.get("p"), [f"no distribution function: {function}"] if isinstance(function, str) else []
    if calibration is not None and p is not None:
        maps = calibration.maps(rows.filter(pl.col("aggregation") == name))
        for recalibration in maps.values():
            p = recalibration(p)
            flags.append(f"recalibrated from {row['p']:.4f} by {recalibration.version}")
        flags += [] if maps else ["not recalibrated: the artefact holds no map of this panel"]
    options = {
        column.removeprefix(OPTION_PREFIX): value
        for column, value in row.items()
        if column.startswith(OPTION_PREFIX) and value is not None
    }
    quantiles = tuple(row[column] for column in NUMBER_COLUMNS[1:]) if row.get("point") is not None else None
    return FinalForecast(
        rule=rule,
        probability=p,
        distribution=options or None,
        quantiles=quantiles,
        confidence=record.get("confidence"),
        cdf=function if isinstance(function, tuple) else None,
        flags=(*record.get("flags", ()), *flags),
    )
