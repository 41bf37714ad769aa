"""A file of forecasts as the Metaculus server takes them, checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from pydantic import Field, JsonValue, model_validator

from consilience.core.question import Option, Strict
from consilience.errors import DataError
from consilience.experiments.storage import write_json
from consilience.forecasting.cdf import BuiltCdf
from consilience.forecasting.metaculus_rules import Problem, binary_problems, cdf_problems, option_problems

SCHEMA_VERSION: Final = 1


class Submission(Strict):
    """One forecast for the server: exactly one of three kinds.

    Attributes:
        question: The server's number of the question (not of the post that shows it).
        probability_yes: Of a binary question.
        probability_yes_per_category: Of a multiple-choice question, by the option's text as the server spells it.
        options: All options of that question as the server spells them; None for other kinds.
        cdf: Of a numeric, discrete or date question.

    Raises:
        ValueError: None or several of the three are given, or options are missing or superfluous.
    """

    question: int = Field(gt=0)
    probability_yes: float | None = None
    probability_yes_per_category: dict[str, float] | None = None
    options: tuple[str, ...] | None = None
    cdf: BuiltCdf | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = (self.probability_yes, self.probability_yes_per_category, self.cdf)
        if sum(value is not None for value in given) != 1:
            raise ValueError("a submission holds a probability, probabilities of options, or a distribution function")
        if (self.options is None) != (self.probability_yes_per_category is None):
            raise ValueError("options belong to the probabilities of options")
        return self

    def problems(self) -> tuple[Problem, ...]:
        """Return every rule of the server that it breaks; empty when it would be accepted."""
        if self.probability_yes is not None:
            return binary_problems(self.probability_yes)
        if self.probability_yes_per_category is not None:
            return option_problems(self.probability_yes_per_category, self.options or ())
        if self.cdf is None:
            return ()
        grid = self.cdf.grid
        return cdf_problems(self.cdf.values, open_lower=grid.open_lower, open_upper=grid.open_upper, steps=grid.steps)

    def payload(self) -> dict[str, JsonValue]:
        """Return the object that the server's endpoint for forecasts takes; what does not apply is null."""
        options = self.probability_yes_per_category
        return {
            "question": self.question,
            "source": "api",
            "probability_yes": self.probability_yes,
            "probability_yes_per_category": None if options is None else dict(options),
            "continuous_cdf": None if self.cdf is None else list(self.cdf.values),
        }


def binary(question: int, p_yes: float) -> Submission:
    """Return the submission of a probability of yes.

    Example:
        >>> binary(578, 0.3).payload()["probability_yes"]
        0.3
    """
    return Submission(question=question, probability_yes=p_yes)


def multiple_choice(question: int, probabilities: Mapping[str, float], options: Sequence[Option]) -> Submission:
    """Return the submission of probabilities by option id; the server knows options by their labels.

    Raises:
        DataError: A probability is given for an id that no option has, or two options share a label.

    Example:
        >>> colours = [Option(id="r", label="Red"), Option(id="b", label="Blue")]
        >>> multiple_choice(22427, {"r": 0.25, "b": 0.75}, colours).probability_yes_per_category
        {'Red': 0.25, 'Blue': 0.75}
    """
    labels = {option.id: option.label for option in options}
    unknown = [name for name in probabilities if name not in labels]
    if unknown or len(set(labels.values())) != len(options):
        raise DataError(
            f"question {question}: " + (f"no option has the id {unknown}" if unknown else "two options share a label"),
            hint="Give one probability per option id; the server tells options by their labels.",
        )
    named = {labels[name]: p for name, p in probabilities.items()}
    return Submission(question=question, probability_yes_per_category=named, options=tuple(labels.values()))


def continuous(question: int, cdf: BuiltCdf) -> Submission:
    """Return the submission of a distribution function, of a numeric, discrete or date question.

    Example:
        >>> from consilience.forecasting.cdf import Grid, panel_cdf
        >>> ends = Grid(lower=0, upper=10, open_lower=False, open_upper=True)
        >>> continuous(14333, panel_cdf([[1, 3, 5, 7, 9]], ends)).problems()
        ()
    """
    return Submission(question=question, cdf=cdf)


def metaculus_export(submissions: Sequence[Submission]) -> dict[str, JsonValue]:
    """Return the content of an export: ``forecasts`` as the server takes them, ``adjustments`` by question.

    Raises:
        DataError: Any submission breaks a rule, or a question is answered twice; every problem is named.

    Example:
        >>> made = metaculus_export([binary(578, 0.3)])
        >>> made["schema_version"], len(made["forecasts"]), made["adjustments"]
        (1, 1, {})
        >>> metaculus_export([binary(578, 1.0), binary(579, 0.0)])
        Traceback (most recent call last):
            ...
        consilience.errors.DataError: 2 problems in 2 forecasts: question 578: binary_range (1.0 is not within ...
    """
    found = [
        f"question {made.question}: {problem.rule} ({_told(problem)})"
        for made in submissions
        for problem in made.problems()
    ]
    numbers = [made.question for made in submissions]
    found += [
        f"question {number}: answered {numbers.count(number)} times"
        for number in dict.fromkeys(numbers)
        if numbers.count(number) > 1
    ]
    if found:
        raise DataError(
            f"{len(found)} problems in {len(submissions)} forecasts: {'; '.join(found)}",
            hint="Nothing was written. Mend or leave out these forecasts; values are not moved into range here.",
        )
    adjustments: dict[str, JsonValue] = {
        str(made.question): [change.model_dump(mode="json") for change in made.cdf.adjustments]
        for made in submissions
        if made.cdf is not None and made.cdf.adjustments
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "target": "metaculus",
        "forecasts": [made.payload() for made in submissions],
        "adjustments": adjustments,
    }


def write_export(submissions: Sequence[Submission], path: Path) -> str:
    """Write an export, whole or not at all, and return the SHA-256 of the file.

    Raises:
        DataError: As `metaculus_export`, or the folder cannot be written.
    """
    return write_json(path, metaculus_export(submissions))


def _told(problem: Problem) -> str:
    where = "" if not problem.where else f"; at {', '.join(map(repr, problem.where))}"
    return problem.message + where
