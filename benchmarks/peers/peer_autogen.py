"""AutoGen: the replay client, asked directly and by an assistant per member and item."""

from __future__ import annotations

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import StructuredMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_core.models import SystemMessage, UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient

from load import REPLY, SEATS, Reply, measured, prompt_of, system_of

ABLE = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "structured_output": True,
    "family": "unknown",
    "multiple_system_messages": False,
}


def _client(replies: int) -> ReplayChatCompletionClient:
    return ReplayChatCompletionClient([REPLY] * replies, model_info=ABLE)


async def _client_only(items: int) -> list[Reply]:
    client = _client(items * SEATS)

    async def ask(item: int, seat: int) -> Reply:
        shown = [SystemMessage(content=system_of(seat)), UserMessage(content=prompt_of(item), source="user")]
        said = await client.create(shown, json_output=Reply)
        return Reply.model_validate_json(said.content)

    return await asyncio.gather(*(ask(item, seat) for item in range(items) for seat in range(SEATS)))


def _assistant(seat: int, client: ReplayChatCompletionClient) -> AssistantAgent:
    name = f"analyst_{seat + 1:02d}"
    return AssistantAgent(name, client, system_message=system_of(seat), output_content_type=Reply)


async def _assistants(items: int) -> list[Reply]:
    client = _client(items * SEATS)

    async def ask(item: int, seat: int) -> Reply:
        # An assistant keeps its conversation, so that an independent answer takes one of its own.
        said = (await _assistant(seat, client).run(task=prompt_of(item))).messages[-1]
        if not isinstance(said, StructuredMessage):
            raise SystemExit(f"not a structured message: {said!r}")
        reply: Reply = said.content
        return reply

    return await asyncio.gather(*(ask(item, seat) for item in range(items) for seat in range(SEATS)))


async def _team(items: int) -> list[Reply]:
    client = _client(items * SEATS)

    async def one(item: int) -> list[Reply]:
        graph = DiGraphBuilder()
        members = [_assistant(seat, client) for seat in range(SEATS)]
        for member in members:
            graph.add_node(member)
        team = GraphFlow(members, graph.build(), custom_message_types=[StructuredMessage[Reply]])
        done = await team.run(task=prompt_of(item))
        return [message.content for message in done.messages if isinstance(message, StructuredMessage)]

    return [reply for replies in await asyncio.gather(*(one(item) for item in range(items))) for reply in replies]


if __name__ == "__main__":
    measured(
        {"client only": _client_only, "assistants": _assistants, "team": _team},
        packages=["autogen-agentchat", "autogen-core", "autogen-ext", "pydantic"],
    )
