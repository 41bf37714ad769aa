"""Built-in analysts that know only their prompt: deterministic, offline, and labelled simulated everywhere.

An analyst reads the prompt text as a model would and answers in contract, with a bias, a noise and an anchoring λ that
belong to its system prompt and are known to whoever asks `persona`, so that an evaluation can be checked against truth.
How evidence of one application is read is that application's business (`Reader`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from consilience.evidence.reading import ParsedPrompt, parse_prompt
from consilience.models.base import Identity, plain_body
from consilience.models.request import SAMPLES_PER_REPLICATE, Completion, Request, Usage
from consilience.models.scripted import completion, counted, prompt_text

BIAS_SD = 0.04
NOISE_SD = 0.08
LAMBDA_RANGE = (0.1, 0.6)
ZETA_RANGE = (0.3, 0.9)
SIGNAL_SD = 0.05
MIN_CACHEABLE_TOKENS = 1_024
FIRST_TURNS = ("estimate", "argument (round 1)", "research (step 1 ")
"""How the tasks of a seat's first turn about an item begin."""

ENVELOPE: Mapping[str, None] = {"answer": None, "critiques": None, "abstention": None}
ACTION = "action"
"""Names an action of somebody who works in steps; its reply is complete as the reader made it."""


@dataclass(frozen=True)
class Persona:
    """How one simulated analyst errs.

    Attributes:
        bias: Constant error, on the log scale for positive quantities and on the logit scale for probabilities.
        noise: Standard deviation of its error per item, on the same scale.
        anchoring: λ: the share of the way it moves towards the others' consensus in a revision.
        learning: ζ: the share of the way it moves towards what evidence that is new to it says.
    """

    bias: float
    noise: float
    anchoring: float
    learning: float


@dataclass(frozen=True)
class Draws:
    """Random numbers that depend on seed and text only: the same on every machine, in any order of calls."""

    seed: int
    text: str

    def uniform(self, name: str) -> float:
        """Return a number in (0, 1) for this name.

        Example:
            >>> 0 < Draws(1, "prompt").uniform("noise") < 1
            True
        """
        digest = hashlib.sha256(f"{self.seed}\x1f{name}\x1f{self.text}".encode("utf-8", "surrogatepass")).digest()
        return (int.from_bytes(digest[:7], "big") + 0.5) / 2**56

    def normal(self, name: str) -> float:
        """Return a standard normal number for this name (Box & Muller 1958)."""
        radius = math.sqrt(-2 * math.log(self.uniform(name)))
        return radius * math.cos(2 * math.pi * self.uniform(f"{name}/angle"))


def persona(system_text: str, *, seed: int) -> Persona:
    """Return the known errors of the analyst behind a system prompt.

    Bias ~ N(0, .04), noise .08, λ uniform on [.1, .6], ζ uniform on [.3, .9].
    """
    draws = Draws(seed, system_text)

    def between(name: str, low: float, high: float) -> float:
        return low + (high - low) * draws.uniform(name)

    return Persona(
        bias=BIAS_SD * draws.normal("bias"),
        noise=NOISE_SD,
        anchoring=between("anchoring", *LAMBDA_RANGE),
        learning=between("learning", *ZETA_RANGE),
    )


@dataclass(frozen=True)
class Mind:
    """What a reader has to answer with: the prompt, the analyst's errors, its random numbers, its private signal."""

    prompt: ParsedPrompt
    persona: Persona
    draws: Draws
    signal: float | None


Reader = Callable[[Mind], dict[str, Any]]
"""Turns a prompt into the envelope of a reply, or into an action, as JSON values."""


@dataclass(frozen=True)
class Simulated:
    """A simulated model: ``simulated:<id of the model whose price it bears>``.

    Attributes:
        id: Model id.
        reader: How it reads evidence.
        seed: Decides its errors.
        signals: Private signals about the truth by fence tag, for `simulated_oracle` on synthetic items only.
        caches: Prefixes are counted as a vendor's cache would: written by a seat's first turn about an item, read by
            its later ones. Nothing is taken to be kept from one item to the next.
    """

    id: str
    reader: Reader
    seed: int
    signals: dict[str, float] | None = None
    caches: bool = False
    min_cacheable_tokens: ClassVar[None] = None

    @property
    def identity(self) -> Identity:
        """Return the identity; seed and kind of analyst are part of it, since they decide the answers."""
        provider = "simulated" if self.signals is None else "simulated_oracle"
        version = f"1/{self.seed}{'/caches' if self.caches else ''}"
        return Identity(provider=provider, host="local", api_version="1", adapter_version=version, simulated=True)

    def reveal(self, tag: str, item_id: str, truth: float) -> None:
        """Tell an oracle its private signal about one item: the truth with an error of 5 % on the log scale."""
        if self.signals is not None:
            self.signals[tag] = truth * math.exp(SIGNAL_SD * Draws(self.seed, item_id).normal("signal"))

    def wire_body(self, request: Request) -> dict[str, Any]:
        """Return the request itself as JSON values."""
        return plain_body(request)

    async def complete(self, request: Request) -> Completion:
        """Answer from the prompt alone."""
        system = "\n".join(block.text for block in request.system)
        prompt = parse_prompt(prompt_text(request))
        facts = json.dumps([prompt.question, prompt.view, prompt.task, request.replicate], sort_keys=True)
        mind = Mind(
            prompt=prompt,
            persona=persona(system, seed=self.seed),
            draws=Draws(self.seed, system + facts),
            signal=None if self.signals is None else self.signals.get(prompt.tag),
        )
        said = self.reader(mind)
        text = json.dumps(said if ACTION in said else {**ENVELOPE, **said})
        latency_s = round(1 + len(text) / 400 + mind.draws.uniform("latency"), 3)
        usage = cached(request, prompt, counted(request, text)) if self.caches else None
        return completion(request, text, latency_s=latency_s, usage=usage)


def cached(request: Request, prompt: ParsedPrompt, usage: Usage) -> Usage:
    """Return the usage with the request's longest cacheable prefix counted as written or as read.

    Only a prefix that later turns about the same item read is counted so: the one that ends behind the view.
    """
    view = request.messages[0].blocks[0]
    tokens = (sum(len(block.text) for block in request.system) + len(view.text)) // 4
    if not view.cache or tokens < MIN_CACHEABLE_TOKENS:
        return usage
    first = prompt.task.startswith(FIRST_TURNS) and request.replicate % SAMPLES_PER_REPLICATE == 0
    buckets = {"cache_write_5m": tokens} if first else {"cache_read": tokens}
    return replace(usage, input=usage.input - tokens, **buckets)
