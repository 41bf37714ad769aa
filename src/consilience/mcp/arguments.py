"""What assistants may say to each tool, checked strictly: no unknown name passes, and no call without a cap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from consilience.config import validate
from consilience.errors import ConfigError
from consilience.experiments.asked import MAX_QUESTION_BYTES
from consilience.experiments.spending import amount_nano

CAP = "max_spend_usd"

Question = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_BYTES, description="The question, in words.")]
Texts = Annotated[list[str], Field(description="Documents that everybody reads: whole texts, never paths.")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
A = TypeVar("A", bound="Arguments")


class Arguments(BaseModel):
    """What a tool is told; nothing is converted and nothing unknown is passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Paid(Arguments):
    """What every tool that may spend money is told.

    Attributes:
        max_spend_usd: The spend cap; there is no default.
        live: Real models speak, where their keys are.
        model: One model for all seats.
        tier: Price tier.
        seed: Decides shuffling, assignment and simulated answers.
        retry_failed: Ask turns again that have no answer.
        details: Everything is returned, not only what matters.
    """

    max_spend_usd: int | float | str = Field(
        description="Spend cap of this question in dollars, such as 0.50; the worst case of every call is reserved "
        "under it. Required; 0 means zero."
    )
    live: bool = Field(
        default=False, description="Let real, paid models speak; needs their keys at the server. Else all is simulated."
    )
    model: str | None = Field(default=None, description="One model for all seats, instead of a committee.")
    tier: Literal["mid", "small"] | None = Field(default=None, description="Price tier of the models.")
    seed: int | None = Field(default=None, description="Decides shuffling, assignment and simulated answers.")
    retry_failed: bool = Field(default=False, description="Ask turns again that have no answer.")
    details: bool = Field(default=False, description="Return everything of the answer; long. get_trace has it too.")


class AskPanel(Paid):
    """One question put to one panel; fields as `consilience ask` has them."""

    question: Question
    kind: Literal["estimate", "probability", "distribution", "choice"] = Field(description="Kind of answer.")
    options: list[str] = Field(default=[], description="Of a choice or distribution: at least two.")
    context: Texts = []
    panel: str = Field(
        default="default", description="default (five members), generalist (one agent alone), or a project's YAML file."
    )
    protocol: Literal["independent", "debate", "delphi", "skeptic", "adversarial"] = "independent"
    rounds: int | None = Field(default=None, ge=1, le=10, description="Rounds of deliberation.")
    committee: Literal["mixed_random", "all_anthropic", "all_openai"] | None = None
    unit: str | None = Field(default=None, description="Of an estimate: what the number counts, such as USD.")
    scale: Literal["log", "linear"] = Field(default="linear", description="Of an estimate: log for positive amounts.")
    lower: float | None = Field(default=None, description="Of an estimate: smallest admissible value.")
    upper: float | None = Field(default=None, description="Of an estimate: largest admissible value.")


class Decide(Paid):
    """One decision put to voters; fields as `consilience decide` has them."""

    question: Question
    options: list[str] = Field(min_length=2, description="What can be decided for.")
    context: Texts = []
    method: str | None = Field(default=None, description="majority (default), supermajority, unanimity, borda, irv …")
    threshold: str | None = Field(default=None, description="What a supermajority demands, such as 2/3.")
    safety_order: list[str] | None = Field(default=None, description="All options, safest first; settles ties.")
    ties: list[Literal["safety_order", "moderator", "human", "random"]] | None = Field(
        default=None, description="The tie rule, in order."
    )
    quick: int | None = Field(default=None, ge=0, description="Members of the quick vote; 0 leaves it out.")
    quick_share: float | None = Field(default=None, description="What a quick vote demands.")
    full_share: float | None = Field(default=None, description="What a full vote demands.")
    passes: int | None = Field(default=None, ge=0, le=3, description="Most passes of the debate.")
    reveal: Literal["positions", "arguments"] | None = None
    quorum: int | None = Field(default=None, ge=0, description="Valid ballots needed; 0 for more than half.")
    panel: str | None = Field(default=None, description="Who votes: a panel, or a project's YAML file.")
    critical: bool = Field(default=False, description="Needs five voters or more.")
    irreversible: bool | None = Field(default=None, description="Can it not be undone?")
    uncertain: bool | None = Field(default=None, description="Is much uncertain?")
    perspectives: bool | None = Field(default=None, description="Is more than one perspective needed?")
    checkable: bool | None = Field(default=None, description="Is it a fact that can be looked up or computed?")
    low_stakes: bool | None = Field(default=None, description="Is little at stake, and can it be undone?")
    panel_anyway: bool = Field(default=False, description="A panel votes although the stakes do not justify one.")
    allow: list[Literal["copies", "axes", "few", "even"]] = Field(
        default=[], description="Shortcomings of the panel that are allowed."
    )


