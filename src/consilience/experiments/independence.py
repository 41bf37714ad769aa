"""How independent a panel's members were, from the errors or answers they gave on the same items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from consilience.aggregation.positions import Position
from consilience.core.question import Kind
from consilience.inference.crowd import SharedMistakes, shared_mistakes
from consilience.inference.effective import EffectiveNumbers, FloatArray, Undefined, effective_numbers

LEAST_ITEMS: Final = 10
"""Below so many items that all members answered no effective number is given."""

Basis = Literal["errors", "answers"]
Places = Mapping[str, Position | None]
"""Where every seat stands on one item; None for one without an answer."""


@dataclass(frozen=True)
class Independence:
    """How independent the members were, at one moment.

    Attributes:
        basis: ``errors``, or ``answers`` where too few truths are known: then what makes questions differ makes
            answers alike, so the number is too low rather than too high.
        n_items: Items that every member counted here answered (with a truth, when the basis is errors).
        n_left_out: Items that lack one of them, or the truth.
        members: Seats counted, sorted.
        absent: Seats that answered fewer than half of the items, sorted; they are left out, lest few items remain.
        numbers: The effective numbers; undefined below 10 items and for a single member.
        mistakes: Choices only, with errors: how often two wrong members chose the same option; else None.
    """

    basis: Basis
    n_items: int
    n_left_out: int
    members: tuple[str, ...]
    absent: tuple[str, ...]
    numbers: EffectiveNumbers | Undefined
    mistakes: SharedMistakes | None

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "basis": self.basis,
            "n_items": self.n_items,
            "n_left_out": self.n_left_out,
            "members": list(self.members),
            "absent": list(self.absent),
            "effective": None if isinstance(self.numbers, Undefined) else self.numbers.record(),
            "reason": self.numbers.reason if isinstance(self.numbers, Undefined) else None,
            "shared_mistakes": None if self.mistakes is None else self.mistakes.record(),
        }


def independence(kind: Kind, places: Sequence[Places], truths: Sequence[Position | None]) -> Independence:
    """Return how independent the members were on items of one kind and scale.

    Errors are signed differences from the truth (of logarithms on a log scale); over options, what an answer left off
    the true one. Without truths, numbers are compared as they are, and options by what is said beyond ``1/k``.

    Args:
        kind: The kind of all items.
        places: One per item.
        truths: One per item; None where unknown.
    """
    seats = {seat for stood in places for seat in stood}
    times = Counter(seat for stood in places for seat, where in stood.items() if where is not None)
    members = tuple(sorted(seat for seat, count in times.items() if 2 * count >= len(places)))
    rows = [[where for seat in members if (where := stood.get(seat)) is not None] for stood in places]
    complete = [(row, truth) for row, truth in zip(rows, truths, strict=True) if len(row) == len(members)]
    known = [(row, truth) for row, truth in complete if truth is not None]
    basis: Basis = "errors" if known and (len(known) >= LEAST_ITEMS or len(known) == len(complete)) else "answers"
    used = [row for row, _ in (known if basis == "errors" else complete)]
    numbers: EffectiveNumbers | Undefined
    if len(members) < 2:
        numbers = Undefined("a single member" if members else "nobody answered")
    elif len(used) < LEAST_ITEMS:
        numbers = Undefined(f"too few items: all members answered {len(used)}, at least {LEAST_ITEMS} are needed")
    elif basis == "errors":
        numbers = effective_numbers(values=np.array([_errors(*item) for item in known]), errors=True)
    else:
        values = np.vstack([_said(row) for row in used])
        over_options = kind in {"choice", "distribution"}
        numbers = effective_numbers(values=values, errors=False, centred=not over_options, n_items=len(used))
    return Independence(
        basis=basis,
        n_items=len(used),
        n_left_out=len(places) - len(used),
        members=members,
        absent=tuple(sorted(seats.difference(members))),
        numbers=numbers,
        mistakes=_mistakes(known) if basis == "errors" and kind == "choice" else None,
    )


def _errors(row: Sequence[Position], truth: Position) -> list[float]:
    if len(truth) == 1:
        return [said[0] - truth[0] for said in row]
    right = truth.index(1.0)
    return [1.0 - said[right] for said in row]


def _said(row: Sequence[Position]) -> FloatArray:
    """Return a row of the members' numbers, or a row per option."""
    said: FloatArray = np.array(row, dtype=np.float64).T
    return said - 1 / len(said) if len(said) > 1 else said


def _mistakes(items: Sequence[tuple[Sequence[Position], Position]]) -> SharedMistakes:
    return shared_mistakes(
        chosen=np.array([[said.index(1.0) for said in row] for row, _ in items], dtype=np.int64),
        truth=np.array([truth.index(1.0) for _, truth in items], dtype=np.int64),
        n_options=np.array([len(truth) for _, truth in items], dtype=np.int64),
    )
