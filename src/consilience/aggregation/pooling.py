"""What the rules for probabilities share: the record of a pool, the check of who is seated, clips, correlations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from consilience.aggregation.location import FloatArray
from consilience.aggregation.odds import clipped, normalised
from consilience.aggregation.resolved import MIN_RESOLVED, FittedProbabilities
from consilience.aggregation.seating import seat_order
from consilience.errors import DataError

SENSITIVITY: Final = (0.0, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Correlations of errors for which a rule that needs one tells its value when none was measured."""
_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Clip:
    """A probability that was held inside bounds.

    Attributes:
        what: The seat that said it, or ``pool``.
        before: As it was.
        after: As it entered or left.
    """

    what: str
    before: float
    after: float


@dataclass(frozen=True)
class PooledProbability:
    """One probability made of several.

    Attributes:
        value: In [0, 1].
        weights: Share of each seat, sum 1, in order of seat id.
        flags: What happened beyond the rule's name: ``single_agent``, ``trim_inactive``, ``equal_weights``,
            ``zero_weights``, ``renormalised`` (a fitted seat is absent), ``rho_unmeasured``, ``rho_negative``.
        n: Seats that entered.
        clips: Every probability that was held inside bounds.
        factor: What log-odds or distance from the base were multiplied by; None for rules without one.
        n_eff: Effective number of members, not clamped; None for rules without one.
        rho: Correlation of errors that was used; None for rules without one.
        base: What the pool was moved away from; None for rules without one.
        band: Value by correlation, when none was measured.
        artefact: Version of the recalibration that was applied; None for none.
    """

    value: float
    weights: dict[str, float]
    flags: tuple[str, ...]
    n: int
    clips: tuple[Clip, ...] = ()
    factor: float | None = None
    n_eff: float | None = None
    rho: float | None = None
    base: float | None = None
    band: dict[str, float] = field(default_factory=dict)
    artefact: str | None = None


class ProbabilityRule(ABC):
    """A rule that turns the probabilities of the seats that answered into one.

    The declared properties are checked by the tests over the registry, and what is declared False is refuted there.

    Attributes:
        kinds: Answer kinds the rule serves.
        order_invariant: The order of the seats changes no bit of the result.
        unanimity: Equal probabilities give that probability.
        within_range: The value lies between the smallest and the largest.
        complementary: The rule of the probabilities of no is one minus the rule of those of yes (up to rounding; a
            fitted base rate becomes that of no).
        passes_single: A single seat's probability is the value.
    """

    kinds: ClassVar[tuple[str, ...]] = ("probability",)
    order_invariant: ClassVar[bool] = True
    unanimity: ClassVar[bool] = True
    within_range: ClassVar[bool] = True
    complementary: ClassVar[bool] = True
    passes_single: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and in every prediction row."""

    @abstractmethod
    def _combine(
        self, p: tuple[float, ...], seats: tuple[str, ...], fitted: FittedProbabilities | None
    ) -> PooledProbability:
        """Return the pool; seats are in order of their ids."""

    def ready(self, fitted: FittedProbabilities | None) -> bool:
        """Whether the rule has what it needs; without it there is no row, never a guess."""
        del fitted
        return True

    def __call__(
        self, *, probabilities: FloatArray, seats: tuple[str, ...], fitted: FittedProbabilities | None = None
    ) -> PooledProbability:
        """Return the pool of the seats that answered; a single seat's is its own, flagged ``single_agent``.

        Args:
            probabilities: One per seat, each in [0, 1], shape (n,). An abstaining seat is absent.
            seats: Distinct seat ids.
            fitted: What validation taught; None when nothing did.

        Raises:
            QuorumError: No seat answered.
            DataError: Shapes or ids do not fit, a number is no probability, a seat is missing from what was fitted, or
                the rule is not `ready`.
        """
        order = seat_order(rule=self.name, seats=seats, answers=len(probabilities))
        if probabilities.shape != (len(seats),) or not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise DataError(
                f"no probabilities in [0, 1], one per seat: {probabilities.tolist()}",
                hint="Reject them where answers are read; a seat without a valid answer is absent.",
            )
        names = tuple(seats[i] for i in order)
        p = tuple(probabilities[order].astype(np.float64).tolist())
        if len(names) == 1 and self.passes_single:
            return PooledProbability(value=p[0], weights={names[0]: 1.0}, flags=("single_agent",), n=1)
        return self._combine(p, names, fitted)


def pooled(value: float, seats: tuple[str, ...], weights: tuple[float, ...] | None = None) -> PooledProbability:
    """Return a pool without anything to tell; weights may have any sum, None weighs all alike.

    Example:
        >>> pooled(0.5, ("a", "b")).weights
        {'a': 0.5, 'b': 0.5}
    """
    given = normalised(weights, n=len(seats))
    return PooledProbability(value=value, weights=dict(zip(seats, given, strict=True)), flags=(), n=len(seats))


def inside(value: float, p: tuple[float, ...]) -> float:
    """Return a value held between the smallest and the largest probability.

    Example:
        >>> inside(0.005, (0.001, 0.002))
        0.002
    """
    return min(max(value, min(p)), max(p))


def clip_all(p: tuple[float, ...], seats: tuple[str, ...], eps: float) -> tuple[tuple[float, ...], tuple[Clip, ...]]:
    """Return probabilities held inside ``[eps, 1 - eps]`` and what moved.

    Example:
        >>> clip_all((0.0, 0.5), ("a", "b"), 0.005)[0]
        (0.005, 0.5)
    """
    held = tuple(clipped(x, eps=eps) for x in p)
    return held, tuple(Clip(seat, x, y) for seat, x, y in zip(seats, p, held, strict=True) if x != y)


def moved(before: float, after: float) -> tuple[Clip, ...]:
    """Return the clip of a pool that was held inside bounds; none when only rounding moved it.

    Example:
        >>> moved(1.2, 0.99)
        (Clip(what='pool', before=1.2, after=0.99),)
    """
    return (Clip("pool", before, after),) if abs(after - before) > _ROUNDING else ()


def measured_rho(fitted: FittedProbabilities | None) -> tuple[float | None, tuple[str, ...]]:
    """Return the correlation of errors, if enough resolved questions measured one, and flags.

    A negative one counts as 0, flagged: errors that offset one another by chance are no licence to extremise further
    than independence does.

    Example:
        >>> measured_rho(None)
        (None, ('rho_unmeasured',))
    """
    if fitted is None or fitted.rho is None or fitted.n_items < MIN_RESOLVED:
        return None, ("rho_unmeasured",)
    return max(fitted.rho, 0.0), (("rho_negative",) if fitted.rho < 0 else ())
