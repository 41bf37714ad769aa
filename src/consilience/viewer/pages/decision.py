"""Decisions: which were made, and one with its ballots by step, its escalation and its dissent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from consilience.errors import IntegrityError
from consilience.viewer.shown import page, paged
from consilience.viewer.study import Study, read_json

_SHOWN = {
    *("outcome", "winner", "options", "votes", "steps", "minority", "flips", "simulated", "heads", "review", "among"),
    *("agreement_share", "decided_by", "step", "cost_usd", "full_path_usd", "needs_human"),
}


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
    found: dict[str, Any] = read_json(path)
    try:
        sound = found["run_id"] == path.parent.name and isinstance(found["audit"]["question"]["text"], str)
        missing = _SHOWN - found.keys()
    except (KeyError, TypeError, AttributeError):
        sound, missing = False, _SHOWN
    if not sound or missing:
        raise IntegrityError(
            f"{path.parent.name}/decision.json is no decision",
            hint="Decide again with the same words: it is made anew.",
        )
    return found
