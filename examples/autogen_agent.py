"""A panel as an AutoGen agent: of the latest message the first line is the question, each further line an option.

In the checkout `pip install . autogen-agentchat`, then `python examples/autogen_agent.py` prints, with nothing spent:

    steel truss; 2 differ; 0.014924 USD
    tie: stone arch, ferry instead; 5 differ; 0.015108 USD
"""

from collections.abc import Sequence
from functools import partial

import anyio
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage
from autogen_core import CancellationToken
from pydantic import BaseModel

from consilience import Choice, aask


class Outcome(BaseModel):
    """What the panel answers."""

    winner: str | None  # None on a tie or without a quorum
    no_winner_because: str | None
    minority_report: list[str]  # each vote that differs from the outcome; after a tie that is every vote
    cost_usd: float | None
    simulated: bool


class Panel(BaseChatAgent):
    """Asks a panel. Its members are simulated; `live=True, max_spend_usd=1` lets real models speak."""

    produced_message_types = (StructuredMessage[Outcome],)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:  # noqa: ARG002, D102
        question, *options = messages[-1].to_text().splitlines()
        result = await aask(question, kind="choice", options=options)
        votes = [(one.member.role, one.member.answer, one.reasons) for one in result.minority_report]
        against = [f"{who} for {result.label(v.choice)}: {why}" for who, v, why in votes if isinstance(v, Choice)]
        outcome = Outcome(
            winner=result.choice,
            no_winner_because=f"tie: {', '.join(result.tied)}" if result.tied else result.why,
            minority_report=against,
            cost_usd=result.cost_usd,
            simulated=result.simulated,
        )
        return Response(chat_message=StructuredMessage[Outcome](content=outcome, source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget nothing: a panel keeps no memory of a conversation."""


if __name__ == "__main__":
    for options in ("stone arch\nsteel truss", "stone arch\nsteel truss\nferry instead"):
        panel = Panel("panel", "Five analysts who vote on a question with options.")
        told = anyio.run(partial(panel.run, task=f"Which bridge should Ostfeld build?\n{options}"))
        end = Outcome.model_validate_json(told.messages[-1].to_text())
        print(f"{end.winner or end.no_winner_because}; {len(end.minority_report)} differ; {end.cost_usd} USD")
