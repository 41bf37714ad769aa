"""What forecasts of resolved questions were worth, and what may have helped them that they should not have had."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from consilience.aggregation.answers import OPTION_PREFIX, default_rule
from consilience.core.packet import Item
from consilience.experiments.forecast_table import ForecastTable
from consilience.experiments.score_pools import clustered_mean
from consilience.experiments.score_table import ScoreTable, score_table
from consilience.forecasting.health import panel_health
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.research.agent import RESEARCH
from consilience.inference.intervals import DifferenceInterval
from consilience.scoring.probability import brier

PANEL: Final = "panel"
LEVELS_HELD: Final = (("q25", "q75"), ("q05", "q95"))


@dataclass(frozen=True)
class Skill:
    """What a forecast was worth against always saying how often such questions resolve yes.

    The base rate of a question is the share of yes among the *other* questions of the set: it does not know the
    outcome, yet it knows the set, as somebody with its records would.

    Attributes:
        brier: Mean Brier score of the forecast.
        reference: Mean Brier score of the base rate.
        skill: ``1 - brier / reference``; above 0 is better than the base rate, 1 is best.
        low: Lower end of its 95 % interval, clustered by question, the reference held fixed; None for too few.
        high: Upper end.
        n: Targets.
        n_questions: Their questions.
    """

    brier: float
    reference: float
    skill: float
    low: float | None
    high: float | None
    n: int
    n_questions: int


@dataclass(frozen=True)
class Work:
    """What the agents of a run did.

    Attributes:
        agents: Agents by status: accepted, abstained, failed.
        before: Hits dated before the cutoff (of an open question: dated).
        undated: Hits without a date.
        after: Hits dated at or after the cutoff.
        kept: Documents kept.
        filtered: Hits that were not kept, by reason.
        injections: Hits with injection patterns.
        searches: Searches that counted.
        shared: Of these, searches that another agent of the panel had made.
        rejected: Replies that were no valid action, by type.
        gates: Results by gate and status; the health gate's single one is of all artefacts together.
        health: That one, with its shares and limits; None for fewer than two artefacts.
    """

    agents: Mapping[str, int]
    before: int
    undated: int
    after: int
    kept: int
    filtered: Mapping[str, int]
    injections: int
    searches: int
    shared: int
    rejected: Mapping[str, int]
    gates: Mapping[str, Mapping[str, int]]
    health: Mapping[str, Any] | None


@dataclass(frozen=True)
class BackTest:
    """A scored back-test.

    Attributes:
        scores: Of yes-no questions: the panel, its rules and its members; None where there is none that resolved.
        skill: Of the primary rule; None likewise, and where one question alone or all alike leave nothing to compare.
        distributions: Mean Brier score over the options of questions with several, and how many; None without any.
        estimates: Of quantities: how many lay inside the 50 % and 90 % intervals, and how many there are; None without.
        work: What the agents did.
        late_prices: Market prices that nothing is compared with, as they are of the cutoff or later.
        undated_prices: Market prices that are compared with, though nobody says of when they are.
        excluded: Items without an outcome.
        unanswered: Resolved items without an answer of the primary rule.
    """

    scores: ScoreTable | None
    skill: Skill | None
    distributions: tuple[float, int] | None
    estimates: tuple[int, int, int] | None
    work: Work
    late_prices: int
    undated_prices: int
    excluded: int
    unanswered: int


def judge(
    predictions: pl.DataFrame, items: Sequence[Item], questions: Mapping[str, ForecastQuestion], transcripts: Path
) -> BackTest:
    """Score the predictions of a run about those of its questions that are resolved, and count what the agents did.

    Args:
        predictions: Of the run, one row per item and rule.
        items: With their truths.
        questions: The question behind each item.
        transcripts: Folder of the run's transcripts.
    """
    resolved = [item for item in items if item.truth is not None]
    told = _transcripts(transcripts, [item.question.id for item in items])
    primary = _primary_rows(predictions, resolved)
    binary = [item for item in resolved if item.question.kind == "probability"]
    table = _table(binary, predictions, questions, told)
    return BackTest(
        scores=None if table is None else score_table(table),
        skill=None if table is None else _skill(table),
        distributions=_distributions(resolved, primary),
        estimates=_estimates(resolved, primary),
        work=_work(told, questions),
        late_prices=sum(_late(questions[item.question.id]) for item in binary),
        undated_prices=sum(
            market is not None and market.as_of is None
            for market in (questions[item.question.id].market for item in binary)
        ),
        excluded=len(items) - len(resolved),
        unanswered=sum(1 for item in resolved if primary.get(item.question.id, {}).get("status") != "answered"),
    )


def _transcripts(folder: Path, ids: Sequence[str]) -> list[dict[str, Any]]:
    paths = [folder / f"{name}.json" for name in sorted(ids)]
    return [json.loads(path.read_bytes()) for path in paths if path.is_file()]


def _primary_rows(predictions: pl.DataFrame, items: Sequence[Item]) -> dict[str, dict[str, Any]]:
    """Return the row of the primary rule of every item, by the kind of answer it asks for."""
    kinds = {item.question.id: item.question.kind for item in items}
    return {
        row["item_id"]: row
        for row in predictions.to_dicts()
        if row["item_id"] in kinds and row["aggregation"] == default_rule(kinds[row["item_id"]], row["n_seats"])
    }


def _table(
    binary: Sequence[Item],
    predictions: pl.DataFrame,
    questions: Mapping[str, ForecastQuestion],
    told: Sequence[Mapping[str, Any]],
) -> ForecastTable | None:
    """Return the panel under each rule and each member alone as forecasters of the yes-no questions."""
    if not binary:
        return None
    ids = [item.question.id for item in binary]
    said: dict[str, dict[str, float]] = {}
    for row in predictions.filter(pl.col("item_id").is_in(ids)).to_dicts():
        if row.get("p") is not None:
            said.setdefault(f"{PANEL}: {row['aggregation']}", {})[row["item_id"]] = row["p"]
    for one in told:
        for turn in one["turns"]:
            if turn["kind"] == RESEARCH and turn["outcome"]["status"] == "answered" and one["item_id"] in ids:
                p = turn["outcome"]["said"].get("p_yes")
                said.setdefault(turn["role"], {})[one["item_id"]] = p
    names = tuple(sorted(said))
    probability = np.array([[said[name].get(item, np.nan) for name in names] for item in ids])
    markets = [None if _late(questions[item]) else questions[item].market for item in ids]
    cutoffs = [questions[item].cutoff for item in ids]
    return ForecastTable(
        question=np.array([questions[item].id for item in ids]),
        target=np.array(ids),
        as_of=np.array(["" if cutoff is None else cutoff.date().isoformat() for cutoff in cutoffs]),
        outcome=np.array([float(item.truth or 0.0) for item in binary]),
        price=np.array([np.nan if market is None else market.price for market in markets]),
        priced=np.array([market is not None for market in markets]),
        names=names,
        probability=probability,
        present=~np.isnan(probability),
        unsubmitted=np.zeros_like(probability, dtype=bool),
        n_unresolved=0,
        n_unknown=0,
    )


def _late(question: ForecastQuestion) -> bool:
    """Return whether a market's price is of the cutoff or later, when it knew what no agent could."""
    market, cutoff = question.market, question.cutoff
    return market is not None and market.as_of is not None and cutoff is not None and market.as_of >= cutoff


