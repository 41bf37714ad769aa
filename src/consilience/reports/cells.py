"""How the cells of result tables are written: numbers with the ends of their intervals, p-values, unknowns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from consilience.experiments.answers_judged import ChoiceResult, ProbabilityResult
from consilience.experiments.evaluation import ArmResult, Evaluation
from consilience.experiments.measures import Measure
from consilience.reports.tables import ABSENT, Record, Value, between, dollars, percent
from consilience.scoring.summaries import ClusteredShare

_LEAST_P: Final = 0.001


def measured(name: str, one: Measure | None) -> dict[str, Value]:
    """Return a number and the ends of its interval as three fields."""
    if one is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}


def shared(name: str, one: ClusteredShare | None) -> dict[str, Value]:
    """Return a share and the ends of its interval as three fields."""
    if one is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}


def number(value: Any) -> float | None:
    """Return a number, or None for what is undefined or unknown."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def p_value(value: Value) -> str:
    """Return a p-value, small ones as a bound.

    Example:
        >>> p_value(0.0341), p_value(0.0002), p_value(None)
        ('0.034', '<0.001', '–')
    """
    known = number(value)
    if known is None:
        return ABSENT
    return "<0.001" if known < _LEAST_P else f"{known:.3f}"


def ended(record: Record, name: str, shown: Callable[[float], str]) -> str:
    """Return a field of a record with the ends of its interval, which stand beside it under its name."""
    value = number(record[name])
    if value is None:
        return ABSENT
    low, high = (number(record[f"{name}_{end}"]) for end in ("low", "high"))
    ends = (None if end is None else shown(end) for end in (low, high))
    return between(shown(value), *ends)


def whole_percent(value: float) -> str:
    """Return a share in whole percent."""
    return percent(value, 0)


def hundredths(value: float) -> str:
    """Return a score times 100."""
    return f"{value * 100:.1f}".replace("-", "−")


def rounded(digits: int) -> Callable[[Value], str]:
    """Return what writes a number with so many digits."""

    def shown(value: Value) -> str:
        known = number(value)
        return ABSENT if known is None else f"{known:.{digits}f}".replace("-", "−")

    return shown


one_digit, two_digits, thousandths, ten_thousandths = (rounded(digits) for digits in (1, 2, 3, 4))


def unsigned(value: Value) -> str:
    """Return a difference of shares in percentage points, without a sign."""
    known = number(value)
    return ABSENT if known is None else f"{known * 100:.1f}"


def counted(value: Value) -> str:
    """Return a count, or a dash where there is none."""
    return ABSENT if value is None else f"{value:,}"


def money(value: Value) -> str:
    """Return dollars; what costs nothing is free."""
    known = number(value)
    return "free" if known == 0 else dollars(known)


def captioned(evaluation: Evaluation, text: str) -> str:
    """Return a caption that says so where all or some arms are simulated."""
    if evaluation.simulated:
        return f"Simulated. {text}"
    return f"Some arms are simulated. {text}" if partly_simulated(evaluation) else text


def partly_simulated(evaluation: Evaluation) -> bool:
    """Return whether some arms are simulated and others not."""
    return not evaluation.simulated and any(one.simulated for one in judged(evaluation))


def judged(evaluation: Evaluation) -> list[ArmResult | ProbabilityResult | ChoiceResult]:
    """Return the results of all arms, whatever they were asked."""
    return [
        *evaluation.overall.arms,
        *(() if evaluation.probabilities is None else evaluation.probabilities.results),
        *(() if evaluation.choices is None else evaluation.choices.results),
    ]
