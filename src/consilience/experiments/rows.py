"""Rows of the prediction frame that one item adds: one per arm of its course and aggregation rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from consilience.aggregation.answers import (
    AnswerRow,
    FittedPanel,
    aggregate_answers,
    aggregate_stages,
    answer_columns,
    rule_names,
)
from consilience.core.deliberation import Deliberation, Table, has_quorum, present
from consilience.core.packet import Item
from consilience.core.question import Kind, Question
from consilience.experiments.plan import Plan
from consilience.experiments.totals import Totals, totals
from consilience.models.prices import NANO
from consilience.protocols import STAGED_RULES, Protocol
from consilience.runtime.session import TurnRecord

SAMPLES: Final = "samples_"
SAMPLED_RULES: Final[Mapping[Kind, tuple[str, ...]]] = {
    "estimate": ("mean", "median"),
    "probability": ("mean", "median"),
    "distribution": ("linear_pool",),
    "choice": ("plurality",),
}
"""Rules whose rows over samples of one agent stand under a name of their own too, such as ``samples_median``."""


def status_of(table: Table) -> str:
    """Return ``answered``, or the one way in which a single seat or a panel has no answer."""
    if has_quorum(table):
        return "answered"
    return table[0].outcome.status if len(table) == 1 else "no_quorum"


def aggregate(question: Question, course: Deliberation, fitted: FittedPanel | None = None) -> list[AnswerRow]:
    """Return a row per rule, and one per other final answer of the course; no rule has a row without a quorum."""
    made = aggregate_answers(question, present(course.final), fitted) if has_quorum(course.final) else []
    if course.sampled:
        made += [replace(row, rule=f"{SAMPLES}{row.rule}") for row in made if row.rule in SAMPLED_RULES[question.kind]]
    if course.stages is not None and made:
        made += aggregate_stages(course.stages, made, n_seats=len(course.final))
    for name, standing in course.variants.items():
        if standing.answer is not None:
            alone = aggregate_answers(question, [(standing.seat, standing.answer)])[0]
            made.append(replace(alone, rule=name))
    return made


def expected_rules(
    kind: Kind, course: Deliberation, protocol: Protocol, fitted: FittedPanel | None = None
) -> list[str]:
    """Return the names of all rows that an item of this kind has, answered or not.

    Args:
        kind: Of the question.
        course: The item's course.
        protocol: As the arm declares it; under a match an item may have money for less.
        fitted: What validation taught about its seats.
    """
    sampled = [f"{SAMPLES}{rule}" for rule in SAMPLED_RULES[kind]] if course.sampled else []
    return [*rule_names(kind, fitted), *sampled, *protocol.variants()]


@dataclass(frozen=True)
class Level:
    """One arm of an item's course: most courses are one arm, nested rounds are several.

    Attributes:
        arm: Label in tables.
        course: As far as it belongs to the arm.
        took: What the arm's turns took, as if it ran alone.
        rows: Its aggregates.
        protocol: As the arm declares it.
        fitted: What validation taught about its seats.
    """

    arm: str
    course: Deliberation
    took: Totals
    rows: Sequence[AnswerRow]
    protocol: Protocol
    fitted: FittedPanel | None


def levels_of(plan: Plan, item: Item, records: Sequence[TurnRecord], course: Deliberation) -> list[Level]:
    """Return the arms of an item's course, from the shortest to the whole one.

    Args:
        plan: Whose arms they are.
        item: The item.
        records: Its turns.
        course: Its whole course.
    """
    seats = plan.seats(item.question.id)
    protocol, nested = plan.make_protocol(), len(plan.levels) > 1
    levels: list[Level] = []
    for arm, rounds in plan.levels.items():
        part = course.after(rounds) if nested else course
        turns = [record for record in records if not nested or record.turn.round <= rounds]
        fitted = plan.fitted(item.question, seats, arm=arm)
        rows = aggregate(item.question, part, fitted)
        levels.append(Level(arm, part, totals(turns), rows, protocol, fitted))
    return levels


def prediction_rows(
    item: Item, levels: Sequence[Level], *, paid_nano: int, run: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a row per arm and rule; an item without an answer has its rows too, with null numbers.

    Args:
        item: The item.
        levels: Its arms, from the shortest course to the whole one.
        paid_nano: What this process paid for the item; every arm bears what it adds to the shorter one before it.
        run: Columns that are the same for the whole run or item: run_id, committee, split, exposure.
    """
    shares = _shares([level.took.cost_nano for level in levels], paid_nano)
    rows: list[dict[str, Any]] = []
    for level, paid in zip(levels, shares, strict=True):
        took, final = level.took, level.course.final
        common = {
            **run,
            "arm": level.arm,
            "item_id": item.question.id,
            "cost_usd": None if took.cost_nano is None else took.cost_nano / NANO,
            "latency_s": took.latency_s,
            "tokens": None if took.tokens is None else sum(took.tokens.values()),
            "n_answered": len(present(final)),
            "n_seats": len(final),
            "status": status_of(final),
            "information_date": None,
            "cutoff": item.packet.cutoff,
            "paid_usd": None if paid is None else paid / NANO,
        }
        rows += _of_level(item.question, level, common)
    return rows


def _of_level(question: Question, level: Level, common: Mapping[str, Any]) -> list[dict[str, Any]]:
    made = {row.rule: row.cells for row in level.rows}
    silent = dict.fromkeys(answer_columns(question))
    rows: list[dict[str, Any]] = []
    for rule in expected_rules(question.kind, level.course, level.protocol, level.fitted):
        own: dict[str, Any] = {}
        if rule in level.protocol.variants() and rule not in STAGED_RULES:
            alone = level.course.variants.get(rule)
            told = "not_asked" if alone is None else status_of((alone,))
            own = {"status": told, "n_answered": int(told == "answered"), "n_seats": 1}
        elif rule not in made and level.rows:
            own = {"status": "no_quorum"}  # too few answers say what the rule reads, such as a ranking
        rows.append({**common, **own, **made.get(rule, silent), "aggregation": rule})
    return rows


def _shares(costs: Sequence[int | None], paid: int) -> list[int | None]:
    """Return what each arm of a course adds to what was paid, in proportion to what it adds to the cost."""
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return [None] * len(costs)
    whole = known[-1]
    if not whole:
        return [*([0] * (len(known) - 1)), paid]
    edges = [0, *(paid * cost // whole for cost in known)]
    return [high - low for low, high in pairwise(edges)]
