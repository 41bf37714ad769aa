"""What decides how research agents work, fixed in a run's plan before anything is searched."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue

from consilience.config import package_text
from consilience.core.question import Strict
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.search.policy import SourcePolicy

MOST_STEPS = 20
CLOSED = "none"
"""The search client of agents that search nothing."""
PROMPTS = ("research_rules", "supervision_rules", "step")


class Conduct(Strict):
    """How agents research; part of the frozen protocol.

    Attributes:
        search: Name of the search client; ``none`` is a closed book.
        client: Identity of the client, such as the digest of a corpus.
        policy: Which sources may be shown.
        max_steps: Steps of an agent in all, the forecast included.
        max_search_results: Documents kept of one search.
        supervisor_searches: Searches of a supervisor.
        undated: Under a cutoff, documents without a date are rejected or kept with a flag.
        on_injection: A document that matches a pattern of injection is dropped or kept; either way it is recorded.
        gates: Failed gates are reported, or send the agent to gather more once and then end it.
        prompts: Rules and step line, as texts.
        questions: What is asked, by item, without how it turned out and without a market's price.
    """

    search: str
    client: dict[str, JsonValue]
    policy: SourcePolicy
    max_steps: int = Field(default=5, ge=1, le=MOST_STEPS)
    max_search_results: int = Field(default=5, ge=1, le=20)
    supervisor_searches: int = Field(default=3, ge=0, le=MOST_STEPS - 2)
    undated: Literal["reject", "flag"] = "reject"
    on_injection: Literal["drop", "keep"] = "drop"
    gates: Literal["report", "enforce"] = "report"
    prompts: dict[str, str]
    questions: dict[str, ForecastQuestion]

    @property
    def closed_book(self) -> bool:
        """Whether there is nothing to search."""
        return self.search == CLOSED

    def recorded(self) -> dict[str, Any]:
        """Return it as JSON values, as a plan holds them."""
        return self.model_dump(mode="json")


def packaged_prompts() -> dict[str, str]:
    """Return the rules and the step line that ship with the package."""
    return {name: package_text(f"prompts/forecasting/{name}.md").strip() for name in PROMPTS}


def conduct_from(recorded: dict[str, Any]) -> Conduct:
    """Return the conduct that a plan holds."""
    return Conduct.model_validate(recorded, strict=False)