def _skill(table: ForecastTable) -> Skill | None:
    """Return the skill of the panel's primary rule against the base rate of the other questions."""
    seats = sum(1 for name in table.names if not name.startswith(f"{PANEL}: "))
    name = f"{PANEL}: {default_rule('probability', seats)}"
    if name not in table.names:
        return None
    at = table.names.index(name)
    there = table.present[:, at]
    y, question = table.outcome[there], table.question[there]
    rates = np.array([_rate(y[question != one]) for one in question])
    if np.isnan(rates).any():
        return None
    each, base = brier(p=table.probability[there, at], y=y), brier(p=rates, y=y)
    reference = float(base.mean())
    if reference == 0:  # all turned out alike, so the base rate of the others knows each outcome
        return None
    change: DifferenceInterval = clustered_mean(each - base, question)
    low = None if change.high is None else -change.high / reference
    high = None if change.low is None else -change.low / reference
    return Skill(
        brier=float(each.mean()),
        reference=reference,
        skill=-change.point / reference,
        low=low,
        high=high,
        n=int(y.size),
        n_questions=int(np.unique(question).size),
    )


def _rate(outcomes: Any) -> float:
    return float(outcomes.mean()) if outcomes.size else float("nan")


def _distributions(resolved: Sequence[Item], primary: Mapping[str, Mapping[str, Any]]) -> tuple[float, int] | None:
    scores = []
    for item in resolved:
        row = primary.get(item.question.id, {})
        options = [option.id for option in item.question.options]
        said = [row.get(f"{OPTION_PREFIX}{option}") for option in options]
        if item.question.kind == "distribution" and all(p is not None for p in said):
            truth = np.array([float(option == item.truth) for option in options])
            scores.append(float(((np.array(said, dtype=float) - truth) ** 2).sum()))
    return (float(np.mean(scores)), len(scores)) if scores else None


def _estimates(resolved: Sequence[Item], primary: Mapping[str, Mapping[str, Any]]) -> tuple[int, int, int] | None:
    rows = [
        (primary[item.question.id], float(item.truth or 0.0))
        for item in resolved
        if item.question.kind == "estimate" and primary.get(item.question.id, {}).get("point") is not None
    ]
    held = [sum(1 for row, truth in rows if row[low] <= truth <= row[high]) for low, high in LEVELS_HELD]
    return (held[0], held[1], len(rows)) if rows else None


def _work(told: Sequence[Mapping[str, Any]], questions: Mapping[str, ForecastQuestion]) -> Work:
    logs = [turn["log"] for one in told for turn in one["turns"] if turn.get("log")]
    tools = [record for log in logs for record in log["tool_log"] if not record["repeated"]]
    gates: dict[str, Counter[str]] = {}
    for log in logs:
        for gate in log["gates"]:
            gates.setdefault(gate["name"], Counter())[gate["status"]] += 1
    health = panel_health(
        (questions[one["item_id"]].id, turn["log"])
        for one in told
        for turn in one["turns"]
        if turn["kind"] == RESEARCH and turn.get("log")
    )
    if health is not None:
        gates[health.name] = Counter([health.status])
    searches = [record for record in tools if record["tool"] == "search"]
    rejected = Counter(step["rejected"] for log in logs for step in log["steps"] if step["rejected"])
    return Work(
        agents=dict(Counter(log["status"] for log in logs)),
        before=sum(record["before"] for record in tools),
        undated=sum(record["undated"] for record in tools),
        after=sum(record["after"] for record in tools),
        kept=sum(len(log["documents"]) for log in logs),
        filtered=dict(Counter(one["reason"] for record in tools for one in record["filtered"]).most_common()),
        injections=sum(len(record["injections"]) for record in tools),
        searches=len(searches),
        shared=sum(record["shared"] for record in searches),
        rejected=dict(rejected),
        gates={name: dict(found) for name, found in gates.items()},
        health=None if health is None else health.model_dump(mode="json"),
    )
