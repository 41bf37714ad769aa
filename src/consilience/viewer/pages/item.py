"""One item of a run: what each role could see and said, how they moved, and what each rule makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consilience.aggregation.answers import AnswerRow, aggregate_answers, default_rule
from consilience.aggregation.dissent import dissenters
from consilience.api.result import ANSWERS, rounds_of
from consilience.core.answers import AnyAnswer
from consilience.core.packet import Item
from consilience.errors import IntegrityError, reason
from consilience.experiments.looks import COUNTED
from consilience.experiments.plan import Plan
from consilience.experiments.protocol import read_frozen
from consilience.reports.drawings.fan import Fan, draw_fan, fan_of
from consilience.reports.drawings.neighbours import Neighbour, draw_neighbours
from consilience.reports.drawings.sheet import Theme
from consilience.viewer.pages.turns import turns_of
from consilience.viewer.shown import page, paged
from consilience.viewer.study import Study, read_json


@dataclass(frozen=True)
class Asked:
    """An item as its run recorded it.

    Attributes:
        folder: The run's folder.
        item: Question and packet.
        plan: What was fixed.
        transcript: What came of it; None before it is finished.
    """

    folder: Path
    item: Item
    plan: Plan
    transcript: Mapping[str, Any] | None

    def answers(self) -> list[tuple[str, AnyAnswer]]:
        """Return the final answers, each with its seat."""
        kind = ANSWERS[self.item.question.kind]
        rows = () if self.transcript is None else self.transcript["final"]
        return [
            (row["seat"], kind.model_validate(row["answer"], strict=False)) for row in rows if row["answer"] is not None
        ]

    def by_rule(self) -> dict[str, AnswerRow]:
        """Return what every rule makes of the recorded answers, computed anew; empty without a quorum."""
        if self.transcript is None or self.transcript["status"] != "answered":
            return {}
        question = self.item.question
        fitted = self.plan.fitted(question, self.plan.seats(question.id), arm=self.plan.arm)
        return {row.rule: row for row in aggregate_answers(question, self.answers(), fitted)}

    @property
    def rule(self) -> str:
        """The rule that was fixed beforehand for this kind of question."""
        return default_rule(self.item.question.kind, 1 if self.transcript is None else len(self.transcript["final"]))


def asked_of(study: Study, folder: Path, item_id: str) -> Asked | None:
    """Return an item of a run; None where the run has none of this name.

    Raises:
        IntegrityError: A file of the run cannot be read.
    """
    packet = study.file(folder, "packets", f"{item_id}.json")
    if packet is None:
        return None
    try:
        item = Item.model_validate_json(packet.read_bytes())
        path = study.file(folder, "transcripts", f"{item_id}.json")
        return Asked(folder, item, read_frozen(folder).plan, None if path is None else read_json(path))
    except (OSError, ValueError) as error:
        raise IntegrityError(
            f"{packet.name} cannot be read: {reason(error)}", hint="consilience verify tells more."
        ) from error


def item_page(study: Study, asked: Asked, *, rule: str | None, view: str | None, number: int) -> str:
    """Return the page of an item.

    Args:
        study: The project.
        asked: The item.
        rule: Rule that is looked at; None takes the one fixed beforehand.
        view: Role whose view of the evidence is shown; None shows the whole packet.
        number: Page of the turns.
    """
    question = asked.item.question
    told = asked.transcript
    seats = {} if told is None else {row["seat"]: row for row in told["committee"]}
    truth = _truth(study, asked)
    roles = {role.id: role for role in asked.plan.roles}
    looked = roles.get(view or "")
    fan = _fan(asked, truth)
    diagnostics = None if told is None else told["diagnostics"]
    return page(
        "item.html.jinja",
        title=f"{question.id} in {asked.folder.name}",
        here="runs",
        run_id=asked.folder.name,
        simulated_run=asked.plan.simulated,
        question=question,
        told=told,
        truth=truth,
        sealed=asked.plan.split in COUNTED,
        rule=rule_of(asked, rule),
        rules=list(asked.by_rule()),
        seats=seats,
        first_last=_first_last(told),
        moves=[] if diagnostics is None else diagnostics["told"],
        critics=critics_of(told),
        flags=[] if told is None else [(turn, flag) for turn in told["turns"] for flag in turn["flags"]],
        alt=None if fan is None else fan.alt,
        packet=asked.item.packet,
        view=looked,
        roles=sorted(roles),
        near=bool(neighbours_of(asked, view)),
        has_trace=study.file(asked.folder, "traces", f"{question.id}.json") is not None,
        turns=paged(turns_of(study, asked.folder, question.id), number),
    )


def rule_fragment(asked: Asked, rule: str | None) -> str:
    """Return what one rule makes of the item."""
    return page(
        "rule.html.jinja",
        rule=rule_of(asked, rule),
        rules=list(asked.by_rule()),
        question=asked.item.question,
        run_id=asked.folder.name,
    )


@dataclass(frozen=True)
class Ruled:
    """What one rule makes of the recorded answers.

    Attributes:
        name: The rule.
        row: Its answer; None without a quorum, or where too few ballots serve the rule.
        same: Whether the run recorded the same; None where it recorded nothing.
        weights: Of each seat; empty where the rule has none.
        flags: What the rule did beyond its name.
        minority: Seats whose answer differs, with their reasons.
        is_primary: It was fixed beforehand.
    """

    name: str
    row: AnswerRow | None
    same: bool | None
    weights: Mapping[str, float]
    flags: Sequence[str]
    minority: Sequence[tuple[str, str]]
    is_primary: bool


def rule_of(asked: Asked, rule: str | None) -> Ruled:
    """Return what a rule makes of an item's recorded answers; an unknown rule is the one fixed beforehand."""
    rows = asked.by_rule()
    name = rule if rule in rows else asked.rule
    row = rows.get(name)
    if row is None:
        return Ruled(name, None, None, {}, (), (), name == asked.rule)
    record, answers = row.record(), asked.answers()
    recorded = {} if asked.transcript is None else asked.transcript["aggregated"]
    differing = dissenters(row, answers)
    return Ruled(
        name,
        row,
        None if name not in recorded else recorded[name] == row.headline,
        record.get("weights") or {},
        record.get("flags") or (),
        [(seat, answer.reasoning_summary) for seat, answer in answers if seat in differing],
        name == asked.rule,
    )


