"""What a quantity is when it does not exist: a reason, never a number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Undefined:
    """A quantity that does not exist here.

    Attributes:
        reason: Why, in words that fit behind "undefined:".
    """

    reason: str
