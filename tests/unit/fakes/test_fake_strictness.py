"""What the fake refuses, and that it knows every field the installed SDKs can send."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from consilience.fakes import anthropic_shapes, openai_shapes
from consilience.fakes.schemas import schema_problems
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import Settings, known_models
from consilience.models.prices import ModelSpec
from vendor_clients import BODIES, CANARY, SCHEMA, chat, messages, responses, with_clients
from vendor_clients import ask as ask_fake

HEADERS = {"user_profile_id", "workspace_id"}
COMPATIBLE_ONLY = {"top_k", "min_p", "grammar", "cache_prompt", "id_slot"}


def keys(typed_dict: Any) -> set[str]:
    return set(typed_dict.__required_keys__ | typed_dict.__optional_keys__)


def test_the_shapes_know_every_field_of_the_installed_sdks() -> None:
    known = set(anthropic_shapes.MessagesShape.model_fields) | anthropic_shapes.UNSPOKEN
    assert known == keys(MessageCreateParamsNonStreaming) - HEADERS
    counted = set(anthropic_shapes.CountShape.model_fields)
    assert counted == keys(MessageCountTokensParams) - HEADERS - anthropic_shapes.UNSPOKEN
    known = set(openai_shapes.ResponsesShape.model_fields) | openai_shapes.UNSPOKEN_RESPONSES | openai_shapes.SAMPLING
    assert known == keys(ResponseCreateParamsNonStreaming)
    known = set(openai_shapes.ChatShape.model_fields) | openai_shapes.UNSPOKEN_CHAT
    assert known == keys(CompletionCreateParamsNonStreaming) | COMPATIBLE_ONLY


def blocks(*ttls: str | None) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": "x"} | ({"cache_control": {"type": "ephemeral", "ttl": ttl}} if ttl else {})
        for ttl in ttls
    ]


def with_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"temperature": 1.0}, "temperature: Extra inputs are not permitted"),
        ({"top_p": 0.5}, "top_p: Extra inputs"),
        ({"top_k": 5}, "top_k: Extra inputs"),
        ({"seed": 1}, "seed: Extra inputs"),
        ({"stop_sequences": ["x"]}, "does not model"),
        ({"max_tokens": 21_334}, "streaming"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stream": True}, "stream"),
        ({"system": blocks("5m", "5m", "5m", "5m", "5m")}, "maximum of 4 blocks"),
        ({"system": blocks("5m", "5m", "5m", "5m"), "cache_control": {"type": "ephemeral"}}, "maximum of 4 blocks"),
        ({"system": blocks("5m", "1h")}, "must not come after"),
        ({"system": [{"type": "text", "text": " \n"}]}, "system"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "{"}]}, "prefilling"),
        ({"messages": [{"role": "system", "content": "x"}]}, "role"),
        ({"output_config": {"effort": "immense"}}, "effort"),
        (with_schema({"type": "object", "additionalProperties": {"type": "number"}}), "additionalProperties"),
        ({"metadata": {"run": "x"}}, "metadata.run"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_messages_refuse(fake: FakeServer, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=said):
        ask_fake(fake, "messages", {"model": "", "max_tokens": 1, "messages": []}, extra_body=messages() | changed)
    assert said.replace("\\", "") in (fake.hits[0].refused or "")


@pytest.mark.parametrize(
    ("changed", "code", "param"),
    [
        ({"temperature": 1.0}, "unsupported_parameter", "temperature"),
        ({"top_p": 1.0}, "unsupported_parameter", "top_p"),
        ({"effort": "high"}, "unknown_parameter", "effort"),
        ({"previous_response_id": "r"}, "invalid_value", "previous_response_id"),
        ({"max_output_tokens": 1}, "invalid_value", "max_output_tokens"),
        (
            {"text": {"format": {"type": "json_schema", "name": "a b", "schema": SCHEMA, "strict": True}}},
            "invalid_value",
            "text.format.name",
        ),
        (
            {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
            "invalid_value",
            "text.format.strict",
        ),
        (
            {"text": {"format": {"type": "json_schema", "name": "a", "strict": True}}},
            "invalid_value",
            "text.format.schema",
        ),
        (
            {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}}},
            "invalid_json_schema",
            "text.format.schema",
        ),
    ],
)
def test_responses_refuse(fake: FakeServer, changed: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask_fake(fake, "responses", extra_body=responses() | changed)
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"tools": []}, "tools"),
        ({"n": 2}, "n"),
        ({"guided": 1}, "guided"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "array"}, "strict": True},
                }
            },
            "response_format.schema",
        ),
    ],
)
def test_chat_refuses(fake: FakeServer, changed: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask_fake(fake, "chat", extra_body=chat() | changed)
    assert caught.value.param == param


def test_a_stored_response_is_noted(fake: FakeServer) -> None:
    ask_fake(fake, "responses", responses(store=True))
    ask_fake(fake, "responses", {name: part for name, part in responses().items() if name != "store"})
    ask_fake(fake, "responses")
    assert [len(hit.notes) for hit in fake.calls()] == [1, 1, 0]


@pytest.mark.parametrize("endpoint", BODIES)
def test_unknown_models_and_those_of_others_are_not_found(fake: FakeServer, endpoint: str) -> None:
    other = "gpt-6.1-sol" if endpoint == "messages" else "claude-sonnet-5-5"
    for model in ("nobody", other):
        with pytest.raises((anthropic.NotFoundError, openai.NotFoundError), match=model):
            ask_fake(fake, endpoint, BODIES[endpoint](model=model))


@pytest.mark.parametrize("endpoint", BODIES)
def test_a_key_is_needed_and_must_be_known(fake: FakeServer, endpoint: str) -> None:
    unsigned = {"x-api-key": "", "Authorization": "Basic x"}
    with pytest.raises((anthropic.AuthenticationError, openai.AuthenticationError)):
        ask_fake(fake, endpoint, extra_headers=unsigned)
    fake.reset(settings=Settings(keys=frozenset({"another"})))
    with pytest.raises((anthropic.AuthenticationError, openai.AuthenticationError)):
        ask_fake(fake, endpoint)
    fake.reset(settings=Settings(keys=frozenset({CANARY})))
    assert ask_fake(fake, endpoint).id


def test_limits_of_the_model_hold(fake: FakeServer) -> None:
    small = ModelSpec(provider="anthropic", context_tokens=2_000, max_output_tokens=500)
    models = {**known_models(), "small": small, "gpt-small": ModelSpec(provider="openai", context_tokens=2_000)}
    fake.reset(settings=Settings(models=models))
    with pytest.raises(anthropic.BadRequestError, match="maximum of small"):
        ask_fake(fake, "messages", messages(model="small"))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        ask_fake(fake, "messages", messages(model="small", max_tokens=500))
    with pytest.raises(openai.BadRequestError) as caught:
        ask_fake(fake, "responses", responses(model="gpt-small"))
    assert caught.value.code == "context_length_exceeded"


def test_other_paths_are_not_found_and_recorded(fake: FakeServer) -> None:
    with pytest.raises(openai.NotFoundError):
        with_clients(fake, lambda clients: clients.openai.embeddings.create(model="m", input="x"))
    assert [(hit.path, hit.status, hit.call_index) for hit in fake.hits] == [("/v1/embeddings", 404, None)]


def an_object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "array", "items": {"type": "string"}}, "must be an object"),
        (an_object(a={"type": "object", "additionalProperties": {"type": "number"}}), "root.a: additionalProperties"),
        (an_object(a={"type": "string"}) | {"required": []}, "every property must be required"),
        (an_object(a={"type": "number", "minimum": 0}), "keyword minimum"),
        (an_object(a={"type": "array"}), "an array needs items"),
        (an_object(a={}), "has no type"),
        (an_object(a={"type": "map"}), "unknown"),
        (an_object(a={"$ref": "#/$defs/none"}), "leads nowhere"),
        (an_object(a={"$ref": "#/$defs/n"}) | {"$defs": {"n": an_object(n={"$ref": "#/$defs/n"})}}, "recursive"),
        (an_object(**{f"f{index}": NULLABLE for index in range(17)}), "17 union fields"),
        (an_object(**{f"f{index}": {"type": ["string", "null"]} for index in range(25)}), "25 optional fields"),
        (an_object(a={"type": "array", "items": True}), "a schema must be an object"),
    ],
)
def test_schemas_outside_the_subset(schema: dict[str, Any], problem: str) -> None:
    assert any(problem in said for said in schema_problems(schema))


def test_schemas_inside_the_subset() -> None:
    used = an_object(a={"$ref": "#/$defs/n"}, b={"$ref": "#/$defs/n"}) | {"$defs": {"n": an_object(c={"enum": [1, 2]})}}
    assert schema_problems(used) == []
    assert schema_problems(an_object(**{f"f{index}": NULLABLE for index in range(16)})) == []
    assert schema_problems(SCHEMA) == []
