"""Decisions: which were made, and one with its ballots by step, its escalation and its dissent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from consilience.errors import IntegrityError
from consilience.viewer.shown import page, paged
from consilience.viewer.study import Study, malformed, read_json


class _Said(BaseModel):
    """A part of a decision's file, checked in what a page shows of it."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Ballot(_Said):
    seat: str
    role: str
    option: str | None
    confidence: float | None
    rationale: str
    risks: list[tuple[str, bool]] = Field(strict=False)
    why: str | None


class _Step(_Said):
    name: str
    decided: bool
    record: dict[str, Any]
    calls: int
    cost_usd: float | None


class _Flip(_Said):
    seat: str
    before: str
    after: str


class _Question(_Said):
    id: str
    text: str


class _Audit(_Said):
    question: _Question


class _Decision(_Said):
    run_id: str
    outcome: str
    winner: str | None
    needs_human: bool
    among: list[str]
    step: str | None
    decided_by: str | None
    agreement_share: str | None
    heads: tuple[int, int] = Field(strict=False)
    review: list[str]
    votes: list[_Ballot]
    steps: list[_Step]
    minority: list[_Ballot]
    flips: list[_Flip]
    options: dict[str, str]
    simulated: bool
    cost_usd: float | None
    full_path_usd: float | None
    audit: _Audit

    @model_validator(mode="after")
    def _options_exist(self) -> Self:
        named = [self.winner, *self.among, *(vote.option for vote in (*self.votes, *self.minority))]
        named += [end for flip in self.flips for end in (flip.before, flip.after)]
        unknown = {name for name in named if name is not None} - self.options.keys()
        if unknown:
            raise ValueError(f"no such option: {min(unknown)}")
        return self


def decisions_page(study: Study, number: int) -> str:
    """Return the list of decisions."""
    some = paged(study.decision_ids(), number)
    paths = [path for run_id in some.rows if (path := study.decision(run_id)) is not None]
    rows, broken = [], []
    for path in paths:
        try:
            rows.append(_told(path))
        except IntegrityError as error:
            broken.append(error.message)
    return page("decisions.html.jinja", title="Decisions", here="decisions", some=some, rows=rows, broken=broken)


def decision_page(study: Study, path: Path) -> str:
    """Return the page of a decision.

    Raises:
        IntegrityError: The file is no decision.
    """
    told = _told(path)
    run = study.run(path.parent.name)
    return page(
        "decision.html.jinja",
        title="Decision",
        here="decisions",
        told=told,
        run_id=path.parent.name,
        item_id=told["audit"]["question"]["id"],
        has_run=run is not None,
    )


def _told(path: Path) -> dict[str, Any]:
    found = read_json(path)
    try:
        sound = _Decision.model_validate(found).run_id == path.parent.name
    except ValidationError as error:
        raise malformed(f"{path.parent.name}/decision.json", error) from error
    if not sound:
        raise IntegrityError(
            f"{path.parent.name}/decision.json is the file of another decision", hint="Remove the copy."
        )
    told: dict[str, Any] = found
    return told
