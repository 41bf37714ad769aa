"""The model confidence set: the arms that cannot be told from the best, from the draws of the cluster bootstrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.errors import DataError
from consilience.inference.effective import FloatArray, Undefined
from consilience.inference.intervals import ENOUGH, FEW, LEAST


@dataclass(frozen=True)
class ConfidenceSet:
    """Which arms stay.

    Attributes:
        included: Columns whose p-value is above the size.
        p: One per column: the largest size at which it stays; 1 for the last.
        path: Columns in the order they left, the last to stay at the end.
        size: Share of error allowed.
        copies: Columns equal to an earlier one, as (copy, earlier); they share its p-value.
        flags: ``descriptive_only`` (G < 10), ``few_clusters`` (G < 20).
    """

    included: tuple[int, ...]
    p: tuple[float, ...]
    path: tuple[int, ...]
    size: float
    copies: tuple[tuple[int, int], ...]
    flags: tuple[str, ...]


def model_confidence_set(
    *, losses: FloatArray, draws: FloatArray, n_clusters: int, size: float = 0.1
) -> ConfidenceSet | Undefined:
    r"""Return the arms that hold the best with probability ``1 - size``, with the whole path of p-values.

    While arms remain: ``d_i`` is an arm's loss less the mean over those that remain, ``t_i = d_i / sd*(d_i)`` over the
    draws, ``T = max t_i`` against ``max (d*_i - d_i) / sd*(d_i)``; ``p = (b + 1)/(B + 1)``; the arm of the largest
    ``t_i`` leaves. An arm's p-value is the largest so far.

    Args:
        losses: Of each arm in the sample, lower is better, shape (arms,).
        draws: The same in each resample, shape (B, arms), B >= 2, from `bootstrap_means` or `bootstrap_medians`.
        n_clusters: Clusters G that were resampled.
        size: In (0, 1); 0.1 is usual.

    Reference: Hansen, Lunde & Nason 2011, with the statistic T_max.

    Degenerate: undefined with fewer than two clusters. Arms equal in every draw are counted once. An arm always worse
    by the same amount leaves with the least p-value there is.

    Raises:
        DataError: Shapes do not fit, a number is not finite, there is no arm, or the size is outside (0, 1).

    Example:
        >>> draws = np.array([[1.0, 1.1, 3.0], [1.2, 1.0, 3.2], [0.9, 1.0, 2.9], [1.1, 1.1, 3.3]])
        >>> made = model_confidence_set(losses=np.array([1.0, 1.1, 3.1]), draws=draws, n_clusters=40, size=0.25)
        >>> made.included, made.path
        ((0, 1), (2, 1, 0))
    """
    if losses.ndim != 1 or losses.size == 0 or draws.ndim != 2 or draws.shape[1:] != losses.shape or len(draws) < 2:
        raise DataError(f"losses {losses.shape} and draws {draws.shape} do not fit", hint="Give draws by arms.")
    if not (np.isfinite(losses).all() and np.isfinite(draws).all()) or not 0 < size < 1:
        raise DataError(
            f"a loss is not finite or the size {size} is none", hint="Give finite losses and a size in (0, 1)."
        )
    if n_clusters < LEAST:
        return Undefined("one cluster has no draws to compare arms by")
    whole = np.vstack([losses, draws])
    first = {
        at: next(k for k in range(at + 1) if np.array_equal(whole[:, k], whole[:, at])) for at in range(losses.size)
    }
    left = sorted(set(first.values()))
    p: dict[int, float] = {}
    path: list[int] = []
    highest = 0.0
    while len(left) > 1:
        worst, value = _worst(losses[left], draws[:, left])
        highest = max(highest, value)
        gone = left.pop(worst)
        p[gone] = highest
        path.append(gone)
    p[left[0]] = 1.0
    path.append(left[0])
    every = tuple(p[first[at]] for at in range(losses.size))
    return ConfidenceSet(
        included=tuple(at for at, value in enumerate(every) if value > size),
        p=every,
        path=tuple(path),
        size=size,
        copies=tuple((at, origin) for at, origin in first.items() if at != origin),
        flags=() if n_clusters >= ENOUGH else ("descriptive_only" if n_clusters < FEW else "few_clusters",),
    )


def _worst(losses: FloatArray, draws: FloatArray) -> tuple[int, float]:
    """Return the arm that leaves next and the p-value of the hypothesis that all are equally good."""
    apart = losses - losses.mean()
    drawn = draws - draws.mean(axis=1, keepdims=True) - apart
    sd = np.sqrt((drawn**2).mean(axis=0))
    still = sd <= 1e-12 * np.abs(draws).max()
    fixed = np.where(apart > 0, np.inf, -np.inf)
    safe = np.where(still, 1.0, sd)
    statistic = np.where(still, fixed, apart / safe)
    largest = np.where(still, -np.inf, drawn / safe).max(axis=1)
    top = float(statistic.max())
    return int(statistic.argmax()), (float(np.count_nonzero(largest >= top)) + 1) / (len(draws) + 1)
