"""What stands behind a model id, and the key under which its calls are recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from consilience.core.canonical import tagged_hash
from consilience.models.request import Completion, Request

KEY_VERSION = 1


@dataclass(frozen=True)
class Identity:
    """Who is called, as far as it decides what the same bytes would be answered by.

    Attributes:
        provider: Adapter name, such as ``simulated``.
        host: Host of the base URL, or ``local``.
        api_version: Version of the wire format.
        adapter_version: Version of our adapter.
        simulated: Whether no real model speaks.
    """

    provider: str
    host: str
    api_version: str
    adapter_version: str
    simulated: bool


class Model(Protocol):
    """A model that can be called. Sampling, retries, money and records are not its business."""

    @property
    def id(self) -> str:
        """Model id, as configured."""
        ...

    @property
    def identity(self) -> Identity:
        """Who is called."""
        ...

    @property
    def min_cacheable_tokens(self) -> int | None:
        """Shortest prefix that is cached, or None where no cache is to be reckoned with."""
        ...

    def wire_body(self, request: Request) -> dict[str, Any]:
        """Return the exact body that would be sent, as JSON values."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Call the model once.

        Raises:
            TransientModelError: The failure may heal.
            FinalModelError: It will not.
        """
        ...


@runtime_checkable
class ProbedModel(Model, Protocol):
    """A model of which a run must first learn, by one recorded call, how it is to be asked."""

    def probe_request(self) -> Request:
        """Return the call to make."""
        ...

    def learn(self, completion: Completion) -> None:
        """Take note of its answer."""
        ...


@runtime_checkable
class HeldModel(Protocol):
    """A model that holds something, such as a process, which is given back after the last call."""

    async def close(self) -> None:
        """Give it back."""
        ...


@runtime_checkable
class DescribedModel(Protocol):
    """A model of which every artefact may say something: that it is tiny, or was asked elsewhere than at its vendor."""

    def describe(self) -> str:
        """Return what is to be said of it, or nothing."""
        ...


def descriptions(models: Mapping[str, Model]) -> list[str]:
    """Return what artefacts say of each model that has something to be said of it."""
    told = {name: model.describe() for name, model in models.items() if isinstance(model, DescribedModel)}
    return [f"{name}: {text}" for name, text in told.items() if text]


def call_key(identity: Identity, body: Mapping[str, Any], *, replicate: int) -> str:
    """Return the key of a call: equal exactly when the same bytes go to the same place for the same replicate.

    SHA-256 over the canonical JSON of wire body, provider, host, API version, adapter version and replicate index.
    """
    return tagged_hash(
        f"call-v{KEY_VERSION}",
        {
            "adapter_version": identity.adapter_version,
            "api_version": identity.api_version,
            "body": body,
            "host": identity.host,
            "provider": identity.provider,
            "replicate": replicate,
        },
    )


def plain_body(request: Request) -> dict[str, Any]:
    """Return the wire body of the models that live in this process: the request itself, the schema by its hash."""
    return {
        "effort": request.effort,
        "max_output_tokens": request.max_output_tokens,
        "messages": [
            {"content": [_plain_block(block.text, cache=block.cache) for block in message.blocks], "role": message.role}
            for message in request.messages
        ],
        "model": request.model,
        "sampling": None if request.sampling is None else dict(request.sampling),
        "schema": {"name": request.contract.name, "sha256": request.contract.sha256},
        "system": [_plain_block(block.text, cache=block.cache) for block in request.system],
        "tools": [dict(tool) for tool in request.tools],
    }


def _plain_block(text: str, *, cache: bool) -> dict[str, Any]:
    return {"cache": cache, "text": text}


def cacheable_prefixes(request: Request, min_tokens: int | None) -> tuple[str, ...]:
    """Return a hash of every prefix of the request that ends in a breakpoint and is long enough to be cached.

    Four characters count as a token; the schema stands before everything else.
    """
    if min_tokens is None:
        return ()
    found: list[str] = []
    digest = hashlib.sha256(f"{request.model}\x1f{request.contract.sha256}".encode())
    size = request.contract.size
    for block in (*request.system, *(block for message in request.messages for block in message.blocks)):
        digest.update(block.text.encode("utf-8", "surrogatepass"))
        size += len(block.text)
        if block.cache and size // 4 >= min_tokens:
            found.append(digest.hexdigest())
    return tuple(found)
