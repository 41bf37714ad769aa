"""Forecast questions: what is asked, what is known of it, until when one may look, and how it turned out."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator
from datetime import date, datetime
from itertools import pairwise
from typing import Any, Literal, Self, get_args

from pydantic import AwareDatetime, Field, ValidationInfo, field_validator, model_validator

from consilience.core.question import ID_PATTERN, Option, Question, Strict
from consilience.errors import ConfigError, PlanError
from consilience.forecasting.resolutions import QuestionKind, Resolution, instant, midnight, settled
from consilience.registry import nearest

__all__ = [
    "ForecastQuestion",
    "MarketPrice",
    "QuestionKind",
    "Refusal",
    "Resolution",
    "Target",
    "check_askable",
    "question_id",
]

MOST_OUTCOMES = 10_000
"""Values of a discrete question within its range, and steps of a grid."""
LONGEST_ID = 117
"""With a dot and a date behind it, an id is as long as an item's id may be."""
LONGEST_TEXT = 100_000
"""Letters of each text of a question, which every agent reads in every step."""

Refusal = Literal["cutoff_after_resolution", "outcome_known", "outcome_undated"]
"""Why a question is not asked unless a run allows it by this name."""


class MarketPrice(Strict):
    """What a market or crowd said; it reaches an agent only when the run says so.

    Attributes:
        price: Probability of yes, from 0 to 1.
        source: The market or crowd.
        as_of: When it was so; None where nobody knows.
    """

    price: float = Field(ge=0, le=1)
    source: str
    as_of: AwareDatetime | None = None


class Target(Strict):
    """One horizon of a question that is asked for several days.

    Attributes:
        resolution_date: The day.
        resolution: How it turned out then; None where it has not, or nobody says.
    """

    resolution_date: date
    resolution: Resolution | None = None


