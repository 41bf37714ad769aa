"""Maps from stated to calibrated probabilities, fitted on resolved questions and carried by a versioned artefact.

Fitting is separate from applying: a rule only ever applies an artefact it was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from consilience.aggregation.location import FloatArray
from consilience.aggregation.odds import LOGIT_CLIP, clipped, expit, logit
from consilience.errors import DataError
from consilience.registry import nearest

Method = Literal["platt", "isotonic", "beta"]
_STEPS: Final = 100
_GRADIENT: Final = 1e-10
_FLAT: Final = 1e-7
_ALIKE: Final = 1e-13


@dataclass(frozen=True)
class Recalibration:
    """A fitted map, as frozen.

    Attributes:
        method: ``platt``: log-odds become ``intercept + slope * logit p``; ``beta``: ``a ln p - b ln(1 - p) + c``;
            ``isotonic``: straight lines between knots.
        parameters: ``(intercept, slope)`` or ``(a, b, c)``; empty for isotonic.
        knots: ``(stated, calibrated)``, both rising, of an isotonic map; empty otherwise.
        pool: The rule whose values it was fitted on and is applied to.
        n: Resolved questions behind it.
        version: Names the artefact in every record that it shaped.

    Raises:
        DataError: The parts do not fit the method, or the map could fall as the stated probability rises.

    Example:
        >>> shrink = Recalibration(method="platt", parameters=(0.0, 0.5), knots=(), pool="median", n=300, version="1")
        >>> round(shrink(0.9), 4)
        0.75
    """

    method: Method
    parameters: tuple[float, ...]
    knots: tuple[tuple[float, float], ...]
    pool: str
    n: int
    version: str

    def __post_init__(self) -> None:
        sizes = {"platt": 2, "beta": 3, "isotonic": 0}
        if self.method not in sizes:
            raise DataError(f'unknown recalibration "{self.method}"', hint=nearest(self.method, sizes))
        stated, values = [x for x, _ in self.knots], [y for _, y in self.knots]
        if self.method == "isotonic":
            sound = bool(stated) and stated == sorted(set(stated)) and values == sorted(values)
            sound = sound and values[0] > 0 and values[-1] < 1
        else:
            rising = {"platt": self.parameters[1:], "beta": self.parameters[:2]}[self.method]
            sound = not stated and all(map(math.isfinite, self.parameters)) and all(x >= 0 for x in rising)
            sound = sound and any(rising)
        if not sound or len(self.parameters) != sizes[self.method] or not self.version or self.n < 1:
            raise DataError(
                f"no sound {self.method} recalibration: parameters {self.parameters}, {len(stated)} knots, n {self.n}, "
                f'version "{self.version}"',
                hint="Fit it again on resolved questions; a sound one rises with what is stated.",
            )

    def __call__(self, p: float) -> float:
        """Return the calibrated probability, inside (0, 1); logarithms are taken of p clipped by 0.005.

        Raises:
            DataError: p is no probability.
        """
        if not 0 <= p <= 1:
            raise DataError(f"{p} is no probability", hint="Give a number in [0, 1].")
        if self.method == "isotonic":
            stated, values = zip(*self.knots, strict=True)
            return float(np.interp(p, stated, values))
        x = clipped(p)
        if self.method == "platt":
            intercept, slope = self.parameters
            return expit(intercept + slope * logit(x))
        a, b, c = self.parameters
        return expit(a * math.log(x) - b * math.log1p(-x) + c)


def newton_logistic(*, features: FloatArray, targets: FloatArray) -> FloatArray:
    r"""Return the maximum-likelihood coefficients of a logistic regression, by Newton's method with step halving.

    Equation: ``argmin_w -sum(t ln s + (1 - t) ln(1 - s))`` with ``s = expit(X w)``; add a column of ones for an
    intercept. Meant for two or three columns.

    Args:
        features: Finite, shape (n, k).
        targets: In [0, 1], fractions admitted, shape (n,).

    Raises:
        DataError: Shapes or numbers do not fit, or there is no finite optimum (targets a threshold can tell apart,
            columns that say the same).

    Example:
        >>> found = newton_logistic(features=np.ones((4, 1)), targets=np.array([1.0, 0, 0, 0]))
        >>> round(float(np.exp(found[0])), 6)
        0.333333
    """
    n, k = features.shape if features.ndim == 2 else (0, 0)
    sound = np.isfinite(features).all() and ((targets >= 0) & (targets <= 1)).all()
    if targets.shape != (n,) or n == 0 or k == 0 or not sound:
        raise DataError(
            f"logistic regression of {targets.shape} targets on features {features.shape}",
            hint="Give one row of finite features per target in [0, 1].",
        )
    weights = np.zeros(k)
    loss = _loss(features, targets, weights)
    # Where no optimum is finite the gradient fades as well, but the curvature fades with it.
    spectrum = np.linalg.eigvalsh(features.T @ features / 4)
    flat = max(_FLAT * spectrum[0], _ALIKE * spectrum[-1])
    for _ in range(_STEPS):
        s = _expit(features @ weights)
        gradient = features.T @ (s - targets)
        curvature = (features * (s * (1 - s))[:, None]).T @ features
        if np.linalg.eigvalsh(curvature)[0] <= flat:
            break
        if np.abs(gradient).max() <= _GRADIENT * n * max(1.0, float(np.abs(features).max())):
            return weights
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while (tried := _loss(features, targets, weights - size * step)) > loss + 1e-12 * abs(loss) and size > 1e-6:
            size /= 2
        weights, loss = weights - size * step, tried
    raise DataError(
        f"logistic regression on {n} rows has no finite optimum",
        hint="Outcomes that a threshold tells apart have none: use Platt's smoothed targets, or more questions.",
    )


def _expit(x: FloatArray) -> FloatArray:
    e = np.exp(-np.abs(x))
    s: FloatArray = np.where(x >= 0, 1.0, e) / (1.0 + e)
    return s


def _loss(features: FloatArray, targets: FloatArray, weights: FloatArray) -> float:
    x = features @ weights
    return float((np.logaddexp(0.0, x) - targets * x).sum())


def fit_platt(*, scores: FloatArray, outcomes: FloatArray, smoothed: bool = True) -> tuple[float, float]:
    """Return intercept and slope of Platt's map ``expit(intercept + slope * score)``; a score is a log-odds here.

    Smoothed targets ``(n1 + 1) / (n1 + 2)`` for yes and ``1 / (n0 + 2)`` for no keep outcomes that a threshold tells
    apart from sending the slope to infinity.

    Reference: Platt 1999; Lin, Lin & Weng 2007.

    Raises:
        DataError: As `newton_logistic`, or outcomes are not 0 and 1.

    Example:
        >>> made = fit_platt(scores=np.array([-1.0, 0, 0, 1]), outcomes=np.array([0.0, 0, 1, 1]))
        >>> [round(abs(x), 4) for x in made]
        [0.0, 1.0986]
    """
    _check(scores, outcomes)
    yes = float(outcomes.sum())
    no = outcomes.size - yes
    targets = np.where(outcomes == 1, (yes + 1) / (yes + 2), 1 / (no + 2)) if smoothed else outcomes
    found = newton_logistic(features=np.column_stack([np.ones(scores.size), scores]), targets=targets)
    return float(found[0]), float(found[1])


def fit_beta(*, probabilities: FloatArray, outcomes: FloatArray) -> tuple[float, float, float]:
    """Return ``(a, b, c)`` of the beta map ``expit(a ln p - b ln(1 - p) + c)`` with ``a, b >= 0``.

    A coefficient that would be negative is 0 and the others are fitted again. Logarithms are taken of p clipped by
    0.005.

    Reference: Kull, Silva Filho & Flach 2017.

    Raises:
        DataError: As `newton_logistic`, or both coefficients would be negative: what is stated says nothing.

    Example:
        >>> p = np.array([0.1, 0.2, 0.4, 0.5, 0.6, 0.9])
        >>> a, b, c = fit_beta(probabilities=p, outcomes=np.array([0.0, 1, 0, 1, 0, 1]))
        >>> a >= 0, b >= 0
        (True, True)
    """
    _check(probabilities, outcomes)
    p = np.clip(probabilities, LOGIT_CLIP, 1 - LOGIT_CLIP)
    columns = np.column_stack([np.log(p), -np.log1p(-p), np.ones(p.size)])
    kept = [0, 1, 2]
    while kept != [2]:
        found = newton_logistic(features=columns[:, kept], targets=outcomes)
        negative = [index for index, value in zip(kept, found, strict=True) if index < 2 and value < 0]
        if not negative:
            told = dict(zip(kept, found.tolist(), strict=True))
            return told.get(0, 0.0), told.get(1, 0.0), told[2]
        # The more negative one goes first: with it gone the other may turn positive.
        kept.remove(min(negative, key=lambda index: found[kept.index(index)]))
    raise DataError("a beta map that falls as p rises", hint="What was stated says nothing here: fit no map.")


def pool_violators(*, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct x and the rising values nearest to y in squared error: isotonic regression.

    Equal x are pooled to their mean first; adjacent violators are then pooled by weight.

    Reference: Ayer et al. 1955; Zadrozny & Elkan 2002.

    Raises:
        DataError: No values, shapes differ, or a number is not finite.

    Example:
        >>> at, value = pool_violators(x=np.array([0.5, 0.5, 0.9]), y=np.array([1.0, 0, 1]))
        >>> at.tolist(), value.tolist()
        ([0.5, 0.9], [0.5, 1.0])
    """
    if x.size == 0 or x.shape != y.shape or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError(f"isotonic regression of {y.shape} on {x.shape}", hint="Give one finite y per finite x.")
    distinct = sorted(set(x.tolist()))
    groups = [y[x == at].tolist() for at in distinct]
    blocks: list[tuple[float, int, int]] = []  # total, observations, distinct x
    for group in groups:
        block = (math.fsum(group), len(group), 1)
        while blocks and blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]:
            total, count, width = blocks.pop()
            block = (total + block[0], count + block[1], width + block[2])
        blocks.append(block)
    values = [total / count for total, count, width in blocks for _ in range(width)]
    return np.array(distinct), np.array(values)


