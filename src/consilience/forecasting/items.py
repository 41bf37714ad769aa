"""What the engine is asked of a forecast question: items with their packet, in which no market price stands unasked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

from pydantic import JsonValue, ValidationError

from consilience.core.packet import EvidenceItem, Item, Packet, Section
from consilience.core.question import Kind, Question
from consilience.errors import DataError, LeakError, reason
from consilience.forecasting.questions import ForecastQuestion, MarketPrice
from consilience.forecasting.resolutions import SECONDS_PER_DAY, QuestionKind, Resolution, midnight

DAY_UNIT = "days since 1970-01-01 UTC"
"""What the number of a date question counts in its item; the question itself keeps seconds."""
NO_CUTOFF = date.max
"""The cutoff day of the packet of an open question: nothing is excluded."""

CORE_KINDS: Final[Mapping[QuestionKind, Kind]] = {
    "binary": "probability",
    "multiple_choice": "distribution",
    "numeric": "estimate",
    "discrete": "estimate",
    "date": "estimate",
}
"""The kind of answer that each kind of question is given."""


def items_of(question: ForecastQuestion, *, show_market: bool = False) -> tuple[Item, ...]:
    """Return what the engine asks: one item, or one per target.

    Yes-no questions become probabilities, multiple choice a distribution, numeric, discrete and date questions
    estimates, with bounds where an end is closed. The number of a date question counts days (`DAY_UNIT`). An item of a
    target has the question's id, a dot and the day as its id and the question as its cluster. The packet holds section
    Q: Q1 description, Q2 resolution criteria, Q3 dates, Q4 range, and Q5, the market's price, only when asked for. The
    question's own texts name later days (when it resolves), so they are declared a snapshot.

    Args:
        question: The question.
        show_market: Show the market's price, labelled.

    Raises:
        LeakError: The price is to be shown, but is undated or not from before the cutoff.
        DataError: The question makes no item, such as an outcome below 0 on a logarithmic scale.

    Example:
        >>> item, = items_of(ForecastQuestion(text="Will it rain?", kind="binary", cutoff="2025-03-01T12:00Z",
        ...                                   resolution=Resolution(outcome=1.0, source="desk")))
        >>> item.question.kind, item.truth, item.packet.cutoff.isoformat(), item.packet.notes
        ('probability', 1.0, '2025-03-02', ('No news from 2025-03-01T12:00:00+00:00 on is admissible.',))
    """
    evidence = _evidence(question)
    if show_market and question.market is not None:
        evidence = (*evidence, _priced(question, question.market))
    cutoff, notes = _packet_cutoff(question.cutoff)
    sections = {"Q": Section(code="Q", title="The question as published", items=evidence)}
    strata = {"kind": str(question.kind)} | ({} if question.family is None else {"family": question.family})
    items = []
    try:
        for day, resolution in question.horizons():
            item_id = f"{question.id}.{day}" if question.targets else question.id
            packet = Packet(
                item_id=item_id,
                valuation_date=day,
                cutoff=cutoff,
                cutoff_rule="first_inadmissible",
                sections=sections,
                notes=notes,
            )
            asked = _asked(question, item_id, day if question.targets else None)
            truth = _truth(question, resolution)
            items.append(Item(question=asked, packet=packet, truth=truth, strata=strata, cluster=question.id))
    except ValidationError as error:
        raise DataError(f"question {question.id}: {reason(error)}", hint="Mend the question.") from error
    return tuple(items)


def _asked(question: ForecastQuestion, item_id: str, day: date | None) -> Question:
    kind = CORE_KINDS[question.kind]
    text = question.text if day is None else f"{question.text}\n\nResolution date: {day}"
    if kind != "estimate":
        return Question(id=item_id, text=text, kind=kind, options=question.options)
    dated = question.kind == "date"
    ends = (None if question.open_lower else question.lower, None if question.open_upper else question.upper)
    lower, upper = (end / SECONDS_PER_DAY if dated and end is not None else end for end in ends)
    scale: Literal["log", "linear"] = "log" if question.log_scale else "linear"
    unit = DAY_UNIT if dated else question.unit
    return Question(id=item_id, text=text, kind=kind, scale=scale, unit=unit, lower=lower, upper=upper)


def _truth(question: ForecastQuestion, resolution: Resolution | None) -> float | str | None:
    outcome = None if resolution is None else resolution.outcome
    return outcome / SECONDS_PER_DAY if question.kind == "date" and isinstance(outcome, float) else outcome


def _packet_cutoff(cutoff: datetime | None) -> tuple[date, tuple[str, ...]]:
    """Return the packet's cutoff day, and what must be said where a day is too coarse."""
    if cutoff is None:
        return NO_CUTOFF, ("This is an open question: there is no information cutoff.",)
    exact = cutoff.astimezone(UTC)
    if exact == midnight(exact.date()):
        return exact.date(), ()
    return exact.date() + timedelta(days=1), (f"No news from {exact.isoformat()} on is admissible.",)


def _evidence(question: ForecastQuestion) -> tuple[EvidenceItem, ...]:
    days = {"opens": question.open_date, "closes": question.close_date, "resolves": question.resolution_date}
    contents: dict[str, dict[str, JsonValue]] = {
        "Q1": {"description": question.description} if question.description else {},
        "Q2": {"resolution_criteria": question.resolution_criteria} if question.resolution_criteria else {},
        "Q3": {name: day.isoformat() for name, day in days.items() if day is not None},
        "Q4": _range(question),
    }
    return tuple(
        EvidenceItem(id=evidence_id, snapshot=True, content=content)
        for evidence_id, content in contents.items()
        if content
    )


def _range(question: ForecastQuestion) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = {}
    for name, end, is_open in (
        ("lower", question.lower, question.open_lower),
        ("upper", question.upper, question.open_upper),
    ):
        if end is not None:
            shown[f"range_{name}"] = end / SECONDS_PER_DAY if question.kind == "date" else end
            shown[f"beyond_{name}_possible"] = is_open
    return shown


def _priced(question: ForecastQuestion, market: MarketPrice) -> EvidenceItem:
    if question.cutoff is not None and (market.as_of is None or market.as_of >= question.cutoff):
        when = "has no date" if market.as_of is None else f"is of {market.as_of.isoformat()}"
        raise LeakError(
            f"question {question.id}: the market price {when}, but the cutoff is {question.cutoff.isoformat()}",
            hint="Show a price from before the cutoff, with its date, or none.",
        )
    as_of = None if market.as_of is None else market.as_of.astimezone(UTC).date()
    return EvidenceItem(id="Q5", as_of=as_of, content={"market_price_of_yes": market.price, "market": market.source})
