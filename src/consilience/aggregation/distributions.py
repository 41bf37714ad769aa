"""Rules for distributions over named options: many seats' become one, and the record says how."""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from consilience.aggregation.location import FloatArray
from consilience.aggregation.seating import seat_order
from consilience.errors import DataError
from consilience.registry import Registry

SUM_TOLERANCE: Final = 1e-9
"""What rounding may leave between the sum of a seat's probabilities, as read under its contract, and 1."""


@dataclass(frozen=True)
class Pooled:
    """One distribution made of several.

    Attributes:
        probabilities: By option id, in the question's order; each in [0, 1].
        total: Their sum. Each is rounded on its own and none is moved to mend the sum, so it is 1 up to rounding.
        weights: Share of each seat, sum 1, in order of seat id.
        flags: What happened beyond the rule's name, such as ``single_agent`` or ``clipped``.
        n: Seats that entered.
        clips: How many of the seats' probabilities the rule moved to its limits before pooling.
    """

    probabilities: dict[str, float]
    total: float
    weights: dict[str, float]
    flags: tuple[str, ...]
    n: int
    clips: int = 0


class DistributionRule(ABC):
    """A rule that turns the distributions of the seats that answered into one.

    The declared properties are checked by the tests over the registry, and what is declared False is refuted there.

    Attributes:
        kinds: Answer kinds the rule serves.
        order_invariant: The order of the seats changes no bit of the result, that of the options only its order.
        unanimity: Equal distributions give that distribution.
        within_range: Each probability lies between the smallest and the largest that a seat gave the option.
        marginal: The pool of an option depends on its own probabilities only.
    """

    kinds: ClassVar[tuple[str, ...]] = ("distribution",)
    order_invariant: ClassVar[bool] = True
    unanimity: ClassVar[bool] = True
    within_range: ClassVar[bool] = True
    marginal: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and in every prediction row."""

    @abstractmethod
    def _combine(self, p: FloatArray) -> tuple[list[float], int]:
        """Return a probability per option and how many entries were clipped; rows are in order of seat id."""

    def __call__(self, *, probabilities: FloatArray, options: tuple[str, ...], seats: tuple[str, ...]) -> Pooled:
        """Return the pool of the seats that answered; a single seat's is its own, flagged ``single_agent``.

        Args:
            probabilities: One row per seat and one column per option, shape (n, k), rows summing to 1 within 1e-9.
            options: Distinct option ids.
            seats: Distinct seat ids.

        Raises:
            QuorumError: No seat answered.
            DataError: Shapes or ids do not fit, or a row is no distribution.
        """
        order = seat_order(rule=self.name, seats=seats, answers=len(probabilities))
        if probabilities.shape != (len(seats), len(options)) or len(set(options)) != len(options):
            raise DataError(
                f"probabilities of shape {probabilities.shape} for {len(seats)} seats and options {', '.join(options)}",
                hint="Give one row per seat and one column per option, ids distinct.",
            )
        for seat, row in zip(seats, probabilities, strict=True):
            sound = ((row >= 0) & (row <= 1)).all() and abs(math.fsum(row) - 1) <= SUM_TOLERANCE
            if not sound:
                raise DataError(
                    f"{row.tolist()} of seat {seat} is no distribution",
                    hint="Reject it where answers are read; a seat without a valid answer is absent.",
                )
        names = tuple(seats[i] for i in order)
        values, clips = self._combine(probabilities[order])
        return Pooled(
            probabilities=dict(zip(options, values, strict=True)),
            total=math.fsum(values),
            weights=dict.fromkeys(names, 1.0 / len(names)),
            flags=(*(("single_agent",) if len(names) == 1 else ()), *(("clipped",) if clips else ())),
            n=len(names),
            clips=clips,
        )


@dataclass(frozen=True)
class LinearPool(DistributionRule):
    """The mean of each option's probabilities: the seats' mixture (Stone 1961).

    Each mean is the exact one, rounded once, so that unanimity and range hold to the last bit.

    Example:
        >>> rule = LinearPool()
        >>> rule(probabilities=np.array([[0.5, 0.5], [1.0, 0.0]]), options=("x", "y"), seats=("a", "b")).probabilities
        {'x': 0.75, 'y': 0.25}
    """

    name: ClassVar[str] = "linear_pool"

    def _combine(self, p: FloatArray) -> tuple[list[float], int]:
        return [statistics.mean(column.tolist()) for column in p.T], 0


@dataclass(frozen=True)
class LogarithmicPool(DistributionRule):
    """The geometric mean of each option's probabilities, divided by their sum; of two options it pools the odds.

    A single 0 would be a veto, so that seats' probabilities are clipped to ``[clip, 1 - clip]`` first, counted. Seats
    that all say the same are not pooled: their distribution stands as it is. The sum makes every option depend on the
    others, and can lift an option above what any seat gave it.

    Reference: Genest & Zidek 1986.

    Attributes:
        clip: Least distance of a probability from 0 and 1.

    Example:
        >>> made = LogarithmicPool()(probabilities=np.array([[0.8, 0.2], [0.5, 0.5]]), options=("x", "y"),
        ...                          seats=("a", "b"))
        >>> round(made.probabilities["x"], 6), made.clips
        (0.666667, 0)
    """

    name: ClassVar[str] = "logarithmic_pool"
    within_range: ClassVar[bool] = False
    marginal: ClassVar[bool] = False
    clip: float = 0.005

    def _combine(self, p: FloatArray) -> tuple[list[float], int]:
        if (p == p[0]).all():
            return p[0].tolist(), 0
        kept = np.clip(p, self.clip, 1.0 - self.clip)
        # math.log, as numpy's may differ in the last bit by position.
        means = [math.fsum(map(math.log, column)) / len(kept) for column in kept.T.tolist()]
        shares = [math.exp(mean - max(means)) for mean in means]
        total = math.fsum(shares)
        return [share / total for share in shares], int((kept != p).sum())


DISTRIBUTION_RULES: Final[Registry[DistributionRule]] = Registry(
    "distribution rule", (LinearPool(), LogarithmicPool()), group="consilience.distribution_rules"
)

DEFAULT_DISTRIBUTION_RULE: Final = "linear_pool"
"""The primary comparison, fixed beforehand."""