def _truth(study: Study, asked: Asked) -> float | str | None:
    if asked.plan.split in COUNTED:
        return None
    return study.truths({asked.item.question.id}).get(asked.item.question.id)


def _fan(asked: Asked, truth: float | str | None) -> Fan | None:
    """Return the fan of an item; None for options, or before it is finished."""
    if asked.transcript is None:
        return None
    question = asked.item.question
    return fan_of(
        rounds_of(asked.transcript["turns"], question),
        question=question,
        members=[row["seat"] for row in asked.transcript["final"]],
        row=asked.by_rule().get(asked.rule),
        truth=truth,
    )


def fan_picture(study: Study, asked: Asked, theme: Theme) -> bytes | None:
    """Return the fan of an item as SVG; None where there is none."""
    fan = _fan(asked, _truth(study, asked))
    return None if fan is None else draw_fan(fan, theme)


def neighbours_of(asked: Asked, view: str | None) -> list[Neighbour]:
    """Return the evidence that has a distance, and whether the role that is looked at sees it."""
    role = next((role for role in asked.plan.roles if role.id == view), None)
    return [
        Neighbour(item.id, float(distance), role is None or role.sees(section.code))
        for section in asked.item.packet.sections.values()
        for item in section.items
        if isinstance(distance := item.content.get("distance_km"), int | float)
    ]


def neighbours_picture(asked: Asked, view: str | None, theme: Theme) -> bytes | None:
    """Return the comparables of an item by distance; None without any."""
    found = neighbours_of(asked, view)
    return draw_neighbours(found, theme) if found else None


def _first_last(told: Mapping[str, Any] | None) -> dict[str, tuple[Any, Any]]:
    """Return by seat the headline of its first and of its last answer."""
    found: dict[str, tuple[Any, Any]] = {}
    for turn in () if told is None else told["turns"]:
        said = turn["outcome"].get("said") or {}
        value = next((said[name] for name in ("point", "p_yes", "choice", "probabilities") if name in said), None)
        if value is not None and turn["sample"] == 0:
            found[turn["seat"]] = (found.get(turn["seat"], (value,))[0], value)
    return found


def critics_of(told: Mapping[str, Any] | None) -> dict[str, dict[str, tuple[int, int]]]:
    """Return by critic and target how often it agreed and disagreed."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for turn in () if told is None else told["turns"]:
        for one in (turn["outcome"].get("said") or {}).get("critiques") or ():
            mine = found.setdefault(turn["seat"], {})
            agreed, against = mine.get(one["target_role"], (0, 0))
            mine[one["target_role"]] = (agreed + bool(one["agrees"]), against + (not one["agrees"]))
    return found
