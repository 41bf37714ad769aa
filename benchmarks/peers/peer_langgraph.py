"""LangGraph: one graph per item, a node per member, all members in one superstep."""

from __future__ import annotations

import asyncio
import operator
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import PydanticOutputParser
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from load import REPLY, SEATS, Reply, measured, prompt_of, system_of

Node = Callable[[Any], Awaitable[dict[str, list[Reply]]]]


class State(TypedDict):
    """What the nodes share."""

    prompt: str
    answers: Annotated[list[Reply], operator.add]


async def _model(system: str, prompt: str) -> str:
    del system, prompt
    return REPLY


async def _plain(state: State, *, seat: int) -> dict[str, list[Reply]]:
    said = await _model(system_of(seat), state["prompt"])
    return {"answers": [Reply.model_validate_json(said)]}


CHAIN = FakeListChatModel(responses=[REPLY]) | PydanticOutputParser(pydantic_object=Reply)


async def _chain(state: State, *, seat: int) -> dict[str, list[Reply]]:
    said = await CHAIN.ainvoke([SystemMessage(system_of(seat)), HumanMessage(state["prompt"])])
    return {"answers": [said]}


async def _run(items: int, node: Callable[..., Awaitable[Any]], saver: BaseCheckpointSaver[str] | None) -> list[Reply]:
    graph = StateGraph(State)
    for seat in range(SEATS):
        name = f"analyst_{seat + 1:02d}"
        graph.add_node(name, partial(node, seat=seat))
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    app = graph.compile(checkpointer=saver)

    async def one(item: int) -> list[Reply]:
        config = {"configurable": {"thread_id": f"item-{item}"}}
        done = await app.ainvoke({"prompt": prompt_of(item), "answers": []}, config)
        answers: list[Reply] = done["answers"]
        return answers

    return [reply for replies in await asyncio.gather(*(one(item) for item in range(items))) for reply in replies]


async def _saved(items: int) -> Sequence[Reply]:
    with tempfile.TemporaryDirectory() as scratch:
        async with AsyncSqliteSaver.from_conn_string(str(Path(scratch) / "checkpoints.sqlite")) as saver:
            return await _run(items, _plain, saver)


if __name__ == "__main__":
    measured(
        {
            "nodes": lambda items: _run(items, _plain, None),
            "chat model and parser": lambda items: _run(items, _chain, None),
            "nodes, checkpoints in SQLite": _saved,
        },
        packages=["langgraph", "langchain-core", "langgraph-checkpoint-sqlite", "pydantic"],
    )
