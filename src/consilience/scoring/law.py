"""The law that a handful of quantiles stands for: piecewise linear in (normal score of the level, value).

On logarithms it is piecewise lognormal with lognormal tails. Equal neighbours are an atom; an outer pair of equal
quantiles holds its whole tail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.core.answers import LEVELS
from consilience.errors import DataError
from consilience.scoring.point import BoolArray, FloatArray


@dataclass(frozen=True)
class Law:
    """One law per row of quantiles, in K + 1 pieces for K quantiles: lower tail, inner pieces, upper tail.

    Attributes:
        knots: The quantiles, shape (n, K).
        scores: Normal scores of their levels, shape (K,).
        rise: Slope of the normal score in each piece, shape (n, K + 1); 0 where a piece has no width (see ``flat``).
        flat: Whether a piece holds no continuous mass, shape (n, K + 1).
    """

    knots: FloatArray
    scores: FloatArray
    rise: FloatArray
    flat: BoolArray

    def cdf(self, *, outcome: FloatArray, closed: bool = True) -> FloatArray:
        """Return ``P(X <= y)`` of each row's law, or ``P(X < y)`` where not ``closed``; they differ on an atom only."""
        from scipy.special import ndtr  # noqa: PLC0415 - scipy is loaded where it is used

        y = outcome[:, None]
        piece = (self.knots <= y).sum(axis=1) if closed else (self.knots < y).sum(axis=1)
        row, left = np.arange(outcome.size), np.maximum(piece - 1, 0)
        z = self.scores[left] + (outcome - self.knots[row, left]) * self.rise[row, piece]
        flat = self.flat[row, piece]  # reached beyond an outer pair of equal quantiles only
        found: FloatArray = np.where(flat, (piece > 0).astype(np.float64), ndtr(z))
        return found


def reconstruct(*, quantiles: FloatArray, levels: tuple[float, ...] = LEVELS) -> Law:
    r"""Return the law of each row: ``F(u) = Phi(z(u))``, z linear between the knots, outer slopes extended.

    It gives back a normal law exactly (a lognormal one, from logarithms).

    Args:
        quantiles: Non-decreasing rows, shape (n, K), K >= 2; logarithms for prices.
        levels: Their K levels, increasing, in (0, 1).

    Reference: the same tail rule as R ``distfromq`` with lognormal tails.

    Raises:
        DataError: Shapes or levels do not fit, a number is not finite, or quantiles cross.

    Example:
        >>> law = reconstruct(quantiles=np.array([[1.0, 2, 3, 4, 5]]))
        >>> law.cdf(outcome=np.array([4.0])).round(9).tolist()
        [0.75]
    """
    from scipy.special import ndtri  # noqa: PLC0415 - scipy is loaded where it is used

    tau = np.array(levels, dtype=np.float64)
    if tau.size < 2 or not (tau[0] > 0 and tau[-1] < 1 and (np.diff(tau) > 0).all()):
        raise DataError(f"levels {levels} do not increase within (0, 1)", hint="Give at least two increasing levels.")
    if quantiles.ndim != 2 or quantiles.shape[1] != tau.size or not np.isfinite(quantiles).all():
        raise DataError(
            f"quantiles {quantiles.shape} do not fit {tau.size} levels or are not finite",
            hint="Give one row of quantiles per case; leave out cases without an answer and count them.",
        )
    width = np.diff(quantiles, axis=1)
    if (width < 0).any():
        raise DataError("quantiles cross", hint="Sort fitted quantiles first and report the rate.")
    scores = ndtri(tau)
    with np.errstate(divide="ignore", over="ignore"):
        inner = np.diff(scores) / width
    inner_flat = ~np.isfinite(inner)  # no width, or one so small that no slope can be written
    flat = np.hstack([inner_flat[:, :1], inner_flat, inner_flat[:, -1:]])
    inner = np.where(inner_flat, 0.0, inner)
    return Law(knots=quantiles, scores=scores, rise=np.hstack([inner[:, :1], inner, inner[:, -1:]]), flat=flat)
