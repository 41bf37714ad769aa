"""What Responses, Chat Completions, files and batches take, as the fake reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError

from consilience.fakes.calls import Call, Segment, Ttl
from consilience.fakes.refusals import RefusedError
from consilience.fakes.schemas import NAME, schema_problems
from consilience.fakes.strict import Shape, ShapeT, place_of
from consilience.models.prices import ModelSpec

UNSPOKEN_RESPONSES = frozenset(
    {"access_programs", "background", "background_options", "context_management", "conversation", "image", "include"}
    | {"max_tool_calls", "moderation", "previous_response_id", "prompt", "stream_options", "top_logprobs"}
)
"""Fields that the SDK can send and the fake does not model: refused, so that no test believes they were honoured."""
UNSPOKEN_CHAT = frozenset(
    {"audio", "function_call", "functions", "logit_bias", "logprobs", "modalities", "moderation", "prediction"}
    | {"stream_options", "tool_choice", "tools", "parallel_tool_calls", "top_logprobs", "web_search_options"}
    | {"prompt_cache_options", "prompt_cache_retention"}
)
SAMPLING = frozenset({"temperature", "top_p"})
"""What no model of this vendor takes with reasoning."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Breakpoint(Shape):
    """An explicit cache breakpoint."""

    mode: Literal["explicit"]
    ttl: Literal["30m", "12h"] | None = None


class InputText(Shape):
    """A block of text."""

    type: Literal["input_text", "output_text"]
    text: str
    prompt_cache_breakpoint: Breakpoint | None = None


class InputMessage(Shape):
    """One message."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputText] = Field(min_length=1)


class TextFormat(Shape):
    """The response schema."""

    type: Literal["json_schema", "text"]
    name: str = ""
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None
    description: str | None = None


class TextConfig(Shape):
    """How the text is to look."""

    format: TextFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class Reasoning(Shape):
    """The reasoning mode."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class CacheOptions(Shape):
    """How prompts are cached."""

    mode: Literal["implicit", "explicit"] = "implicit"
    ttl: Literal["30m", "12h"] = "30m"


class ResponsesShape(Shape):
    """The body of ``/v1/responses``."""

    model: str
    input: str | list[InputMessage] = Field(min_length=1)
    instructions: str | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    max_output_tokens: int | None = Field(default=None, ge=16)
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool | None = None
    prompt_cache_key: str | None = Field(default=None, max_length=64)
    prompt_cache_options: CacheOptions | None = None
    prompt_cache_retention: Literal["24h"] | None = None
    safety_identifier: str | None = None
    service_tier: Literal["auto", "default", "flex", "priority", "fast"] | None = None
    store: bool | None = None
    stream: Literal[False] | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    user: str | None = None


class ChatText(Shape):
    """A block of text."""

    type: Literal["text"]
    text: str


class ChatMessage(Shape):
    """One message."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ChatText]


class JsonSchema(Shape):
    """The response schema."""

    name: str
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None
    description: str | None = None


class ResponseFormat(Shape):
    """How the text is to look."""

    type: Literal["json_schema", "json_object", "text"]
    json_schema: JsonSchema | None = None


class ChatShape(Shape):
    """The body of ``/v1/chat/completions``, with the fields that compatible servers add."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    response_format: ResponseFormat | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    n: Literal[1] | None = None
    stream: Literal[False] | None = None
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None
    reasoning_effort: Effort | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    user: str | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    top_k: int | None = None
    min_p: float | None = None
    grammar: str | None = None
    cache_prompt: bool | None = None
    id_slot: int | None = None


class BatchShape(Shape):
    """The body of ``/v1/batches``."""

    input_file_id: str
    endpoint: Literal["/v1/responses", "/v1/chat/completions"]
    completion_window: Literal["24h"]
    metadata: dict[str, str] | None = None


class BatchLine(Shape):
    """One line of a batch's input file."""

    custom_id: str = Field(min_length=1)
    method: Literal["POST"]
    url: str
    body: dict[str, Any]


def read_responses(body: Any, models: Mapping[str, ModelSpec]) -> Call:
    """Return the call that a body of ``/v1/responses`` makes.

    Raises:
        RefusedError: As the vendor would, or because this project must not send it.
    """
    _refuse_fields(body, UNSPOKEN_RESPONSES, SAMPLING)
    shape = valid(ResponsesShape, body)
    _model(shape.model, models, ("openai",))
    text, options = shape.text or TextConfig(), shape.prompt_cache_options or CacheOptions()
    form = text.format
    schema = None
    if form is not None and form.type == "json_schema":
        schema = form.schema_
        _check_schema(form.name, schema, place="text.format")
        if form.strict is not True:
            raise _wrong("text.format.strict", "'text.format.strict' must be true.")
    effort = None if shape.reasoning is None else shape.reasoning.effort
    head = {"schema": schema, "tools": shape.tools}
    return Call(
        endpoint="responses",
        model=shape.model,
        segments=tuple(_input_segments(shape, options.ttl)),
        head=json.dumps({name: part for name, part in head.items() if part}) if schema or shape.tools else "",
        schema=schema,
        max_tokens=shape.max_output_tokens,
        thinks=effort not in (None, "none"),
        cache_domain=f"key={shape.prompt_cache_key} effort={effort} verbosity={text.verbosity}"
        f" tier={shape.service_tier}",
        implicit_ttl=options.ttl if options.mode == "implicit" else None,
    )


