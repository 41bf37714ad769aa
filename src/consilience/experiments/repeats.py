"""Which items are asked again, to measure how much a run differs from itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from consilience.core.packet import Item
from consilience.core.panel import seeded_order

SHARE: Final = 0.1
"""Of the items; at least one."""


def repeated(items: Sequence[Item], *, seed: int) -> list[Item]:
    """Return a tenth of the items, rounded up, drawn by the seed: the same ones for every arm and repetition.

    Example:
        >>> repeated([], seed=0)
        []
    """
    by_id = sorted(items, key=lambda item: item.question.id)
    drawn = seeded_order(len(by_id), "repeats", seed, *(item.question.id for item in by_id))
    return [by_id[index] for index in sorted(drawn[: math.ceil(SHARE * len(by_id))])]
