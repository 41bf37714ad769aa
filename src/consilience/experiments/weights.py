"""Frozen weights: what validation runs taught each panel, kept in one file and applied unchanged afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final, Literal

from consilience.aggregation.answers import FittedPanel
from consilience.aggregation.fitting import FittedNumbers
from consilience.aggregation.numbers import Scale
from consilience.aggregation.resolved import FittedProbabilities
from consilience.core.question import Kind, Question, Strict
from consilience.core.role import Role
from consilience.errors import PlanError
from consilience.experiments.artefact import Artefact

FITTED_SPLIT: Final = "validation"
"""The only split that weights may come from."""
FILE: Final = "aggregation_weights.json"
_SHOWN: Final = 5


class WeightSource(Strict):
    """A run whose answers weights were fitted on.

    Attributes:
        run_id: Its id.
        journal_head: Hash of the last record of its finished journal.
        items: Digest of question and packet by item.
    """

    run_id: str
    journal_head: str
    items: dict[str, str]


class PanelWeights(Strict):
    """What validation taught about one panel on one sort of question.

    Attributes:
        arm: Label of the arm, rounds spelled out.
        committee: How models were assigned to roles.
        models: Model ids the committee drew on; simulated analysts never stand for real models.
        kind: Of the questions.
        scale: Of the questions.
        unit: Of the questions; None where they have none.
        roles: Everybody who was seated, answered or not.
        mandates: Hash of text and view by role: weights belong to what a role was told, not to its name.
        numbers: Of an estimate's roles.
        probabilities: Of a probability's roles, which stand for seats in it.
    """

    arm: str
    committee: str
    models: tuple[str, ...]
    kind: Kind
    scale: Scale
    unit: str | None
    roles: tuple[str, ...]
    mandates: dict[str, str]
    numbers: FittedNumbers | None = None
    probabilities: FittedProbabilities | None = None

    def fitted_roles(self) -> set[str]:
        """Return the roles that weights are known of."""
        if self.numbers is not None:
            return set(self.numbers.roles)
        stacking = None if self.probabilities is None else self.probabilities.stacking
        return set(self.roles if stacking is None else stacking)

    def serves(self, question: Question) -> bool:
        """Return whether the question is of the sort that was fitted."""
        return (self.kind, self.scale, self.unit) == (question.kind, question.scale, question.unit)


class Weights(Artefact):
    """The artefact: fitted on validation, never changed afterwards.

    Attributes:
        schema_version: Of this form.
        package_version: That fitted it.
        split: Where the answers come from.
        sources: The runs, sorted by id.
        panels: What was learnt, by panel and sort of question.
    """

    noun: ClassVar[str] = "weights"
    verb: ClassVar[str] = "fit-weights"

    schema_version: Literal[1] = 1
    package_version: str
    split: Literal["validation"] = FITTED_SPLIT
    sources: tuple[WeightSource, ...]
    panels: tuple[PanelWeights, ...]


def weights_for(
    weights: Weights, *, arm: str, committee: str, models: Sequence[str], question: Question
) -> PanelWeights | None:
    """Return what was learnt about a panel on questions like this one, or None."""
    wanted = (arm, committee, tuple(models))
    for panel in weights.panels:
        if (panel.arm, panel.committee, panel.models) == wanted and panel.serves(question):
            return panel
    return None


def seat_weights(
    weights: Weights,
    *,
    arm: str,
    committee: str,
    models: Sequence[str],
    question: Question,
    seats: Mapping[str, Role],
) -> FittedPanel | None:
    """Return the weights of a panel's seats for one question; None where nothing was fitted for such a panel.

    Args:
        weights: The frozen artefact.
        arm: Label of the arm.
        committee: How models are assigned to roles.
        models: Model ids the committee draws on.
        question: What is asked.
        seats: Role by seat label, of everybody whose answer is aggregated.

    Raises:
        PlanError: The panel has other roles than the one that was fitted, or roles told otherwise, or a role gave no
            answer on validation.
    """
    found = weights_for(weights, arm=arm, committee=committee, models=models, question=question)
    if found is None:
        return None
    now = {role.id: role.digest for role in seats.values()}
    if len(now) != len(seats) or now != found.mandates:
        odd = [role for role in sorted(now.keys() | found.mandates.keys()) if now.get(role) != found.mandates.get(role)]
        raise PlanError(
            f"the weights of {arm} were fitted on another panel; not the same on both: {', '.join(odd[:_SHOWN])}",
            hint="Fit the weights on a validation run of this panel.",
        )
    silent = sorted(set(found.roles) - found.fitted_roles())
    if silent:
        raise PlanError(
            f"the weights of {arm} know nothing of {', '.join(silent)}: no answer on validation",
            hint="Fit on a validation run in which every role answers, or run without weights.",
        )
    numbers, probabilities = found.numbers, found.probabilities
    if probabilities is not None and probabilities.stacking is not None:
        shares = probabilities.stacking
        probabilities = replace(probabilities, stacking={seat: shares[role.id] for seat, role in seats.items()})
    return FittedPanel(
        numbers=None if numbers is None else {seat: numbers.roles[role.id] for seat, role in seats.items()},
        probabilities=probabilities,
    )


def refuse_in_sample(weights: Weights, *, items: Mapping[str, str], split: str | None) -> None:
    """Raise where items were among those that the weights were fitted on.

    Args:
        weights: The frozen artefact.
        items: Digest of question and packet by item.
        split: That the items belong to; on another named split than validation only the very same item counts.

    Raises:
        PlanError: With the items.
    """
    fitted = {name: digest for source in weights.sources for name, digest in source.items.items()}
    near = split in {None, FITTED_SPLIT}
    inside = [name for name, digest in items.items() if name in fitted and (near or fitted[name] == digest)]
    if inside:
        more = f" and {len(inside) - _SHOWN} more" if len(inside) > _SHOWN else ""
        raise PlanError(
            f"in-sample use: the weights were fitted on {', '.join(inside[:_SHOWN])}{more}",
            hint="Apply them to the test or holdout split; on validation itself they flatter.",
        )


def weights_source(weights: Weights | None, *, arm: str, committee: str, models: Sequence[str]) -> str:
    """Return what a manifest says of where the fitted rules' weights come from.

    Example:
        >>> weights_source(None, arm="E_single", committee="all_openai", models=("m",))
        'none: fitted rules use equal weights'
    """
    if weights is None:
        return "none: fitted rules use equal weights"
    wanted = (arm, committee, tuple(models))
    if all((panel.arm, panel.committee, panel.models) != wanted for panel in weights.panels):
        return f"none for this panel in sha256 {weights.sha256}: fitted rules use equal weights"
    runs = ", ".join(source.run_id for source in weights.sources)
    return f"sha256 {weights.sha256}, fitted on {weights.split}: {runs}"
