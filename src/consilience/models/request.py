"""What is sent to a model and what comes back, in terms every vendor's adapter can honour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

StopReason = Literal["end", "max_tokens", "refusal", "other"]
Effort = Literal["low", "medium", "high"]


SAMPLES_PER_REPLICATE = 1_000
"""Replicate indices of calls that one repetition of a run takes up: as many as samples of one prompt are allowed."""


@dataclass(frozen=True)
class Block:
    """A run of text; ``cache`` asks for a cache breakpoint at its end."""

    text: str
    cache: bool

    @property
    def size(self) -> int:
        """Length in UTF-8 bytes."""
        return len(self.text) if self.text.isascii() else len(self.text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Message:
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Contract:
    """The response schema with its name.

    Attributes:
        name: As vendors name it.
        schema: JSON schema.
        sha256: Identifies it.
        size: Length of its JSON in bytes.
    """

    name: str
    schema: Mapping[str, Any]
    sha256: str
    size: int


@dataclass(frozen=True)
class Request:
    """One call. No field has a default: what is left out is an error, not a surprise.

    Attributes:
        model: Model id.
        system: System blocks, constant per role.
        messages: The conversation.
        tools: Tool declarations, as the vendor-neutral JSON of each.
        contract: Response schema.
        max_output_tokens: Output limit.
        effort: The vendor's adaptive reasoning effort.
        sampling: Sampling parameters, or None; refused where the model's profile takes none.
        replicate: Index that tells apart several samples of one prompt.
    """

    model: str
    system: tuple[Block, ...]
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    contract: Contract
    max_output_tokens: int
    effort: Effort
    sampling: Mapping[str, float] | None
    replicate: int


@dataclass(frozen=True)
class Usage:
    """Tokens in disjoint buckets; their sum is everything that was processed.

    Attributes:
        input: Input read neither from nor into a cache.
        cache_read: Input read from a cache.
        cache_write_5m: Input written to a cache for five minutes.
        cache_write_1h: Input written to a cache for one hour.
        output_visible: Visible output.
        output_reasoning: Output spent on reasoning.
    """

    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output_visible: int
    output_reasoning: int

    @property
    def total(self) -> int:
        """All tokens."""
        return (
            self.input
            + self.cache_read
            + self.cache_write_5m
            + self.cache_write_1h
            + self.output_visible
            + self.output_reasoning
        )


@dataclass(frozen=True)
class Completion:
    """What a model answered.

    Attributes:
        text: The reply.
        stop_reason: Why it ended; looked at before the text is read.
        usage: Tokens, or None where the vendor did not say.
        request_id: The vendor's id of the call, if any.
        latency_s: Seconds from sending to the last byte (virtual for simulated models); None where nobody measured.
        model: The model that answered, as the vendor names it.
        raw: Further metadata, JSON.
    """

    text: str
    stop_reason: StopReason
    usage: Usage | None
    request_id: str | None
    latency_s: float | None
    model: str
    raw: Mapping[str, Any]


def completion_to_json(completion: Completion) -> dict[str, Any]:
    """Return a completion as JSON values for the journal."""
    values = dict(vars(completion))
    values["usage"] = None if completion.usage is None else dict(vars(completion.usage))
    return values


def completion_from_json(value: Mapping[str, Any]) -> Completion:
    """Return the completion that `completion_to_json` wrote.

    Example:
        >>> done = Completion("{}", "end", Usage(1, 0, 0, 0, 2, 0), None, 0.5, "m", {})
        >>> completion_from_json(completion_to_json(done)) == done
        True
    """
    usage = value["usage"]
    return Completion(**{**value, "usage": None if usage is None else Usage(**usage)})
