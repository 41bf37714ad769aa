"""The four kinds of answer, what members say about each other, and abstention.

All are frozen and validate on construction. Rules that need the question (bounds, options) are in
`consilience.core.contracts`, which reads replies.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from consilience.core.question import Strict

LEVELS = (0.05, 0.25, 0.50, 0.75, 0.95)
MAX_SUMMARY_WORDS = 120


class Quote(Strict):
    """A passage taken word for word from one evidence item."""

    evidence_id: str
    text: str


class Adjustment(Strict):
    """What one comparable says about the subject after a stated adjustment."""

    evidence_id: str
    adjusted_value: float
    reason: str


class Answer(Strict):
    """What every answer carries.

    Attributes:
        evidence_ids: Only what was relied on.
        reasoning_summary: At most 120 words.
        counterarguments: The best case against the answer.
        missing_data: What would have helped and is not there.
        quotes: Passages relied on, word for word.
    """

    evidence_ids: tuple[str, ...]
    reasoning_summary: str
    counterarguments: tuple[str, ...]
    missing_data: tuple[str, ...]
    quotes: tuple[Quote, ...] = ()

    @field_validator("reasoning_summary")
    @classmethod
    def _short(cls, value: str) -> str:
        words = len(value.split())
        if words > MAX_SUMMARY_WORDS:
            raise ValueError(f"has {words} words; at most {MAX_SUMMARY_WORDS} are allowed")
        return value


class Estimate(Answer):
    """A number with five quantiles.

    Raises:
        ValueError: Quantiles decrease, or the point lies outside [q05, q95].

    Example:
        >>> Estimate(point=2.0, q05=1.0, q25=1.5, q50=2.0, q75=2.5, q95=3.0, evidence_ids=(), reasoning_summary="",
        ...          counterarguments=(), missing_data=(), adjustments=(), key_assumptions=(),
        ...          confidence_rationale="").quantiles
        (1.0, 1.5, 2.0, 2.5, 3.0)
    """

    point: float
    q05: float
    q25: float
    q50: float
    q75: float
    q95: float
    adjustments: tuple[Adjustment, ...]
    key_assumptions: tuple[str, ...]
    confidence_rationale: str

    @property
    def quantiles(self) -> tuple[float, float, float, float, float]:
        """The values at levels .05, .25, .50, .75, .95."""
        return (self.q05, self.q25, self.q50, self.q75, self.q95)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if any(low > high for low, high in pairwise(self.quantiles)):
            raise ValueError("quantiles must not decrease from q05 to q95")
        if not self.q05 <= self.point <= self.q95:
            raise ValueError("point must lie between q05 and q95")
        return self


class Probability(Answer):
    """The probability of yes; 0 and 1 are kept as given."""

    p_yes: float = Field(ge=0, le=1)
    confidence: float | None = Field(default=None, ge=0, le=1)
    rationale: str


class OptionProbability(Strict):
    """One row of a distribution."""

    option_id: str
    p: float = Field(ge=0, le=1)


class Distribution(Answer):
    """Probabilities over the named options; their sum is checked against the question when read."""

    probabilities: tuple[OptionProbability, ...]
    rationale: str

    def as_dict(self) -> dict[str, float]:
        """Return ``{option id: probability}``."""
        return {row.option_id: row.p for row in self.probabilities}


class Risk(Strict):
    """Something that could go wrong with the chosen option."""

    text: str
    critical: bool = False


def _risk(value: Any) -> Any:
    """A bare string reads as a risk that is not critical."""
    return {"text": value, "critical": False} if isinstance(value, str) else value


class Choice(Answer):
    """A vote for one option, with an optional full ranking that begins with it, and the options that are acceptable."""

    choice: str
    confidence: float = Field(ge=0, le=1)
    rationale: str
    risks: tuple[Annotated[Risk, BeforeValidator(_risk)], ...] = ()
    ranking: tuple[str, ...] | None = None
    approvals: tuple[str, ...] | None = None


class Critique(Strict):
    """What one member says about another member's answer."""

    target_role: str
    agrees: bool
    points: tuple[str, ...]
    evidence_ids: tuple[str, ...]
    suggested_value: float | None = None


class CritiqueSet(Strict):
    """All critiques of one member in one round.

    Example:
        >>> CritiqueSet(critiques=()).critiques
        ()
    """

    critiques: tuple[Critique, ...]

    @field_validator("critiques")
    @classmethod
    def _one_each(cls, value: tuple[Critique, ...]) -> tuple[Critique, ...]:
        targets = [critique.target_role for critique in value]
        if len(set(targets)) != len(targets):
            raise ValueError("two critiques address the same member")
        return value


class Abstention(Strict):
    """No answer, with the reason. Never a "no" and never a vote."""

    reason: str
    by: Literal["member", "vendor"] = "member"


AnyAnswer = Estimate | Probability | Distribution | Choice
"""What a panel aggregates."""

Said = AnyAnswer | CritiqueSet | Abstention
"""Everything a turn can yield."""
