"""Scores of one number against the truth; each returns one number per case."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_EDGE = 1e-12


def log_error(*, estimate: FloatArray, truth: FloatArray) -> FloatArray:
    r"""Return the signed relative error ``log(estimate / truth)``; 0 is best, positive is too high.

    Range: any real number; symmetric: half and double weigh the same.

    Raises:
        DataError: Shapes differ, or a number is not finite and positive.

    Example:
        >>> log_error(estimate=np.array([1.0, 1.0]), truth=np.array([1.0, 1.0])).tolist()
        [0.0, 0.0]
    """
    _positive(estimate, truth)
    return np.log(estimate) - np.log(truth)


def absolute_percentage_error(*, estimate: FloatArray, truth: FloatArray) -> FloatArray:
    r"""Return the size of the error as a share of the truth, ``|estimate - truth| / truth``; 0 is best.

    Range: [0, inf), but at most 1 for an estimate that is too low: read it beside `log_error`.

    Raises:
        DataError: Shapes differ, or a number is not finite and positive.

    Example:
        >>> absolute_percentage_error(estimate=np.array([110.0, 75.0]), truth=np.array([100.0, 100.0])).tolist()
        [0.1, 0.25]
    """
    _positive(estimate, truth)
    return np.abs(estimate - truth) / truth


def within(*, ape: FloatArray, limit: float) -> BoolArray:
    r"""Return whether each absolute percentage error is at most ``limit``; the edge counts (to 1e-12).

    Example:
        >>> within(ape=np.array([0.1, 0.11]), limit=0.10).tolist()
        [True, False]
    """
    return ape <= limit + _EDGE


def _positive(estimate: FloatArray, truth: FloatArray) -> None:
    if estimate.shape != truth.shape:
        raise DataError(f"{estimate.shape} estimates for {truth.shape} truths", hint="Give one truth per estimate.")
    for what, numbers in (("estimate", estimate), ("truth", truth)):
        bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
        if bad.size:
            raise DataError(
                f"{what} in row {bad[0]} is {numbers.ravel()[bad[0]]}, not a positive number",
                hint="Leave out cases without an answer and count them by kind.",
            )
