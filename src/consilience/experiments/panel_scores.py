"""What the members of each arm's panel were worth to each other, as the manifests of its runs say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consilience.experiments.diagnostics import observe, panel_diagnostics
from consilience.experiments.measures import Measure, Recorded
from consilience.experiments.plan import SEALED
from consilience.experiments.protocol import read_frozen
from consilience.experiments.recorded import recorded_course, recorded_items
from consilience.journal.reader import fold


@dataclass(frozen=True)
class RoundScores(Recorded):
    """One round of a panel; figures of errors need truths, so they are None where truths were sealed.

    Attributes:
        round: 0 for the independent answers.
        n_items: Items that came to this round.
        answers: Answers that stand after it.
        revised: New answers given in it.
        right_to_wrong: Revisions that turned wrong.
        wrong_to_right: Revisions that turned right.
        changed: Revisions that came down to another option or side.
        spread: Mean spread of the answers.
        jaccard: Mean share of cited evidence that two members have in common.
        member_error: Mean squared error of a member (log error where the scale is log).
        mean_error: Squared error of the members' mean.
        diversity: Variance of the members, the difference of the two.
    """

    round: int
    n_items: int
    answers: int
    revised: int
    right_to_wrong: int | None
    wrong_to_right: int | None
    changed: int | None
    spread: float | None
    jaccard: float | None
    member_error: float | None
    mean_error: float | None
    diversity: float | None


@dataclass(frozen=True)
class Effective(Recorded):
    """How many independent members a panel was worth.

    Attributes:
        basis: ``errors`` or ``answers``.
        n_items: Items behind it.
        members: Seats counted.
        rho: Mean correlation over pairs of members.
        equal_weight: The headline: what the mean gains.
        mean_square: Mean squared error of a member over that of the mean, which counts a shared bias.
        equicorrelated: ``n / (1 + (n - 1) rho)``.
        participation_ratio: Directions the correlations span.
        reason: Why there are no numbers; None where there are.
    """

    basis: str
    n_items: int
    members: tuple[str, ...]
    rho: float | None
    equal_weight: float | None
    mean_square: float | None
    equicorrelated: float | None
    participation_ratio: float | None
    reason: str | None


@dataclass(frozen=True)
class Faithful(Recorded):
    """How an arm's answers stood to their evidence.

    Attributes:
        role: The role; None for all together.
        answers: Answers checked.
        flagged: Answers with any flag.
        counts: Flags by code.
        share_existing: Share of cited ids that exist; None where nothing was cited.
    """

    role: str | None
    answers: int
    flagged: int
    counts: dict[str, int]
    share_existing: float | None


@dataclass(frozen=True)
class PanelScores(Recorded):
    """A run's panel on one family of questions.

    Attributes:
        arm: Label of the run's arm, nested rounds joined.
        run_id: The run.
        family: Kind, scale and unit of its questions.
        n_items: Items.
        first: Independence of the first answers.
        final: Independence after the last round.
        rounds: By round.
        faithfulness: Of the whole run, then by role.
    """

    arm: str
    run_id: str
    family: str
    n_items: int
    first: Effective
    final: Effective
    rounds: tuple[RoundScores, ...]
    faithfulness: tuple[Faithful, ...]


@dataclass(frozen=True)
class RoundPoint(Recorded):
    """The error of a panel stopped after a round, from runs of nested rounds.

    Attributes:
        run_id: The run.
        round: Rounds of discussion, 0 for none.
        arm: Label of the arm that stops there.
        mdape: Its median error on its items.
        coverage90: Share of truths in its 90 % intervals; None without quantiles.
        spread: Mean spread of the members after that round; None where unknown.
    """

    run_id: str
    round: int
    arm: str
    mdape: Measure
    coverage90: float | None
    spread: float | None


def panel_scores(manifest: dict[str, Any]) -> list[PanelScores]:
    """Return what a run's manifest says of its panel, by family of questions; empty for a single agent."""
    panel = manifest["panel"]
    if panel is None:
        return []
    rows = [Faithful(**{name: row[name] for name in Faithful.__annotations__}) for row in _faithful(panel)]
    return [
        PanelScores(
            arm=manifest["arm"],
            run_id=manifest["run_id"],
            family=family["family"],
            n_items=family["n_items"],
            first=_effective(family["first"]),
            final=_effective(family["final"]),
            rounds=tuple(_round(one) for one in family["rounds"]),
            faithfulness=tuple(rows),
        )
        for family in panel["families"]
    ]


def _faithful(panel: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(panel["faithfulness"], key=lambda row: (row["role"] is not None, row["role"] or ""))


def _effective(told: dict[str, Any]) -> Effective:
    numbers = told["effective"] or {}
    names = ("rho", "equal_weight", "mean_square", "equicorrelated", "participation_ratio")
    return Effective(
        basis=told["basis"],
        n_items=told["n_items"],
        members=tuple(told["members"]),
        **{name: numbers.get(name) for name in names},
        reason=told["reason"],
    )


def _round(told: dict[str, Any]) -> RoundScores:
    crowd = told["crowd"] or {}
    own = [name for name in RoundScores.__annotations__ if name in told]
    return RoundScores(
        **{name: told[name] for name in own},
        member_error=crowd.get("avg_error"),
        mean_error=crowd.get("crowd_error"),
        diversity=crowd.get("diversity"),
    )


async def told_panel(folder: Path, *, truths: Mapping[str, float | str]) -> list[PanelScores]:
    """Return what a run says of its panel; of a judged split its errors and flips are worked out from its record.

    Args:
        folder: The run folder; a run without a manifest so far tells nothing.
        truths: What items turned out to be, known where a split may be looked at.

    Raises:
        IntegrityError: The record is not what was written.
    """
    path = folder / "manifest.json"
    if not path.is_file():
        return []
    manifest: dict[str, Any] = json.loads(path.read_bytes())
    if manifest["panel"] is None or manifest["split"] not in SEALED:
        return panel_scores(manifest)
    plan, state = read_frozen(folder).plan, fold(folder)
    seen = [
        observe(item.question, await recorded_course(state, plan, item), truth=truths.get(item.question.id))
        for item in recorded_items(folder, plan)
        if item.question.id in state.items_finished
    ]
    judged = panel_diagnostics(seen).record() | {"faithfulness": manifest["panel"]["faithfulness"]}
    return panel_scores(manifest | {"panel": judged})


Levels = Mapping[str, Mapping[str, int]]
"""By run: the rounds of discussion after which each of its arms stops."""


def convergence(
    levels: Levels, results: Mapping[str, tuple[Measure, float | None]], panels: Sequence[PanelScores]
) -> tuple[RoundPoint, ...]:
    """Return the error by round of every run of nested rounds, sorted by run and round.

    Args:
        levels: Of the runs.
        results: Median error and 90 % coverage by arm.
        panels: What the runs say of their panels.
    """
    spreads = {(one.run_id, part.round): part.spread for one in panels for part in one.rounds}
    return tuple(
        RoundPoint(run, round_, arm, *results[arm], spread=spreads.get((run, round_)))
        for run, arms in sorted(levels.items())
        if len(arms) > 1
        for arm, round_ in sorted(arms.items(), key=lambda pair: pair[1])
        if arm in results
    )
