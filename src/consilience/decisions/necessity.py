"""Is a panel justified at all: a score of what is at stake, and what would serve better than a panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import Field

from consilience.core.question import Strict

POINTS: Final = {"irreversible": 2, "uncertain": 2, "perspectives": 1}
JUSTIFIED: Final = 3
"""From so many points on a panel is justified."""
QUICKEST_MS: Final = 500


class Stakes(Strict):
    """What is at stake; None is unknown, which is not no.

    Attributes:
        irreversible: It cannot be undone.
        uncertain: Much is uncertain.
        perspectives: More than one perspective is needed.
        checkable: The question is factual and can be looked up or computed.
        latency_ms: So long the answer may take, in milliseconds.
        low_stakes: Little is at stake, and it can be undone.
    """

    irreversible: bool | None = None
    uncertain: bool | None = None
    perspectives: bool | None = None
    checkable: bool | None = None
    latency_ms: float | None = Field(default=None, ge=0)
    low_stakes: bool | None = None


@dataclass(frozen=True)
class Necessity:
    """Whether a panel is justified.

    Attributes:
        score: Points of what was said to be so, from 0 to 5.
        justified: Whether a panel is; None where what was not said could still change it.
        why: The verdict in a sentence.
        hints: What would serve better than a panel.
    """

    score: int
    justified: bool | None
    why: str
    hints: tuple[str, ...]


def necessity(stakes: Stakes) -> Necessity:
    """Return whether a panel is justified: irreversible 2, uncertain 2, several perspectives 1, from 3 on.

    Example:
        >>> necessity(Stakes(irreversible=True, perspectives=True)).justified
        True
        >>> necessity(Stakes(irreversible=False, uncertain=True, perspectives=False)).justified
        False
        >>> necessity(Stakes()).justified is None
        True
    """
    said = {name: getattr(stakes, name) for name in POINTS}
    score = sum(POINTS[name] for name, value in said.items() if value)
    most = score + sum(POINTS[name] for name, value in said.items() if value is None)
    justified = True if score >= JUSTIFIED else None if most >= JUSTIFIED else False
    unknown = [name for name, value in said.items() if value is None]
    verdicts = {
        True: f"Yes: {score} of 5 points, and from {JUSTIFIED} on a panel is justified.",
        False: f"No: {score} of 5 points, and below {JUSTIFIED} one agent is enough.",
        None: f"Unknown: {score} of 5 points, and nobody said how it stands with: {', '.join(unknown)}.",
    }
    return Necessity(score, justified, verdicts[justified], tuple(_hints(stakes)))


def _hints(stakes: Stakes) -> list[str]:
    latency = stakes.latency_ms
    hints = {
        "the question is factual and can be checked: search or compute instead": bool(stakes.checkable),
        f"an answer within {QUICKEST_MS} ms is needed, which no panel gives": latency is not None
        and latency < QUICKEST_MS,
        "little is at stake and it can be undone: try it and see": bool(stakes.low_stakes),
    }
    return [hint for hint, given in hints.items() if given]
