"""What the Messages API takes, as the fake reads it: nothing unknown, and nothing this project must not send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError

from consilience.fakes.calls import Call, Segment, Ttl
from consilience.fakes.refusals import RefusedError
from consilience.fakes.schemas import schema_problems
from consilience.fakes.strict import Shape, ShapeT, place_of
from consilience.models.prices import ModelSpec

MAX_BREAKPOINTS = 4
MAX_NONSTREAMING_TOKENS = 21_333
UNSPOKEN = frozenset({"container", "diagnostics", "inference_geo", "speed", "stop_sequences"})
"""Fields that the SDK can send and the fake does not model: refused, so that no test believes they were honoured."""


class CacheControl(Shape):
    """A cache breakpoint."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] = "5m"


class TextBlock(Shape):
    """A block of text."""

    type: Literal["text"]
    text: str = Field(pattern=r"\S")
    cache_control: CacheControl | None = None


class Message(Shape):
    """One message."""

    role: Literal["user", "assistant"]
    content: str | list[TextBlock] = Field(min_length=1)


class Format(Shape):
    """The response schema."""

    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(Shape):
    """Effort and response schema."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: Format | None = None


class Thinking(Shape):
    """The reasoning mode."""

    type: Literal["adaptive", "disabled"]
    display: Literal["summarized", "omitted"] | None = None


class Metadata(Shape):
    """Who the request is for."""

    user_id: str | None = None


class CountShape(Shape):
    """The body of ``/v1/messages/count_tokens``."""

    model: str
    messages: list[Message] = Field(min_length=1)
    system: str | list[TextBlock] | None = None
    cache_control: CacheControl | None = None
    output_config: OutputConfig | None = None
    thinking: Thinking | None = None
    tool_choice: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None


class MessagesShape(CountShape):
    """The body of ``/v1/messages``."""

    max_tokens: int = Field(ge=1)
    metadata: Metadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    stream: Literal[False] = False


class BatchLine(Shape):
    """One request of a batch."""

    custom_id: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    params: dict[str, Any]


class BatchShape(Shape):
    """The body of ``/v1/messages/batches``."""

    requests: list[BatchLine] = Field(min_length=1)


def read_messages(body: Any, models: Mapping[str, ModelSpec]) -> Call:
    """Return the call that a body of ``/v1/messages`` makes.

    Raises:
        RefusedError: As the vendor would, or because this project must not send it.
    """
    if isinstance(body, dict):
        unspoken = sorted(UNSPOKEN & body.keys())
        if unspoken:
            raise RefusedError(400, f"{unspoken[0]}: the fake does not model this field")
    shape = _valid(MessagesShape, body)
    if shape.max_tokens > MAX_NONSTREAMING_TOKENS:
        raise RefusedError(
            400, f"max_tokens: {shape.max_tokens} needs streaming; at most {MAX_NONSTREAMING_TOKENS} without"
        )
    spec = _model(shape.model, models)
    if spec.max_output_tokens is not None and shape.max_tokens > spec.max_output_tokens:
        raise RefusedError(
            400, f"max_tokens: {shape.max_tokens} > {spec.max_output_tokens}, the maximum of {shape.model}"
        )
    if shape.messages[-1].role != "user":
        raise RefusedError(400, "messages: the final message must be of the user; prefilling is not supported")
    return _call(shape, shape.max_tokens)


def read_count(body: Any, models: Mapping[str, ModelSpec]) -> Call:
    """Return the call whose tokens are to be counted.

    Raises:
        RefusedError: As the vendor would.
    """
    shape = _valid(CountShape, body)
    _model(shape.model, models)
    return _call(shape, None)


def read_batch(body: Any) -> list[BatchLine]:
    """Return the lines of a batch; what each asks is read when the batch runs.

    Raises:
        RefusedError: No lines, or two of one id.
    """
    lines = _valid(BatchShape, body).requests
    ids = [line.custom_id for line in lines]
    if len(set(ids)) != len(ids):
        raise RefusedError(400, "requests: each custom_id must be unique")
    return lines


def _valid(shape: type[ShapeT], body: Any) -> ShapeT:
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        place, said = place_of(error)
        raise RefusedError(400, f"{place}: {said}") from error


def _model(name: str, models: Mapping[str, ModelSpec]) -> ModelSpec:
    spec = models.get(name)
    if spec is None or spec.provider != "anthropic":
        raise RefusedError(404, f"model: {name}")
    return spec


def _call(shape: CountShape, max_tokens: int | None) -> Call:
    segments = tuple(_segments(shape))
    _check_breakpoints(segments)
    config = shape.output_config or OutputConfig()
    schema = None if config.format is None else config.format.schema_
    if schema is not None:
        problems = schema_problems(schema)
        if problems:
            raise RefusedError(400, f"output_config.format.schema: {'; '.join(problems)}")
    head = {"schema": schema, "tools": shape.tools}
    thinks = shape.thinking is not None and shape.thinking.type == "adaptive"
    return Call(
        endpoint="messages",
        model=shape.model,
        segments=segments,
        head=json.dumps({name: part for name, part in head.items() if part}) if schema or shape.tools else "",
        schema=schema,
        max_tokens=max_tokens,
        thinks=thinks,
        cache_domain=f"effort={config.effort} thinks={thinks}",
        implicit_ttl=None,
    )


def _segments(shape: CountShape) -> list[Segment]:
    blocks: list[Segment] = []
    if shape.system is not None:
        blocks += [Segment("system", block.text, _ttl(block)) for block in _blocks(shape.system)]
    for message in shape.messages:
        blocks += [Segment(message.role, block.text, _ttl(block)) for block in _blocks(message.content)]
    if shape.cache_control is not None:
        blocks[-1] = Segment(blocks[-1].role, blocks[-1].text, shape.cache_control.ttl)
    return blocks


def _blocks(content: str | list[TextBlock]) -> list[TextBlock]:
    return [TextBlock(type="text", text=content)] if isinstance(content, str) else content


def _ttl(block: TextBlock) -> Ttl | None:
    return None if block.cache_control is None else block.cache_control.ttl


def _check_breakpoints(segments: tuple[Segment, ...]) -> None:
    ttls = [segment.ttl for segment in segments if segment.ttl is not None]
    if len(ttls) > MAX_BREAKPOINTS:
        raise RefusedError(
            400, f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(ttls)}."
        )
    if ttls != sorted(ttls, key=("1h", "5m").index):
        raise RefusedError(400, "cache_control.ttl: a ttl='1h' block must not come after a ttl='5m' block")