def question_id(text: str) -> str:
    """Return the id of a question that has none: the first 16 hex digits of SHA-256 of its exact text in UTF-8.

    Example:
        >>> question_id("Will the Federal Reserve cut rates at the March 2025 FOMC meeting?")
        '97b979efabb36bda'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _id_of(fields: dict[str, Any]) -> str:
    """Return the default id; a text that is refused itself is not in the fields."""
    return question_id(fields.get("text", ""))


class ForecastQuestion(Strict):
    """A question about the future. Its texts are hostile data.

    Attributes:
        id: Names files; the first 16 hex digits of SHA-256 of the exact text where none is given.
        text: What is asked.
        description: Background.
        resolution_criteria: What decides.
        kind: Of answer.
        options: Of a multiple-choice question; at least two.
        unit: What the number of a numeric or discrete question counts.
        lower: Lower end of the range; of a date question in seconds since 1970-01-01 UTC, as all numbers of one.
        upper: Its upper end.
        open_lower: The outcome may lie below the lower end.
        open_upper: It may lie above the upper end.
        zero_point: Where the logarithmic scale of the range has its zero, outside of the range; None: linear.
        inbound_outcomes: How many values of a discrete question lie within its range.
        open_date: The first day it could be answered.
        close_date: The last.
        resolution_date: The day it is due to be resolved. Agents are shown it, so it is never the day on which it
            happened to be (an early end tells the outcome): that is the resolution's ``known_on``.
        cutoff: The first instant whose news is inadmissible; a bare date is 00:00 UTC. None: an open question.
        market: The price of a yes-no question.
        url: Its own page, which is never evidence.
        blocked_domains: Hosts that are no sources for it.
        family: What questions like it have in common, such as the source they are made from.
        resolution: How it turned out.
        targets: Several days it is asked for, in order; each has its own resolution.

    Raises:
        ValueError: Fields contradict each other or the kind.

    Example:
        >>> asked = ForecastQuestion(text="Will NVIDIA beat Q4 FY2025 earnings expectations?", kind="binary",
        ...                          cutoff="2025-02-20", resolution=Resolution(outcome="N/A", source="desk"))
        >>> asked.id, asked.cutoff.isoformat(), asked.resolution.outcome
        ('68862de4f4eeae57', '2025-02-20T00:00:00+00:00', None)
    """

    text: str = Field(min_length=1, max_length=LONGEST_TEXT)
    id: str = Field(default_factory=_id_of, pattern=ID_PATTERN, max_length=LONGEST_ID)
    description: str = Field(default="", max_length=LONGEST_TEXT)
    resolution_criteria: str = Field(default="", max_length=LONGEST_TEXT)
    kind: QuestionKind
    options: tuple[Option, ...] = ()
    unit: str | None = None
    lower: float | None = None
    upper: float | None = None
    open_lower: bool = False
    open_upper: bool = False
    zero_point: float | None = None
    inbound_outcomes: int | None = Field(default=None, ge=1, le=MOST_OUTCOMES)
    open_date: date | None = None
    close_date: date | None = None
    resolution_date: date | None = None
    cutoff: AwareDatetime | None = None
    market: MarketPrice | None = None
    url: str | None = None
    blocked_domains: tuple[str, ...] = ()
    family: str | None = None
    resolution: Resolution | None = None
    targets: tuple[Target, ...] = ()

    @field_validator("text")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if all(one.isspace() or unicodedata.category(one).startswith("C") for one in value):
            raise ValueError("the text says nothing")
        return value

    @field_validator("id")
    @classmethod
    def _names_a_file(cls, value: str) -> str:
        Question.model_validate({"id": value, "text": "?", "kind": "probability"})
        return value

    @field_validator("cutoff", mode="before")
    @classmethod
    def _atmidnight(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = instant(value)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = midnight(value)
        if isinstance(value, datetime) and value.tzinfo is not None and not 1 < value.year < date.max.year:
            raise ValueError(f"{value.isoformat()} is no cutoff: the years 2 to 9998 are")
        return value

    @field_validator("resolution")
    @classmethod
    def _settled(cls, value: Resolution | None, info: ValidationInfo) -> Resolution | None:
        if value is None or "kind" not in info.data:
            return value
        return settled(value, kind=info.data["kind"], options=info.data.get("options", ()))

    @field_validator("targets")
    @classmethod
    def _each_settled(cls, value: tuple[Target, ...], info: ValidationInfo) -> tuple[Target, ...]:
        if "kind" not in info.data:
            return value
        kind, options = info.data["kind"], info.data.get("options", ())
        return tuple(
            target
            if target.resolution is None
            else Target(
                resolution_date=target.resolution_date,
                resolution=settled(target.resolution, kind=kind, options=options),
            )
            for target in value
        )

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        ranged = self.kind in {"numeric", "discrete", "date"}
        if self.kind == "multiple_choice":
            ids = [option.id for option in self.options]
            if len(ids) < 2 or len(set(ids)) != len(ids):
                raise ValueError("a multiple-choice question needs at least two options with ids of their own")
            labels = {" ".join(option.label.split()) for option in self.options}
            if len(labels) != len(ids):
                raise ValueError("two options have one label, so no answer could tell them apart")
        elif self.options:
            raise ValueError(f"a {self.kind} question takes no options")
        numbers = (self.unit, self.lower, self.upper, self.zero_point)
        if not ranged and (numbers != (None,) * 4 or self.open_lower or self.open_upper):
            raise ValueError("unit, range and zero point belong to numeric, discrete and date questions")
        if self.inbound_outcomes is not None and self.kind != "discrete":
            raise ValueError("only a discrete question has a number of values within its range")
        if self.market is not None and self.kind != "binary":
            raise ValueError("a market price is of a yes-no question")
        return self

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError("lower must be below upper")
        zero = self.zero_point
        if zero is not None:
            if self.lower is None or self.upper is None:
                raise ValueError("a zero point needs both ends of the range")
            if self.lower <= zero <= self.upper:
                raise ValueError("the zero point lies outside of the range")
        days = [target.resolution_date for target in self.targets]
        if any(later <= earlier for earlier, later in pairwise(days)):
            raise ValueError("targets stand in the order of their days, each day once")
        if days and self.resolution is not None:
            raise ValueError("a question with targets is resolved target by target")
        for _, resolution in self.horizons():
            if resolution is not None and isinstance(resolution.outcome, float):
                self._within(resolution.outcome)
        return self

    @model_validator(mode="after")
    def _opens_closes_and_resolves(self) -> Self:
        if self.open_date is not None and self.close_date is not None and self.close_date < self.open_date:
            raise ValueError("it closes before it opens")
        close, due = self.close_date, self.resolution_date
        if close is not None and due is not None and due < close:
            raise ValueError(f"it is resolved on {due}, before it closes on {close}")
        return self

    def _within(self, outcome: float) -> None:
        below = self.lower is not None and not self.open_lower and outcome < self.lower
        above = self.upper is not None and not self.open_upper and outcome > self.upper
        if below or above:
            raise ValueError(f"the outcome {outcome:g} lies beyond a closed end of the range")

    def horizons(self) -> Iterator[tuple[date | None, Resolution | None]]:
        """Yield the day and the resolution of every target, or the question's own where it has none."""
        if not self.targets:
            yield self.resolution_date, self.resolution
        for target in self.targets:
            yield target.resolution_date, target.resolution

    @property
    def log_scale(self) -> bool:
        """Whether its item's scale is log: a zero point of at least 0 below the range, so that all of it is positive.

        A zero point elsewhere makes a scale that is logarithmic in the distance from it, which the engine has not;
        such a question is asked on the linear scale, and its zero point serves its cumulative distribution only.
        """
        zero, low = self.zero_point, self.lower
        return self.kind != "date" and zero is not None and low is not None and 0 <= zero < low


