"""A request for text, as both vendors' wire formats say it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from consilience.errors import DataError
from consilience.evidence.reading import parse_prompt
from consilience.models.simulated import Draws, Mind, Reader, persona

Ttl = Literal["5m", "1h", "30m", "12h"]
Endpoint = Literal["messages", "responses", "chat"]


@dataclass(frozen=True)
class Segment:
    """A run of prompt text.

    Attributes:
        role: Whose text it is.
        text: The text.
        ttl: How long the prefix that ends here is to be cached; None where no breakpoint was set.
    """

    role: Literal["system", "user", "assistant"]
    text: str
    ttl: Ttl | None = None


@dataclass(frozen=True)
class Call:
    """One request for text.

    Attributes:
        endpoint: Where it came in.
        model: Model id.
        segments: The prompt, system first.
        head: What stands before the prompt and is counted with it: schema and tools as JSON.
        schema: The response schema, or None.
        max_tokens: Output limit, or None.
        thinks: Whether reasoning was asked for.
        cache_domain: Settings that must be equal for a cached prefix to be found again.
        implicit_ttl: How long the automatic breakpoint lives; None where there is no automatic breakpoint.
    """

    endpoint: Endpoint
    model: str
    segments: tuple[Segment, ...]
    head: str
    schema: Mapping[str, Any] | None
    max_tokens: int | None
    thinks: bool
    cache_domain: str
    implicit_ttl: Ttl | None

    @property
    def text(self) -> str:
        """All prompt text, system first, as simulated analysts read it."""
        return "\n".join(segment.text for segment in self.segments)

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(segment.text for segment in self.segments if segment.role == "system")

    @property
    def total_tokens(self) -> int:
        """Prompt tokens at four characters a token, rounded down."""
        return (len(self.head) + sum(len(segment.text) for segment in self.segments)) // 4


Responder = Callable[[Call], str | None]
"""Turns a call into the text of the reply, or into None where the fake is to draw one from the schema."""


def simulated_responder(reader: Reader, *, seed: int) -> Responder:
    """Return a responder that answers as `consilience.models.simulated` does for replicate 0.

    Args:
        reader: How the application's evidence is read.
        seed: Decides the analysts' errors.
    """

    def respond(call: Call) -> str | None:
        try:
            prompt = parse_prompt(call.text)
        except DataError:  # no question of ours, such as a probe of the server
            return None
        facts = json.dumps([prompt.question, prompt.view, prompt.task, 0], sort_keys=True)
        mind = Mind(
            prompt=prompt,
            persona=persona(call.system, seed=seed),
            draws=Draws(seed, call.system + facts),
            signal=None,
        )
        return json.dumps({"answer": None, "critiques": None, "abstention": None} | reader(mind))

    return respond
