"""pydantic-ai: one agent per member, its structured output by a tool call (the default) and by prompted JSON."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent, PromptedOutput
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from load import REPLY, SEATS, Reply, measured, prompt_of, system_of


async def _by_tool(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    del messages
    return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, REPLY)])


async def _by_text(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    del messages, info
    return ModelResponse(parts=[TextPart(REPLY)])


async def _run(items: int, model: FunctionModel, output: Any) -> list[Reply]:
    agents = [Agent(model, output_type=output, instructions=system_of(seat)) for seat in range(SEATS)]

    async def ask(item: int, agent: Any) -> Reply:
        reply: Reply = (await agent.run(prompt_of(item))).output
        return reply

    return await asyncio.gather(*(ask(item, agent) for item in range(items) for agent in agents))


if __name__ == "__main__":
    measured(
        {
            "agents, output by tool": lambda items: _run(items, FunctionModel(_by_tool), Reply),
            "agents, prompted output": lambda items: _run(items, FunctionModel(_by_text), PromptedOutput(Reply)),
        },
        packages=["pydantic-ai-slim", "pydantic"],
    )
