"""Rules for probabilities of yes: many seats' become one, and the record says how.

Probabilities of 0 and 1 stay as given; a rule that must clip counts the clips.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from consilience.aggregation.location import FloatArray
from consilience.aggregation.numbers import Aggregate
from consilience.aggregation.seating import seat_order
from consilience.errors import DataError
from consilience.registry import Registry


class ProbabilityRule(ABC):
    """A rule that turns the probabilities of the seats that answered into one.

    The declared properties are checked by the tests over the registry, and what is declared False is refuted there.

    Attributes:
        kinds: Answer kinds the rule serves.
        order_invariant: The order of the seats changes no bit of the result.
        unanimity: Equal probabilities give that probability.
        within_range: The value lies between the smallest and the largest.
        complementary: The rule of the probabilities of no is one minus the rule of those of yes (up to rounding).
    """

    kinds: ClassVar[tuple[str, ...]] = ("probability",)
    order_invariant: ClassVar[bool] = True
    unanimity: ClassVar[bool] = True
    within_range: ClassVar[bool] = True
    complementary: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and in every prediction row."""

    @abstractmethod
    def _combine(self, p: FloatArray) -> tuple[float, FloatArray, tuple[str, ...]]:
        """Return value, weights and flags of two or more probabilities, in order of seat id."""

    def __call__(self, *, probabilities: FloatArray, seats: tuple[str, ...]) -> Aggregate:
        """Return the aggregate of the seats that answered; a single seat's is its own, flagged ``single_agent``.

        Args:
            probabilities: One per seat, each in [0, 1], shape (n,). An abstaining seat is absent.
            seats: Distinct seat ids.

        Raises:
            QuorumError: No seat answered.
            DataError: Shapes or ids do not fit, or a number is no probability.
        """
        order = seat_order(rule=self.name, seats=seats, answers=len(probabilities))
        if probabilities.shape != (len(seats),) or not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise DataError(
                f"no probabilities in [0, 1], one per seat: {probabilities.tolist()}",
                hint="Reject them where answers are read; a seat without a valid answer is absent.",
            )
        names = tuple(seats[i] for i in order)
        p = probabilities[order].astype(np.float64)
        if len(names) == 1:
            return Aggregate(value=float(p[0]), weights={names[0]: 1.0}, flags=("single_agent",), n=1)
        value, shares, flags = self._combine(p)
        return Aggregate(value=value, weights=dict(zip(names, shares.tolist(), strict=True)), flags=flags, n=len(names))


@dataclass(frozen=True)
class MedianProbability(ProbabilityRule):
    """The middle probability; of two middle ones their mean.

    Example:
        >>> rule = MedianProbability()
        >>> rule(probabilities=np.array([0.1, 0.2, 0.9]), seats=("a", "b", "c")).value
        0.2
    """

    name: ClassVar[str] = "median"

    def _combine(self, p: FloatArray) -> tuple[float, FloatArray, tuple[str, ...]]:
        order = np.argsort(p, kind="stable")
        middle = order[(p.size - 1) // 2 : p.size // 2 + 1]
        shares = np.zeros(p.size)
        shares[middle] = 1.0 / middle.size
        return math.fsum(p[middle]) / middle.size, shares, ()


PROBABILITY_RULES: Final[Registry[ProbabilityRule]] = Registry(
    "probability rule", (MedianProbability(),), group="consilience.probability_rules"
)

DEFAULT_PROBABILITY_RULE: Final = "median"
"""The primary comparison, fixed beforehand."""
