"""The rules by which the Metaculus server accepts a forecast, as a pure check that names every problem.

It changes nothing and shares no code with what builds distributions, so that it can find that one wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

DEFAULT_STEPS: Final = 200
MIN_PROBABILITY: Final = 0.001
MAX_PROBABILITY: Final = 0.999
DECIMALS: Final = 10
SUM_TOLERANCE: Final = 1e-9
"""Rounding of a sum of options, and no more: the server itself is wider, so nothing accepted here is refused there."""

Rule = Literal[
    "cdf_length",
    "cdf_finite",
    "cdf_decimals",
    "cdf_step_too_small",
    "cdf_step_too_large",
    "cdf_open_lower",
    "cdf_closed_lower",
    "cdf_open_upper",
    "cdf_closed_upper",
    "binary_range",
    "option_range",
    "options_sum",
    "options_unknown",
    "options_missing",
    "options_repeated",
]


@dataclass(frozen=True)
class Problem:
    """One rule that is broken.

    Attributes:
        rule: Its name.
        message: What was found and what is asked for.
        where: Positions of a CDF (of a step: its left end) or names of options, all of them; empty for a whole.
    """

    rule: Rule
    message: str
    where: tuple[int | str, ...] = ()


def smallest_step(steps: int) -> float:
    """Return the least rise between neighbours of a CDF of ``steps`` steps, ``round(.01 / N, 9)``.

    Example:
        >>> smallest_step(200), smallest_step(3)
        (5e-05, 0.003333333)
    """
    return round(0.01 / steps, 9)


def largest_step(steps: int) -> float:
    """Return the largest rise between neighbours of a CDF of ``steps`` steps, ``.2 * 200 / N``; over 1 it binds nobody.

    Example:
        >>> largest_step(200), largest_step(10)
        (0.2, 4.0)
    """
    return 0.2 * DEFAULT_STEPS / steps


def cdf_problems(
    values: Sequence[float], *, open_lower: bool, open_upper: bool, steps: int = DEFAULT_STEPS
) -> tuple[Problem, ...]:
    """Return what the server would refuse in a continuous or discrete forecast; empty when it is accepted.

    Args:
        values: The CDF at the N + 1 points of the question's grid.
        open_lower: Whether values below the lower bound are possible.
        open_upper: Whether values above the upper bound are possible.
        steps: N.

    Degenerate: with another length or a value that is no number nothing else can be told, so that alone is.

    Example:
        >>> cdf_problems([0.0, 0.5, 1.0], open_lower=False, open_upper=False, steps=2)
        ()
        >>> [p.rule for p in cdf_problems([0.0, 0.5, 1.0], open_lower=True, open_upper=True, steps=2)]
        ['cdf_open_lower', 'cdf_open_upper']
    """
    found: list[Problem] = []
    if len(values) != steps + 1:
        found.append(Problem("cdf_length", f"{len(values)} values where {steps} steps take {steps + 1}"))
    odd = tuple(i for i, value in enumerate(values) if not math.isfinite(value))
    if odd:
        found.append(Problem("cdf_finite", f"{len(odd)} values are no finite numbers", odd))
    if found:
        return tuple(found)
    long = tuple(i for i, value in enumerate(values) if value != round(value, DECIMALS))
    if long:
        found.append(Problem("cdf_decimals", f"{len(long)} values have more than {DECIMALS} decimals", long))
    return (*found, *_step_problems(values, steps), *_end_problems(values, open_lower, open_upper))


def _step_problems(values: Sequence[float], steps: int) -> list[Problem]:
    rises = [round(high - low, DECIMALS) for low, high in pairwise(values)]
    least, most = smallest_step(steps), largest_step(steps)
    small = tuple(i for i, rise in enumerate(rises) if rise < least)
    large = tuple(i for i, rise in enumerate(rises) if rise > most)
    found = []
    if small:
        message = f"{len(small)} steps rise by less than {least:.9f}, the least by {min(rises)}"
        found.append(Problem("cdf_step_too_small", message, small))
    if large:
        message = f"{len(large)} steps rise by more than {most:g}, the steepest by {max(rises)}"
        found.append(Problem("cdf_step_too_large", message, large))
    return found


def _end_problems(values: Sequence[float], open_lower: bool, open_upper: bool) -> list[Problem]:
    first, last, end = values[0], values[-1], len(values) - 1
    found = []
    if open_lower and first < MIN_PROBABILITY:
        message = f"an open lower end begins at {MIN_PROBABILITY} or more, not at {first}"
        found.append(Problem("cdf_open_lower", message, (0,)))
    if not open_lower and first != 0:
        found.append(Problem("cdf_closed_lower", f"a closed lower end begins at exactly 0, not at {first}", (0,)))
    if open_upper and last > MAX_PROBABILITY:
        message = f"an open upper end stops at {MAX_PROBABILITY} or less, not at {last}"
        found.append(Problem("cdf_open_upper", message, (end,)))
    if not open_upper and last != 1:
        found.append(Problem("cdf_closed_upper", f"a closed upper end stops at exactly 1, not at {last}", (end,)))
    return found


def binary_problems(p_yes: float) -> tuple[Problem, ...]:
    """Return what the server would refuse in the probability of yes, which lies in [.001, .999].

    Example:
        >>> binary_problems(0.001), binary_problems(1.0)[0].rule
        ((), 'binary_range')
    """
    if MIN_PROBABILITY <= p_yes <= MAX_PROBABILITY:
        return ()
    return (Problem("binary_range", f"{p_yes} is not within {MIN_PROBABILITY} and {MAX_PROBABILITY}"),)


def option_problems(probabilities: Mapping[str, float], options: Sequence[str]) -> tuple[Problem, ...]:
    """Return what the server would refuse in a forecast over options.

    Args:
        probabilities: One per option, each in [.001, .999], together 1.
        options: The question's options as the server spells them.

    Example:
        >>> option_problems({"red": 0.25, "blue": 0.75}, ["red", "blue"])
        ()
        >>> [p.rule for p in option_problems({"red": 0.9}, ["red", "blue"])]
        ['options_missing', 'options_sum']
    """
    found: list[Problem] = []
    repeated = tuple(name for name, times in Counter(options).items() if times > 1)
    unknown = tuple(name for name in probabilities if name not in options)
    missing = tuple(name for name in dict.fromkeys(options) if name not in probabilities)
    if repeated:
        found.append(Problem("options_repeated", "options share a name, which is how the server tells them", repeated))
    if unknown:
        found.append(Problem("options_unknown", "the question has no such options", unknown))
    if missing:
        found.append(Problem("options_missing", "options have no probability", missing))
    outside = tuple(name for name, p in probabilities.items() if not MIN_PROBABILITY <= p <= MAX_PROBABILITY)
    if outside:
        message = f"{len(outside)} probabilities are not within {MIN_PROBABILITY} and {MAX_PROBABILITY}"
        found.append(Problem("option_range", message, outside))
    total = sum(probabilities.values())  # not fsum, which refuses infinities: those are told, not raised
    if not abs(total - 1) <= SUM_TOLERANCE:
        found.append(Problem("options_sum", f"the probabilities sum to {total:.10g}, not to 1"))
    return tuple(found)
