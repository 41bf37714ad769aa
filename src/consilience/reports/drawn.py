"""How the intervals of a table were drawn, and what must be said beside one: in captions and in cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from consilience.experiments.evaluation import Evaluation
from consilience.inference.intervals import ENOUGH, FEW, LEAST

FLAGS: Final = {
    "few_clusters": "few clusters",
    "descriptive_only": "descriptive only",
    "no_interval": "no interval: one cluster",
    "below_possible": "reaches below 0",
}
"""What flags of intervals say in a cell; others are told elsewhere."""


class Counted(Protocol):
    """What an interval is over."""

    @property
    def n(self) -> int:
        """Items."""

    @property
    def n_clusters(self) -> int:
        """Their clusters."""

    @property
    def flags(self) -> tuple[str, ...]:
        """What is to be known of the interval."""


def flagged(text: str, flags: object) -> str:
    """Return a cell's text with what its flags say behind it.

    Args:
        text: The text.
        flags: Names of flags, parted by blanks; None for none.

    Example:
        >>> flagged("0.250", "no_interval"), flagged("0.250", None)
        ('0.250 (no interval: one cluster)', '0.250')
    """
    notes = [FLAGS[flag] for flag in str(flags or "").split() if flag in FLAGS]
    return f"{text} ({', '.join(notes)})" if notes else text


def drawn(evaluation: Evaluation, measures: Iterable[Counted], *, most: int | None = None) -> str:
    """Return n, G, B and seed of the intervals of a table, and how far these may be believed; empty without any.

    Args:
        evaluation: What was evaluated.
        measures: With the items and clusters of each row's interval.
        most: Resamples that are taken at most; None takes all.
    """
    told = list(measures)
    if not told:
        return ""
    items, groups = ({getattr(one, name) for one in told} for name in ("n", "n_clusters"))
    below = [one for one in told if "below_possible" in one.flags]
    end = " Where an interval reaches below 0 the score itself cannot." if below else ""
    said = f"n = {_span(items)}, G = {_span(groups)} clusters"
    resamples, least = evaluation.n_resamples, min(groups)
    if resamples is not None:
        said += f", B = {min(resamples, most or resamples):,}, seed {evaluation.seed}"
    if least < LEAST:
        return f"{said}; no interval from one cluster.{end}"
    if least < FEW:
        return f"{said}; below {FEW} clusters intervals only describe.{end}"
    return f"{said}; standard error × t(G − 1) below {ENOUGH} clusters.{end}" if least < ENOUGH else f"{said}.{end}"


def _span(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