def fit_isotonic(*, probabilities: FloatArray, outcomes: FloatArray) -> tuple[tuple[float, float], ...]:
    """Return the knots of the isotonic map, its values inside ``[1/(n + 2), 1 - 1/(n + 2)]``.

    Between knots the map is straight, beyond them level. It overfits below about a thousand questions.

    Reference: Zadrozny & Elkan 2002; Niculescu-Mizil & Caruana 2005.

    Raises:
        DataError: As `pool_violators`, or outcomes are not 0 and 1.

    Example:
        >>> fit_isotonic(probabilities=np.array([0.2, 0.8]), outcomes=np.array([0.0, 1.0]))
        ((0.2, 0.25), (0.8, 0.75))
    """
    _check(probabilities, outcomes)
    at, value = pool_violators(x=probabilities, y=outcomes)
    edge = 1.0 / (outcomes.size + 2)
    return tuple(zip(at.tolist(), np.clip(value, edge, 1 - edge).tolist(), strict=True))


def fit_recalibration(
    *, method: Method, probabilities: FloatArray, outcomes: FloatArray, pool: str, version: str
) -> Recalibration:
    """Return the artefact of a map fitted on resolved questions; never on those it is judged by.

    Args:
        method: Which map.
        probabilities: What the pool said, shape (n,).
        outcomes: 0 or 1, shape (n,).
        pool: Name of the rule that said it.
        version: Name of the artefact.

    Raises:
        DataError: The method is unknown, the map has no finite optimum, or it would fall as p rises.

    Example:
        >>> p, y = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.0, 1, 0, 1])
        >>> fit_recalibration(method="platt", probabilities=p, outcomes=y, pool="median", version="1").n
        4
    """
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise DataError("what is recalibrated is no probability", hint="Give numbers in [0, 1].")
    makers: dict[str, Callable[[], tuple[tuple[float, ...], tuple[tuple[float, float], ...]]]] = {
        "platt": lambda: (fit_platt(scores=_logits(probabilities), outcomes=outcomes), ()),
        "isotonic": lambda: ((), fit_isotonic(probabilities=probabilities, outcomes=outcomes)),
        "beta": lambda: (fit_beta(probabilities=probabilities, outcomes=outcomes), ()),
    }
    if method not in makers:
        raise DataError(f'unknown recalibration "{method}"', hint=nearest(method, makers))
    parameters, knots = makers[method]()
    return Recalibration(method, parameters, knots, pool, outcomes.size, version)


def _logits(p: FloatArray) -> FloatArray:
    return np.array([logit(clipped(x)) for x in p.tolist()])


def _check(x: FloatArray, outcomes: FloatArray) -> None:
    if x.shape != outcomes.shape or x.ndim != 1 or not np.isin(outcomes, (0.0, 1.0)).all():
        raise DataError(
            f"a map from {x.shape} numbers to {outcomes.shape} outcomes", hint="Give one outcome, 0 or 1, per number."
        )
