"""Answers in words, for a terminal or a notebook; whoever shows them escapes them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from consilience.api.result import Result
from consilience.core.answers import AnyAnswer, Choice, Distribution, Estimate
from consilience.core.question import Question


def amount(value: float, unit: str | None = None) -> str:
    """Return a number for reading, with its unit.

    Example:
        >>> amount(412345.6, "USD"), amount(0.123456)
        ('412,346 USD', '0.1235')
    """
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    return f"{text} {unit}" if unit else text


def percent(p: float) -> str:
    """Return a share for reading.

    Example:
        >>> percent(0.305), percent(0.0002), percent(1.0)
        ('30.5%', '0.02%', '100%')
    """
    return f"{100 * p:.3g}%"


def ballots(share: Fraction, n: int) -> str:
    """Return a share of n ballots as a count.

    Example:
        >>> ballots(Fraction(3, 5), 5)
        '3 of 5 ballots'
    """
    return f"{share * n} of {n} ballots"


def answer_text(question: Question, answer: AnyAnswer) -> str:
    """Return one member's answer in a line."""
    labels = {option.id: option.label for option in question.options}
    if isinstance(answer, Estimate):
        return f"{amount(answer.point)} [{amount(answer.q05)}, {amount(answer.q95)}]"
    if isinstance(answer, Distribution):
        return _listed({labels[option]: p for option, p in answer.as_dict().items()})
    if isinstance(answer, Choice):
        return f"{labels[answer.choice]} (confidence {percent(answer.confidence)})"
    return percent(answer.p_yes)


def _listed(shares: Mapping[str, float], most: int = 3) -> str:
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(f"{label} {percent(p)}" for label, p in ordered[:most]) + more


def headline(result: Result) -> str:
    """Return the panel's answer in a line; a tie is called a tie, and no answer is said to be none."""
    if result.row is None:
        return f"no answer: {result.why}"
    tally = result.tally
    if tally is not None:
        held = ballots(tally.agreement_share, tally.n)
        if tally.winner is None:
            return f"a tie between {' and '.join(result.tied)}, with {held} each: nobody won"
        return f"{result.choice}, with {held} (agreement share {percent(float(tally.agreement_share))})"
    if result.distribution is not None:
        return _listed(result.distribution)
    if result.probability is not None:
        return percent(result.probability)
    return amount(float(result.row.headline), result.question.unit)


def cost_text(result: Result) -> str:
    """Return what the answer cost, at list price."""
    if result.cost_usd is None:
        return "cost unknown"
    return f"${result.cost_usd:.4f} at list price{', simulated' if result.simulated else ''}"
