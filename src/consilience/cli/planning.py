"""From what a user asked of a run to its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from consilience.cli.place import Place
from consilience.cli.running import Wanted
from consilience.core.packet import Item
from consilience.core.panel import Labels
from consilience.experiments.artefact import load_artefact
from consilience.experiments.matching import match_of
from consilience.experiments.plan import SEALED, Choices, Plan, make_plan, shown_items
from consilience.experiments.repeats import repeated
from consilience.experiments.settings import Settings
from consilience.experiments.weights import FILE as WEIGHTS_FILE
from consilience.experiments.weights import Weights


@dataclass(frozen=True)
class Asked:
    """What a user asked of ``run-arm``.

    Attributes:
        arm: Name of a treatment.
        rounds: Rounds of deliberation, or several nested ones; empty keeps the treatment's own.
        panel: Who answers, by name or file; None for the treatment's own panel.
        labels: What members know each other by; None for the panel's own.
        replicate: 0 for the run itself; above, a repetition of it over a tenth of the items.
        match: What each item may cost, as the user said it; None for no match.
        weights: File of frozen weights; None takes the project's own for test and holdout.
        model: One model for all seats; None for a committee.
        run_id: Chosen name of the run; None derives it from the plan.
        drop_empty_seats: Leave out seats that see one section at most.
        live: Real models speak.
        caches: Simulated analysts count their tokens as if the vendor kept prefixes.
        oracle: Simulated analysts have a private signal.
        batch: They are called through the vendors' batches.
        engine: Where turns are taken: ``local`` or ``ray``.
        workers: Of the Ray engine; None for one per CPU of the cluster.
        wanted: Which items.
        settings: Flags, environment and file.
    """

    arm: str
    rounds: tuple[int, ...]
    panel: str | None
    labels: Labels | None
    replicate: int
    match: str | None
    weights: Path | None
    model: str | None
    run_id: str | None
    drop_empty_seats: bool
    live: bool
    caches: bool
    oracle: bool
    batch: bool
    wanted: Wanted
    settings: Settings
    engine: str = "local"
    workers: int | None = None


def planned(place: Place, asked: Asked, items: Sequence[Item]) -> tuple[Plan, list[Item]]:
    """Return the plan of what was asked, and the items as it shows them.

    Raises:
        ConfigError: A word is unknown.
        PlanError: What was asked cannot work together.
    """
    settings, wanted = asked.settings, asked.wanted
    if asked.model is not None:
        settings.catalogue.spec(asked.model)  # says "model" where it is unknown, not "committee"
    chosen = repeated(items, seed=settings.seed) if asked.replicate else items
    shown = shown_items(wanted.application, chosen, arm=asked.arm, seed=settings.seed)
    ids = [item.question.id for item in shown]
    choices = Choices(
        arm=asked.arm,
        rounds=asked.rounds,
        committee=settings.committee,
        tier=settings.tier,
        split=wanted.split,
        seed=settings.seed,
        panel=asked.panel,
        labels=asked.labels,
        replicate=asked.replicate,
        match=None if asked.match is None else match_of(asked.match, ids, run_folder=place.recorded_run),
        weights=_weights(place, asked),
        drop_empty_seats=asked.drop_empty_seats,
        live=asked.live,
        caches=asked.caches,
        oracle=asked.oracle,
    )
    return make_plan(wanted.application, shown, choices, catalogue=settings.catalogue), shown


def _weights(place: Place, asked: Asked) -> Weights | None:
    """Return the weights the user names, or those frozen in the project where the split is one they are kept for."""
    if asked.weights is not None:
        return load_artefact(Weights, asked.weights)
    frozen = place.root / "results" / WEIGHTS_FILE
    return load_artefact(Weights, frozen) if asked.wanted.split in SEALED and frozen.is_file() else None
