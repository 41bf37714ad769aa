"""Which of the arms at hand each declared contrast compares."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from consilience.config import load_packaged
from consilience.experiments.arms import Treatments, arm_label
from consilience.experiments.hypotheses import EVERY_ARM, FAMILY, OWN_SINGLE, Contrast
from consilience.experiments.measures import Recorded

SINGLE: Final = "J_single_matched"
_CONTROL: Final = "control_"

Matched = Literal["own", "other", "unmatched"]


@dataclass(frozen=True)
class Pair:
    """Two arms to compare.

    Attributes:
        arm: Label of the arm.
        against: Label of the other.
        asks: Declared questions that the comparison answers; empty in exploration.
        matched: Of a contrast with a single agent: matched in cost to this arm (``own``), to another arm (``other``),
            or not (``unmatched``); None elsewhere.
    """

    arm: str
    against: str
    asks: tuple[str, ...] = ()
    matched: Matched | None = None


@dataclass(frozen=True)
class Missing(Recorded):
    """A declared contrast that could not be made.

    Attributes:
        arm: As declared.
        against: As declared.
        asks: The question it would answer.
        reason: Why it is missing.
    """

    arm: str
    against: str
    asks: str
    reason: str


def family(labels: Collection[str], *, models: Collection[str] = ()) -> tuple[list[Pair], tuple[Missing, ...]]:
    """Return the declared comparisons among the arms at hand, and those whose arms are missing.

    An arm with rounds stands under its declared number of them, or under the only one there is. ``Every arm`` is every
    declared arm that asks a language model, but for controls, which ask how and not how well. A pair that two declared
    contrasts name stands once.

    Args:
        labels: Labels of the arms.
        models: Those of them without a language model.

    Example:
        >>> pairs, missing = family(["E_single", "F_independent", "J_single_matched.F_independent"])
        >>> [(one.arm, one.against, one.matched) for one in pairs][0]
        ('F_independent', 'J_single_matched.F_independent', 'own')
        >>> missing[0].reason
        'no run of G_debate'
    """
    found: dict[tuple[str, str], Pair] = {}
    missing: list[Missing] = []
    for contrast in FAMILY:
        made = list(_pairs(contrast, sorted(labels), models))
        if not made:
            missing.append(Missing(contrast.arm, contrast.against, contrast.asks, _why(contrast, labels)))
        for pair in made:
            known = found.get((pair.arm, pair.against))
            asks = (*(() if known is None else known.asks), contrast.asks)
            found[pair.arm, pair.against] = Pair(pair.arm, pair.against, asks, pair.matched)
    return list(found.values()), tuple(missing)


def _pairs(contrast: Contrast, labels: Collection[str], models: Collection[str]) -> Iterator[Pair]:
    for arm in _every(labels, models) if contrast.arm == EVERY_ARM else _label(contrast.arm, labels):
        if contrast.against == OWN_SINGLE:
            own = f"{SINGLE}.{arm}"
            if own in labels:
                yield Pair(arm, own, matched="own")
        elif contrast.against == SINGLE:
            yield from _single(arm, labels)
        else:
            yield from (Pair(arm, other) for other in _label(contrast.against, labels) if other != arm)


def _single(arm: str, labels: Collection[str]) -> Iterator[Pair]:
    matched: dict[str, Matched] = {f"{SINGLE}.{arm}": "own", SINGLE: "unmatched"}
    others: list[str] = sorted(label for label in labels if label.startswith(f"{SINGLE}."))
    matched |= {label: "other" for label in others if label not in matched}
    best = next((label for label in matched if label in labels), None)
    if best is not None:
        yield Pair(arm, best, matched=matched[best])


def _label(name: str, labels: Collection[str]) -> list[str]:
    """Return the label of a declared arm among those at hand, in a list; an empty one where it is not there."""
    declared = load_packaged("configs/treatments.yaml", Treatments).treatments
    label = arm_label(name, declared[name].make_protocol()) if name in declared else name
    if label in labels:
        return [label]
    rounds = [one for one in labels if re.fullmatch(rf"{re.escape(name)}_r\d+", one)]
    return rounds if len(rounds) == 1 else []


def _every(labels: Collection[str], models: Collection[str]) -> list[str]:
    declared = load_packaged("configs/treatments.yaml", Treatments).treatments
    every = {label for name in declared if not name.startswith(_CONTROL) for label in _label(name, labels)}
    every |= {label for label in labels if label.startswith(f"{SINGLE}.")}
    return sorted(every - set(models))


def _why(contrast: Contrast, labels: Collection[str]) -> str:
    if contrast.arm != EVERY_ARM and not _label(contrast.arm, labels):
        return f"no run of {contrast.arm}"
    return f"no run of {contrast.against}"
