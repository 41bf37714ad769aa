"""The real SDKs as clients of a fake, and bodies as the adapters would send them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from anthropic import AsyncAnthropic
from anyio.from_thread import BlockingPortal, start_blocking_portal
from openai import AsyncOpenAI

from consilience.core.schema import wire_schema
from consilience.evidence.rendering import fence
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import COMPATIBLE_MODEL

T = TypeVar("T")
CANARY = "sk-canary-0123456789"
TAG = "0123456789abcdef"
SYSTEM = "You are one of several. " * 400  # 2,400 tokens
SCHEMA = wire_schema("probability")
TASK = "TASK: estimate (round 0). Fill `answer` only."


def prompt(kind: str, task: str, *, committee: dict[str, Any] | None = None, **question: Any) -> str:
    """A prompt in this package's layout, with one evidence item."""
    context = {"question": {"text": "?", **question}, "sections": {"X": "Context"}, "notes": []}
    return "\n".join(
        [
            f"Fence tag: {TAG}",
            f"Kind of answer: {kind}",
            "Valuation date: none",
            "Information cutoff: 2026-01-01 (last admissible day)",
            fence(TAG, context, label="context"),
            fence(TAG, {"X": [{"id": "X1", "value": 7}]}, label="view"),
            *([] if committee is None else [fence(TAG, committee, label="committee")]),
            f"TASK: {task} (round 0).",
        ]
    )


def messages(text: str = TASK, **changed: Any) -> dict[str, Any]:
    """A body of /v1/messages as the adapter would send it."""
    cached = {"type": "ephemeral", "ttl": "5m"}
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 4_000,
        "system": [{"type": "text", "text": SYSTEM, "cache_control": cached}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
        "output_config": {"effort": "medium", "format": {"type": "json_schema", "schema": SCHEMA}},
        "thinking": {"type": "adaptive"},
    } | changed


def responses(text: str = TASK, **changed: Any) -> dict[str, Any]:
    """A body of /v1/responses as the adapter would send it."""
    form = {"type": "json_schema", "name": "probability", "schema": SCHEMA, "strict": True}
    return {
        "model": "gpt-6.1-sol",
        "instructions": SYSTEM,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": text}]}],
        "text": {"format": form},
        "reasoning": {"effort": "medium"},
        "max_output_tokens": 4_000,
        "prompt_cache_key": "seat",
        "store": False,
    } | changed


def chat(text: str = TASK, **changed: Any) -> dict[str, Any]:
    """A body of /v1/chat/completions as the adapter would send it."""
    form = {"name": "probability", "schema": SCHEMA, "strict": True}
    return {
        "model": COMPATIBLE_MODEL,
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}],
        "response_format": {"type": "json_schema", "json_schema": form},
        "max_tokens": 4_000,
        "temperature": 0.7,
    } | changed


@dataclass(frozen=True)
class Clients:
    """The real SDKs, pointed at the fake."""

    anthropic: AsyncAnthropic
    openai: AsyncOpenAI

    async def ask(self, endpoint: str, body: dict[str, Any], **options: Any) -> Any:
        """Send a body through the endpoint's SDK."""
        if endpoint == "messages":
            return await self.anthropic.messages.create(**body, **options)
        if endpoint == "responses":
            return await self.openai.responses.create(**body, **options)
        return await self.openai.chat.completions.create(**body, **options)


BODIES = {"messages": messages, "responses": responses, "chat": chat}


def text_of(reply: Any) -> str:
    """The text of a reply of any endpoint."""
    if hasattr(reply, "output_text"):
        return str(reply.output_text)
    if hasattr(reply, "choices"):
        return reply.choices[0].message.content or ""
    return "".join(block.text for block in reply.content if block.type == "text")


@contextmanager
def clients_of(server: FakeServer) -> Iterator[None]:
    """Open clients of a server once, since making them costs more than most tests."""
    with start_blocking_portal() as portal:
        clients = Clients(
            AsyncAnthropic(api_key=CANARY, base_url=server.base_url, max_retries=0),
            AsyncOpenAI(api_key=CANARY, base_url=server.openai_base_url, max_retries=0),
        )
        _OPEN[server.port] = portal, clients
        yield
        del _OPEN[server.port]
        portal.call(clients.anthropic.close)
        portal.call(clients.openai.close)


_OPEN: dict[int, tuple[BlockingPortal, Clients]] = {}


def with_clients(server: FakeServer, use: Callable[[Clients], Awaitable[T]]) -> T:
    """Run an async function with the clients of a server."""
    portal, clients = _OPEN[server.port]
    return portal.call(use, clients)


def ask(server: FakeServer, endpoint: str, body: dict[str, Any] | None = None, **options: Any) -> Any:
    """Send one body and return the reply."""
    return with_clients(server, lambda clients: clients.ask(endpoint, body or BODIES[endpoint](), **options))