def check_askable(question: ForecastQuestion, *, allow: frozenset[str] = frozenset()) -> None:
    """Pass in silence if asking the question forecasts something.

    Refused, each unless allowed by its name: ``cutoff_after_resolution`` (a horizon begins, at 00:00 UTC, before the
    cutoff), ``outcome_known`` (it was resolved on a day that begins before the cutoff, or is resolved while the
    question is open), ``outcome_undated`` (it is resolved, but neither the day it was known nor that of its resolution
    is given, so nobody can say that it was not known).

    Raises:
        PlanError: It is refused; the message names question and reason.
        ConfigError: A name to allow is none of these.

    Example:
        >>> late = ForecastQuestion(text="Rain?", kind="binary", cutoff="2025-03-02", resolution_date=date(2025, 3, 1))
        >>> check_askable(late)
        Traceback (most recent call last):
            ...
        consilience.errors.PlanError: question b34366a138cbe122: the cutoff 2025-03-02T00:00:00+00:00 is after its...
        >>> check_askable(late, allow=frozenset({"cutoff_after_resolution"}))
    """
    known: tuple[Refusal, ...] = get_args(Refusal)
    for name in sorted(allow.difference(known)):
        raise ConfigError(f'nothing is refused as "{name}"', hint=nearest(name, known))
    for day, resolution in question.horizons():
        for name, problem in _refusals(question.cutoff, day, resolution):
            if name not in allow:
                raise PlanError(
                    f"question {question.id}: {problem}",
                    hint=f'Mend the dates, leave the question out, or allow "{name}" by name.',
                )


def _refusals(
    cutoff: datetime | None, day: date | None, resolution: Resolution | None
) -> Iterator[tuple[Refusal, str]]:
    if cutoff is not None and day is not None and midnight(day) < cutoff:
        yield "cutoff_after_resolution", f"the cutoff {cutoff.isoformat()} is after its resolution on {day}"
    if resolution is None:
        return
    if cutoff is None:
        if resolution.outcome is not None:
            yield "outcome_known", "it is an open question (no cutoff), but its outcome is known already"
    elif resolution.known_on is not None:
        if midnight(resolution.known_on) < cutoff:
            yield (
                "outcome_known",
                f"its outcome was known on {resolution.known_on}, before the cutoff {cutoff.isoformat()}",
            )
    elif day is None and resolution.outcome is not None:
        yield "outcome_undated", "it is resolved, but no date tells that it was not at the cutoff"