class Forecast(Paid):
    """One question about the future, researched; fields as `consilience forecast` has them."""

    question: Question
    kind: Literal["binary", "multiple_choice", "numeric"] = "binary"
    options: list[str] = Field(default=[], description="Of a multiple-choice question.")
    criteria: str = Field(default="", description="How it is resolved.")
    description: str = Field(default="", description="Background.")
    cutoff: str | None = Field(default=None, description="First inadmissible instant; a date is 00:00 UTC.")
    resolution_date: Day | None = Field(default=None, description="The day it is resolved, such as 2031-06-30.")
    lower: float | None = Field(default=None, description="Numeric: smallest possible value.")
    upper: float | None = Field(default=None, description="Numeric: largest possible value.")
    unit: str | None = Field(default=None, description="Numeric: what the number counts.")
    corpus: str | None = Field(default=None, description="Dated documents: a path inside the project folder.")
    search: Literal["corpus", "tavily", "none", "simulated"] | None = Field(
        default=None, description="Where agents search; a live forecast without a corpus must say it."
    )
    arm: str = Field(default="F_independent", description="F_independent, E_single, G_debate, staged …")
    panel: str | None = Field(default=None, description="Another panel, or a project's YAML file.")
    final: Literal["panel_only", "blend", "strict"] = "panel_only"
    max_steps: int = Field(default=5, ge=1, le=20, description="Steps of an agent.")
    max_search_results: int = Field(default=5, ge=1, le=20, description="Documents kept of one search.")
    undated: Literal["reject", "flag"] = "reject"
    on_injection: Literal["drop", "keep"] = "drop"
    gates: Literal["report", "enforce"] = "report"
    block: list[str] = Field(default=[], description="Hosts that are no source.")
    only: list[str] = Field(default=[], description="Hosts that are searched alone.")


class GetTrace(Arguments):
    """What is on record of one answer: a run's traces by its id, or one of them by its path."""

    run_id: str | None = Field(default=None, description="A run's id: lists its traces.")
    trace: str | None = Field(default=None, description="A trace as a result or this list names it: its text.")
    offset: int = Field(default=0, ge=0, description="Characters of the text to pass over; see next_offset.")


class ListRuns(Arguments):
    """Runs of the project, newest first."""

    limit: int = Field(default=20, ge=1, le=100, description="Most runs listed.")
    offset: int = Field(default=0, ge=0, description="Runs to pass over; see next_offset.")


def read_arguments(tool: str, said: Mapping[str, Any], model: type[A]) -> A:
    """Return what a tool was told.

    Raises:
        ConfigError: A name is unknown (the nearest is named), a value does not fit, or a paid tool was given no cap.

    Example:
        >>> read_arguments("list_runs", {"limit": 5}, ListRuns).limit
        5
    """
    if issubclass(model, Paid) and not set(said) - set(model.model_fields):
        cap = said.get(CAP)
        if cap is None:
            raise ConfigError(
                f"{tool}: no spend cap is given, and without one nothing is asked",
                hint=f"Give {CAP} in dollars, such as 0.50.",
            )
        amount_nano(str(cap), where=f"{tool}: {CAP}")
    return validate(said, model, where=tool)
