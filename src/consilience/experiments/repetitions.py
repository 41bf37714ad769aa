"""How much a run differs from itself: the items that an arm was asked again."""

from __future__ import annotations

from dataclasses import dataclass

from consilience.core.undefined import Undefined
from consilience.experiments.measures import Recorded
from consilience.inference.variance import Components


@dataclass(frozen=True)
class RunToRun(Recorded):
    """One arm's repetitions under the primary rule.

    Attributes:
        arm: The arm.
        n_items: Items answered in at least two runs.
        n_runs: Runs of the arm, the first one included.
        components: Variance of the signed log error between items and from run to run; undefined where too few items
            were repeated.
        spread: Median over items of the largest less the smallest log answer.
        items: By item: the answers of its runs, in order of runs.
    """

    arm: str
    n_items: int
    n_runs: int
    components: Components | Undefined
    spread: float | Undefined
    items: dict[str, tuple[float, ...]]
