"""Several arms with one factor changed at a time, declared in a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from consilience.config import validate
from consilience.core.panel import Labels
from consilience.errors import ConfigError
from consilience.registry import nearest


class Cell(BaseModel):
    """One arm of a grid; what is left out is as in the base, or the arm's own.

    Attributes:
        arm: Name of a treatment.
        rounds: Rounds of deliberation, or several nested ones; None keeps the arm's own.
        panel: Who answers, by name or file; None keeps the arm's own.
        labels: What members know each other by; None takes the panel's own.
        committee: How models are assigned to roles; None takes the settings'.
        tier: Price tier; None takes the settings'.
        seed: Decides shuffling, assignment and simulated answers; None takes the settings'.
        match: What a single agent may cost: the label of an arm before it in the grid, a run, or an amount.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm: str
    rounds: tuple[int, ...] = ()
    panel: str | None = None
    labels: Labels | None = None
    committee: str | None = None
    tier: str | None = None
    seed: int | None = None
    match: str | None = None

    @field_validator("rounds", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, int) else value


class GridSpec(BaseModel):
    """What a grid file says.

    Attributes:
        base: The arm that every other differs from in one factor.
        vary: By factor, the values it takes besides the base's. A value of ``arm`` may be a mapping, where an arm needs
            more said to be itself, such as what it is matched to.
        split: Split of the sales; None for a set of questions.
        n: How many of the split's subsample.
        synthetic: The sales of the synthetic town.
        questions: File of questions instead of sales; its path begins in the grid file's folder.
        repeats: How often a tenth of the items is asked again, to measure variation from run to run.
        simulate_caching: Simulated analysts count their tokens as with the vendors' caches.
        max_spend_usd: Cap over all runs of the grid, in dollars.

    Raises:
        ValueError: A value is of the wrong type.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: Cell
    vary: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    split: str | None = None
    n: int = Field(default=24, ge=1)
    synthetic: bool = False
    questions: str | None = None
    repeats: int = Field(default=1, ge=0, le=99)
    simulate_caching: bool = False
    max_spend_usd: str | None = None


def cells(spec: GridSpec) -> list[Cell]:
    """Return the arms of a grid: the base, then one for every value of every factor, in the order written.

    Raises:
        ConfigError: A factor is unknown, a value does not fit it, or two arms are the same.

    Example:
        >>> grid = GridSpec(base=Cell(arm="G_debate"), vary={"arm": ("F_independent",), "rounds": (1, 4)})
        >>> [(cell.arm, cell.rounds) for cell in cells(grid)]
        [('G_debate', ()), ('F_independent', ()), ('G_debate', (1,)), ('G_debate', (4,))]
    """
    found = [spec.base]
    for factor, values in spec.vary.items():
        if factor not in Cell.model_fields:
            raise ConfigError(f'vary: unknown factor "{factor}"', hint=nearest(factor, Cell.model_fields))
        found += [_changed(spec.base, factor, value) for value in values]
    for index, cell in enumerate(found):
        if cell in found[:index]:
            said = ", ".join(f"{name} {value}" for name, value in cell.model_dump(exclude_defaults=True).items())
            raise ConfigError(f"two arms of the grid are the same ({said})", hint="Leave one of them out.")
    return found


def _changed(base: Cell, factor: str, value: Any) -> Cell:
    """Return the base with one factor changed; another arm has its own rounds, panel and match."""
    if factor != "arm":
        return validate({**base.model_dump(), factor: value}, Cell, where=f"vary: {factor}")
    own = value if isinstance(value, Mapping) else {"arm": value}
    shared = base.model_dump(include={"labels", "committee", "tier", "seed"})
    return validate({**shared, **own}, Cell, where="vary: arm")
