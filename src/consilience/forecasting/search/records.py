"""What is kept of a tool call: what was fetched, which a journal keeps, and what became of it, which an artefact keeps.

A `ToolRecord` follows from a `Fetched` and the executor's settings alone, so a replay from recorded `Fetched` gives
the same records byte for byte.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, Self

from pydantic import AwareDatetime, Field, JsonValue, model_validator

from consilience.core.question import Strict
from consilience.errors import SearchFailure
from consilience.forecasting.search.document import Hit

Tool = Literal["search", "read"]
UndatedRule = Literal["reject", "flag"]
InjectionRule = Literal["drop", "keep"]


class Fetched(Strict):
    """What one call of a search client brought, before anything is filtered.

    Attributes:
        status: Whether it succeeded.
        failure: The error's short class; None exactly for a success.
        hits: What was found, best first.
        duration_s: Seconds it took; of a shared call, those of the call that was made.
        shared: Another agent of the panel had asked the same, so no call was made.
    """

    status: Literal["success", "error"]
    failure: SearchFailure | None = None
    hits: tuple[Hit, ...] = ()
    duration_s: float = Field(ge=0)
    shared: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.status == "error") != (self.failure is not None) or (self.hits and self.status == "error"):
            raise ValueError("a failure has a class and no hits, a success has no class")
        return self


Carry = Callable[[Tool, dict[str, JsonValue], Callable[[], Awaitable[Fetched]]], Awaitable[Fetched]]
"""(tool, arguments, work): runs the work and records what it gave, or returns what was recorded."""


class Filtered(Strict):
    """A hit that was not kept.

    Attributes:
        url: Canonical where it has such a form, else as the client gave it.
        title: Its title.
        reason: Why, in a few words.
        published: Its date; None where it has none.
    """

    url: str
    title: str
    reason: str
    published: AwareDatetime | None


class Injection(Strict):
    """Injection patterns that were found in a hit, whether it was dropped or kept.

    Attributes:
        url: Canonical.
        patterns: Names of the patterns.
        kept: The id under which it was kept, as the run says; None where it was not.
    """

    url: str
    patterns: tuple[str, ...]
    kept: str | None


class ToolRecord(Strict):
    """What became of one use of a tool.

    Attributes:
        tool: ``search`` or ``read``.
        query: What was searched for; None for a read.
        evidence_id: What was read; None for a search.
        status: ``success`` (also with nothing kept); ``error``, the client failed or the id is unknown; ``blocked``,
            the query or the document is not allowed; ``disabled``, the run searches nothing.
        failure: The error's short class.
        reason: Why it was blocked; None for every other status.
        cutoff: The first inadmissible instant; None for an open question.
        policy: Digest of the source policy.
        kept: Ids that were kept, also those known before, in the client's order.
        filtered: Every hit that was not, with its reason.
        before: Hits dated before the cutoff; without a cutoff, hits with a date.
        undated: Hits without a date.
        after: Hits dated at the cutoff or after it; 0 without a cutoff.
        injections: Hits with injection patterns.
        duration_s: Seconds the call took; 0 where none was made.
        step: The agent's turn.
        attempt: How often this agent had asked the same, this time included.
        repeated: Answered from the agent's own earlier results, so it does not count.
        shared: Answered by a call that another agent of the panel made.
    """

    tool: Tool
    query: str | None = None
    evidence_id: str | None = None
    status: Literal["success", "error", "blocked", "disabled"]
    failure: SearchFailure | None = None
    reason: str | None = None
    cutoff: AwareDatetime | None
    policy: str
    kept: tuple[str, ...] = ()
    filtered: tuple[Filtered, ...] = ()
    before: int = Field(default=0, ge=0)
    undated: int = Field(default=0, ge=0)
    after: int = Field(default=0, ge=0)
    injections: tuple[Injection, ...] = ()
    duration_s: float = Field(default=0.0, ge=0)
    step: int
    attempt: int = Field(ge=1)
    repeated: bool = False
    shared: bool = False
