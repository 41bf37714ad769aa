"""What resolved questions teach about a panel's probabilities: stacking weights, error correlation, base rate.

Only resolved validation questions may come in here; who calls sees to that. A seat that gave no answer to a question is
absent from it: nothing is imputed for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from consilience.aggregation.fitted import nnls
from consilience.aggregation.location import FloatArray
from consilience.aggregation.odds import clipped, logit
from consilience.aggregation.recalibration import Recalibration
from consilience.errors import ConsilienceError, DataError

BoolArray = npt.NDArray[np.bool_]

MIN_RESOLVED: Final = 30
"""Below this many resolved questions neither a correlation of errors nor a base rate is believed."""
PRIOR_ITEMS: Final = 10
"""How many questions the pull of stacking weights towards equal ones is worth."""
_STEPS: Final = 200
_CONSTANT: Final = 1e-12


@dataclass(frozen=True)
class FittedProbabilities:
    """What validation taught about the seats of one panel.

    Attributes:
        stacking: By seat, the weight of its log-odds, >= 0, of any sum; None gives equal weights.
        rho: Mean correlation of two seats' errors, at most 1; None when it could not be measured.
        base_rate: Share of yes, ``(k + 1) / (n + 2)``; None when unknown.
        n_items: Resolved questions with at least one answer.
        complete_rows: Those that every seat answered; stacking rests on these alone.
        recalibration: The artefact to apply; None when there is none. It is fitted elsewhere, never on the way.
        flags: ``no_complete_rows``; ``rho_unmeasured``.

    Raises:
        DataError: A number is out of its range.

    Example:
        >>> FittedProbabilities(stacking={"a": 1.2}, rho=0.9, base_rate=0.2, n_items=80, complete_rows=80).rho
        0.9
    """

    stacking: Mapping[str, float] | None
    rho: float | None
    base_rate: float | None
    n_items: int
    complete_rows: int
    recalibration: Recalibration | None = None
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        weights = () if self.stacking is None else self.stacking.values()
        sound = all(0 <= w < math.inf for w in weights)
        sound = sound and (self.rho is None or -1 <= self.rho <= 1)
        sound = sound and (self.base_rate is None or 0 < self.base_rate < 1)
        if not sound or not 0 <= self.complete_rows <= self.n_items:
            raise DataError(
                f"fitted probabilities with weights {list(weights)}, rho {self.rho}, base rate {self.base_rate} from "
                f"{self.n_items} questions, {self.complete_rows} complete",
                hint="Fit them again on resolved questions.",
            )


def fit_probabilities(
    *,
    probabilities: FloatArray,
    present: BoolArray,
    outcomes: FloatArray,
    seats: tuple[str, ...],
    recalibration: Recalibration | None = None,
) -> FittedProbabilities:
    """Return what resolved questions teach about the seats: stacking weights, correlation of errors, base rate.

    Args:
        probabilities: One row per question and one column per seat; what is not ``present`` is not read.
        present: Where a seat answered, same shape.
        outcomes: 0 or 1 per question.
        seats: Distinct names of the columns; each answered at least once.
        recalibration: An artefact to carry along.

    Degenerate: without questions that every seat answered there is no stacking, flagged; without a pair of seats that
    share 30 questions there is no correlation, flagged. Questions without any answer are left out of every count.

    Raises:
        DataError: Shapes or names do not fit, a number is inadmissible, or a seat answered nothing.

    Example:
        >>> p = np.array([[0.9, 0.6], [0.2, 0.4], [0.7, 0.3]])
        >>> made = fit_probabilities(probabilities=p, present=p > 0, outcomes=np.array([1.0, 0, 1]), seats=("a", "b"))
        >>> made.n_items, made.rho, made.base_rate, made.flags
        (3, None, 0.6, ('rho_unmeasured',))
    """
    if probabilities.shape != (outcomes.size, len(seats)) or present.shape != probabilities.shape:
        raise DataError(
            f"probabilities {probabilities.shape} and presence {present.shape} of {outcomes.size} outcomes and "
            f"{len(seats)} seats",
            hint="Give one row per resolved question and one column per seat.",
        )
    if len(set(seats)) != len(seats) or not bool(present.any(axis=0).all()):
        raise DataError(
            f"seats {', '.join(seats)} share a name, or one answered nothing", hint="Leave such a seat out."
        )
    said = probabilities[present]
    if not ((said >= 0) & (said <= 1)).all() or not np.isin(outcomes, (0.0, 1.0)).all():
        raise DataError("a probability or an outcome is inadmissible", hint="Outcomes are 0 or 1, answers in [0, 1].")
    asked = present.any(axis=1)
    p, there, y = probabilities[asked], present[asked], outcomes[asked]
    complete = there.all(axis=1)
    stacking = None
    if complete.any():
        logits = np.array([[logit(clipped(x)) for x in row] for row in p[complete].tolist()])
        stacking = dict(zip(seats, stack_logits(logits=logits, outcomes=y[complete]), strict=True))
    rho = error_correlation(errors=p - y[:, None], present=there)
    missing = (*(() if complete.any() else ("no_complete_rows",)), *(("rho_unmeasured",) if rho is None else ()))
    return FittedProbabilities(
        stacking=stacking,
        rho=rho,
        base_rate=(float(y.sum()) + 1) / (y.size + 2),
        n_items=y.size,
        complete_rows=int(complete.sum()),
        recalibration=recalibration,
        flags=missing,
    )


def error_correlation(*, errors: FloatArray, present: BoolArray, minimum: int = MIN_RESOLVED) -> float | None:
    """Return the mean correlation of two seats' errors, over the pairs that share enough questions.

    Means of questions are not removed: that a question is hard for all is the dependence that is measured.

    Args:
        errors: Answer minus outcome, one row per question and one column per seat.
        present: Where a seat answered, same shape.
        minimum: Questions that a pair must share.

    Degenerate: None when no pair shares enough, or none of them errs differently from question to question.

    Example:
        >>> error = np.array([[0.1, 0.2], [0.4, 0.3], [-0.2, 0.0]])
        >>> round(error_correlation(errors=error, present=np.ones((3, 2), dtype=bool), minimum=3), 3)
        0.982
    """
    found: list[float] = []
    for first, second in combinations(range(errors.shape[1]), 2):
        both = present[:, first] & present[:, second]
        if both.sum() < minimum:
            continue
        a, b = (errors[both, column] - errors[both, column].mean() for column in (first, second))
        if min(np.abs(a).max(), np.abs(b).max()) > _CONSTANT:
            spread = math.sqrt(math.fsum(a * a) * math.fsum(b * b))
            found.append(min(max(math.fsum(a * b) / spread, -1.0), 1.0))
    return math.fsum(found) / len(found) if found else None


def stack_logits(*, logits: FloatArray, outcomes: FloatArray, prior_items: float = PRIOR_ITEMS) -> tuple[float, ...]:
    r"""Return non-negative weights of log-odds that minimise log loss, drawn towards equal weights of sum 1.

    Equation: ``argmin_{w >= 0} -sum ln P(y | expit(X w)) + (lambda / 2) ||w - 1/k||^2`` with ``lambda`` the mean
    curvature of ``prior_items`` questions at equal weights. There is no intercept, so that the pool of the
    complements is the complement of the pool; the sum is free, so the stack may extremise. Solved by Newton steps,
    each a checked non-negative least-squares problem.

    Args:
        logits: One row per question and one column per seat, finite.
        outcomes: 0 or 1 per question.
        prior_items: How many questions the pull is worth; above 0.

    Reference: Yao et al. 2018; Breiman 1996. Degenerate: log-odds all 0 give equal weights.

    Raises:
        DataError: No questions, or shapes do not fit.
        ConsilienceError: The steps did not settle.

    Example:
        >>> logits = np.array([[3.0, 0.1], [-3.0, 0.2], [2.0, -0.1]])
        >>> first, second = stack_logits(logits=logits, outcomes=np.array([1.0, 0, 1]))
        >>> first > second
        True
    """
    if logits.ndim != 2 or logits.size == 0 or outcomes.shape != logits.shape[:1]:
        raise DataError(
            f"a stack of log-odds {logits.shape} on {outcomes.shape} outcomes", hint="Give one row per question."
        )
    n, k = logits.shape
    equal = np.full(k, 1.0 / k)
    w = equal
    pull = prior_items * float(np.trace(_curvature(logits, w))) / (n * k) or 1.0

    def loss(weights: FloatArray) -> float:
        x = logits @ weights
        away = weights - equal
        return float((np.logaddexp(0.0, x) - outcomes * x).sum() + pull / 2 * (away @ away))

    for _ in range(_STEPS):
        gradient = logits.T @ (_share(logits @ w) - outcomes) + pull * (w - equal)
        root = np.linalg.cholesky(_curvature(logits, w) + pull * np.eye(k))
        nearest, _ = nnls(matrix=root.T, target=root.T @ w - np.linalg.solve(root, gradient))
        step = nearest - w
        if np.abs(step).max() <= 1e-11 * max(1.0, float(w.max())):
            return tuple(nearest.tolist())
        size, here = 1.0, loss(w)
        while loss(w + size * step) > here + 1e-12 * abs(here) and size > 1e-6:
            size /= 2
        w = w + size * step
    raise ConsilienceError("stacking weights did not settle", hint="Check the log-odds for extreme sizes.")


def _share(x: FloatArray) -> FloatArray:
    small = np.exp(-np.abs(x))
    s: FloatArray = np.where(x >= 0, 1.0, small) / (1.0 + small)
    return s


def _curvature(logits: FloatArray, w: FloatArray) -> FloatArray:
    s = _share(logits @ w)
    made: FloatArray = (logits * (s * (1 - s))[:, None]).T @ logits
    return made
