"""The seven point rules: many seats' numbers become one, and the record says how.

On a ``log`` scale a rule works on logarithms and converts back. Seats are sorted by id first and sums are exact
(`math.fsum`), so the order in which seats answered cannot change a bit of the result. A rule never guesses: whatever it
did beyond its name is in ``flags``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from consilience.aggregation.fitted import FittedRole
from consilience.aggregation.location import (
    SCALE_FLOOR,
    T4_UPPER_QUARTILE,
    VARIANCE_FLOOR,
    FloatArray,
    inverse_variance_pool,
    student_t_location,
    trim_count,
)
from consilience.errors import DataError, QuorumError
from consilience.registry import Registry

Scale = Literal["log", "linear"]
Fitted = Mapping[str, FittedRole]

MIN_ROWS: Final = 5
"""Below this many validation rows a role's own variance or scale is not believed; the pooled one stands in."""


@dataclass(frozen=True)
class Aggregate:
    """One number made of several.

    Attributes:
        value: On the question's own scale.
        weights: Share of each seat, sum 1, in order of seat id; for robust rules the weights at the solution.
        flags: What happened beyond the rule's name, such as ``single_agent``, ``trim_inactive``, ``equal_weights``.
        n: Seats that entered.
    """

    value: float
    weights: dict[str, float]
    flags: tuple[str, ...]
    n: int


