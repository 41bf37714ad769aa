"""From a call to what is said in reply, with its bill, before any vendor's shape is put on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from consilience.fakes.answers import draw_reply, schema_in
from consilience.fakes.caching import CHARS_PER_TOKEN, Charge, PrefixStore, charge_explicit, charge_implicit
from consilience.fakes.calls import Call
from consilience.fakes.faults import OTHER_MODEL, Fault, FaultKind, context_exceeded
from consilience.fakes.refusals import RefusedError, Vendor
from consilience.fakes.settings import Settings
from consilience.fakes.spoiling import out_of_range, with_surrogate

Stop = Literal["end", "max_tokens", "refusal", "context", "content_filter", "failed"]
PROSE = "[fake] It depends on many things, and I would rather talk about it than write JSON."
REFUSAL = "[fake] I cannot help with that."
DEFAULT_MINIMUM = 1_024

_STOPS: Mapping[FaultKind, Stop] = {
    "refusal": "refusal",
    "context_stop": "context",
    "content_filter": "content_filter",
    "failed": "failed",
}
_SPOILERS: Mapping[FaultKind, Callable[[str], str]] = {
    "truncated": lambda text: text[: len(text) // 2],
    "invalid_json": lambda text: text[: len(text) // 2],
    "out_of_range": out_of_range,
    "surrogate": lambda text: with_surrogate(text, escaped=False),
    "surrogate_escape": lambda text: with_surrogate(text, escaped=True),
}


@dataclass(frozen=True)
class Spoken:
    """What is said in reply to a call.

    Attributes:
        text: The text, perhaps empty.
        stop: Why it ended.
        charge: Prompt tokens.
        visible: Output tokens of the text.
        reasoning: Output tokens of reasoning.
        model: The model said to have answered.
        usage: Whether usage is reported, left out, or reported as nulls.
        tier: The service tier said to have been used.
    """

    text: str
    stop: Stop
    charge: Charge
    visible: int
    reasoning: int
    model: str
    usage: Literal["full", "missing", "none"]
    tier: Literal["standard", "batch"]


def vendor_of(call: Call) -> Vendor:
    """Return whose wire format a call came in."""
    return "anthropic" if call.endpoint == "messages" else "openai"


class Speaker:
    """Answers calls and keeps one prompt cache per vendor.

    Args:
        settings: How the fake behaves.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stores: dict[Vendor, PrefixStore] = {
            "anthropic": PrefixStore(settings.clock),
            "openai": PrefixStore(settings.clock),
        }

    def speak(self, call: Call, fault: Fault | None, *, tier: Literal["standard", "batch"] = "standard") -> Spoken:
        """Return the reply to a call; the cache is read but not yet written.

        Raises:
            RefusedError: The prompt exceeds the model's context, or the fault is an error of this endpoint.
        """
        kind = None if fault is None else fault.kind
        spec = self._settings.models[call.model]
        too_long = spec.context_tokens is not None and call.total_tokens > spec.context_tokens
        if too_long or (kind == "context_stop" and call.endpoint != "messages"):
            raise context_exceeded(vendor_of(call))
        if kind == "failed" and call.endpoint != "responses":
            raise RefusedError(500, "The model failed.")
        store = self._stores[vendor_of(call)]
        if call.endpoint == "messages":
            charge = charge_explicit(call, store, minimum=spec.min_cacheable_tokens or DEFAULT_MINIMUM)
        else:
            charge = charge_implicit(call, store)
        text, stop = self._text(call, kind)
        reasoning = self._settings.reasoning_tokens if call.thinks or kind == "empty" else 0
        visible = len(text) // CHARS_PER_TOKEN
        if call.max_tokens is not None and reasoning + visible > call.max_tokens:
            reasoning = min(reasoning, call.max_tokens)
            visible = call.max_tokens - reasoning
            text, stop = text[: visible * CHARS_PER_TOKEN], "max_tokens"
        return Spoken(
            text=text,
            stop=stop,
            charge=charge,
            visible=visible,
            reasoning=reasoning,
            model=OTHER_MODEL if kind == "other_model" else call.model,
            usage="missing" if kind == "usage_missing" else "none" if kind == "usage_none" else "full",
            tier=tier,
        )

    def commit(self, call: Call, spoken: Spoken) -> None:
        """Let the cache remember the prefixes of an answered call."""
        spoken.charge.commit(self._stores[vendor_of(call)])

    def _text(self, call: Call, kind: FaultKind | None) -> tuple[str, Stop]:
        if kind is not None and kind in _STOPS:
            return "", _STOPS[kind]
        if kind == "empty":
            return "", "end"
        text = self._reply(call)
        if kind is not None and kind in _SPOILERS:
            text = _SPOILERS[kind](text)
        return text, "max_tokens" if kind == "truncated" else "end"

    def _reply(self, call: Call) -> str:
        said = None if self._settings.responder is None else self._settings.responder(call)
        if said is not None:
            return said
        schema = call.schema or schema_in(call.text)
        return PROSE if schema is None else draw_reply(schema, call.text, seed=self._settings.seed)
