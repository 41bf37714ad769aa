"""What is said, in each vendor's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consilience.fakes.calls import Call
from consilience.fakes.speaking import REFUSAL, Spoken, Stop

_ANTHROPIC_STOPS: dict[Stop, str] = {
    "end": "end_turn",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "content_filter": "refusal",
    "context": "model_context_window_exceeded",
}


def reply_body(call: Call, spoken: Spoken, *, number: int, now: float) -> dict[str, Any]:
    """Return the JSON body of a reply.

    Args:
        call: What was asked.
        spoken: What is said.
        number: Makes the ids.
        now: Seconds since the epoch.
    """
    make = {"messages": _message, "responses": _response, "chat": _chat}[call.endpoint]
    body = make(call, spoken, number, int(now))
    if spoken.stop == "failed":
        body |= {"output": [], "usage": None}
    elif spoken.usage == "none":
        body["usage"] = _nulls(body["usage"])
    elif spoken.usage == "missing":
        del body["usage"]
    return body


def _nulls(usage: Any) -> Any:
    """Return a usage that names every bucket and knows none."""
    return {name: _nulls(value) if isinstance(value, dict) else None for name, value in usage.items()}


def _message(call: Call, spoken: Spoken, number: int, now: int) -> dict[str, Any]:
    del now
    content: list[dict[str, Any]] = []
    if spoken.reasoning:
        content.append({"type": "thinking", "thinking": "", "signature": f"fake-signature-{number}"})
    if spoken.text:
        content.append({"type": "text", "text": spoken.text})
    refused = spoken.stop in {"refusal", "content_filter"}
    details = {"type": "refusal", "category": None, "explanation": REFUSAL}
    written = spoken.charge.written
    return {
        "id": f"msg_fake_{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": spoken.model,
        "content": content,
        "stop_reason": _ANTHROPIC_STOPS[spoken.stop],
        "stop_sequence": None,
        "stop_details": details if refused else None,
        "usage": {
            "input_tokens": spoken.charge.plain,
            "cache_creation_input_tokens": sum(written.values()),
            "cache_read_input_tokens": spoken.charge.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written.get("5m", 0),
                "ephemeral_1h_input_tokens": written.get("1h", 0),
            },
            "output_tokens": spoken.visible + spoken.reasoning,
            "output_tokens_details": {"thinking_tokens": spoken.reasoning} if call.thinks else None,
            "service_tier": spoken.tier,
        },
    }


def _response(call: Call, spoken: Spoken, number: int, now: int) -> dict[str, Any]:
    del call
    incomplete = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}.get(spoken.stop)
    failed = spoken.stop == "failed"
    status = "failed" if failed else "incomplete" if incomplete else "completed"
    output: list[dict[str, Any]] = []
    if spoken.reasoning:
        output.append({"id": f"rs_fake_{number:06d}", "type": "reasoning", "summary": []})
    content: list[dict[str, Any]] = []
    if spoken.stop == "refusal":
        content.append({"type": "refusal", "refusal": REFUSAL})
    elif spoken.text:
        content.append({"type": "output_text", "text": spoken.text, "annotations": [], "logprobs": []})
    if content:
        output.append(
            {
                "id": f"msg_fake_{number:06d}",
                "type": "message",
                "role": "assistant",
                "status": "incomplete" if incomplete else "completed",
                "content": content,
            }
        )
    written = spoken.charge.written
    input_tokens = spoken.charge.plain + spoken.charge.read + sum(written.values())
    output_tokens = spoken.visible + spoken.reasoning
    return {
        "id": f"resp_fake_{number:06d}",
        "object": "response",
        "created_at": now,
        "status": status,
        "error": {"code": "server_error", "message": "The model failed to generate a response."} if failed else None,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "model": spoken.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "service_tier": "default",
        "store": False,
        "usage": {
            "input_tokens": input_tokens,
            "input_tokens_details": {
                "cached_tokens": spoken.charge.read,
                "cache_write_tokens": sum(written.values()),
                "cache_write_tokens_details": {
                    "ttl_30m_tokens": written.get("30m", 0),
                    "ttl_12h_tokens": written.get("12h", 0),
                },
            },
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": spoken.reasoning},
            "total_tokens": input_tokens + output_tokens,
        },
    }


def _chat(call: Call, spoken: Spoken, number: int, now: int) -> dict[str, Any]:
    del call
    refused = spoken.stop == "refusal"
    prompt_tokens = spoken.charge.plain + spoken.charge.read + sum(spoken.charge.written.values())
    completion_tokens = spoken.visible + spoken.reasoning
    reason = {"max_tokens": "length", "content_filter": "content_filter"}.get(spoken.stop, "stop")
    message = {
        "role": "assistant",
        "content": None if refused else spoken.text,
        "refusal": REFUSAL if refused else None,
    }
    return {
        "id": f"chatcmpl_fake_{number:06d}",
        "object": "chat.completion",
        "created": now,
        "model": spoken.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": spoken.charge.read},
            "completion_tokens_details": {"reasoning_tokens": spoken.reasoning},
        },
    }


def models_body(ids: Mapping[str, str], *, anthropic: bool) -> dict[str, Any]:
    """Return a page of models in the vendor's shape.

    Args:
        ids: Provider by model id.
        anthropic: Whose shape, and whose models.
    """
    if anthropic:
        rows = [anthropic_model(name) for name, provider in ids.items() if provider == "anthropic"]
        first, last = (rows[0]["id"], rows[-1]["id"]) if rows else (None, None)
        return {"data": rows, "has_more": False, "first_id": first, "last_id": last}
    rows = [openai_model(name) for name, provider in ids.items() if provider in {"openai", "compatible"}]
    return {"object": "list", "data": rows}


def anthropic_model(name: str) -> dict[str, Any]:
    """Return one model in Anthropic's shape."""
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
    }


def openai_model(name: str) -> dict[str, Any]:
    """Return one model in OpenAI's shape."""
    return {"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "fake"}
