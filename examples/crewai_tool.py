"""A panel as a CrewAI tool: an agent calls it with a question and options and reads what came of it.

Install CrewAI beside consilience, from the checkout: `pip install . crewai`
Give it to an agent of yours: `Agent(role=..., goal=..., backstory=..., tools=[PanelTool()])`
Run it alone, without a key: `python examples/crewai_tool.py`. It prints, with nothing spent:

    steel truss; 2 differ; 0.014924 USD
    tie: stone arch, ferry instead; 5 differ; 0.015108 USD
"""

import json

from crewai.tools import BaseTool
from pydantic import BaseModel, Field

from consilience import Choice, Result, ask


class Asked(BaseModel):
    """What an agent hands over; it can neither let real models speak nor raise the spend cap."""

    question: str
    options: list[str] = Field(min_length=2, description="The labels to choose from, each of them once.")


class PanelTool(BaseTool):
    """Asks a panel. Its members are simulated; `live=True, max_spend_usd=1` lets real models speak."""

    name: str = "panel"
    description: str = "Five analysts vote on a question with options. Without a winner, report why; never pick one."
    args_schema: type[BaseModel] = Asked

    def _run(self, question: str, options: list[str]) -> str:
        result = ask(question, kind="choice", options=options)
        told = {
            "winner": result.choice,  # null on a tie or without a quorum
            "no_winner_because": f"tie: {', '.join(result.tied)}" if result.tied else result.why,
            "minority_report": minority(result),
            "cost_usd": result.cost_usd,
            "simulated": result.simulated,
        }
        return json.dumps(told, ensure_ascii=False)


def minority(result: Result) -> list[str]:
    """Return each vote that differs from the outcome, with its reasons; after a tie that is every vote."""
    votes = [(one.member.role, one.member.answer, one.reasons) for one in result.minority_report]
    return [f"{role} for {result.label(vote.choice)}: {why}" for role, vote, why in votes if isinstance(vote, Choice)]


if __name__ == "__main__":
    for options in (["stone arch", "steel truss"], ["stone arch", "steel truss", "ferry instead"]):
        end = json.loads(PanelTool().run(question="Which bridge should Ostfeld build?", options=options))
        print(
            f"{end['winner'] or end['no_winner_because']}; {len(end['minority_report'])} differ; {end['cost_usd']} USD"
        )
