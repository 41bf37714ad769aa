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
_FIRST: Final = "F_independent"
"""Where no single agent is matched to an arm itself, the one matched to this arm stands in."""

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
    here = _Here.of(labels, models)
    found: dict[tuple[str, str], Pair] = {}
    missing: list[Missing] = []
    for contrast in FAMILY:
        made = list(_pairs(contrast, here))
        if not made:
            missing.append(Missing(contrast.arm, contrast.against, contrast.asks, _why(contrast, here)))
        for pair in made:
            known = found.get((pair.arm, pair.against))
            asks = (*(() if known is None else known.asks), contrast.asks)
            found[pair.arm, pair.against] = Pair(pair.arm, pair.against, asks, pair.matched)
    return list(found.values()), tuple(missing)


@dataclass(frozen=True)
class _Here:
    """The arms at hand.

    Attributes:
        labels: Their labels, sorted.
        models: Those without a language model.
        declared: Label of every declared arm under its declared rounds, by name.
    """

    labels: tuple[str, ...]
    models: frozenset[str]
    declared: dict[str, str]

    @classmethod
    def of(cls, labels: Collection[str], models: Collection[str]) -> _Here:
        declared = load_packaged("configs/treatments.yaml", Treatments).treatments
        names = {name: arm_label(name, one.make_protocol()) for name, one in declared.items()}
        return cls(tuple(sorted(labels)), frozenset(models), names)

    def label(self, name: str) -> list[str]:
        """Return the label of a declared arm, in a list; an empty one where it is not at hand."""
        label = self.declared.get(name, name)
        if label in self.labels:
            return [label]
        rounds = [one for one in self.labels if re.fullmatch(rf"{re.escape(name)}_r\d+", one)]
        return rounds if len(rounds) == 1 else []

    def every(self) -> list[str]:
        """Return the labels of all declared arms that ask a language model, but for controls."""
        every = {label for name in self.declared if not name.startswith(_CONTROL) for label in self.label(name)}
        every |= {label for label in self.labels if label.startswith(f"{SINGLE}.")}
        return sorted(every - self.models)


def _pairs(contrast: Contrast, here: _Here) -> Iterator[Pair]:
    for arm in here.every() if contrast.arm == EVERY_ARM else here.label(contrast.arm):
        if contrast.against == OWN_SINGLE:
            own = f"{SINGLE}.{arm}"
            if own in here.labels:
                yield Pair(arm, own, matched="own")
        elif contrast.against == SINGLE:
            yield from single(arm, here.labels)
        else:
            yield from (Pair(arm, other) for other in here.label(contrast.against) if other != arm)


def single(arm: str, labels: Collection[str]) -> Iterator[Pair]:
    """Yield an arm's pair with the single agent of its own money, else of declared samples, else of another's money."""
    matched: dict[str, Matched] = {f"{SINGLE}.{arm}": "own", SINGLE: "unmatched"}
    first = f"{SINGLE}.{_FIRST}"
    others = sorted((label for label in labels if label.startswith(f"{SINGLE}.")), key=lambda one: (one != first, one))
    matched |= {label: "other" for label in others if label not in matched}
    best = next((label for label in matched if label in labels), None)
    if best is not None:
        yield Pair(arm, best, matched=matched[best])


def _why(contrast: Contrast, here: _Here) -> str:
    if contrast.arm != EVERY_ARM and not here.label(contrast.arm):
        return f"no run of {contrast.arm}"
    return f"no run of {contrast.against}"
