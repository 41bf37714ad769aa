"""Inspect: its mock model asked directly, and an evaluation of a sample per item whose solver asks every member."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, eval_async
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect, json_schema

from load import REPLY, SEATS, Reply, measured, prompt_of, system_of

CONFIG = GenerateConfig(response_schema=ResponseSchema(name="reply", json_schema=json_schema(Reply)))


def _said(*_: Any) -> ModelOutput:
    # With its usage, as a vendor reports it: without, the mock counts tokens by a file that it downloads.
    output = ModelOutput.from_content(model="mockllm", content=REPLY)
    output.usage = ModelUsage(input_tokens=900, output_tokens=180, total_tokens=1_080)
    return output


def _model() -> Model:
    return get_model("mockllm/model", custom_outputs=_said, memoize=False)


def _shown(seat: int, prompt: str) -> list[ChatMessage]:
    return [ChatMessageSystem(content=system_of(seat)), ChatMessageUser(content=prompt)]


async def _ask(model: Model, seat: int, prompt: str) -> Reply:
    said = await model.generate(_shown(seat, prompt), config=CONFIG)
    return Reply.model_validate_json(said.completion)


async def _model_only(items: int) -> list[Reply]:
    model = _model()
    return await asyncio.gather(*(_ask(model, seat, prompt_of(item)) for item in range(items) for seat in range(SEATS)))


async def _evaluation(items: int) -> Sequence[Reply]:
    heard: list[Reply] = []

    @solver
    def panel() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            del generate
            model = get_model()
            replies = await collect(*(_ask(model, seat, state.input_text) for seat in range(SEATS)))
            heard.extend(replies)
            points = [reply.answer.point for reply in replies if reply.answer]
            state.store.set("point", sorted(points)[len(points) // 2])
            return state

        return solve

    @scorer(metrics=[mean()])
    def error() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=abs(state.store.get("point") / float(target.text) - 1))

        return score

    dataset = [Sample(id=f"item-{item}", input=prompt_of(item), target="512345") for item in range(items)]
    with tempfile.TemporaryDirectory() as folder:
        logs = await eval_async(
            Task(dataset=dataset, solver=panel(), scorer=error()), model=_model(), log_dir=folder, max_samples=items
        )
    if logs[0].status != "success":
        raise SystemExit(f"the evaluation ended as {logs[0].status}: {logs[0].error}")
    return heard


if __name__ == "__main__":
    measured({"model only": _model_only, "evaluation": _evaluation}, packages=["inspect-ai", "pydantic"])
