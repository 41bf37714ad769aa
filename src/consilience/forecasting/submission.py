"""A forecast as Metaculus takes it: made of a trace and checked by the rules of the server."""

from __future__ import annotations

import re
from collections.abc import Sequence

from consilience.core.answers import Estimate
from consilience.errors import DataError
from consilience.forecasting.cdf import BuiltCdf, grid_of, panel_cdf
from consilience.forecasting.export import Submission, binary, continuous, multiple_choice
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.resolutions import SECONDS_PER_DAY
from consilience.forecasting.traces import AgentTrace, RunTrace

_NUMBERED = re.compile(r"metaculus-([1-9][0-9]{0,11})")


def question_number(question: ForecastQuestion) -> int:
    """Return the server's number of a question that its client brought.

    Raises:
        DataError: The question is from elsewhere.

    Example:
        >>> question_number(ForecastQuestion(id="metaculus-38880", text="Rain?", kind="binary"))
        38880
    """
    found = _NUMBERED.fullmatch(question.id)
    if found is None:
        raise DataError(
            f"question {question.id} is none of Metaculus", hint="Give its number there with --question NUMBER."
        )
    return int(found[1])


def panel_function(question: ForecastQuestion, agents: Sequence[AgentTrace]) -> BuiltCdf | None:
    """Return the panel's distribution function of a quantity: the members' quantiles, interpolated and averaged.

    None for other kinds of question, without a range, and without an answer.

    Raises:
        DataError: Quantiles fit no distribution function over the range.
    """
    said = [agent.answer.quantiles for agent in agents if isinstance(agent.answer, Estimate)]
    if not said or question.lower is None or question.upper is None:
        return None
    unit = SECONDS_PER_DAY if question.kind == "date" else 1
    return panel_cdf([[value * unit for value in quantiles] for quantiles in said], grid_of(question))


def submission_of(trace: RunTrace, *, number: int | None = None) -> Submission:
    """Return the forecast of a trace for Metaculus.

    Args:
        trace: Of one question.
        number: The question's number there; None reads it from the question's id.

    Raises:
        DataError: There is no forecast, it breaks a rule of the server, or nobody knows the question's number.
    """
    question, final = trace.question, trace.final
    at = question_number(question) if number is None else number
    if final is not None and final.probability is not None:
        return binary(at, final.probability)
    if final is not None and final.distribution is not None:
        return multiple_choice(at, final.distribution, question.options)
    made = panel_function(question, trace.agents)
    if made is None:
        raise DataError(
            f"the trace of question {question.id} holds no forecast that could be submitted",
            hint="A quantity needs a range (lower and upper) and at least one answer.",
        )
    return continuous(at, made)