def read_chat(body: Any, models: Mapping[str, ModelSpec], *, ignore_schema: bool) -> Call:
    """Return the call that a body of ``/v1/chat/completions`` makes.

    Args:
        body: The body.
        models: Known models.
        ignore_schema: Act as a server that takes ``response_format`` and heeds it not.

    Raises:
        RefusedError: As the server would.
    """
    _refuse_fields(body, UNSPOKEN_CHAT, frozenset())
    shape = valid(ChatShape, body)
    _model(shape.model, models, ("openai", "compatible", "local"))
    form = shape.response_format
    schema = None
    if form is not None and form.type == "json_schema":
        if form.json_schema is None:
            raise _wrong("response_format.json_schema", "Missing required parameter: 'response_format.json_schema'.")
        schema = form.json_schema.schema_
        if form.json_schema.strict:
            _check_schema(form.json_schema.name, schema, place="response_format")
    return Call(
        endpoint="chat",
        model=shape.model,
        segments=tuple(
            Segment(_role(message.role), text)
            for message in shape.messages
            for text in ([message.content] if isinstance(message.content, str) else _texts(message.content))
        ),
        head="" if schema is None else json.dumps({"schema": schema}),
        schema=None if ignore_schema else schema,
        max_tokens=shape.max_completion_tokens or shape.max_tokens,
        thinks=shape.reasoning_effort not in (None, "none"),
        cache_domain=f"key={shape.prompt_cache_key}",
        implicit_ttl="30m",
    )


def valid(shape: type[ShapeT], body: Any) -> ShapeT:
    """Return a body in its shape.

    Raises:
        RefusedError: It has another.
    """
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        place, said = place_of(error)
        if error.errors()[0]["type"] == "extra_forbidden":
            raise RefusedError(400, f"Unknown parameter: '{place}'.", code="unknown_parameter", param=place) from error
        raise _wrong(place, f"Invalid value for '{place}': {said}.") from error


def _refuse_fields(body: Any, unspoken: frozenset[str], unsupported: frozenset[str]) -> None:
    if not isinstance(body, dict):
        return
    for field in sorted(unsupported & body.keys()):
        raise RefusedError(
            400,
            f"Unsupported parameter: '{field}' is not supported with this model.",
            code="unsupported_parameter",
            param=field,
        )
    for field in sorted(unspoken & body.keys()):
        raise _wrong(field, f"'{field}': the fake does not model this field.")


def _wrong(param: str, message: str) -> RefusedError:
    return RefusedError(400, message, code="invalid_value", param=param)


def _model(name: str, models: Mapping[str, ModelSpec], providers: Sequence[str]) -> None:
    if name not in models or models[name].provider not in providers:
        raise RefusedError(
            404, f"The model '{name}' does not exist or you do not have access to it.", code="model_not_found"
        )


def _check_schema(name: str, schema: dict[str, Any] | None, *, place: str) -> None:
    if not NAME.fullmatch(name):
        raise _wrong(f"{place}.name", f"Invalid '{place}.name': 1 to 64 of A-Z a-z 0-9 _ -.")
    if schema is None:
        raise _wrong(f"{place}.schema", f"Missing required parameter: '{place}.schema'.")
    problems = schema_problems(schema)
    if problems:
        raise RefusedError(
            400,
            f"Invalid schema for response_format '{name}': {'; '.join(problems)}",
            code="invalid_json_schema",
            param=f"{place}.schema",
        )


def _input_segments(shape: ResponsesShape, ttl: Ttl) -> list[Segment]:
    segments = [] if shape.instructions is None else [Segment("system", shape.instructions)]
    if isinstance(shape.input, str):
        return [*segments, Segment("user", shape.input)]
    for message in shape.input:
        role = _role(message.role)
        if isinstance(message.content, str):
            segments.append(Segment(role, message.content))
            continue
        for block in message.content:
            mark = block.prompt_cache_breakpoint
            segments.append(Segment(role, block.text, None if mark is None else mark.ttl or ttl))
    return segments


def _role(role: Literal["user", "assistant", "system", "developer"]) -> Literal["system", "user", "assistant"]:
    return "system" if role == "developer" else role


def _texts(blocks: list[ChatText]) -> list[str]:
    return [block.text for block in blocks]
