"""What goes wrong on purpose: a fault per hit, and what happens to the lines of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from consilience.fakes.hits import Hit
from consilience.fakes.refusals import RefusedError, Vendor

FaultKind = Literal[
    "status",
    "quota",
    "context_exceeded",
    "schema_refused",
    "hang",
    "trickle",
    "drop",
    "error_body",
    "broken_body",
    "truncated",
    "refusal",
    "context_stop",
    "content_filter",
    "failed",
    "other_model",
    "usage_missing",
    "usage_none",
    "out_of_range",
    "surrogate",
    "surrogate_escape",
    "empty",
    "invalid_json",
]
OTHER_MODEL = "some-other-model-1"


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        kind: ``status`` an error of `status`; ``quota`` a 429 that no waiting heals; ``context_exceeded`` and
            ``schema_refused`` a 400; ``hang`` no answer until the connection closes; ``trickle`` the body comes
            byte by byte, so slowly that nobody waits for its end; ``drop`` the connection closes after half the body;
            ``error_body`` HTTP 200 whose body is an error; ``broken_body`` HTTP 200 whose body is a JSON text that
            breaks off. The others change the reply:
            ``truncated``, ``refusal``, ``context_stop``, ``content_filter`` and ``failed`` how it ends;
            ``other_model``, ``usage_missing``, ``usage_none`` what is said about it; ``out_of_range``, ``surrogate``
            (a lone surrogate in the text), ``surrogate_escape`` (its escape in the text's JSON), ``empty`` (reasoning
            and no text) and ``invalid_json`` the text.
        status: HTTP status of ``status``.
        retry_after: ``Retry-After`` header, sent as it stands.
    """

    kind: FaultKind
    status: int = 0
    retry_after: str | None = None

    def refusal(self, vendor: Vendor) -> RefusedError | None:
        """Return the error that this fault answers with, or None where it answers otherwise."""
        if self.kind == "quota":
            return _quota(vendor)
        if self.kind == "context_exceeded":
            return context_exceeded(vendor)
        if self.kind == "schema_refused":
            return _schema_refused(vendor)
        if self.kind == "error_body":
            return RefusedError(529 if vendor == "anthropic" else 500, "Overloaded")
        if self.kind != "status":
            return None
        headers = {} if self.retry_after is None else {"retry-after": self.retry_after}
        return RefusedError(self.status, f"scripted status {self.status}", headers=headers)


def status(code: int, *, retry_after: str | None = None) -> Fault:
    """Return a fault that answers with an HTTP status.

    Example:
        >>> status(429, retry_after="300")
        Fault(kind='status', status=429, retry_after='300')
    """
    return Fault("status", status=code, retry_after=retry_after)


def context_exceeded(vendor: Vendor) -> RefusedError:
    """Return the vendor's error for a prompt that does not fit."""
    if vendor == "anthropic":
        return RefusedError(400, "prompt is too long: the prompt exceeds the maximum of the model's context window")
    return RefusedError(
        400, "Your input exceeds the context window of this model.", code="context_length_exceeded", param="input"
    )


def _quota(vendor: Vendor) -> RefusedError:
    if vendor == "anthropic":
        return RefusedError(429, "You have reached your spend limit.", code="enforced_spend_limit_reached")
    return RefusedError(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        kind="insufficient_quota",
        code="insufficient_quota",
    )


def _schema_refused(vendor: Vendor) -> RefusedError:
    if vendor == "anthropic":
        return RefusedError(400, "output_config.format.schema: Schema is too complex.")
    return RefusedError(
        400,
        "Invalid schema for response_format: scripted refusal.",
        code="invalid_json_schema",
        param="text.format.schema",
    )


Script = Sequence[Fault | None] | Callable[[Hit], Fault | None]
"""Faults in the order of calls for text (beyond the end all is well), or a function of any hit."""


def by_model(scripts: Mapping[str, Sequence[Fault | None]]) -> Callable[[Hit], Fault | None]:
    """Return a script that counts each model's calls for itself.

    Args:
        scripts: Faults by model id, in the order of that model's calls; other models are well.
    """
    counted: Counter[str] = Counter()

    def fault(hit: Hit) -> Fault | None:
        model = hit.model
        if hit.call_index is None or model is None or model not in scripts:
            return None
        faults, index = scripts[model], counted[model]
        counted[model] += 1
        return faults[index] if index < len(faults) else None

    return fault


LineFault = Literal["missing", "duplicate", "expired"]


@dataclass(frozen=True)
class BatchScript:
    """How batches go.

    Attributes:
        not_found_polls: Retrievals answered with 404 after creation (Anthropic).
        pending_polls: Further retrievals that find the batch unfinished.
        order: Order of the result lines.
        lines: What happens to a line, by its index in the order sent; a fault with a status makes an errored line.
    """

    not_found_polls: int = 0
    pending_polls: int = 0
    order: Literal["sent", "reversed", "shuffled"] = "shuffled"
    lines: Mapping[int, LineFault | Fault] = field(default_factory=dict)
