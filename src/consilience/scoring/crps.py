"""The continuous ranked probability score: of the law five quantiles stand for, and closed forms of named laws.

Twice the mean pinball loss over five levels is not this score: it is `consilience.scoring.quantile.wis5`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from consilience.core.answers import LEVELS
from consilience.errors import DataError
from consilience.scoring.law import reconstruct
from consilience.scoring.point import BoolArray, FloatArray

POINT_MASS_SD: Final = 1e-4
"""Standard deviation, in logarithms, that a law without any width is scored with."""
_SQRT_PI: Final = math.sqrt(math.pi)
_SQRT_TAU: Final = math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class ReconstructedCrps:
    """The score of each case under its reconstructed law.

    Attributes:
        score: The score; 0 is best.
        point_mass: Whether all its quantiles were equal, so that it was scored with the least width.
    """

    score: FloatArray
    point_mass: BoolArray


def crps_reconstructed(
    *,
    quantiles: FloatArray,
    outcome: FloatArray,
    levels: tuple[float, ...] = LEVELS,
    point_mass_sd: float = POINT_MASS_SD,
) -> ReconstructedCrps:
    r"""Return the CRPS of the law that the quantiles stand for (`consilience.scoring.law`), in closed form.

    ``CRPS = int_{-inf}^y F^2 du + int_y^inf (1 - F)^2 du``; on a piece with ``z = a + b u``
    ``int Phi(z)^2 du = [z Phi(z)^2 + 2 phi(z) Phi(z) - Phi(sqrt2 z)/sqrt(pi)] / b``, and its mirror above y.

    Args:
        quantiles: Non-decreasing rows, shape (n, K); logarithms for prices. Of a mixture give the published
            quantiles, so that all arms are compared on the same information.
        outcome: Shape (n,), in the same space.
        levels: Levels of the quantiles.
        point_mass_sd: Width given to a row whose quantiles are all equal; flagged. Equal neighbours in a row with
            some width are an atom and get none.

    Range: (0, inf), in the unit of the outcome. Proper for the reconstructed law.

    Reference: Matheson & Winkler 1976; Gneiting & Raftery 2007.

    Raises:
        DataError: Shapes do not fit, a number is not finite, quantiles cross, or ``point_mass_sd`` is not positive.

    Example:
        >>> from scipy.special import ndtri
        >>> normal = ndtri(np.array([[0.05, 0.25, 0.5, 0.75, 0.95]]))
        >>> crps_reconstructed(quantiles=normal, outcome=np.array([0.0])).score.round(9).tolist()
        [0.233694977]
    """
    if not (math.isfinite(point_mass_sd) and point_mass_sd > 0):
        raise DataError(f"a point mass of width {point_mass_sd}", hint="Give a positive standard deviation.")
    law = reconstruct(quantiles=quantiles, levels=levels)
    if outcome.shape != quantiles.shape[:1] or not np.isfinite(outcome).all():
        raise DataError(
            f"outcomes {outcome.shape} do not fit quantiles {quantiles.shape} or are not finite",
            hint="Give one outcome per row of quantiles.",
        )
    still = quantiles[:, 0] == quantiles[:, -1]
    if still.any():
        widened = np.where(still[:, None], quantiles + point_mass_sd * law.scores, quantiles)
        law = reconstruct(quantiles=widened, levels=levels)
    y, q, z = outcome[:, None], law.knots, law.scores
    open_end = np.full((len(q), 1), np.inf)
    start, end = np.hstack([-open_end, q]), np.hstack([q, open_end])
    split = np.clip(y, start, end)  # the outcome, or the end of the piece that lies nearer to it
    at = np.maximum(np.arange(z.size + 1) - 1, 0)
    at_split = z[at] + (split - q[:, at]) * law.rise
    below = _area(at_split) - np.append(0.0, _area(z))
    above = _area(-at_split) - np.append(_area(-z), 0.0)
    pieces = np.divide(below + above, law.rise, out=np.zeros_like(law.rise), where=~law.flat)
    # A tail without continuous mass is 0 or 1 throughout: all of the way between it and the outcome counts.
    pieces[:, 0] += np.where(law.flat[:, 0], np.maximum(q[:, 0] - outcome, 0), 0.0)
    pieces[:, -1] += np.where(law.flat[:, -1], np.maximum(outcome - q[:, -1], 0), 0.0)
    return ReconstructedCrps(score=pieces.sum(axis=1), point_mass=still)


def _area(z: FloatArray) -> FloatArray:
    """Return the integral of ``Phi^2`` from minus infinity to z."""
    from scipy.special import ndtr  # noqa: PLC0415 - scipy is loaded where it is used

    p = ndtr(z)
    found: FloatArray = z * p * p + 2 * _density(z) * p - ndtr(math.sqrt(2) * z) / _SQRT_PI
    return found


def _density(z: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", under="ignore"):
        found: FloatArray = np.exp(-0.5 * z * z) / _SQRT_TAU
    return found


def crps_normal(*, mean: FloatArray, sd: FloatArray, outcome: FloatArray) -> FloatArray:
    r"""Return the CRPS of normal laws, ``s (w (2 Phi(w) - 1) + 2 phi(w) - 1/sqrt(pi))``, ``w = (y - m)/s``; 0 is best.

    Range: (0, inf), in the unit of the outcome. Reference: Gneiting et al. 2005.

    Raises:
        DataError: Shapes differ, a number is not finite, or a standard deviation is not positive.

    Example:
        >>> crps_normal(mean=np.zeros(1), sd=np.ones(1), outcome=np.zeros(1)).round(9).tolist()
        [0.233694977]
    """
    from scipy.special import ndtr  # noqa: PLC0415 - scipy is loaded where it is used

    _same(mean, sd, outcome)
    w = (outcome - mean) / sd
    found: FloatArray = sd * (w * (2 * ndtr(w) - 1) + 2 * _density(w) - 1 / _SQRT_PI)
    return found


def crps_lognormal(*, mean_log: FloatArray, sd_log: FloatArray, outcome: FloatArray) -> FloatArray:
    r"""Return the CRPS of lognormal laws on the scale of the outcome itself, not of its logarithm; 0 is best.

    ``y (2 Phi(w) - 1) - 2 exp(m + s^2/2) (Phi(w - s) + Phi(s/sqrt2) - 1)``, ``w = (log y - m)/s``.

    Range: (0, inf), in the unit of the outcome: dear items weigh more. Reference: Baran & Lerch 2015.

    Raises:
        DataError: Shapes differ, a number is not finite, or a standard deviation or an outcome is not positive.

    Example:
        >>> crps_lognormal(mean_log=np.ones(1), sd_log=np.full(1, 0.5), outcome=np.full(1, 3.0)).round(9).tolist()
        [0.350803074]
    """
    from scipy.special import ndtr  # noqa: PLC0415 - scipy is loaded where it is used

    _same(mean_log, sd_log, outcome)
    if (outcome <= 0).any():
        raise DataError("an outcome of a lognormal law is not positive", hint="Score it under another law.")
    w = (np.log(outcome) - mean_log) / sd_log
    level = np.exp(mean_log + sd_log**2 / 2)
    found: FloatArray = outcome * (2 * ndtr(w) - 1) - 2 * level * (ndtr(w - sd_log) + ndtr(sd_log / math.sqrt(2)) - 1)
    return found


def crps_ensemble(
    *, members: FloatArray, outcome: FloatArray, estimator: Literal["energy", "fair"] = "energy"
) -> FloatArray:
    r"""Return the CRPS of equally weighted members, ``mean |x - y| - sum_ij |x_i - x_j| / (2 d)``; 0 is best.

    Args:
        members: Shape (n, m).
        outcome: Shape (n,).
        estimator: ``energy`` (``d = m^2``) scores the members as the law; ``fair`` (``d = m (m - 1)``) the law they
            were drawn from, and can be negative.

    Range: [0, inf) for ``energy``, in the unit of the outcome. Reference: Gneiting & Raftery 2007; Ferro 2014.

    Raises:
        DataError: Shapes do not fit, a number is not finite, or there are too few members (1, for ``fair`` 2).

    Example:
        >>> crps_ensemble(members=np.array([[-1.0, 0, 0.5, 2]]), outcome=np.array([0.3])).tolist()
        [0.28125]
    """
    least = 2 if estimator == "fair" else 1
    fits = members.ndim == 2 and outcome.shape == members.shape[:1] and members.shape[1] >= least
    if not (fits and np.isfinite(members).all() and np.isfinite(outcome).all()):
        raise DataError(
            f"members {members.shape} and outcomes {outcome.shape} do not fit or are not finite",
            hint=f"Give a row of at least {least} members per outcome.",
        )
    m = members.shape[1]
    gaps = np.sort(members, axis=1) @ (2.0 * np.arange(1, m + 1) - m - 1)  # half the sum of |x_i - x_j|
    found: FloatArray = np.abs(members - outcome[:, None]).mean(axis=1) - gaps / (m * m if least == 1 else m * (m - 1))
    return found


def _same(centre: FloatArray, sd: FloatArray, outcome: FloatArray) -> None:
    fits = centre.shape == sd.shape == outcome.shape
    if not (fits and all(np.isfinite(part).all() for part in (centre, sd, outcome))):
        raise DataError(
            f"laws {centre.shape}, {sd.shape} and outcomes {outcome.shape} do not fit or are not finite",
            hint="Give one centre, one standard deviation and one outcome per case.",
        )
    if (sd <= 0).any():
        raise DataError("a standard deviation is not positive", hint="Score a point mass by its distance.")
