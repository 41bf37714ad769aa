"""Several arms with one factor changed at a time, declared in a YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict, field_validator

from consilience.config import validate
from consilience.core.panel import Labels
from consilience.errors import ConfigError, PlanError
from consilience.experiments.arms import arm_label, treatment
from consilience.experiments.panels import panel_name, panel_tag
from consilience.registry import nearest

Whole = Annotated[int, Strict()]
"""A whole number that is written as one: neither ``true`` nor text."""


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
    rounds: tuple[Whole, ...] = ()
    panel: str | None = None
    labels: Labels | None = None
    committee: str | None = None
    tier: str | None = None
    seed: Whole | None = None
    match: str | None = None

    @field_validator("rounds", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, int) else value

    @property
    def label(self) -> str:
        """What tables call the arm: its panel where it is not its own, and the rounds in force, spelled out.

        Raises:
            ConfigError: There is no such arm.
            PlanError: It cannot have these rounds.

        Example:
            >>> Cell(arm="G_debate").label, Cell(arm="G_debate", rounds=(4,), panel="placebo").label
            ('G_debate_r2', 'G_debate.placebo_r4')
        """
        declared = treatment(self.arm)
        own = self.panel is None or panel_name(self.panel) == declared.panel
        name = self.arm if own else f"{self.arm}.{panel_tag(self.panel or '')}"
        return arm_label(name, declared.make_protocol(rounds=self.rounds))

    def is_called(self, name: str | None) -> bool:
        """Return whether a match that names this means the arm: by its treatment, or by its label."""
        return name in {self.arm, self.label}


class GridSpec(BaseModel):
    """What a grid file says.

    Attributes:
        base: The arm that every other differs from in one factor.
        vary: By factor, the value or values it takes besides the base's. A value of ``arm`` may be a mapping, where an
            arm needs more said to be itself, such as what it is matched to.
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
    n: Whole = Field(default=24, ge=1)
    synthetic: bool = False
    questions: str | None = None
    repeats: Whole = Field(default=1, ge=0, le=99)
    simulate_caching: bool = False
    max_spend_usd: Whole | Annotated[float, Strict()] | str | None = None

    @field_validator("vary", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError("give factors with their values, such as {rounds: [1, 4]}")  # noqa: TRY004 - pydantic's way
        for factor, values in value.items():
            if not isinstance(values, str | int | float | Mapping | Sequence):
                raise ValueError(f"give {factor} a list of values")  # noqa: TRY004 - the same
        alone = (str, int, float, Mapping)
        return {factor: (values,) if isinstance(values, alone) else values for factor, values in value.items()}


def cells(spec: GridSpec, *, where: str) -> list[Cell]:
    """Return the arms of a grid: the base, then one for every value of every factor, in the order written.

    Args:
        spec: What the file says.
        where: The file, for messages.

    Raises:
        ConfigError: A factor or arm is unknown, a value does not fit it, two arms are the same, or one is matched to an
            arm that stands after it.
        PlanError: An arm cannot have these rounds.

    Example:
        >>> grid = GridSpec(base=Cell(arm="G_debate"), vary={"arm": ("F_independent",), "rounds": (1, 4)})
        >>> [cell.label for cell in cells(grid, where="example")]
        ['G_debate_r2', 'F_independent', 'G_debate_r1', 'G_debate_r4']
    """
    try:
        return _cells(spec)
    except (ConfigError, PlanError) as error:
        raise type(error)(f"{where}: {error.message}", hint=error.hint) from error


def _cells(spec: GridSpec) -> list[Cell]:
    found = [spec.base]
    for factor, values in spec.vary.items():
        if factor not in Cell.model_fields:
            raise ConfigError(f'vary: unknown factor "{factor}"', hint=nearest(factor, Cell.model_fields))
        found += [_changed(spec.base, factor, value) for value in values]
    for index, cell in enumerate(found):
        if cell in found[:index]:
            said = ", ".join(f"{name} {value}" for name, value in cell.model_dump(exclude_defaults=True).items())
            raise ConfigError(f"two arms of the grid are the same ({said})", hint="Leave one of them out.")
        named = [at for at, other in enumerate(found) if other.is_called(cell.match)]
        if named and named[0] >= index:
            raise ConfigError(f"the arm {cell.match} to be matched stands later in the grid", hint="Put it before.")
    return found


def _changed(base: Cell, factor: str, value: Any) -> Cell:
    """Return the base with one factor changed; another arm has its own rounds, panel and match."""
    if factor != "arm":
        return validate({**base.model_dump(), factor: value}, Cell, where=f"vary: {factor}")
    own = value if isinstance(value, Mapping) else {"arm": value}
    shared = base.model_dump(include={"labels", "committee", "tier", "seed"})
    return validate({**shared, **own}, Cell, where="vary: arm")
