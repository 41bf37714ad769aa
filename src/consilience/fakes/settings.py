"""How a fake behaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from consilience.fakes.calls import Responder
from consilience.fakes.faults import BatchScript, Script
from consilience.models.prices import ModelSpec, load_catalogue

COMPATIBLE_MODEL = "fake-compatible"
"""The model that the fake's Chat Completions serve beside those of the catalogue."""


def known_models() -> dict[str, ModelSpec]:
    """Return the models of the packaged catalogue and one for compatible servers."""
    return {**load_catalogue().models, COMPATIBLE_MODEL: ModelSpec(provider="compatible", price="free")}


@dataclass(frozen=True)
class Settings:
    """How a fake behaves.

    Attributes:
        script: What goes wrong, call by call.
        responder: Writes the replies; None draws them from the schema.
        batches: How batches go.
        seed: Decides drawn replies and the shuffling of batch results.
        models: Known models with their limits.
        keys: Accepted keys; None accepts any.
        ignore_schema: Chat Completions take ``response_format`` and heed it not.
        reasoning_tokens: Output tokens spent on reasoning where it was asked for.
        latency_s: Seconds between reading the cache and answering; calls under way together do not see each other's
            cache writes.
        clock: Tells the time, seconds since the epoch.
    """

    script: Script = ()
    responder: Responder | None = None
    batches: BatchScript = field(default_factory=BatchScript)
    seed: int = 0
    models: Mapping[str, ModelSpec] = field(default_factory=known_models)
    keys: frozenset[str] | None = None
    ignore_schema: bool = False
    reasoning_tokens: int = 32
    latency_s: float = 0.0
    clock: Callable[[], float] = time.time
