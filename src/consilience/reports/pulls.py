"""What moved the members of each arm in their first revision, as the records of its runs and of the controls tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from consilience.experiments.conformity_data import MOVING, Conformity, Moved, conformity, read_fresh, read_moves
from consilience.experiments.protocol import read_frozen


@dataclass(frozen=True)
class Pulls:
    """λ and ζ by arm and role on questions of one kind, scale and unit.

    Attributes:
        family: Their name, such as ``estimate (log, USD)``.
        fits: By arm and role.
        controls: Arms in which the others were not shown, sorted; without any nothing is told from second thoughts.
        evidence: Arm whose members' answers alone on the whole evidence stand for its value; None without any.
    """

    family: str
    fits: tuple[Conformity, ...]
    controls: tuple[str, ...]
    evidence: str | None = None


def read_pulls(folders: Iterable[Path]) -> tuple[Pulls, ...]:
    """Return what moved the members of the runs that show them the others, by family of questions.

    Where a run gives its members the whole evidence from the start, and another only in the revision, ζ is told, too:
    the answers of the first are what the evidence implies, with noise that draws ζ towards 0.

    Args:
        folders: Runs over the same items and panel, controls among them; others are passed over.

    Raises:
        IntegrityError: The record of a run is not what was written.
    """
    plans = {folder: read_frozen(folder).plan for folder in sorted(folders)}
    moves = [
        move
        for folder, plan in plans.items()
        if not set(MOVING).isdisjoint(plan.protocol)
        for move in read_moves(folder)
    ]
    informed = any(move.informed for move in moves)
    source = next((folder for folder, plan in plans.items() if informed and plan.treatment.full_view), None)
    evidence = None if source is None else read_fresh(source)
    by_family: dict[str, list[Moved]] = {}
    for move in moves:
        by_family.setdefault(move.family, []).append(move)
    found = []
    for family, mine in sorted(by_family.items()):
        known = evidence if evidence and any((one.item_id, one.role) in evidence for one in mine) else None
        fits = conformity(mine, evidence=known)
        if fits:
            told = {one.arm for one in mine if one.shown is None and (known is not None or not one.informed)}
            label = None if source is None or known is None else plans[source].arm
            found.append(Pulls(family, fits, tuple(sorted(told)), label))
    return tuple(found)