class PointRule(ABC):
    """A rule that turns the points of the seats that answered into one value.

    The declared properties are checked by the tests over the registry, and what is declared False is refuted there.

    Attributes:
        kinds: Answer kinds the rule serves.
        order_invariant: The order of the seats changes no bit of the result.
        unanimity: Equal points give that point.
        within_range: The value lies between the smallest and the largest point (up to rounding).
        unit_equivariant: Points in another unit give the value in that unit (up to rounding; scales and variances that
            were fitted on a linear scale are in units too and change with it).
    """

    kinds: ClassVar[tuple[str, ...]] = ("estimate",)
    order_invariant: ClassVar[bool] = True
    unanimity: ClassVar[bool] = True
    within_range: ClassVar[bool] = True
    unit_equivariant: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and in every prediction row."""

    @abstractmethod
    def _combine(
        self, x: FloatArray, seats: tuple[str, ...], fitted: Fitted | None
    ) -> tuple[float, FloatArray, tuple[str, ...]]:
        """Return value, weights and flags in the working space; seats are sorted."""

    def __call__(
        self, *, points: FloatArray, scale: Scale, seats: tuple[str, ...], weights: Fitted | None = None
    ) -> Aggregate:
        """Return the aggregate of the seats that answered.

        Args:
            points: One finite number per seat, shape (n,); positive on a ``log`` scale. An abstaining seat is absent.
            scale: Of the question.
            seats: Distinct seat ids, one per point.
            weights: What validation taught, by seat id; None gives equal weights (and a MAD scale), flagged.

        Raises:
            QuorumError: No seat answered.
            DataError: Shapes or ids do not fit, a point is inadmissible, or a seat is missing from ``weights``.
        """
        if points.shape != (len(seats),) or len(set(seats)) != len(seats):
            raise DataError(
                f"{points.shape} points for seats {', '.join(seats)}", hint="Give one point per seat, ids distinct."
            )
        if not seats:
            raise QuorumError(f"{self.name} of no answers", hint="Ask more members or lower what may fail.")
        order = sorted(range(len(seats)), key=seats.__getitem__)
        names = tuple(seats[i] for i in order)
        shown = points[order]
        x = to_working(points=shown, scale=scale)
        if len(names) == 1:
            return Aggregate(value=float(shown[0]), weights={names[0]: 1.0}, flags=("single_agent",), n=1)
        value, shares, flags = self._combine(x, names, weights)
        same = np.flatnonzero(x == (x[0] if x.min() == x.max() else value))
        # A value that is one of the points is that point, not what exp(log(point)) rounds to.
        back = float(shown[same[0]]) if same.size else (math.exp(value) if scale == "log" else value)
        return Aggregate(value=back, weights=dict(zip(names, shares.tolist(), strict=True)), flags=flags, n=len(names))


def to_working(*, points: FloatArray, scale: Scale) -> FloatArray:
    """Return points in the space in which rules work: logarithms on a ``log`` scale.

    Raises:
        DataError: A point is not finite, or not positive on a ``log`` scale.

    Example:
        >>> to_working(points=np.array([1.0, 1.0]), scale="log").tolist()
        [0.0, 0.0]
    """
    if not np.isfinite(points).all() or (scale == "log" and (points <= 0).any()):
        raise DataError(
            f"inadmissible numbers on a {scale} scale: {points.ravel().tolist()}",
            hint="Reject them where answers are read; a seat without a valid answer is absent.",
        )
    return np.log(points) if scale == "log" else points.astype(np.float64)


def _weighted(x: FloatArray, weights: FloatArray) -> float:
    return math.fsum(weights * x) / math.fsum(weights)


def _equal(x: FloatArray) -> FloatArray:
    return np.full(x.size, 1.0 / x.size)


def _present(seats: tuple[str, ...], fitted: Fitted) -> tuple[list[FittedRole], tuple[str, ...]]:
    unknown = [seat for seat in seats if seat not in fitted]
    if unknown:
        raise DataError(
            f"no fitted weights for {', '.join(unknown)}", hint="Fit these seats on validation or apply no weights."
        )
    return [fitted[seat] for seat in seats], (("weights_renormalised",) if len(fitted) > len(seats) else ())


@dataclass(frozen=True)
class Mean(PointRule):
    """The mean of the working values: a geometric mean on a log scale (its target is the median price, not the mean).

    Example:
        >>> Mean()(points=np.array([100.0, 200, 400]), scale="log", seats=("a", "b", "c")).value
        200.0
    """

    name: ClassVar[str] = "mean"

    def _combine(
        self, x: FloatArray, seats: tuple[str, ...], fitted: Fitted | None
    ) -> tuple[float, FloatArray, tuple[str, ...]]:
        del seats, fitted
        return math.fsum(x) / x.size, _equal(x), ()


@dataclass(frozen=True)
class Median(PointRule):
    """The middle value; of two middle ones the midpoint in the working space (100 and 400 give 200 on a log scale).

    Example:
        >>> round(Median()(points=np.array([100.0, 400]), scale="log", seats=("a", "b")).value, 9)
        200.0
    """

    name: ClassVar[str] = "median"

    def _combine(
        self, x: FloatArray, seats: tuple[str, ...], fitted: Fitted | None
    ) -> tuple[float, FloatArray, tuple[str, ...]]:
        del seats, fitted
        order = np.argsort(x, kind="stable")
        middle = order[(x.size - 1) // 2 : x.size // 2 + 1]
        shares = np.zeros(x.size)
        shares[middle] = 1.0 / middle.size
        return math.fsum(x[middle]) / middle.size, shares, ()


@dataclass(frozen=True)
class TrimmedMean(PointRule):
    """The mean after cutting ``int(proportion * n)`` seats at each end; under five seats 20 % cuts none, flagged.

    Attributes:
        proportion: Share of the seats that is cut at each end.

    Example:
        >>> rule = TrimmedMean()
        >>> rule.name, rule(points=np.array([1.0, 2, 3, 100]), scale="linear", seats=("a", "b", "c", "d")).flags
        ('trimmed_mean_20', ('trim_inactive',))
    """

    proportion: float = 0.2

    @property
    def name(self) -> str:
        """The name says the percentage cut at each end."""
        return f"trimmed_mean_{100 * self.proportion:g}"

    def _combine(
        self, x: FloatArray, seats: tuple[str, ...], fitted: Fitted | None
    ) -> tuple[float, FloatArray, tuple[str, ...]]:
        del seats, fitted
        cut = trim_count(n=x.size, proportion=self.proportion)
        kept = np.argsort(x, kind="stable")[cut : x.size - cut]
        shares = np.zeros(x.size)
        shares[kept] = 1.0 / kept.size
        return math.fsum(x[kept]) / kept.size, shares, (() if cut else ("trim_inactive",))


@dataclass(frozen=True)
class InverseVariance(PointRule):
    """Weights proportional to one over each role's validation variance (bias not removed), floored.

    A role with fewer than five validation rows takes the pooled variance, flagged.

    Attributes:
        floor: Least variance that is believed.

    Example:
        >>> role = dict(rows=50, scale=None, stacking=0.5, stacking_nnls=0.5)
        >>> fitted = {"a": FittedRole(variance=1.0, **role), "b": FittedRole(variance=4.0, **role)}
        >>> InverseVariance()(points=np.array([10.0, 12]), scale="linear", seats=("a", "b"), weights=fitted).value
        10.4
    """

    name: ClassVar[str] = "inverse_variance"
    floor: float = VARIANCE_FLOOR

    def _combine(
        self, x: FloatArray, seats: tuple[str, ...], fitted: Fitted | None
    ) -> tuple[float, FloatArray, tuple[str, ...]]:
        if fitted is None:
            return math.fsum(x) / x.size, _equal(x), ("equal_weights",)
        roles, flags = _present(seats, fitted)
        known = [(role.rows - 1, role.variance) for role in fitted.values() if role.variance is not None]
        freedom = sum(df for df, _ in known)
        if any(role.variance is None or role.rows < MIN_ROWS for role in roles):
            if freedom <= 0:
                return math.fsum(x) / x.size, _equal(x), (*flags, "equal_weights")
            flags = (*flags, "pooled_variance")
        pooled = math.fsum(df * v for df, v in known) / freedom if freedom > 0 else 0.0
        variance = np.array([pooled if r.variance is None or r.rows < MIN_ROWS else r.variance for r in roles])
        pool = inverse_variance_pool(x=x, variance=variance, floor=self.floor)
        return pool.value, np.array(pool.weights), (*flags, *(("variance_floored",) if pool.floored else ()))


@dataclass(frozen=True)
class Stacking(PointRule):
    """Simplex least-squares weights from validation, renormalised over the seats present.

    Example:
        >>> Stacking()(points=np.array([10.0, 12]), scale="linear", seats=("a", "b")).flags
        ('equal_weights',)
    """

    name: ClassVar[str] = "stacking"

    def _shares(self, roles: list[FittedRole]) -> FloatArray:
        return np.array([role.stacking for role in roles])

    def _combine(
        self, x: FloatArray, seats: tuple[str, ...], fitted: Fitted | None
    ) -> tuple[float, FloatArray, tuple[str, ...]]:
        if fitted is None:
            return math.fsum(x) / x.size, _equal(x), ("equal_weights",)
        roles, flags = _present(seats, fitted)
        shares = self._shares(roles)
        total = math.fsum(shares)
        if total == 0.0:
            return math.fsum(x) / x.size, _equal(x), (*flags, "zero_weights", "equal_weights")
        return _weighted(x, shares), shares / total, flags


@dataclass(frozen=True)
class StackingNnls(Stacking):
    """The founding form: NNLS weights of log truth on log points, normalised. Kept beside `Stacking` for comparison.

    Example:
        >>> StackingNnls().name
        'stacking_nnls'
    """

    name: ClassVar[str] = "stacking_nnls"

    def _shares(self, roles: list[FittedRole]) -> FloatArray:
        return np.array([role.stacking_nnls for role in roles])


@dataclass(frozen=True)
class RobustBayes(PointRule):
    """The mode of a Student-t likelihood with each role's validation scale and a flat prior.

    Without fitted scales the panel's own median absolute deviation gives one (``mad_scale``: circular, so flagged). A
    scale that is missing or rests on fewer than five rows is replaced by the median of the other roles'. A second mode
    with over a tenth of the likelihood is flagged ``second_mode``: the panel is split.

    Attributes:
        df: Degrees of freedom of the Student-t; fewer forgive outliers more.

    Example:
        >>> RobustBayes()(points=np.array([1.0, 1.1, 0.9, 1.0, 9]), scale="linear", seats=tuple("abcde")).value < 1.1
        True
    """

    name: ClassVar[str] = "robust_bayes"
    df: float = 4.0

    def _combine(
        self, x: FloatArray, seats: tuple[str, ...], fitted: Fitted | None
    ) -> tuple[float, FloatArray, tuple[str, ...]]:
        span = float(x.max() - x.min())
        if span == 0.0:
            return float(x[0]), _equal(x), (() if fitted is not None else ("mad_scale",))
        flags: tuple[str, ...] = ("mad_scale",)
        scales = np.full(x.size, float(np.median(np.abs(x - np.median(x)))) / T4_UPPER_QUARTILE)
        if fitted is not None:
            roles, flags = _present(seats, fitted)
            believed = [r.scale for r in fitted.values() if r.scale is not None and r.rows >= MIN_ROWS]
            if not believed:
                flags = (*flags, "mad_scale")
            else:
                typical = float(np.median(believed))
                own = [r.scale if r.scale is not None and r.rows >= MIN_ROWS else None for r in roles]
                flags = (*flags, *(("pooled_scale",) if None in own else ()))
                scales = np.array([typical if scale is None else scale for scale in own])
        # Relative to the panel's spread, so that the floor has no unit.
        found = student_t_location(x=x, scale=scales, df=self.df, floor=SCALE_FLOOR * span)
        flags = (*flags, *(("scale_floored",) if found.floored else ()))
        flags = (*flags, *(("second_mode",) if found.second_mode is not None else ()))
        return found.value, np.array(found.weights), flags


POINT_RULES: Final[Registry[PointRule]] = Registry(
    "point rule",
    (Mean(), Median(), TrimmedMean(), InverseVariance(), Stacking(), StackingNnls(), RobustBayes()),
    group="consilience.point_rules",
)

DEFAULT_POINT_RULE: Final = "median"
"""The primary comparison; fitted rules are secondary."""
