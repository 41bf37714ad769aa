"""Which hits are admitted, decided by cutoff, policy, scan and what is known already: pure, hit by hit, in order.

Reasons, in the order in which they are looked for: those of the source policy, ``after the cutoff``, ``undated``,
``injection: …``, ``duplicate address``, ``duplicate content``, ``over the limit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from consilience.core.canonical import canonical_json, sha256_hex
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.policy import Asked, SourcePolicy
from consilience.forecasting.search.records import InjectionRule, UndatedRule
from consilience.forecasting.search.scan import injection_patterns
from consilience.forecasting.search.urls import canonical_url, unescaped, words_of

Period = Literal["before", "undated", "after"]


def period_of(published: datetime | None, cutoff: datetime | None) -> Period:
    """Return on which side of a cutoff a date lies; the cutoff itself is after, and without a cutoff nothing is.

    Example:
        >>> from datetime import UTC
        >>> noon = datetime(2025, 2, 20, 12, tzinfo=UTC)
        >>> period_of(noon, noon), period_of(None, noon), period_of(noon, None)
        ('after', 'undated', 'before')
    """
    if published is None:
        return "undated"
    return "before" if cutoff is None or published < cutoff else "after"


def content_hash(title: str, text: str) -> str:
    """Return the SHA-256 of a document's title and text.

    Example:
        >>> content_hash("a", "b") == content_hash("ab", "")
        False
    """
    return sha256_hex(canonical_json([title, text]))


@dataclass(frozen=True)
class Admission:
    """The rules of one question.

    Attributes:
        question: What is asked.
        policy: Which sources may be shown.
        cutoff: The first inadmissible instant; None for an open question.
        undated: Whether an undated hit is rejected under a cutoff, or kept and flagged.
        on_injection: Whether a hit with injection patterns is dropped.
    """

    question: Asked
    policy: SourcePolicy
    cutoff: datetime | None
    undated: UndatedRule = "reject"
    on_injection: InjectionRule = "drop"

    def judge(self, hit: Hit) -> tuple[str | None, tuple[str, ...]]:
        """Return why a hit is not admitted (None where it is), and its injection patterns.

        The scan is made of every hit, so that an attempt is recorded whatever else keeps the hit out, and of all that
        is shown of it, the words of its address too.
        """
        url = spelled(hit)
        patterns = injection_patterns(f"{hit.title}\n{hit.text}\n{unescaped(url)}\n{words_of(url)}")
        reason = self.policy.why_blocked(hit, self.question)
        period = period_of(hit.published, self.cutoff)
        if reason is None and period == "after":
            reason = "after the cutoff"
        if reason is None and period == "undated" and self.cutoff is not None and self.undated == "reject":
            reason = "undated"
        if reason is None and patterns and self.on_injection == "drop":
            reason = f"injection: {', '.join(patterns)}"
        return reason, patterns

    def flags(self, hit: Hit) -> bool:
        """Return whether an admitted hit carries the warning that its date is unknown under a cutoff."""
        return self.cutoff is not None and hit.published is None


def spelled(hit: Hit) -> str:
    """Return a hit's canonical address, or the one the client gave where it has none."""
    return canonical_url(hit.url) or hit.url
