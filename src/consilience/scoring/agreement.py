"""Choices against the truth, against one another, and against what the same member chose before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.registry import nearest
from consilience.scoring.point import BoolArray, FloatArray

Labels = npt.NDArray[Any]
Level = Literal["nominal", "ordinal", "interval", "ratio"]


def correct(*, choice: Labels, truth: Labels) -> BoolArray:
    """Return whether each choice is the true one; its mean is accuracy, 1 is best.

    Raises:
        DataError: Shapes differ.

    Example:
        >>> correct(choice=np.array(["a", "b"]), truth=np.array(["a", "a"])).tolist()
        [True, False]
    """
    _rows(choice, truth)
    right: BoolArray = np.asarray(choice == truth)
    return right


def agreement_share(*, choices: Labels, present: BoolArray) -> FloatArray:
    """Return for each item the share of members who chose the most chosen option; 1 is unanimity.

    Range: (0, 1]; with k options never below ``1/k``. It does not count agreement by chance: see `krippendorff_alpha`.

    Args:
        choices: One row per item and one column per member; what is not ``present`` is not read.
        present: Where a member chose, same shape; every item needs one choice.

    Raises:
        DataError: Shapes do not fit, or nobody chose for an item.

    Example:
        >>> votes = np.array([["a", "a", "b"], ["a", "", ""]])
        >>> agreement_share(choices=votes, present=votes != "").round(3).tolist()
        [0.667, 1.0]
    """
    _grid(choices, present)
    if not present.any(axis=1).all():
        raise DataError(
            f"nobody chose for item {int(np.flatnonzero(~present.any(axis=1))[0])}",
            hint="Leave out items without a choice and count them.",
        )
    return np.array(
        [
            np.unique(row[there], return_counts=True)[1].max() / there.sum()
            for row, there in zip(choices, present, strict=True)
        ]
    )


def krippendorff_alpha(*, values: FloatArray, present: BoolArray, level: Level = "nominal") -> float | Undefined:
    r"""Return Krippendorff's alpha, agreement beyond chance: 1 is perfect, 0 what chance gives, negative is worse.

    Equation: ``1 - D_o / D_e``, observed over expected disagreement of pairs of values, within items and over all.
    Distances: nominal ``[v != w]``; interval ``(v - w)^2``; ratio ``((v - w) / (v + w))^2``; ordinal the squared number
    of values between the two, half of each end included. It admits gaps and any number of members; with two members,
    no gaps and nominal values it is close to Scott's pi.

    Args:
        values: One row per item and one column per member, labels as numbers; what is not ``present`` is not read.
        present: Where a member answered, same shape. Items with fewer than two answers have no pairs and do not count.
        level: What distances between values mean.

    Degenerate: undefined without an item that two members answered, and when all pairable values are equal: then
    nothing tells agreement from having no choice.

    Reference: Krippendorff 2011.

    Raises:
        DataError: The level is unknown, shapes do not fit, a value is not finite, or a ratio value is negative.

    Example:
        >>> votes = np.array([[1.0, 1], [2, 2], [1, 2], [1, 1]])
        >>> round(krippendorff_alpha(values=votes, present=votes > 0), 4)
        0.5333
    """
    _grid(values, present)
    if level not in get_args(Level):
        raise DataError(f'no level "{level}"', hint=nearest(level, get_args(Level)))
    if not np.isfinite(values[present]).all():
        raise DataError("a value to agree on is not finite", hint="Mark it as absent.")
    paired = present & (present.sum(axis=1, keepdims=True) >= 2)
    if not paired.any():
        return Undefined("no item was answered by two members")
    domain, codes = np.unique(values[paired], return_inverse=True)
    if domain.size == 1:
        return Undefined("all answers are equal")
    if level == "ratio" and domain[0] < 0:
        raise DataError(f"a ratio value of {domain[0]}", hint="Ratios have a true zero; use interval.")
    items = np.nonzero(paired)[0]
    counts = np.zeros((len(values), domain.size))
    np.add.at(counts, (items, codes), 1.0)
    size = counts.sum(axis=1)
    kept, size = counts[size > 0], size[size > 0]
    total = kept.sum(axis=0)
    weighed = kept / (size - 1)[:, None]
    distance = _distances(domain, total, level)
    observed = float(((weighed.T @ kept - np.diag(weighed.sum(axis=0))) * distance).sum())
    expected = float((np.outer(total, total) * distance).sum() / (total.sum() - 1))
    return 1.0 - observed / expected


def _distances(domain: FloatArray, total: FloatArray, level: Level) -> FloatArray:
    """Return squared distances between the distinct values, shape (k, k), diagonal 0."""
    place = np.cumsum(total) - total / 2 if level == "ordinal" else domain
    gap: FloatArray = place[:, None] - place[None, :]
    if level == "nominal":
        gap = (gap != 0).astype(np.float64)
    elif level == "ratio":
        both = domain[:, None] + domain[None, :]
        gap = np.divide(gap, both, out=np.zeros_like(both), where=both > 0)
    squared: FloatArray = gap**2
    return squared


@dataclass(frozen=True)
class Flips:
    """How choices changed between two moments.

    Attributes:
        n: Choices that there are on both sides.
        changed: Those that differ.
        right_to_wrong: Given up although true.
        wrong_to_right: Mended.
        wrong_to_wrong: From one mistake to another.
    """

    n: int
    changed: int
    right_to_wrong: int
    wrong_to_right: int
    wrong_to_wrong: int


def flips(*, before: Labels, after: Labels, truth: Labels) -> Flips:
    """Return how choices changed and whether for the better.

    Args:
        before: One choice per member and item, in one row.
        after: The same members' later choices.
        truth: The true option of each.

    Raises:
        DataError: Shapes differ.

    Example:
        >>> flips(before=np.array(["a", "b", "b"]), after=np.array(["b", "a", "b"]), truth=np.array(["a", "a", "a"]))
        Flips(n=3, changed=2, right_to_wrong=1, wrong_to_right=1, wrong_to_wrong=0)
    """
    was, now = correct(choice=before, truth=truth), correct(choice=after, truth=truth)
    changed = ~correct(choice=after, truth=before)
    return Flips(
        n=before.size,
        changed=int(changed.sum()),
        right_to_wrong=int((was & ~now).sum()),
        wrong_to_right=int((~was & now).sum()),
        wrong_to_wrong=int((changed & ~was & ~now).sum()),
    )


def _rows(first: Labels, second: Labels) -> None:
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(f"{first.shape} choices for {second.shape}", hint="Give one of each per case.")


def _grid(values: Labels, present: BoolArray) -> None:
    if values.ndim != 2 or values.shape != present.shape:
        raise DataError(
            f"values {values.shape} with presence {present.shape}", hint="Give one row per item, one column per member."
        )
