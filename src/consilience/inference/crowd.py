"""What members bring to a crowd: the diversity of their predictions, and the mistakes they share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.core.kinds import compact
from consilience.errors import DataError
from consilience.inference.effective import FloatArray, Undefined

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Crowd:
    """One set of predictions against the truth; ``crowd_error = avg_error - diversity``, exactly.

    Attributes:
        avg_error: Mean squared error of a member; 0 is best.
        crowd_error: Squared error of the members' mean; 0 is best, never above ``avg_error``.
        diversity: Variance of the predictions (ddof 0).
    """

    avg_error: float
    crowd_error: float
    diversity: float


def diversity_prediction(*, predictions: FloatArray, truth: FloatArray | float) -> Crowd:
    r"""Return the terms of ``(mean x - y)^2 = mean (x_i - y)^2 - var x``.

    It holds for the arithmetic mean and squared error only: give logarithms for quantities on a log scale. For
    predictions that are vectors (probabilities of options) the terms are summed over the coordinates.

    Args:
        predictions: One per member, shape (n,) or (n, coordinates).
        truth: A number, or one per coordinate.

    Reference: Krogh & Vedelsby 1995; Page 2007. Degenerate: one member has diversity 0.

    Raises:
        DataError: There are no predictions, shapes do not fit or a number is not finite.

    Example:
        >>> diversity_prediction(predictions=np.array([48.0, 47.0, 51.0, 42.0]), truth=49.0)
        Crowd(avg_error=14.5, crowd_error=4.0, diversity=10.5)
    """
    columns = predictions[:, None] if predictions.ndim == 1 else predictions
    target = np.atleast_1d(np.asarray(truth, dtype=np.float64))
    if columns.ndim != 2 or columns.size == 0 or target.shape != columns.shape[1:]:
        raise DataError(
            f"predictions {predictions.shape} against truth {target.shape}",
            hint="Give at least one prediction with as many coordinates as the truth.",
        )
    if not (np.isfinite(columns).all() and np.isfinite(target).all()):
        raise DataError("a prediction or truth is not finite", hint="Leave out members without an answer.")
    n = len(columns)
    means = [math.fsum(column) / n for column in columns.T.tolist()]
    return Crowd(
        avg_error=math.fsum(((columns - target) ** 2).ravel().tolist()) / n,
        crowd_error=math.fsum((mean - y) ** 2 for mean, y in zip(means, target.tolist(), strict=True)),
        diversity=math.fsum(((columns - np.array(means)) ** 2).ravel().tolist()) / n,
    )


@dataclass(frozen=True)
class SharedMistakes:
    """How often two members that are both wrong are wrong in the same way.

    Attributes:
        both_wrong: Pairs of members, over items of at least three options, that were both wrong.
        same: How many of them chose the same wrong option.
        share: ``same / both_wrong``; 1 is full dependence.
        by_chance: What picking among the wrong options at random would give.
        kappa: ``(share - by_chance) / (1 - by_chance)``: 0 is chance, 1 always the same.
    """

    both_wrong: int
    same: int
    share: float | Undefined
    by_chance: float | Undefined
    kappa: float | Undefined

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON values, to six digits; undefined ones are null."""
        return {name: None if isinstance(value, Undefined) else compact(value) for name, value in vars(self).items()}


def shared_mistakes(*, chosen: IntArray, truth: IntArray, n_options: IntArray) -> SharedMistakes:
    """Return the agreement of members on wrong options, over all pairs and items.

    With two options both wrong is the same wrong, which tells nothing, so such items are passed over. Members absent
    from an item take part in no pair there.

    Args:
        chosen: Index of the option chosen, -1 where a member is absent, shape (items, members).
        truth: Index of the right option, shape (items,).
        n_options: Number of options, shape (items,).

    Reference: Kim et al. 2025, who found about 60 % among language models.

    Degenerate: undefined when no two members were wrong together.

    Raises:
        DataError: Shapes do not fit.

    Example:
        >>> shared_mistakes(chosen=np.array([[1, 1, 2]]), truth=np.array([0]), n_options=np.array([3])).share
        0.3333333333333333
    """
    if chosen.ndim != 2 or truth.shape != chosen.shape[:1] or n_options.shape != truth.shape:
        raise DataError(
            f"choices {chosen.shape}, truths {truth.shape} and options {n_options.shape} do not fit",
            hint="Give one row of choices, one truth and one number of options per item.",
        )
    both = same = 0
    chance: list[float] = []
    for row, right, options in zip(chosen.tolist(), truth.tolist(), n_options.tolist(), strict=True):
        if options < 3:
            continue
        wrong = [option for option in row if option not in {-1, right}]
        pairs = math.comb(len(wrong), 2)
        both += pairs
        same += sum(math.comb(wrong.count(option), 2) for option in set(wrong))
        chance.append(pairs / (options - 1))
    if both == 0:
        never = Undefined("no two members were wrong together on an item of at least three options")
        return SharedMistakes(0, 0, never, never, never)
    share, by_chance = same / both, math.fsum(chance) / both
    return SharedMistakes(both, same, share, by_chance, (share - by_chance) / (1 - by_chance))
