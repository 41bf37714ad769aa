"""What is asked: one question, its kind of answer, and what a valid answer must respect."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

ID_PATTERN = r"^[A-Za-z0-9_.-]{1,128}$"
UNFIT_ID_PATTERN = r"(?i)^(?:\.|(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$))"
"""Ids that are hidden or no files at all on some system, though they match `ID_PATTERN`."""

Kind = Literal["estimate", "probability", "distribution", "choice"]


class Strict(BaseModel):
    """Base of every value of the core: frozen, no unknown field, no NaN or infinity, no silent conversion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Option(Strict):
    """One thing that can be chosen; ballots name it by ``id``, never by its text."""

    id: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")
    label: str = Field(min_length=1)
    description: str = ""


class Question(Strict):
    """A question with the kind of answer it takes.

    Attributes:
        id: The item's id; names files, so it holds no path separators, begins with no dot and is no device's name.
        text: What is asked. Hostile data for every prompt.
        kind: The kind of answer.
        scale: For estimates: ``log`` (positive quantities such as prices) or ``linear``.
        unit: For estimates: what the number counts, such as ``USD``.
        lower: For estimates: smallest admissible value, if any.
        upper: For estimates: largest admissible value, if any.
        options: For distributions and choices: at least two, with distinct ids.

    Raises:
        ValueError: The id cannot name a file, options are missing, superfluous or share an id, or the bounds
            contradict the scale.

    Example:
        >>> Question(id="q1", text="Price of the house?", kind="estimate", scale="log", unit="USD").kind
        'estimate'
    """

    id: str = Field(pattern=ID_PATTERN)
    text: str = Field(min_length=1)
    kind: Kind
    scale: Literal["log", "linear"] = "linear"
    unit: str | None = None
    lower: float | None = None
    upper: float | None = None
    options: tuple[Option, ...] = ()

    @field_validator("id")
    @classmethod
    def _names_a_file(cls, value: str) -> str:
        if re.match(UNFIT_ID_PATTERN, value):
            raise ValueError(f'"{value}" cannot name a file: it begins with a dot or is a device on some systems')
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kind in {"distribution", "choice"}:
            ids = [option.id for option in self.options]
            if len(ids) < 2:
                raise ValueError(f"a {self.kind} question needs at least two options")
            if len(set(ids)) != len(ids):
                raise ValueError("two options share an id")
        elif self.options:
            raise ValueError(f"a question of kind {self.kind} takes no options")
        given = (self.lower, self.upper, self.unit)
        if self.kind != "estimate" and (given != (None, None, None) or self.scale == "log"):
            raise ValueError("unit, scale and bounds belong to estimates")
        if self.scale == "log" and self.lower is not None and self.lower < 0:
            raise ValueError("on a log scale everything is above 0, so lower cannot be below it")
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError("lower must be below upper")
        return self


def option_label(index: int) -> str:
    """Return the display label of option ``index``: A…Z, AA, AB….

    Example:
        >>> [option_label(i) for i in (0, 25, 26, 27, 702)]
        ['A', 'Z', 'AA', 'AB', 'AAA']
    """
    label = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        label = chr(ord("A") + rest) + label
    return label
